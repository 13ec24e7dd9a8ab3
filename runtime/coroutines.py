"""Coroutines from synchronous code, also in a notebook, whose cells run within an event loop."""

import asyncio
import contextvars
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine; as `asyncio.run`, but in a thread of its own where this one has a running event loop.

    An interruption of the waiting thread cancels the coroutine, and is raised when that has ended.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    runner = asyncio.Runner()
    with ThreadPoolExecutor(1) as thread:
        loop = thread.submit(contextvars.copy_context().run, runner.get_loop).result()  # whose context is kept
        found = thread.submit(runner.run, coroutine)
        try:
            return found.result()
        except BaseException:
            if not found.done():
                loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
                found.exception()
            raise
        finally:
            thread.submit(runner.close).result()
