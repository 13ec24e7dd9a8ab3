"""What a journal holds, and how it is made smaller: `cultureval journal list`, `size` and `prune`."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from cultureval.runtime.errors import CulturevalError, did_you_mean
from cultureval.runtime.journal_index import JournalIndex, index_path, journal_files, packed
from cultureval.runtime.journal_lines import decode_line

DAY_NS = 86_400 * 10**9


@dataclass(frozen=True)
class Holding:
    """The answers of one model or judge: how many, bytes of their lines, first and last time in ns since 1970."""

    of: str
    answers: int
    bytes: int
    oldest: int
    newest: int


@dataclass(frozen=True)
class JournalSize:
    """How large a journal is: the answers that a run can find, all files, this machine's index, and damaged lines."""

    answers: int
    answer_bytes: int
    files: int
    bytes: int
    index_bytes: int
    damaged: int


@dataclass
class Pruned:
    """What was taken out of a journal, or would be.

    Attributes:
        answers: Number of answers that were chosen and are gone.
        others: Number of lines with the same key as a newer one, and damaged ones.
        bytes: Freed.
        in_use: Names of files that a running process writes: they were left as they are.
    """

    answers: int = 0
    others: int = 0
    bytes: int = 0
    in_use: list[str] = field(default_factory=list)


def holdings(folder: Path) -> list[Holding]:
    """Whose answers a journal holds, those with the most bytes first."""
    index, _ = _opened(folder)
    return [Holding(*found) for found in index.by_label()]


def journal_size(folder: Path) -> JournalSize:
    """The size of a journal."""
    index, damaged = _opened(folder)
    found, files = index.by_label(), journal_files(folder)
    own = index_path(folder)
    return JournalSize(
        answers=sum(numbers[1] for numbers in found),
        answer_bytes=sum(numbers[2] for numbers in found),
        files=len(files),
        bytes=sum(file.stat().st_size for file in files),
        index_bytes=own.stat().st_size if own.exists() else 0,
        damaged=damaged,
    )


def prune(folder: Path, of: str | None = None, days: float | None = None, dry_run: bool = False) -> Pruned:
    """Takes lines out of a journal: those that a newer one replaces, damaged ones, and the answers that are named.

    A file is written anew beside the old one, which it then replaces, so that a kill at any moment loses nothing.

    Args:
        of: Take out the answers of this model or judge.
        days: Take out answers that are older; with `of`, those of it that are older.

    Raises:
        CulturevalError: There is no answer of that name, or a file cannot be read or written.
    """
    index, _ = _opened(folder)
    names = [holding.of for holding in holdings(folder)]
    if of is not None and of not in names:
        raise CulturevalError(f"The journal {folder} holds no answer of {of!r}.{did_you_mean(of, names)}")
    chosen: set[bytes] = set()
    if of is not None or days is not None:
        chosen = index.chosen(of, None if days is None else time.time_ns() - int(days * DAY_NS))
    done = Pruned()
    try:
        for path in journal_files(folder):
            with _not_in_use(path) as file:
                if file is None:
                    done.in_use.append(path.name)
                else:
                    _prune_file(path, file, index, chosen, done, dry_run)
    except OSError as error:
        raise CulturevalError(f"The journal {folder} cannot be pruned: {error}.") from error
    if not dry_run:
        index.refresh()
    return done


def _opened(folder: Path) -> tuple[JournalIndex, int]:
    if not folder.is_dir():
        raise CulturevalError(f"There is no journal at {folder} yet: the first answer of a model makes it.")
    index = JournalIndex(folder)
    try:
        return index, index.refresh()
    except OSError as error:
        raise CulturevalError(f"The journal {folder} cannot be read: {error}.") from error


@contextmanager
def _not_in_use(path: Path) -> Iterator[BinaryIO | None]:
    """The open file, locked; None where its process still writes it, or may do so on another machine."""
    recent = time.time() - path.stat().st_mtime < DAY_NS / 1e9
    with path.open("rb") as file:
        elsewhere = f"-{socket.gethostname()}-" not in path.name
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield None
            return
        yield None if elsewhere and recent else file


def _prune_file(
    path: Path, file: BinaryIO, index: JournalIndex, chosen: set[bytes], done: Pruned, dry_run: bool
) -> None:
    part = path.with_suffix(".part")
    size = kept = start = answers = others = 0
    with open(os.devnull if dry_run else part, "wb") as new:
        for line in file:
            record = decode_line(line)
            entry = index.find(record["key"]) if record else None
            newest = entry is not None and (entry.file, entry.start) == (path.name, start)
            is_chosen = record is not None and packed(record["key"]) in chosen
            if newest and not is_chosen:
                kept += new.write(line)
            answers += newest and is_chosen
            others += not newest
            start += len(line)
        size = start
        new.flush()
        if not dry_run:
            os.fsync(new.fileno())
    done.answers, done.others, done.bytes = done.answers + answers, done.others + others, done.bytes + size - kept
    if dry_run or kept == size:
        with suppress(FileNotFoundError):
            part.unlink()
    elif kept:
        os.replace(part, path)
    else:
        path.unlink()
        part.unlink()
