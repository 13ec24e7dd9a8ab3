"""What a comparison may take: right outputs in any form have room, others are wrong, and no memory adds up."""

import decimal
import fractions
import gzip
import io
import json
import multiprocessing
import os
import resource
import socket
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from types import SimpleNamespace

import numpy
import pytest

from cultureval.metrics.code import comparison_server
from cultureval.metrics.code.comparison_server import LARGE_BYTES, Comparer
from cultureval.metrics.code.ground_truth import SuiteTruth, digest
from cultureval.runtime.sandbox import codec

PROBLEM = {"entry_point": "f", "atol": 0, "base_input": [], "plus_input": []}
RESULT = {"loaded": True, "right": 0, "wrong": False, "error": "", "type_name": ""}


class File(io.BytesIO):
    def fileno(self):
        return 0


class Watched(Comparer):
    """Says whether it was asked at the same time as the other."""

    both, patience = threading.Barrier(2), 240.0

    def _ask(self, body, descriptor, wall):
        try:
            self.both.wait(self.patience)
            self.met = True
        except threading.BrokenBarrierError:
            self.met = False
        return RESULT


def met(size):
    Watched.both.reset()
    comparers = [Watched(), Watched()]

    def compare(comparer):
        truth = SimpleNamespace(path="truth", suites={"base": SuiteTruth([], "", [], True)})
        return comparer.compare(PROBLEM, "humaneval", truth, "base", File(bytes(size)))

    with ThreadPoolExecutor(2) as pool:
        assert len(list(pool.map(compare, comparers))) == 2
    return [comparer.met for comparer in comparers]


def test_large_outputs_are_compared_one_at_a_time_and_small_ones_at_once(monkeypatch):
    assert met(100) == [True, True]
    monkeypatch.setattr(Watched, "patience", 0.3)
    assert met(LARGE_BYTES + 1) == [False, False]


def answer(settings, request, outputs):
    """The server's answer, in a process that has no memory of its own left over; some of the module's names are set."""
    with pytest.MonkeyPatch.context() as patch, open(outputs, "rb") as file:
        for name, value in settings.items():
            patch.setattr(comparison_server, name, value)
        judge, other = socket.socketpair()
        with judge, other:
            return json.loads(comparison_server._in_a_process(request, file, judge))


@pytest.fixture(scope="module")
def fresh():
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture
def compared(tmp_path, fresh):
    """Compares a value with the expected one, in a process with the limits of a suite of one call."""

    def compare(value, expected, **settings):
        output = codec.encode(expected)
        known = {"seconds": [0.0], "defect": "", "sizes": [len(output)], "plain": True}
        content = digest(output) + gzip.compress(output)
        header = {"base": known, "plus": known | {"seconds": [], "sizes": []}}
        (tmp_path / "truth").write_bytes(b"its hash\n" + json.dumps(header).encode() + b"\n" + content)
        frames = (codec.FRAME.pack(0.0, len(frame)) + frame for frame in (b"L", codec.encode(value)))
        (tmp_path / "outputs").write_bytes(b"".join(frames))
        request = {"truth": tmp_path / "truth", "suite": "base", "dataset": "humaneval", "atol": 0}
        return fresh.submit(
            answer, settings, request | {"entry_point": "f", "calls": [[]]}, tmp_path / "outputs"
        ).result()

    return compare


class Number(int):
    pass


def sympy_values(values):
    import sympy

    return [sympy.sympify(value) for value in values]


FORMS = {
    "arrays": lambda values: [numpy.array([value]) for value in values],
    "arrays of several shapes": lambda values: [numpy.array(value).reshape([1] * (value % 3)) for value in values],
    "fractions": lambda values: list(map(fractions.Fraction, values)),
    "decimals": lambda values: list(map(decimal.Decimal, values)),
    "subclass": lambda values: list(map(Number, values)),
    "sympy": sympy_values,
}


@pytest.mark.slow
@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("expected", [list(range(40_000)), [bool(number % 2) for number in range(40_000)]])
def test_right_values_have_room_in_whatever_form(compared, form, expected):
    answer = compared(FORMS[form](expected), expected, MEMORY_BYTES=12 << 20)  # so that the factor decides
    assert answer["right"] == 1 and not answer["wrong"], answer


FLOATS = [number / 7 for number in range(30_000)]


@pytest.mark.parametrize("value", [[[number] for number in FLOATS], [*FLOATS[1:], "x" * 500_000]])
def test_values_for_which_numpy_has_no_room_are_wrong_as_under_evalplus(compared, value):
    answer = compared(value, FLOATS)
    assert answer["wrong"] and not answer["beyond"], answer


MANY = list(range(40_000))


@pytest.mark.slow
def test_values_that_take_more_than_a_right_one_are_wrong(compared):
    answer = compared(FORMS["fractions"](MANY), MANY, MEMORY_BYTES=8 << 20, MEMORY_FACTOR=0)
    assert answer["wrong"] and answer["beyond"] == "memory", answer
    answer = compared(decimal.Decimal("18E+900000"), 18 * 10**900_000, CPU_SECONDS=0, SPARE_SECONDS=0)
    assert answer["wrong"] and answer["beyond"] == "time", answer


def greedy(*_):
    return bytes(1 << 48)


def test_an_output_for_which_no_machine_has_memory_is_wrong(compared):
    answer = compared([1], [1], compare_suite=greedy)
    assert answer["wrong"] and answer["beyond"] == "memory", answer
    answer = compared(numpy.zeros((60_000, 1)), FLOATS[:10_000])
    assert answer["wrong"], answer


def too_little(_):
    with open("/proc/self/statm", encoding="ascii") as file:
        space = int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE") + (8 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (space, space))


def test_a_machine_with_too_little_memory_judges_nobody(compared):
    answer = compared(FORMS["fractions"](MANY), MANY, _limit=too_little)
    assert "machine" in answer["problem"], answer
