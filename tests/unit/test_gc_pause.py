"""What is made while Python looks for no garbage is not looked at at once, and still freed later."""

import gc
import weakref

from cultureval.runtime.gc_pause import no_collection


class Node:
    """An object that refers to itself."""

    def __init__(self):
        self.own = self


def test_what_was_made_meanwhile_counts_as_old_and_is_freed_later():
    gc.unfreeze()  # what the tests have set aside
    looks = []
    gc.callbacks.append(lambda phase, info: looks.append(info))
    try:
        with no_collection():
            node = weakref.ref(Node())
            kept = [[] for _ in range(100_000)]
            assert not gc.isenabled()
        more = [[] for _ in range(100)]
        assert gc.isenabled() and not looks and node() is not None
        gc.collect()
        assert looks and node() is None
    finally:
        gc.callbacks.pop()
        gc.freeze()
    assert len(kept) + len(more) == 100_100
