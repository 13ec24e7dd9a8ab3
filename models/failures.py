"""Errors inside a model's own computation, as sentences."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lighteval.tasks.requests import Doc

from cultureval.models.memory import is_out_of_memory
from cultureval.runtime.errors import CulturevalError, described


@contextmanager
def failures_named(model: str, docs: Sequence[Doc]) -> Iterator[None]:
    """A context in which an error inside the model's own computation names the model, a prompt, and what may help.

    Memory that does not suffice is left to the caller, who can try with less.
    """
    try:
        yield
    except (RuntimeError, IndexError) as error:
        if is_out_of_memory(error):
            raise
        raise CulturevalError(
            f"{model} fails on a prompt of {docs[0].task_name} (item {docs[0].id}): {described(error)[:400]}. Its "
            "config.json may not fit its weights or tokenizer, or this device lacks a kernel: try dtype: float32, "
            "attn_implementation: eager or device: cpu. All answers so far are kept."
        ) from error
