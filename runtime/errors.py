"""Errors for users: what was wrong, where, and what to do."""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.runtime.zero_width import INVISIBLE

if TYPE_CHECKING:
    from pydantic import ValidationError


# Control characters, line ends, changes of the reading direction, and invisible characters.
_CONTROLS = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029\U000e0000-\U000e007f{INVISIBLE}]")
MARKS = "\u061c\u200c\u200d\u200e\u200f"  # of Arabic texts: they join letters or set the reading direction
# Parts of names whose texts may be secret, and parts of other names that resemble them.
SECRET = re.compile(r"key|token|secret|passw|signature|authorization|credential|cookie|^(auth|sig|pwd)$", re.IGNORECASE)
_NO_SECRET = re.compile(
    r"(max|min|new|stop|special|image|embed|completion|bos|eos|pad|unk)_tokens?(_name)?|token(_id|_budget|_price|i[sz])"
    r"|cache_key",
    re.IGNORECASE,
)
GOES_ON = "Answers so far are kept: the same command goes on, unless it has --no-resume."
CONTROLS = "\n\t"  # control characters that a message may hold


class CulturevalError(Exception):
    """Base of every error that a command prints as one sentence, without a traceback."""


class SourceUnavailable(CulturevalError):
    """A data source is neither under the data root nor reachable on the hub."""


class MissingColumn(CulturevalError):
    """A source has no column of a name that all its rows need."""


class DryRun(Exception):
    """A run ends before it asked anything; its text says what it would ask, and the cost."""


class BatchWritten(Exception):
    """A run ends because its requests are in files and need answers first."""

    def __init__(self, files: Sequence[Path], requests: int) -> None:
        self.files, self.requests = list(files), requests
        super().__init__(
            f"{requests:,} requests are in {', '.join(map(str, self.files))}. Let a provider answer them, or run: "
            f"vllm run-batch -i {self.files[0]} -o ANSWERS.jsonl --model MODEL. Then run this command again with "
            "--batch-in ANSWERS.jsonl in place of --batch-out (in a model's file: batch_in, batch_out)"
        )


class Problems(CulturevalError):
    """Several problems that were found together, one a line."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        lines = (f"  {number}. {problem}" for number, problem in enumerate(problems, start=1))
        super().__init__("\n".join([f"{len(problems)} problems to solve before the run can start:", *lines]))


class ProblemList:
    """Collects errors by their messages, in order, instead of stopping at the first."""

    def __init__(self) -> None:
        self.found: dict[str, CulturevalError] = {}

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """A context that collects a CulturevalError."""
        try:
            yield
        except CulturevalError as error:
            self.add(error)

    def add(self, error: CulturevalError) -> None:
        """Adds an error, or each problem of a `Problems`, unless the same message is there."""
        several = [CulturevalError(text) for text in error.problems] if isinstance(error, Problems) else [error]
        for problem in several:
            self.found.setdefault(str(problem), problem)

    def raise_if_any(self, most: int | None = None) -> None:
        """Raises a single error as it is, several as `Problems`, which lists `most` of them (None: all)."""
        texts = list(self.found)
        if len(texts) == 1:
            raise self.found[texts[0]]
        if most is not None and len(texts) > most:
            texts[most:] = [f"And {len(texts) - most} more problems."]
        if texts:
            raise Problems(texts)


def all_of(checks: Iterable[Callable[[], object]]) -> None:
    """Runs all checks, then raises all their CulturevalErrors together."""
    problems = ProblemList()
    for check in checks:
        with problems.collecting():
            check()
    problems.raise_if_any()


class BadRow(CulturevalError):
    """A row breaks its schema: the column, its value, and the reason ("is not a number")."""

    def __init__(self, column: str, value: object, reason: str) -> None:
        self.column, self.value, self.reason = column, value, reason
        super().__init__(f"column {column!r} {reason} (value: {shorten(value)})")


def may_be_secret(name: str) -> bool:
    """Whether a name is that of an API key, a password or the like; `max_tokens` and its like are not."""
    return bool(SECRET.search(_NO_SECRET.sub("", name)))


def wrong_settings(error: "ValidationError", values: bool = False) -> str:
    """What pydantic found wrong, as `setting: reason`.

    `values` also shows texts and numbers, except those of names like `api_key`.
    """
    found = []
    for item in error.errors():
        shown = values and isinstance(item["input"], str | int | float | None)
        secret = any(may_be_secret(str(name)) for name in item["loc"])
        value = f" (given: {item['input']!r})" if shown and not secret else ""
        reason = item["msg"].removeprefix("Value error, ")  # pydantic puts it before the message of a validator
        found.append(f"{'.'.join(map(str, item['loc'])) or 'settings'}: {reason}{value}")
    return "; ".join(found)


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """` Did you mean a, b?`: at most three known names with a similarity of `cutoff` (0 to 1); "" without one."""
    nearest = difflib.get_close_matches(name, list(known), n=3, cutoff=cutoff)
    return f" Did you mean {', '.join(nearest)}?" if nearest else ""


def shown_names(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def counted(number: int, noun: str) -> str:
    """`1 sample`, `2 samples`; the plural of the noun ends in s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def described(error: BaseException) -> str:
    """Type and text of another package's error, on one line and without control characters."""
    return escaped(f"{type(error).__name__}: {error}")


def escaped(text: str, keep: str = "") -> str:
    """The text with its control and invisible characters, written as escapes, except those in `keep`."""
    return _CONTROLS.sub(
        lambda found: found[0] if found[0] in keep else found[0].encode("unicode_escape").decode(), text
    )


def shorten(value: object, width: int = 120) -> str:
    """`repr(value)`, cut to `width` characters, for error messages."""
    text = repr(value)
    return text if len(text) <= width else text[: width - 1] + "…"
