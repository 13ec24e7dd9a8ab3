"""What ends by a signal: a command in order, what it forked at once."""

import multiprocessing
import signal
import time

import pytest

from cultureval.runtime.interruption import ENDING, TimeLimitReached, orderly_end, time_limit


def handlers(_):
    return [signal.getsignal(number) for number in ENDING]


def test_forked_processes_end_by_signals_at_once():
    before = handlers(0)
    with orderly_end():
        ours = handlers(0)
        with multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.map(handlers, [0]) == [before]
        assert handlers(0) == ours != before
    assert handlers(0) == before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("of_cpu", [False, True])
def test_a_limit_holds_also_where_it_comes_within_a_finaliser(of_cpu):
    """Which swallows errors."""

    class Slow:
        def __del__(self):
            spend(1)

    def spend(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass

    with pytest.raises(TimeLimitReached), time_limit(0.2, of_cpu):
        Slow()
        spend(2)
