"""Which room may import which, as import-linter reads it; and nothing heavy is loaded where lists and help load."""

import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

REPOSITORY = Path(__file__).parents[2]


def test_rooms_import_only_what_they_may():
    # In a process of its own: it silences the loggers of the one that it runs in.
    command = [Path(sys.executable).parent / "lint-imports", "--no-cache"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_no_module_imports_itself_through_others():
    graph = grimp.build_graph("cultureval", exclude_type_checking_imports=True, cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert list(TopologicalSorter(imports).static_order())  # raises CycleError; imports inside functions count


def test_listing_tasks_loads_nothing_heavy():
    code = "import sys, cultureval.scripts.main, cultureval.tasks.catalogue as c; c.all_tasks(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"torch", "transformers", "lighteval", "datasets", "numpy", "camel_tools", "openai", "pandas"}
    assert not heavy & set(loaded)
