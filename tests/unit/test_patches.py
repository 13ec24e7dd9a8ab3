"""Every patch of another library has an entry whose canary passes; nothing reaches into a library anywhere else."""

import ast
import logging
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from cultureval.reports import doctor as machine
from cultureval.runtime.patches import table as patches
from cultureval.runtime.patches.table import (
    MODULES,
    TRIED,
    Changed,
    Patch,
    all_patches,
    expect,
    installed_version,
    source_of,
)
from cultureval.scripts.show import doctor

ROOT = Path(__file__).parents[2]
ROOMS = ("audit", "tasks", "prompts", "metrics", "judge_prompts", "models", "runtime", "reports", "scripts", "samples")
PATCHES = {patch.target: patch for patch in all_patches()}
ALLOWED = {ROOT.joinpath(*name.split(".")[1:]).with_suffix(".py") for name in MODULES}
NAMED_TUPLES = {"_replace", "_asdict", "_fields", "_make"}  # public in spite of their names, as is os._exit
INSIDES = {"__wrapped__", "__globals__", "__code__", "__defaults__", "__closure__"}


@pytest.mark.slow
@pytest.mark.parametrize("target", PATCHES)
def test_the_library_is_as_the_patch_needs_it_and_still_needs_it(target):
    patch = PATCHES[target]
    if patch.installed() is None:
        pytest.skip(f"{patch.library} is not installed")
    patch.canary()


def test_the_tested_versions_are_those_that_were_read():
    installed = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    tried = {name: version for name, version in TRIED.items() if canonicalize_name(name) in installed}
    assert set(TRIED) - set(tried) == {"python"}
    assert {name: installed_version(name) for name in tried} == tried


def test_entries_are_complete():
    assert len(PATCHES) == len(all_patches())
    for patch in PATCHES.values():
        assert patch.library and patch.version and patch.reason.endswith("."), patch.target
    with_entries = {file for file in (ROOT / "runtime").rglob("*.py") if "patched(" in file.read_text("utf-8")}
    assert with_entries == {*ALLOWED, ROOT / "runtime/patches/table.py"}


# --- canaries notice changes ---


def test_canaries_that_read_sources_notice_another_source(monkeypatch):
    read = []

    def another_source(module):
        read.append(module)
        return "import something_else"

    for name in (*MODULES, "cultureval.runtime.patches.table"):
        if hasattr(import_module(name), "source_of"):
            monkeypatch.setattr(f"{name}.source_of", another_source)
    sources = 0
    for patch in PATCHES.values():
        read.clear()
        problem = patch.problem() if patch.installed() else None
        sources += bool(read)
        assert problem or not read, f"{patch.target}: its canary reads {read} and sees no change"
    assert sources > 15


def test_a_canary_logs_no_warnings(caplog):
    noisy = Patch("lighteval", "lighteval.a", "Why.", "1", lambda: logging.getLogger("lighteval").warning("told"))
    assert noisy.problem() is None and not caplog.records
    logging.getLogger("other").warning("heard")
    assert caplog.messages == ["heard"]


def test_a_module_that_is_gone_is_named():
    with pytest.raises(Changed, match="lighteval.no_such_module"):
        source_of("lighteval.no_such_module")
    assert patches.imports_at_load("lighteval.__main__") > {"typer", "lighteval.main_tasks"}


# --- cultureval doctor ---


def test_the_doctor_prints_the_table_and_tells_of_untried_versions_and_changes(monkeypatch, capsys):
    fitting = Patch("lighteval", "lighteval.a", "Why a.", "0.13.0", lambda: None)
    untried = Patch("torch", "torch.b", "Why b.", "1.0", lambda: expect(False, "b has changed"))
    absent = Patch("no-such-library", "c", "Why c.", "1", lambda: None)
    monkeypatch.setattr(machine, "all_patches", lambda: [fitting, untried, absent])
    monkeypatch.setattr(machine, "TRIED", {"lighteval": "0.13.0", "torch": "1.0", "no-such-library": "1"})
    assert [(one.state, one.what.partition(" 2")[0]) for one in machine.check_patches()] == [
        ("ok", "patches of lighteval 0.13.0"),
        ("untried", "patches of torch"),
    ]
    with pytest.raises(SystemExit) as ended:
        doctor(patches=True)
    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == 1 and len(lines) == 4
    assert lines[1].split() == ["lighteval", "0.13.0", "0.13.0", "lighteval.a", "Why", "a.", "fits"]
    assert lines[2].endswith("b has changed") and lines[3].endswith("not installed")
    monkeypatch.setattr(machine, "all_patches", lambda: [fitting, absent])
    assert machine.patches_table()[1]


# --- nothing else reaches into a library ---


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_" and name not in NAMED_TUPLES


def own_names(tree: ast.AST) -> set[str]:
    """Names that a file gives to its own functions and classes, and to attributes of its own objects."""
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            names.add(node.attr)
    return names


def imported_libraries(tree: ast.AST) -> set[str]:
    """Names that a file's import statements bind to modules and objects of other libraries."""
    bound = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            pairs = [(alias.name, alias.asname or alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            pairs = [(node.module or "", alias.asname or alias.name) for alias in node.names]
        else:
            continue
        ours = {"cultureval", *sys.stdlib_module_names}
        bound |= {name.partition(".")[0] for module, name in pairs if module.partition(".")[0] not in ours}
    return bound


def root_of(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def reaches(tree: ast.AST) -> Iterator[str]:
    """Where a file uses what is private to another library, or changes it."""
    own, libraries = own_names(tree), imported_libraries(tree)
    for node in ast.walk(tree):
        text = ast.unparse(node) if isinstance(node, ast.expr | ast.ImportFrom) else ""
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(("cultureval", "_", "__")):
            if any(is_private(name) for name in [*node.module.split("."), *(alias.name for alias in node.names)]):
                yield text
        elif isinstance(node, ast.Attribute):
            changes = not isinstance(node.ctx, ast.Load) and root_of(node) in libraries
            inside = node.attr in INSIDES or (is_private(node.attr) and node.attr not in own)
            if changes or (inside and text != "os._exit"):
                yield text
        elif isinstance(node, ast.Call):
            function = ast.unparse(node.func)
            named = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            by_name = function in ("getattr", "hasattr", "setattr", "delattr") or function.endswith(".pop")
            if (by_name and any(map(is_private, named))) or function in ("setattr", "inspect.getsource"):
                yield text


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_only_modules_with_entries_reach_into_a_library(room):
    files = [file for file in (ROOT / room).rglob("*.py") if file not in ALLOWED]
    assert files
    for file in files:
        assert list(reaches(ast.parse(file.read_text("utf-8")))) == [], file


@pytest.mark.parametrize(
    "code",
    [
        "from evalplus.eval import _poly",
        "from bitsandbytes.autograd._functions import logger",
        "import torch\ntorch.ops.mkldnn._linear_pointwise(1)",
        "def f(metric): return metric._compute_score_from_stats([])",
        "getattr(config, '_commit_hash', None)",
        "vars(model).pop('_get_stopping_criteria', None)",
        "import evalplus.sanitize as s\ns.code_extract = print",
        "from lighteval import pipeline\npipeline.x.y = 1",
        "setattr(data, name, 1)",
        "f.__wrapped__(1)",
    ],
)
def test_the_search_finds(code):
    assert list(reaches(ast.parse(code)))
