"""Verdicts that are kept as they come: a stopped run goes on from them.

They are in a journal of the rules by which they were judged, by the content of the problem and the program. Only what
says something about the program is kept: no verdict that a failure, or a limit of wall time, had a part in.
"""

import functools
import hashlib
import importlib.metadata
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.code import rules
from cultureval.metrics.code.rules import TEST_SUITES
from cultureval.runtime import sandbox
from cultureval.runtime.journal import answer_key, open_journal
from cultureval.runtime.sandbox.jail import packages_and_versions

if TYPE_CHECKING:
    from cultureval.metrics.code.judging import Solution, SolutionVerdict

LABEL = "verdicts-on-code"


class KeptVerdicts:
    """The verdicts on solutions of some problems.

    Args:
        problems: The `content_key` of each, by task id.
    """

    def __init__(self, problems: Mapping[str, str]) -> None:
        self._problems = problems
        rules = [_own_code(), importlib.metadata.version("evalplus"), packages_and_versions()]
        self._journal = open_journal(LABEL, rules=rules)

    def key(self, solution: "Solution") -> str:
        """What a verdict depends on, but for the time: one for equal programs of a problem."""
        program = hashlib.sha256(solution.code.encode("utf-8", "surrogatepass")).hexdigest()
        return answer_key(problem=self._problems[solution.task_id], program=program)

    def find(self, key: str) -> dict[str, Any] | None:
        """The fields of a verdict that this or another run has kept, without those of the solution."""
        kept = self._journal.get(key)
        if kept is None:
            return None
        details = {f"evalplus_{suite}_details": _read_details(kept.pop(f"{suite}_details")) for suite in TEST_SUITES}
        return kept | details

    def keep(self, verdicts: "Mapping[str, SolutionVerdict]") -> None:
        """Write verdicts, by their key; when this returns they are on the disk.

        Raises:
            CulturevalError: They cannot be written.
        """
        self._journal.append({key: _written(verdict) for key, verdict in verdicts.items()})


def _written(verdict: "SolutionVerdict") -> dict[str, Any]:
    fields = dict(vars(verdict))
    del fields["task_id"], fields["sample_index"]
    for suite in TEST_SUITES:
        fields[f"{suite}_details"] = _short_details(fields.pop(f"evalplus_{suite}_details"))
    return fields


def _short_details(details: list[bool]) -> tuple[int, int]:
    """Numbers of right and of wrong outputs, since a list of EvalPlus ends with the first wrong one."""
    return sum(details), len(details) - sum(details)


def _read_details(numbers: Iterable[int]) -> list[bool]:
    right, wrong = numbers
    return [True] * right + [False] * wrong


@functools.cache
def _own_code() -> str:
    """A hash of all code of ours that has a part in a verdict, so that another version judges anew."""
    files = {*Path(__file__).parent.glob("*.py"), *Path(sandbox.__file__).parent.glob("*.py")}
    used = {getattr(value, "__module__", None) for value in vars(rules).values()}  # also of what the rules import
    files |= {Path(str(sys.modules[name].__file__)) for name in used if str(name).startswith("cultureval.")}
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()
