"""A wheel and an editable install, both from another working directory."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email import message_from_bytes
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
WHERE = "import cultureval.samples as s, cultureval.tasks as t; print(t.__file__, s.__file__, sep='\\n')"


SNIPPET = """
import cultureval
from cultureval.judge_prompts.templates import JudgeTemplate, judge_template
from cultureval.metrics.m2cqa.counterfactual import counterfactual_report
from cultureval.metrics.judges.judge import judge_items
from cultureval.prompts.cells import text_cell
from cultureval.tasks.catalogue import all_tasks

version: str = cultureval.__version__
cell: str = text_cell({"question": "q"}, "question")
template: JudgeTemplate = judge_template("jeem")
suite: str = all_tasks()["qimma_aratrust"].suite
rate: float | int | None = counterfactual_report([True], [[False]])["cfhr"]
judge_items("a judge", template.name, [])
"""
# Whose types the snippet does not need and mypy would read for a minute.
SKIPPED = """
[mypy-torch.*,transformers.*,lighteval.*,datasets.*,huggingface_hub.*,openai.*,pyarrow.*,scipy.*]
follow_imports = skip
"""
# What only an extra can do, of commands that say so before they read anything.
EXTRA_OF = {
    "check jeem --data samples": "vision",
    "check --canonicals mbpp --data samples": "code",
    "leaderboard results": "page",
    "audit run qimma_aratrust --data samples": "audit",
}
COMMANDS = f"""
import sys
from cultureval.scripts.main import main

for line in {list(EXTRA_OF)}:
    sys.argv = ["cultureval", *line.split()]
    try:
        main()
    except SystemExit:
        pass
"""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BUILD_SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of the repository in which to build, as a clone would be."""
    at_the_top = shutil.ignore_patterns(".*v*env*", ".git", "build", "results")
    everywhere = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*_cache", ".hypothesis")
    return shutil.copytree(
        ROOT,
        tmp_path_factory.mktemp("source") / "cultureval",
        symlinks=True,
        ignore=lambda path, names: everywhere(path, names) | (at_the_top(path, names) if Path(path) == ROOT else set()),
    )


@pytest.fixture(scope="module")
def sdist(source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdist")
    subprocess.run([sys.executable, "-c", BUILD_SDIST, folder], cwd=source, check=True, timeout=300)
    (archive,) = folder.iterdir()
    return archive


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory):
    return build_wheel(source, tmp_path_factory.mktemp("wheel"))


def core_distributions():
    """What `pip install cultureval` installs without an extra, of the packages of the tests' own environment."""
    asked = [Requirement(text) for text in PROJECT["dependencies"]]
    found = {}
    while asked:
        one = asked.pop()
        key = (one.name.lower(), frozenset(one.extras))
        if key not in found:
            found[key] = distribution(one.name)
            further = map(Requirement, found[key].requires or ())
            extras = ("", *one.extras)
            asked += [it for it in further if not it.marker or any(it.marker.evaluate({"extra": e}) for e in extras)]
    return {known.metadata["Name"]: known for known in found.values()}


@pytest.fixture(scope="module")
def wheel_python(wheel, tmp_path_factory):
    """The Python of an environment with our wheel and the packages of its core, which are links to the tests' own."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--quiet", "--python", python, "install", "--no-deps", wheel]
    subprocess.run(install, check=True, timeout=300)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    for known in core_distributions().values():
        for name in {file.parts[0] for file in known.files} - {"..", "__pycache__"}:
            if not (packages / name).exists():  # some packages share a folder
                (packages / name).symlink_to(known.locate_file(name))
    return python


def build_wheel(source, folder):
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", folder, source], check=True, timeout=300)
    (wheel,) = folder.glob("cultureval-*.whl")
    return wheel


def contents(wheel):
    """Path and checksum of every file, but for the list of files, whose order is the builder's."""
    with zipfile.ZipFile(wheel) as archive:
        return {(file.filename, file.CRC) for file in archive.infolist() if not file.filename.endswith("/RECORD")}


def output_of(python, cwd, *args):
    run = subprocess.run([python, *args], cwd=cwd, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_wheel_holds_every_room_and_its_data(wheel_python, tmp_path, tiny_lm):
    tasks, samples = output_of(wheel_python, tmp_path, "-c", WHERE).splitlines()
    environment = wheel_python.parents[1]
    assert Path(tasks).is_relative_to(environment) and Path(samples).is_relative_to(environment)
    shipped = {path.relative_to(ROOT / "samples") for path in (ROOT / "samples").rglob("*") if path.suffix != ".pyc"}
    installed = {path.relative_to(Path(samples).parent) for path in Path(samples).parent.rglob("*")}
    assert {path for path in shipped if "__pycache__" not in path.parts} <= installed
    command = wheel_python.parent / "cultureval"
    listed = json.loads(output_of(command, tmp_path, "tasks", "--json"))
    assert len(listed) >= 109
    arguments = (
        "eval",
        tiny_lm,
        "qimma_aratrust",
        "--data",
        "samples",
        "--output-dir",
        "out",
        "--model-args",
        "device=cpu",
    )
    assert "AraTrust" in output_of(command, tmp_path, *arguments)


def test_the_page_of_a_package_index_has_no_link_that_leads_nowhere_there(wheel, source, tmp_path):
    """Without an address of the repository the links' texts; with one, links to this version there."""
    named = shutil.copytree(source, tmp_path / "named", symlinks=True)
    with (named / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write('\n[project.urls]\nRepository = "https://example.org/cultureval"\n')
    place = f"https://example.org/cultureval/{{}}/v{PROJECT['version']}/docs/"
    for built, wanted in ((wheel, ()), (build_wheel(named, tmp_path), (place.format("blob"), place.format("raw")))):
        page = description(built)
        assert not re.findall(r"\]\((?!https?:)", page) and "```sh" in page and "[LightEval](https://" in page
        assert all(address in page for address in wanted)


def description(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(metadata)).get_payload()


def test_the_core_alone_names_the_extra_of_each_missing_part(wheel_python, tmp_path):
    """The wheel's environment has the core alone, which has just run a text suite."""
    ended = subprocess.run(
        [wheel_python, "-c", COMMANDS],
        cwd=tmp_path,
        env=os.environ | {"COLUMNS": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    told = [line for line in ended.stderr.splitlines() if line.startswith("cultureval: ")]
    assert len(told) == len(EXTRA_OF) and "Traceback" not in ended.stderr, ended.stderr
    for line, extra in zip(told, EXTRA_OF.values(), strict=True):
        assert f"pip install 'cultureval[{extra}]'" in line


def test_the_editable_install_works_from_elsewhere(tmp_path):
    tasks, _ = output_of(sys.executable, tmp_path, "-c", WHERE).splitlines()
    assert Path(tasks).samefile(ROOT / "tasks" / "__init__.py")
    assert len(json.loads(output_of(Path(sys.executable).parent / "cultureval", tmp_path, "tasks", "--json"))) >= 109


def test_the_sdist_holds_what_a_packager_needs_and_builds_the_same_wheel(sdist, wheel, tmp_path):
    with tarfile.open(sdist) as archive:
        top = archive.getnames()[0]
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / top
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    for name in (
        tracked.split("\0") if tracked else ("docs", "tests/unit", "constraints-dev.txt", "Makefile", ".ci/run")
    ):
        assert (unpacked / name).exists() or name == ".gitignore", name
    assert (unpacked / "src/cultureval/tasks").samefile(unpacked / "tasks")
    assert contents(build_wheel(sdist, tmp_path)) == contents(wheel)


def test_type_checkers_know_the_public_functions(wheel_python, tmp_path):
    """The snippet's last line is wrong, and nothing else is: to mypy with the wheel, to pyright with the checkout."""
    (tmp_path / "snippet.py").write_text(SNIPPET, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\n" + SKIPPED, encoding="utf-8")
    wrong = SNIPPET.count("\n")
    mypy = [sys.executable, "-m", "mypy", "--python-executable", wheel_python]
    found = subprocess.run([*mypy, "snippet.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300).stdout
    errors = [line for line in found.splitlines() if ": error:" in line]
    assert errors and all(line.startswith(f"snippet.py:{wrong}: ") for line in errors), found
    assert any('"judge_items" has incompatible type "str"; expected "Asker"' in line for line in errors), found
    pyright = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "snippet.py"]
    found = subprocess.run(pyright, cwd=tmp_path, capture_output=True, text=True, timeout=300).stdout
    problems = json.loads(found)["generalDiagnostics"]
    assert problems and {problem["range"]["start"]["line"] + 1 for problem in problems} == {wrong}, problems
    assert any('is not assignable to "Asker"' in problem["message"] for problem in problems), problems


@pytest.fixture(scope="module")
def without_vllm(tmp_path_factory):
    """A checkout with our Makefile, where no environment with vLLM can be made."""
    folder = tmp_path_factory.mktemp("checkout")
    tests = folder / "tests"
    tests.mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "constraints-dev.txt"):
        shutil.copy(ROOT / name, folder / name)
    script = tests / "make_vllm_environment.sh"
    script.write_text("#!/bin/sh\necho no matching distribution >&2\nexit 1\n", encoding="utf-8")
    script.chmod(0o755)
    return folder


def variables_for_vllm(**own):
    of_make = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")  # of the command that runs these tests
    known = {
        name: value for name, value in os.environ.items() if name not in ("CI", *of_make) and "TEST_VLLM" not in name
    }
    return known | own


def test_a_machine_that_cannot_have_vllm_runs_the_other_tests_and_is_told_the_line_that_enables_it(without_vllm):
    def make(target, **own):
        variables = variables_for_vllm(**own)
        return subprocess.run(["make", target], cwd=without_vllm, env=variables, capture_output=True, text=True)

    tried = make("try-vllm")
    assert tried.returncode == 0 and "tests are skipped. To run them: PIP_EXTRA_INDEX_URL=" in tried.stderr
    assert make("vllm").returncode != 0  # as .ci/run asks for it
    unasked = make("try-vllm", CULTUREVAL_TEST_VLLM="skip")
    assert unasked.returncode == 0 and not unasked.stderr


def test_make_names_a_python_that_is_too_old_and_makes_an_environment_of_another_or_broken_one_anew(tmp_path):
    """In a checkout whose installer only notes that it ran, needing versions above and below that of this Python."""
    copied = ("constraints.txt", "constraints-dev.txt", "pyproject.toml", "tests/python_needed.py", "setup.py")
    for name in ("Makefile", *copied):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tests/install.py").write_text("print('installed')")
    pyproject = (tmp_path / "pyproject.toml").read_text("utf-8")
    this = f"PYTHON={sys._base_executable}"

    def make(*arguments):
        command = ["make", "--silent", "--old-file=sandbox", "setup", *arguments]
        alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # not of `make test`
        return subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True, timeout=120)

    def needs(version):
        asked = re.sub('^requires-python = ".*"', f'requires-python = ">={version}"', pyproject, flags=re.MULTILINE)
        (tmp_path / "pyproject.toml").write_text(asked, "utf-8")

    needs("3.99")
    told = (
        r"\S+ is Python 3\.[0-9.]+, and cultureval needs 3\.99 or newer\. Name another: make demo PYTHON=python3\.99 "
    )
    refused = make(this)
    assert refused.returncode and re.match(told, refused.stderr) and not (tmp_path / ".venv").exists()
    built = subprocess.run([sys.executable, "setup.py", "--name"], cwd=tmp_path, capture_output=True, text=True)
    assert re.match(told, built.stderr) and "Traceback" not in built.stderr
    needs("3.11.2")
    assert make(this).stdout.count("installed") == 3
    assert make().stdout == make(this).stdout == ""
    python = tmp_path / ".venv/bin/python"
    python.unlink()
    assert make(this).stdout.count("installed") == 3 and python.exists()
    needs("3.99")
    assert re.match(told, make().stderr)
    needs("3.11.2")
    (tmp_path / "other").write_text("#!/bin/sh\necho Python 3.11.99")
    (tmp_path / "other").chmod(0o755)
    assert "-m venv --clear" in make("PYTHON=./other", "--just-print").stdout
    assert "-m venv" not in make("--just-print").stdout
