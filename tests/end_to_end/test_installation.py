"""A wheel and an editable install, both from another working directory."""

import json
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WHERE = "import cultureval.samples, cultureval.tasks; print(cultureval.tasks.__file__, cultureval.samples.__file__)"


@pytest.fixture(scope="module")
def wheel_python(tmp_path_factory):
    """The Python of an environment that has our wheel, and only the dependencies of the tests' own."""
    folder = tmp_path_factory.mktemp("wheel")
    at_the_top = shutil.ignore_patterns(".*", "build", "*.egg-info", "results", "tests")
    everywhere = shutil.ignore_patterns("__pycache__")
    shutil.copytree(
        ROOT,
        folder / "source",
        ignore=lambda path, names: everywhere(path, names) | (at_the_top(path, names) if Path(path) == ROOT else set()),
    )
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", folder, folder / "source"], check=True, timeout=300)
    (wheel,) = folder.glob("cultureval-*.whl")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    python = folder / "venv" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--quiet", "--python", python, "install", "--no-deps", wheel]
    subprocess.run(install, check=True, timeout=300)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return python


def output_of(python, cwd, *args):
    run = subprocess.run([python, *args], cwd=cwd, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_wheel_holds_every_room_and_its_data(wheel_python, tmp_path, tiny_lm):
    tasks, samples = output_of(wheel_python, tmp_path, "-c", WHERE).split()
    environment = wheel_python.parents[1]
    assert Path(tasks).is_relative_to(environment) and Path(samples).is_relative_to(environment)
    shipped = {path.relative_to(ROOT / "samples") for path in (ROOT / "samples").rglob("*") if path.suffix != ".pyc"}
    installed = {path.relative_to(Path(samples).parent) for path in Path(samples).parent.rglob("*")}
    assert {path for path in shipped if "__pycache__" not in path.parts} <= installed
    command = wheel_python.parent / "cultureval"
    listed = json.loads(output_of(command, tmp_path, "tasks", "--json"))
    assert len(listed) >= 109
    arguments = ("eval", tiny_lm, "qimma_aratrust", "--data", "samples", "--output-dir", "out", "--device", "cpu")
    assert "qimma_aratrust" in output_of(command, tmp_path, *arguments)


def test_the_editable_install_works_from_elsewhere(tmp_path):
    tasks, _ = output_of(sys.executable, tmp_path, "-c", WHERE).split()
    assert Path(tasks) == ROOT / "tasks" / "__init__.py"
    assert len(json.loads(output_of(Path(sys.executable).parent / "cultureval", tmp_path, "tasks", "--json"))) >= 109
