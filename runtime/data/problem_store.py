"""The code problems of prepared rows: one file for each different problem, below the user cache, named by its content.

A problem holds up to a megabyte of test inputs, which neither a Doc nor the details of a run should carry: prepared
rows and Docs name the stored file. It must lie outside a model's reach: it holds the canonical solution.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from cultureval.runtime.data.user_cache import user_cache, write_whole
from cultureval.runtime.errors import CulturevalError

_NAME = re.compile(r"[0-9a-f]{64}")


def store_problem(problem: Mapping[str, Any]) -> str:
    """Keeps a row of an EvalPlus data file and returns the name to give to `stored_problem`."""
    text = json.dumps(problem)
    name = hashlib.sha256(text.encode("ascii")).hexdigest()
    file = user_cache() / "code_problems" / f"{name}.json"
    if not file.is_file():
        write_whole(file, text.encode("ascii"))
    return name


def stored_problem(name: str) -> dict[str, Any]:
    """A stored problem.

    Raises:
        CulturevalError: The name is none of `store_problem`, or its file is gone or damaged.
    """
    if not _NAME.fullmatch(name):
        raise CulturevalError(f"{name!r} does not name a stored problem.")
    file = user_cache() / "code_problems" / f"{name}.json"
    try:
        text = file.read_text(encoding="ascii")
    except OSError as error:
        raise CulturevalError(
            f"The problem {file} is gone; delete {user_cache() / 'rows'} so that it is made again."
        ) from error
    if hashlib.sha256(text.encode("ascii")).hexdigest() != name:
        raise CulturevalError(f"The problem {file} is damaged; delete it and run again.")
    return json.loads(text)
