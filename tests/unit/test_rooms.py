"""Which room may import which, read from the source; and nothing heavy is loaded where lists and help load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("tasks", "prompts", "metrics", "judge_prompts", "models", "runtime", "reports", "scripts", "samples")
ALLOWED = {
    "scripts": set(ROOMS),
    "tasks": {"prompts", "metrics", "runtime"},
    "metrics": {"judge_prompts", "runtime"},
    "models": {"runtime"},
    "prompts": {"runtime"},
    "judge_prompts": {"runtime"},
    "reports": {"tasks", "prompts", "metrics", "judge_prompts", "runtime"},
    "samples": {"metrics", "models", "runtime"},
    "runtime": set(),
}


def imported_rooms(path: Path) -> set[str]:
    modules = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            names = [alias.name for alias in node.names] if node.module == "cultureval" else [None]
            modules += [".".join(filter(None, (node.module, name))) for name in names]
    return {module.split(".")[1] for module in modules if module.startswith("cultureval.")}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_the_rooms_it_may(room):
    files = list((ROOT / room).rglob("*.py"))
    assert files
    for path in files:
        assert imported_rooms(path) <= ALLOWED[room] | {room}, path


def test_listing_tasks_loads_nothing_heavy():
    code = "import sys, cultureval.scripts.main, cultureval.tasks.catalogue as c; c.all_tasks(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"torch", "transformers", "lighteval", "datasets", "numpy", "camel_tools", "openai", "pandas"}
    assert not heavy & set(loaded)
