"""Every package that the code imports is a dependency that pyproject names, with the reason and one range."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cultureval.runtime.extras import PARTS, requirements_of

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PROJECT = tomllib.loads(TEXT)["project"]
BESIDE = {"benchmarks"}  # a folder of the checkout that is no room of the package
EXTRAS = {extra: lines for extra, lines in PROJECT["optional-dependencies"].items() if extra != "all"}
OPTIONAL = {extra: lines for extra, lines in EXTRAS.items() if extra != "dev"}
OF_OTHERS = {"tasks/harnesses/lm_eval_tasks.py"}  # loaded by lm-eval itself
ELSEWHERE = {"vllm": "imported only where it is installed: its builds differ from machine to machine"}


def nodes_run_at_import(tree):
    """The statements that a module runs when it is loaded, by type checkers alone apart."""
    for node in ast.iter_child_nodes(tree):
        checked = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if not checked and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from nodes_run_at_import(node)


def imported_packages(folder, nodes=ast.walk, but=()):
    """Top-level names that are neither of the standard library nor found in the repository."""
    names = set()
    for path in Path(folder).rglob("*.py"):
        for node in nodes(ast.parse(path.read_text(encoding="utf-8"))) if path not in but else ():
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module.split(".")[0])
    ours = {"cultureval", *(path.stem for path in (ROOT / "tests").rglob("*.py")), "attacks"}
    return names - ours - sys.stdlib_module_names - set(ELSEWHERE)


def names_of(requirements):
    return {canonicalize_name(Requirement(text).name) for text in requirements}


distributions = cache(packages_distributions)


def distributions_of(name):
    return {canonicalize_name(found) for found in distributions().get(name, ())}


@pytest.mark.slow
@pytest.mark.parametrize("room", sorted(path.name for path in (ROOT / "src" / "cultureval").iterdir() if path.is_dir()))
def test_what_a_room_imports_is_a_dependency_and_of_the_core_where_its_modules_load(room):
    core = names_of(PROJECT["dependencies"])
    declared = core | names_of(chain.from_iterable(OPTIONAL.values()))
    missing = {name for name in imported_packages(ROOT / room) if not distributions_of(name) & declared}
    assert missing <= BESIDE
    at_import = imported_packages(ROOT / room, nodes_run_at_import, {ROOT / path for path in OF_OTHERS})
    assert not {name for name in at_import if not distributions_of(name) & core}


def test_each_extra_is_installed_by_all_or_of_one_s_own_and_told_where_it_is_missing():
    (every,) = map(Requirement, PROJECT["optional-dependencies"]["all"])
    assert every.name == "cultureval" and set(OPTIONAL) - every.extras == {"lm-eval", "quantised"}
    assert set(OPTIONAL) - set(PARTS) == {"lm-eval"}  # which only the other harness loads
    assert set(PARTS) <= set(OPTIONAL)
    for extra in PARTS:
        assert {canonicalize_name(one.name) for one in requirements_of(extra)} == names_of(OPTIONAL[extra])


@pytest.mark.slow
def test_what_the_tests_import_is_a_dependency_of_developers():
    declared = names_of(chain(PROJECT["dependencies"], *EXTRAS.values()))
    made_by_tests = {"heavy_package", "light_module", "wandb", *BESIDE}
    missing = {name for name in imported_packages(ROOT / "tests") if not distributions_of(name) & declared}
    assert missing <= made_by_tests


def test_each_dependency_is_named_once_with_a_range_a_reason_and_a_tested_version():
    tested = map(Requirement, (ROOT / "constraints.txt").read_text(encoding="utf-8").split())
    pinned = {canonicalize_name(requirement.name): requirement for requirement in tested}
    for lines in (PROJECT["dependencies"], *EXTRAS.values()):
        assert len(names_of(lines)) == len(lines)
        for text in lines:
            assert re.search(rf'"{re.escape(text)}"\]?,? +# \w', TEXT), f"{text}: no reason"
            requirement = Requirement(text)
            assert requirement.specifier, text
            (exactly,) = pinned[canonicalize_name(requirement.name)].specifier
            assert requirement.specifier.contains(exactly.version, prereleases=True), text


def test_every_room_is_linked_into_the_package():
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", *BESIDE}
    links = {path.name: path for path in (ROOT / "src" / "cultureval").iterdir() if path.is_symlink()}
    assert set(links) == rooms
    assert all(link.samefile(ROOT / name) for name, link in links.items())
