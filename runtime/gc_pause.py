"""When Python looks for objects that only refer to each other: not while what lasts is loaded.

While torch and transformers are imported it would look again and again, in vain: a quarter of the time until a run's
model loads.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """A context, or decorator, in which Python does not look for them; other objects are freed as always.

    After it, what was made counts as old: Python looks at it with all that lasts, and not at once.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():  # else the process has set objects aside, which unfreezing would give back
                gc.freeze()
                gc.unfreeze()
            gc.enable()
