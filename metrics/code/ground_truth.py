"""Outputs and times of the canonical solutions: computed once in the sandbox, cached by content."""

import hashlib
import json
import os
import pickle
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cultureval.metrics.code.rules import Dataset, asks_for_any_value, compares_sets
from cultureval.runtime.data.user_cache import user_cache, write_atomically
from cultureval.runtime.sandbox import codec
from cultureval.runtime.sandbox.sandbox import Sandbox

SUITES = ("base", "plus")
# Limits are in CPU time, so that solutions do not fail on a busy machine. A call may take this many times its limit in
# wall time: IDLE_FACTOR while it waits, WALL_FACTOR while it computes.
IDLE_FACTOR = 3.0
WALL_FACTOR = 10.0
_VERSION = 1
_SECONDS = 300


@dataclass(frozen=True)
class SuiteTruth:
    """Results of the canonical solution on one suite of inputs.

    Args:
        seconds: Wall time of each call.
        defect: Why the last inputs have no output, or "".
        outputs: The encoded results, one per input up to the defect.
    """

    seconds: list[float]
    defect: str
    outputs: list[bytes]


class GroundTruth:
    """The ground truth of one problem, on disk; its outputs are read on demand, since some are large."""

    def __init__(self, problem: Mapping[str, Any], dataset: Dataset, sandbox: Sandbox) -> None:
        self.path = user_cache() / "code_ground_truth" / f"{content_key(problem, dataset, sandbox)}.bin"
        if not self._is_complete():
            self._store({suite: _compute(problem, dataset, suite, sandbox) for suite in SUITES})

    def _is_complete(self) -> bool:
        try:
            with self.path.open("rb") as file:
                header = json.loads(file.readline())
                return header["bytes"] == os.fstat(file.fileno()).st_size - file.tell()
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def _store(self, suites: dict[str, SuiteTruth]) -> None:
        body = zlib.compress(b"".join(output for suite in SUITES for output in suites[suite].outputs), 1)
        header: dict[str, Any] = {"bytes": len(body)}
        for name, suite in suites.items():
            sizes = [len(output) for output in suite.outputs]
            header[name] = {"seconds": suite.seconds, "defect": suite.defect, "sizes": sizes}
        write_atomically(self.path, json.dumps(header).encode() + b"\n" + body)

    def seconds(self) -> float:
        """Return the total time of the canonical solution."""
        with self.path.open("rb") as file:
            header = json.loads(file.readline())
        return sum(sum(header[suite]["seconds"]) for suite in SUITES)

    def load(self) -> dict[str, SuiteTruth]:
        """Read the outputs of both suites."""
        with self.path.open("rb") as file:
            header = json.loads(file.readline())
            body = zlib.decompress(file.read())
        suites, position = {}, 0
        for suite in SUITES:
            part, outputs = header[suite], []
            for size in part["sizes"]:
                outputs.append(body[position : position + size])
                position += size
            suites[suite] = SuiteTruth(part["seconds"], part["defect"], outputs)
        return suites


def canonical_code(problem: Mapping[str, Any]) -> str:
    """Return the canonical solution as a complete program, as EvalPlus builds it."""
    return problem["prompt"] + problem["canonical_solution"]


def content_key(problem: Mapping[str, Any], dataset: Dataset, sandbox: Sandbox) -> str:
    """Return a hash of everything that the ground truth of a problem depends on."""
    inputs = [problem["base_input"], problem["plus_input"]]
    parts = [_VERSION, *sys.version_info[:2], dataset, canonical_code(problem), problem["entry_point"], inputs]
    parts += [float(problem["atol"]), repr(sandbox.limits)]
    return hashlib.sha256(codec.encode(parts)).hexdigest()


def call_payload(
    problem: Mapping[str, Any], dataset: Dataset, suite: str, code: str, seconds: list[float] | None
) -> bytes:
    """The payload of the sandbox job `call`: code and inputs, never expected outputs."""
    return pickle.dumps(
        {
            "code": code,
            "entry_point": problem["entry_point"],
            "inputs": problem[f"{suite}_input"],
            "seconds": seconds,
            "idle_factor": IDLE_FACTOR,
            "wall_factor": WALL_FACTOR,
            "consume_iterators": compares_sets(dataset, problem["entry_point"]),
        }
    )


def _compute(problem: Mapping[str, Any], dataset: Dataset, suite: str, sandbox: Sandbox) -> SuiteTruth:
    payload = call_payload(problem, dataset, suite, canonical_code(problem), None)
    count = len(problem[f"{suite}_input"])
    seconds: list[float] = []
    outputs: list[bytes] = []
    defect = ""
    with sandbox.job("call", payload, 2 * _SECONDS, _SECONDS) as job:
        for spent, content in job:
            if content[:1] == b"E":
                defect = f"it raises {content[1:].decode('utf-8', 'replace')} at input {len(outputs)}"
            elif content[:1] != b"L":
                seconds.append(spent)
                outputs.append(content)
    if not defect and len(outputs) < count:
        assert job.end is not None
        defect = f"{job.end.describe()} at input {len(outputs)}"
    if asks_for_any_value(dataset, problem["entry_point"]):
        outputs = [codec.encode(codec.decode(output) is not None) for output in outputs]
    return SuiteTruth(seconds, defect, outputs)
