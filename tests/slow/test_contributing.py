"""CONTRIBUTING.md's "Adding a benchmark", followed literally: its blocks are run one after the other."""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pyarrow.parquet
import pytest
from asked_commands import ASK, forking_server
from stock_lighteval import ANSWER_404

GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"
# What a reader's environment has on its PATH; the first two, and pytest, are forked, with its packages, by a server in
# the test.
COMMANDS = {
    "cultureval": f"{ASK} ours cultureval.scripts.main",
    "lighteval": f"{ASK} stock lighteval",
    "pip": f"{shlex.quote(sys.executable)} -m pip --quiet --python $VIRTUAL_ENV/bin/python",
}


def blocks() -> list[tuple[str, str]]:
    """Language and text of every block of the section."""
    section = GUIDE.read_text(encoding="utf-8").partition("\n## Adding a benchmark\n")[2].partition("\n## ")[0]
    return re.findall(r"^```(\w+)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)


@pytest.fixture
def environment(tmp_path):
    """Variables of a reader's shell: an environment of its own that has all that ours has, and no network."""
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    ours = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})"
    (packages / "ours.pth").write_text(ours, encoding="utf-8")
    own_packages = f"import site\nsite.addsitedir({str(packages)!r})\n"
    (packages / "sitecustomize.py").write_text(ANSWER_404 + own_packages, encoding="utf-8")
    for name, command in COMMANDS.items():
        script = folder / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    pytest_too = folder / "pytest_too"
    pytest_too.mkdir()
    python = f'[ "$1 $2" = "-m pytest" ] && shift && exec {ASK} ours "$@"\nexec {folder}/bin/python "$@"'
    (pytest_too / "python").write_text(f"#!/bin/sh\n{python}\n", encoding="utf-8")
    (pytest_too / "python").chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "CULTUREVAL_", "PYTHON"))}
    own = {"VIRTUAL_ENV": str(folder), "PATH": os.pathsep.join([str(pytest_too), f"{folder}/bin", os.environ["PATH"]])}
    own |= {"CULTUREVAL_CACHE": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"}
    # pip needs no network where nothing is to be fetched: what builds and what is needed is there.
    own |= {"PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "CUDA_VISIBLE_DEVICES": ""}
    with forking_server({"PYTHONPATH": str(packages)}) as address:
        yield kept | own | {"COMMANDS": address}


def test_the_section_on_adding_a_benchmark_works_as_it_is_written(environment, no_network, tiny_lm, tmp_path):
    folder = tmp_path / "reader"
    folder.mkdir()
    written = blocks()
    assert [language for language, _ in written] == ["shell", "python", "shell"]
    output = ""
    for language, text in written:
        text = re.sub(r"\bMODEL\b", str(tiny_lm), text)
        command = ["bash", "-euxc", text] if language == "shell" else ["python", "-c", text]
        command = [*no_network, *command]
        run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
        assert run.returncode == 0, f"{text}\n{run.stdout[-2000:]}\n{run.stderr[-4000:]}"
        output += run.stdout
    assert "2 passed" in output
    # Here `python -m` finds the project's folder as a namespace package first; the installed package must win.
    command = [*no_network, "python", "-m", "cultureval.scripts.main", "tasks", "--suite", "persian_proverbs"]
    listed = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert listed.returncode == 0 and "persian_proverbs" in listed.stdout, listed.stderr
    summaries = "".join(file.read_text(encoding="utf-8") for file in folder.glob("results/results/**/summary_*.txt"))
    assert summaries.count("task:persian_proverbs/0-shot/v0|subsets:1|rows:6") == 2
    prompts = re.findall(r"\|prompt:(\w+)\|", summaries)
    assert len(set(prompts)) == 2  # before and after the wording of the template was changed
    _, newest = sorted(folder.glob("results/details/**/*.parquet"))  # names end in the time
    doc = pyarrow.parquet.read_table(newest).to_pylist()[0]["doc"]
    assert doc["query"].startswith("پرسش: ")
    assert doc["choices"] == [" 1", " 2", " 3", " 4"]
