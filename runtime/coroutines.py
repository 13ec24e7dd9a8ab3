"""Coroutines from synchronous code, also in a notebook, where an event loop runs already."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, as by `asyncio.run`; in a new thread where this one has a running event loop.

    An interruption of the waiting thread cancels the coroutine, and is raised when that has ended.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    from anyio.from_thread import start_blocking_portal

    async def result() -> T:
        return await coroutine

    with start_blocking_portal() as portal:
        return portal.call(result)
