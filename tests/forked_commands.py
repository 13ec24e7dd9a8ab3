"""Commands in processes of their own that need not load the large libraries again.

A server (this file, run as a script) for all test processes loads torch, transformers and the like once. From it fork
further servers, when they are first needed: one loads LightEval as stock, one ours and LightEval as our commands start
it, and one ours and lm-eval with its list of tasks. Each forks for every test process, and that again for every
command, which becomes what `python -m MODULE` would be: with its own folder, variables, module path, output and end,
and without a network unless one is asked for. What the modules read while they load is the same for all: no hub unless
`HF_ENDPOINT` names a test's own, one thread, and `HF_HOME` is the folder `hf` in the command's own.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import BinaryIO

LIBRARIES = "libraries"
NAMES_OF_LIBRARIES = (
    *("torch", "torch._dynamo", "transformers", "transformers.models.auto", "transformers.generation", "accelerate"),
    *("transformers.models.llama.modeling_llama", "transformers.models.llava.modeling_llava", "datasets", "pandas"),
    *("sklearn.metrics", "scipy.stats", "sacrebleu", "nltk", "requests", "chardet", "huggingface_hub.hf_api", "openai"),
    *("pytablewriter", "git", "typer.rich_utils", "latex2sympy2_extended", "inspect_ai", "rouge_score.rouge_scorer"),
    *("camel_tools.tokenizers.word", "evalplus.syncheck", "fasttext", "sklearn.tree"),
    *("altair", "anthropic"),  # the latter is loaded by Inspect whatever the model
)
SERVER = "TESTS_FORKING_SERVER"  # the variable with the folder of its addresses
MAIN_MODULES = ("__main__", "main")  # not imported by others
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000  # CLONE_NEWUSER and CLONE_NEWNET of linux/sched.h


@contextlib.contextmanager
def forking_server():
    """Starts the server, for this process and those that it starts; it loads nothing before it is asked."""
    variables = os.environ | {"HF_HOME": "hf", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    # Of the paths only those of a checkout that is tested in the place of the installed one.
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    variables["PYTHONPATH"] = os.pathsep.join(path for path in paths if path and Path(path, "cultureval").is_dir())
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-P", __file__, folder]
        with subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, start_new_session=True):
            os.environ[SERVER] = folder
            yield
            del os.environ[SERVER]


def own_variables(folder: Path) -> dict[str, str]:
    """This process's variables without settings of ours or of the hub's; caches are in the folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "CULTUREVAL_"))}
    return kept | {"CULTUREVAL_CACHE": str(folder / "cache"), "HF_HOME": str(folder / "hf")}


@contextlib.contextmanager
def short_path(folder: str):
    """The folder by a path of few letters: addresses of sockets have 107 at most, and TMPDIR may be longer."""
    descriptor = os.open(folder, os.O_PATH)
    yield f"/proc/self/fd/{descriptor}"
    os.close(descriptor)


class Forker:
    """The process that forks for this test process; a command that hangs ends with it."""

    def __init__(self, loaded: str) -> None:
        connection = socket.socket(socket.AF_UNIX)
        with short_path(os.environ[SERVER]) as folder:
            end = time.monotonic() + 60
            while not os.path.exists(f"{folder}/{loaded}"):
                if time.monotonic() > end:
                    raise RuntimeError(f"the server that forks commands has no address {loaded!r} after 60 s: it ended")
                time.sleep(0.01)
            connection.connect(f"{folder}/{loaded}")
        self.stream = connection.makefile("rwb")
        self.connection = connection
        self.pid = int(self.stream.readline())

    def run(self, order: dict, timeout: float) -> int:
        """Runs one command; its exit status."""
        self.stream.write(json.dumps(order).encode() + b"\n")
        self.stream.flush()
        if not select.select([self.connection], [], [], timeout)[0]:
            os.killpg(self.pid, signal.SIGKILL)
            vars(_forkers).clear()
            raise subprocess.TimeoutExpired(order["argv"], timeout)
        return int(self.stream.readline())


_forkers = threading.local()  # so that threads run commands at the same time


def _forker(loaded: str) -> Forker:
    mine = vars(_forkers)
    if loaded not in mine:
        mine[loaded] = Forker(loaded)
    return mine[loaded]


def run_forked(
    module: str,
    arguments: list[str],
    folder: Path,
    variables: dict[str, str],
    network: bool = False,
    timeout: int = 600,
    loaded: str = LIBRARIES,
    pid_file: Path | None = None,
) -> subprocess.CompletedProcess:
    """Runs `python -m MODULE ARGUMENTS` in a folder, with these variables only, and HF_HOME in that folder.

    What is `loaded`: the libraries alone, "stock" LightEval, "ours", or ours and "lm_eval". The process writes its id
    to `pid_file`.
    """
    assert variables["HF_HOME"] == str(folder / "hf"), "the libraries have read HF_HOME when they were loaded"
    with tempfile.TemporaryDirectory() as place:
        out, err = Path(place, "out"), Path(place, "err")
        order = {"argv": [module, *arguments], "folder": str(folder), "variables": variables, "network": network}
        order |= {"out": str(out), "err": str(err), "pid_file": str(pid_file) if pid_file else None}
        status = _forker(loaded).run(order, timeout)
        texts = [file.read_text(encoding="utf-8") for file in (out, err)]
    return subprocess.CompletedProcess([sys.executable, "-m", module, *arguments], status, *texts)


class StartedCommand:
    """A command that runs while the test goes on, started as by `run_forked`; one at a time."""

    def __init__(self, module: str, arguments: list[str], folder: Path, variables: dict[str, str], **options) -> None:
        place = tempfile.TemporaryDirectory()
        pid_file = Path(place.name, "pid")
        pool = ThreadPoolExecutor(1)
        self._end = pool.submit(run_forked, module, arguments, folder, variables, pid_file=pid_file, **options)
        self._end.add_done_callback(lambda _: place.cleanup())
        pool.shutdown(wait=False)
        while not self._end.done() and not (pid_file.exists() and pid_file.read_text()):
            time.sleep(0.002)
        assert not self._end.done(), self._end.result()
        self.pid = int(pid_file.read_text())

    def is_alive(self) -> bool:
        """Whether it runs."""
        return not self._end.done()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Sends it a signal."""
        os.kill(self.pid, number)

    def end(self) -> subprocess.CompletedProcess:
        """Waits for its end."""
        return self._end.result()


def become(order: dict) -> None:
    """Makes this process what a new one would be that runs the command."""
    if order["pid_file"]:
        Path(order["pid_file"]).write_text(str(os.getpid()))
    for descriptor, name, mode in ((0, os.devnull, os.O_RDONLY), (1, order["out"], None), (2, order["err"], None)):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND if mode is None else mode)
        os.dup2(file, descriptor)
        os.close(file)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)
    os.chdir(order["folder"])
    gc.get_freeze_count = lambda: 1  # of a million, which take a tenth of a second to count
    set_by_modules = {name: value for name, value in os.environ.items() if name not in AT_START}
    os.environ.clear()
    os.environ.update(set_by_modules | order["variables"])
    if not order["network"]:
        cut_network()
    sys.argv = list(order["argv"])
    if "HF_ENDPOINT" in order["variables"]:
        find_hub()
    customise(order["variables"])
    sys.path.insert(0, order["folder"])


def customise(variables: dict[str, str]) -> None:
    """What an interpreter does with PYTHONPATH when it starts."""
    first = [path for path in variables.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:0] = first
    if any(Path(path, "sitecustomize.py").exists() for path in first):
        sys.modules.pop("sitecustomize", None)
        importlib.import_module("sitecustomize")


def find_hub() -> None:
    """What the hub's client and datasets do with their variables when they are loaded."""
    from datasets import config
    from huggingface_hub import HfFileSystem, constants, hf_api

    importlib.reload(constants)
    importlib.reload(config)
    hf_api.api.endpoint = constants.ENDPOINT
    HfFileSystem.clear_instance_cache()


def cut_network() -> None:
    """As `unshare --net`, and `unshare --map-current-user --net` where that is not permitted."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(NEW_NETWORK) == 0:
        return
    if libc.unshare(NEW_USER | NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "the network cannot be cut")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text)


def serve(folder: str) -> dict:
    """Listens for test processes until the one that started it ends; returns in the forks alone, with an order."""
    listening = {name: socket.socket(socket.AF_UNIX) for name in LOAD}
    with short_path(folder) as short:
        for name, at in listening.items():
            at.bind(f"{short}/{name}")
            at.listen()
    os.dup2(2, 1)
    started = []
    while True:
        ready = select.select([0, *listening.values()], [], [])[0]
        if 0 in ready:
            for pid in started:
                os.kill(pid, signal.SIGKILL)
            os._exit(0)
        if not started:
            load_libraries()
        for name in [name for name, at in listening.items() if at in ready]:
            if pid := os.fork():
                started.append(pid)
                del listening[name]
                continue
            try:
                LOAD[name]()
            except BaseException:
                traceback.print_exc()
                os.killpg(0, signal.SIGKILL)  # so that no test waits for it
            return fork_for_tests(listening[name])


def fork_for_tests(listening: socket.socket) -> dict:
    """Forks for every test process that connects; returns in the forks alone, with an order."""
    gc.freeze()  # the forks share these objects with the server as long as nobody touches them
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listening.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            return fork_for_orders(connection.makefile("rwb"))
        connection.close()


def fork_for_orders(stream: BinaryIO) -> dict:
    """Forks for every order of a test process; returns in the forks alone, with the order."""
    with contextlib.suppress(ConnectionError):  # of a test process that was ended
        stream.write(b"%d\n" % os.getpid())
        stream.flush()
        for line in stream:
            if not (child := os.fork()):
                return json.loads(line)
            stream.write(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            stream.flush()
    os._exit(0)


def load_libraries() -> None:
    """What every command may need that is not LightEval's or ours."""
    for name in NAMES_OF_LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # Hundreds of regular expressions, made by whichever process loads its first model.
    importlib.import_module("transformers.conversion_mapping").get_checkpoint_conversion_mapping("llama")


def load_stock() -> None:
    """All of LightEval that any of its commands imports; the file that it fetches meanwhile is not found."""
    sys.path.append(str(Path(__file__).parent))
    from stock_lighteval import ANSWER_404

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(ANSWER_404, encoding="utf-8")
        customise({"PYTHONPATH": folder})
    from lighteval.tasks.registry import Registry

    for name in ("main_accelerate", "main_custom", "main_tasks"):
        importlib.import_module(f"lighteval.{name}")
    Registry.load_all_task_configs()


def load_ours() -> None:
    """All modules of ours, and LightEval."""
    import cultureval

    importlib.import_module("lighteval.pipeline")
    for module in pkgutil.walk_packages(cultureval.__path__, "cultureval."):
        if module.name.rpartition(".")[2] not in MAIN_MODULES:
            with contextlib.suppress(ImportError):  # of what only some machines have, as vLLM
                importlib.import_module(module.name)


def load_lm_eval() -> None:
    """All of ours and lm-eval, and what it reads whenever it starts: the thousands of files of its own tasks."""
    load_ours()
    from lm_eval.tasks import TaskManager, _index

    _index.load_yaml = cache(_index.load_yaml)
    TaskManager()


def end(status: int) -> None:
    """Ends the process as the interpreter does, but for taking apart the loaded libraries, which takes seconds."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def run_module(name: str) -> int:
    """Runs a module as the main program; its exit status."""
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


AT_START = set(os.environ)
LOAD = {LIBRARIES: lambda: None, "stock": load_stock, "ours": load_ours, "lm_eval": load_lm_eval}

if __name__ == "__main__":
    become(order := serve(sys.argv[1]))
    end(run_module(order["argv"][0]))
