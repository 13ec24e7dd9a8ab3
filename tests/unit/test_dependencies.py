"""Every package that the code imports is a dependency that pyproject names, with the reason and one range."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cultureval.runtime.extras import CAMEL_TOOLS_COMMAND, PARTS, requirements_of

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
    ours = {path.stem for folder in ("tests", "docs") for path in (ROOT / folder).rglob("*.py")} | {
        "cultureval",
        "attacks",
    }
    return names - ours - sys.stdlib_module_names - set(ELSEWHERE)


def names_of(requirements):
    return {canonicalize_name(Requirement(text).name) for text in requirements}


def installed_by(names):
    """The packages and all that they require without an extra, as their installed metadata say."""
    found, asked = set(), list(names)
    while asked:
        name = asked.pop()
        if name not in found:
            found.add(name)
            asked += without_extras(name)
    return found


def without_extras(name):
    try:
        lines = [Requirement(text) for text in requires(name) or ()]
    except PackageNotFoundError:  # not of this Python
        return []
    return [
        canonicalize_name(line.name) for line in lines if line.marker is None or line.marker.evaluate({"extra": ""})
    ]


distributions = cache(packages_distributions)


def distributions_of(name):
    return {canonicalize_name(found) for found in distributions().get(name, ())}


@pytest.mark.slow
@pytest.mark.parametrize("room", sorted(path.name for path in (ROOT / "src" / "cultureval").iterdir() if path.is_dir()))
def test_what_a_room_imports_is_installed_and_with_the_core_where_its_modules_load(room):
    core = installed_by(names_of(PROJECT["dependencies"]))
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
    assert (
        f"'{next(text for text in PROJECT['dependencies'] if 'camel' in text).partition(';')[0]}'"
        in CAMEL_TOOLS_COMMAND
    )
    for extra in PARTS:
        assert {canonicalize_name(one.name) for one in requirements_of(extra)} == names_of(OPTIONAL[extra])


@pytest.mark.slow
def test_what_the_tests_import_is_a_dependency_of_developers():
    declared = installed_by(names_of(PROJECT["dependencies"])) | names_of(chain.from_iterable(EXTRAS.values()))
    made_by_tests = {"heavy_package", "light_module", "wandb", *BESIDE}
    missing = {name for name in imported_packages(ROOT / "tests") if not distributions_of(name) & declared}
    assert missing <= made_by_tests


def test_the_core_names_few_packages():
    assert len(PROJECT["dependencies"]) <= 24


def test_each_dependency_is_named_once_with_a_range_a_reason_and_a_tested_version():
    users, developers = pins("constraints.txt"), pins("constraints-dev.txt")
    assert not set(users) & set(developers)
    for extra, lines in {"": PROJECT["dependencies"], **EXTRAS}.items():
        pinned = users | developers if extra == "dev" else users
        assert len(names_of(lines)) == len(lines)
        for text in lines:
            assert re.search(rf'"{re.escape(text)}"\]?,? +# \w', TEXT), f"{text}: no reason"
            requirement = Requirement(text)
            assert requirement.specifier, text
            for pin in pinned[canonicalize_name(requirement.name)]:
                (exactly,) = pin.specifier
                assert requirement.specifier.contains(exactly.version, prereleases=True), text


def pins(file):
    """A file's pins by package: one, or several for different Pythons; no local versions, no addresses."""
    found = {}
    for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
        assert "://" not in line and "+" not in line
        if not line.startswith("#"):
            found.setdefault(canonicalize_name(Requirement(line).name), []).append(Requirement(line))
    return found


@pytest.mark.parametrize("python", ["3.11.2", "3.11.7", "3.12.1", "3.13.0"])
def test_each_package_has_one_version_for_each_python(python):
    machine = {"python_full_version": python, "python_version": python.rpartition(".")[0], "sys_platform": "linux"}
    for of_one in [*pins("constraints.txt").values(), *pins("constraints-dev.txt").values()]:
        assert sum(pin.marker is None or pin.marker.evaluate(machine) for pin in of_one) <= 1, of_one
    (soupsieve,) = (pin for pin in pins("constraints.txt")["soupsieve"] if pin.marker.evaluate(machine))
    assert str(soupsieve.specifier) == ("==2.10" if python == "3.11.2" else "==4.1.1")  # 4 needs 3.11.5


def test_every_room_is_linked_into_the_package():
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", *BESIDE}
    links = {path.name: path for path in (ROOT / "src" / "cultureval").iterdir() if path.is_symlink()}
    assert set(links) == rooms
    assert all(link.samefile(ROOT / name) for name, link in links.items())
