"""Which room may import which, as import-linter reads it; and nothing heavy is loaded where lists and help load."""

import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

REPOSITORY = Path(__file__).parents[2]
ROOMS = sorted(link.resolve() for link in (REPOSITORY / "src" / "cultureval").iterdir() if link.is_symlink())


def test_rooms_import_only_what_they_may():
    # In a process of its own: it silences the loggers of the one that it runs in.
    command = [Path(sys.executable).parent / "lint-imports", "--no-cache"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_no_module_imports_itself_through_others():
    graph = grimp.build_graph("cultureval", exclude_type_checking_imports=True, cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert list(TopologicalSorter(imports).static_order())  # raises CycleError; imports inside functions count


def test_only_runs_finds_and_opens_results_and_details():
    opening = re.compile(
        r"results_\*|details_\*|ParquetFile|read_schema|read_metadata|parquet\.read_table|read_parquet"
    )
    rooms = ("reports", "audit", "scripts", "src/cultureval")
    files = [file for room in rooms for file in (REPOSITORY / room).rglob("*.py") if not file.is_symlink()]
    found = [str(file.relative_to(REPOSITORY)) for file in files if opening.search(file.read_text("utf-8"))]
    assert [name for name in found if name.count("/") < 3 or not name.startswith("src/")] == []


def test_no_suite_is_named_in_what_runs_are_and_how_they_are_shown():
    """A suite of another package gets what ours get; only a suite's own folder knows it."""
    folders = {file.parent.name for file in (REPOSITORY / "tasks").glob("*/__init__.py")}
    named = re.compile("|".join([*folders, "al-qasida"]), re.IGNORECASE)
    files = [file for room in ("runs", "reports") for file in (REPOSITORY / room).rglob("*.py")]
    # Generated code, and the audit of its prompts, are of one suite alone.
    own = [file for file in files if file.relative_to(REPOSITORY).parts[1] not in {*folders, "code", "audit.py"}]
    found = [
        f"{file.relative_to(REPOSITORY)}:{number}"
        for file in own
        for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1)
        if named.search(line)
    ]
    assert found == []


HELP = """
from typer.testing import CliRunner
from cultureval.scripts.main import app
assert not CliRunner().invoke(app, ['compare', '--help']).exit_code
assert "cultureval.scripts.compare" in sys.modules"""
LIGHT = {  # what is done -> packages that it does not load
    "import cultureval.scripts.main, cultureval.tasks.catalogue as c; c.all_tasks()": "camel_tools openai",
    HELP: "matplotlib",
    "import cultureval.scripts.judge, cultureval.metrics.judges.settings": "openai PIL yaml",
    "import cultureval.reports": "",
}


@pytest.mark.slow
@pytest.mark.parametrize("code", LIGHT)
def test_lists_help_and_what_is_not_asked_for_load_nothing_heavy(code):
    command = [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    heavy = {"torch", "transformers", "lighteval", "datasets", "pandas", *LIGHT[code].split()}
    assert not heavy & set(loaded)


@pytest.mark.slow
def test_a_run_loads_no_client_of_servers_before_its_model_is_looked_at():
    code = """
import sys
from cultureval.reports import evaluation
from cultureval.scripts.main import app
evaluation.evaluate_tasks = lambda *arguments: sys.exit(" ".join(sys.modules))
app(["eval", "model", "qimma"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    loaded = set(done.stderr.split())
    assert "cultureval.models.choice" in loaded
    assert not {"openai", "aiohttp", "torch", "transformers", "lighteval", "datasets", "pandas"} & loaded
