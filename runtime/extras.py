"""Parts of the package that are installed on request: the extras of pyproject.toml, and how a missing one is named.

What each extra holds is said in pyproject.toml alone, and read from the metadata of the installed package.
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
    """The packages, with the ranges, of an extra beside those of the core; "": of the core."""
    every = [Requirement(one) for one in requires("cultureval") or ()]
    core = [one for one in every if one.marker is None or one.marker.evaluate({"extra": ""})]
    of_extra = [one for one in every if one not in core and one.marker.evaluate({"extra": extra})]
    return tuple(of_extra if extra else core)


def missing_packages(extra: str) -> list[str]:
    """The names of an extra's packages that are not installed."""
    return [one.name for one in requirements_of(extra) if not _installed(one.name)]


def _installed(name: str) -> bool:
    return next(iter(distributions(name=name)), None) is not None


def install_command(extra: str) -> str:
    """The command that installs an extra beside what is there."""
    return f"pip install 'cultureval[{extra}]'"


@cache
def require_extra(extra: str) -> None:
    """Raises MissingExtra, which says what installs it, where a package of an extra is missing."""
    if missing_packages(extra):
        raise MissingExtra(extra)


@cache
def require_camel_tools() -> None:
    """Raises a CulturevalError where camel-tools is missing, whose words FannOrFlop and JEEM score.

    From Python 3.13 on the core leaves it out: it asks for editdistance, which has no wheel and is not used here.
    """
    if missing := [name for name in ("camel-tools", "emoji") if not _installed(name)]:
        raise CulturevalError(
            f"FannOrFlop and JEEM split Arabic words with {', '.join(missing)}, not installed: {CAMEL_TOOLS_COMMAND}."
        )
