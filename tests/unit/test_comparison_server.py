"""Large outputs of several workers are compared one after the other, so that their memory does not add up."""

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from cultureval.metrics.code.comparison_server import LARGE_BYTES, Comparer
from cultureval.metrics.code.ground_truth import SuiteTruth

PROBLEM = {"entry_point": "f", "atol": 0, "base_input": [], "plus_input": []}
RESULT = {"loaded": True, "right": 0, "wrong": False, "error": "", "type_name": "", "slow": -1}


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
