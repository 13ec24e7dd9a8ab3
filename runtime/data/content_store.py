"""Files in the user cache named by the SHA-256 of their content, so that each content is stored once.

Prepared rows, Docs and details hold the name of a large content: an image, a code problem with a megabyte of test
inputs, the reference captions of a language variety. Names may come from files that people exchange, so each is checked
before it becomes a path. Models must not see code problems, which hold the solutions.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cultureval.runtime.data.user_cache import user_cache, write_atomically
from cultureval.runtime.errors import CulturevalError


@dataclass(frozen=True)
class ContentStore:
    """One folder of files named by their content."""

    folder: str  # its name below the user cache
    kind: str  # of its files, a noun for error messages
    suffixes: tuple[str, ...] = (".json",)  # of file names
    sharded: bool = False  # into sub-folders by the first two digits, for many thousands of files

    def find(self, content: bytes) -> str | None:
        """The name of a stored content; None where it is not stored."""
        digest = hashlib.sha256(content).hexdigest()
        return next((digest + suffix for suffix in self.suffixes if self._place(digest + suffix).is_file()), None)

    def put(self, content: bytes, suffix: str = ".json") -> str:
        """Stores a content; returns its name for `path` and `get`, or raises CulturevalError on a full disk."""
        name = hashlib.sha256(content).hexdigest() + suffix
        try:
            if not self._place(name).is_file():
                write_atomically(self._place(name), content)
        except OSError as error:  # else a full disk would look like thousands of broken rows
            raise CulturevalError(f"{error}: make room or set CULTUREVAL_CACHE to another folder.") from error
        return name

    def path(self, name: str) -> Path:
        """The file of a name; raises CulturevalError where the name is invalid or the file is missing."""
        stem, dot, suffix = name.partition(".")
        if not re.fullmatch(r"[0-9a-f]{64}", stem) or dot + suffix not in self.suffixes:
            raise CulturevalError(f"{name!r} does not name a stored {self.kind}.")
        path = self._place(name)
        if not path.is_file():
            raise CulturevalError(f"The {self.kind} {path} is missing; run the evaluation again.")
        return path

    def get(self, name: str) -> bytes:
        """The content of a name; raises as `path`, and where the content does not match the name."""
        path = self.path(name)
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != path.stem:
            raise CulturevalError(f"The {self.kind} {path} is damaged; delete it and run the evaluation again.")
        return content

    def _place(self, name: str) -> Path:
        folder = user_cache() / self.folder
        return (folder / name[:2] if self.sharded else folder) / name


PROBLEMS = ContentStore("code_problems", "code problem")
TEXTS = ContentStore("texts", "list of texts")


def store_problem(problem: Mapping[str, Any]) -> str:
    """Stores a row of an EvalPlus data file; returns the name for `stored_problem`."""
    return PROBLEMS.put(json.dumps(problem).encode("ascii")).removesuffix(".json")


def stored_problem(name: str) -> dict[str, Any]:
    """A stored code problem; raises as `ContentStore.get`."""
    return json.loads(PROBLEMS.get(f"{name}.json"))


def store_texts(texts: Sequence[str]) -> str:
    """Stores texts of all rows of a data set for a metric that sees only some rows; returns their name."""
    return TEXTS.put(json.dumps(list(texts), ensure_ascii=False).encode("utf-8", "surrogatepass"))


def stored_texts(name: str) -> list[str]:
    """A stored list of texts; raises as `ContentStore.get`."""
    return json.loads(TEXTS.get(name).decode("utf-8", "surrogatepass"))
