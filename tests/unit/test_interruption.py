"""What ends by a signal: a command in order, what it forked at once."""

import multiprocessing
import signal

from cultureval.runtime.interruption import ENDING, orderly_end


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
