"""The optional parts of the package: the extras of pyproject.toml, and the error where one is missing.

The packages of an extra are read from the metadata of the installed package.
"""

from functools import cache
from importlib.metadata import distributions, requires

from packaging.requirements import Requirement

from cultureval.runtime.errors import CulturevalError

# What needs each extra, as the subject of a sentence.
PARTS = {
    "vision": "Tasks with images",
    "code": "Tasks of code (Arabic HumanEval+ and MBPP+)",
    "page": "Leaderboards and charts",
    "audit": "Audits",
    "quantised": "Models in 4 and 8 bits",
}
CAMEL_TOOLS_COMMAND = "pip install --no-deps 'camel-tools>=1.6,<2' emoji"


class MissingExtra(CulturevalError):
    """An extra of the package is not installed."""

    def __init__(self, extra: str) -> None:
        names = ", ".join(missing_packages(extra))
        super().__init__(f"{PARTS[extra]} need packages that are missing here ({names}): {install_command(extra)}.")


@cache
def requirements_of(extra: str = "") -> tuple[Requirement, ...]:
    """The packages that an extra adds to the core, with version ranges; "": the packages of the core."""
    packages = [Requirement(package) for package in requires("cultureval") or ()]
    core = [package for package in packages if package.marker is None or package.marker.evaluate({"extra": ""})]
    of_extra = [package for package in packages if package not in core and package.marker.evaluate({"extra": extra})]
    return tuple(of_extra if extra else core)


def missing_packages(extra: str) -> list[str]:
    """The names of an extra's packages that are not installed."""
    return [package.name for package in requirements_of(extra) if not _installed(package.name)]


def _installed(name: str) -> bool:
    return next(iter(distributions(name=name)), None) is not None


def install_command(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'cultureval[{extra}]'"


@cache
def require_extra(extra: str) -> None:
    """Raises MissingExtra, with the command to install it, where a package of an extra is missing."""
    if missing_packages(extra):
        raise MissingExtra(extra)


@cache
def require_camel_tools() -> None:
    """Raises a CulturevalError where camel-tools is missing: it splits words for FannOrFlop and JEEM.

    From Python 3.13 on it is no part of the core: it depends on editdistance, which has no wheel there.
    """
    if missing := [name for name in ("camel-tools", "emoji") if not _installed(name)]:
        raise CulturevalError(
            f"FannOrFlop and JEEM split Arabic words with {', '.join(missing)}, not installed: {CAMEL_TOOLS_COMMAND}."
        )
