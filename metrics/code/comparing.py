"""Compares a solution's outputs with the expected ones, under limits, in a process that runs no generated code.

The outputs are untrusted: even small ones can be slow or large to read. The limits depend on the size of the expected
outputs, so that right outputs in another form stay within them. An output much longer than the expected one is not
read.
"""

import resource
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Literal

from cultureval.metrics.code.ground_truth import SECONDS_OF_A_BYTE, SuiteTruth, next_frame
from cultureval.metrics.code.rules import Dataset, OutputRule
from cultureval.runtime.sandbox import worker
from cultureval.runtime.sandbox.jail import SandboxBroken

BYTES_FACTOR, SPARE_BYTES = 20, 100_000  # of an output: a truth value takes 1 byte, an equal complex number 17
MEMORY_BYTES, MEMORY_FACTOR = 256 << 20, 200
CPU_SECONDS = 20
# Signals that end a comparing process: its CPU time limit, or too little memory.
ENDS_OF_COMPARISONS = (-signal.SIGPROF, -signal.SIGSEGV, -signal.SIGABRT)


@dataclass(frozen=True)
class Comparison:
    """The result of the comparison of a suite's outputs.

    Attributes:
        right: Number of right outputs before the first problem.
        what: `passed`: all are right; `wrong`: the next output is wrong; `raised`: loading or the next call raised an
            exception; `ended`: no further output; `beyond`: comparing needs more memory than right outputs do.
        loaded: Whether the code was executed to its end.
        name: Name of the exception.
    """

    right: int
    what: Literal["passed", "wrong", "raised", "ended", "beyond"]
    loaded: bool = True
    name: str = ""


def compare_suite(
    problem: Mapping[str, Any], dataset: Dataset, suite: str, truth: SuiteTruth, outputs: IO[bytes], seconds: float
) -> Comparison:
    """Compares the outputs of one suite, up to the first that is wrong or missing.

    Args:
        problem: The problem, in EvalPlus's form.
        dataset: Its data set.
        suite: Which of `TEST_SUITES`.
        truth: What the canonical solution gave.
        outputs: The frames of the solution's process; untrusted.
        seconds: Wall time that the solution may take. A comparison that takes more, or too much CPU time, ends this
            process by a signal.

    Raises:
        SandboxBroken: The process did not run any code.
    """
    rule, calls = OutputRule(dataset, problem["entry_point"], problem["atol"]), problem[f"{suite}_input"]
    right = 0
    with _limits(truth, seconds):
        try:
            if next_frame(outputs)[0] != worker.CONFINED:
                raise SandboxBroken("the sandbox could not confine a program")
            kind, _, content = next_frame(outputs)
            if kind != worker.LOADED:
                return Comparison(0, "raised" if kind == worker.RAISED else "ended", False, _name(content))
            for right, arguments in enumerate(calls):
                expected = truth.outputs[right] if right < len(truth.outputs) else b""
                kind, _, content = next_frame(outputs, BYTES_FACTOR * len(expected) + SPARE_BYTES)
                if kind == worker.RAISED:
                    return Comparison(right, "raised", name=_name(content))
                if kind != worker.VALUE:
                    return Comparison(right, "ended")
                if not expected or content is None or not rule.agrees(arguments, content, expected):
                    return Comparison(right, "wrong")
            return Comparison(len(calls), "passed")
        except MemoryError:
            return Comparison(right, "beyond")


@contextmanager
def _limits(truth: SuiteTruth, seconds: float) -> Iterator[None]:
    """Limits the further memory and time of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        space = int(file.read().split()[0]) * resource.getpagesize()
    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    space += MEMORY_BYTES + MEMORY_FACTOR * max(map(len, truth.outputs), default=0)
    cpu = CPU_SECONDS + SECONDS_OF_A_BYTE * truth.size
    resource.setrlimit(resource.RLIMIT_AS, (space if hard == resource.RLIM_INFINITY else min(space, hard), hard))
    signal.setitimer(signal.ITIMER_PROF, cpu)  # without handlers their signals end the process
    signal.setitimer(signal.ITIMER_REAL, seconds + worker.WALL_FACTOR * cpu)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))


def _name(content: bytes | None) -> str:
    """An exception's name; it is untrusted, so only an identifier is accepted."""
    name = (content or b"")[:80].decode("ascii", "replace")
    return name if name.isidentifier() else "an exception"
