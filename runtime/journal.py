"""The journal: every answer of a model or a judge, written to disk as soon as it arrives.

Layout: a folder of JSONL files, one file per writing process, one line per answer (`journal_lines`), and an index of
them for each machine (`journal_index`), which is made from the files. A line's checksum covers every byte that follows
it, so a half-written record is detected. Files are only ever appended to by the process that created them: several
processes and nodes may share a folder. Of several answers with the same key the newest wins: the one with the highest
sequence, which all processes of a machine count together, and go on from what they find; clocks are not asked.
Write order: line(s) of one batch in one write, then fsync, then the index.
"""

import fcntl
import hashlib
import json
import logging
import os
import secrets
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal_index import IndexEntry, JournalIndex
from cultureval.runtime.journal_lines import check_key, decode_line, encode_line, utf8
from cultureval.runtime.settings import current_settings

logger = logging.getLogger(__name__)

WITHDRAWN = "withdrawn answers"  # the label of lines that take an answer back
CHECKS = "checks"  # of an answer: the names of those that its servers were to pass after it
ELSEWHERE = "elsewhere"  # of a withdrawn answer: the key under which it is filed as another model's, and that model
BEFORE = "before"  # of an answer: what earlier ones of its key cost that were withdrawn or passed over, oldest first
ROOM = 2**16  # bytes of the disk that are kept for notes that it is too full for; one has some hundreds
PLAIN = {int, float, str, bool, type(None)}
Records = Mapping[str, Mapping[str, Any]]  # answer_key -> the answer
Append = Callable[[Records], None]


def answer_key(**parts: Any) -> str:
    """The key of an answer: the SHA-256 hex digest of everything that could change it, as canonical JSON.

    Raises:
        ValueError: a part that JSON cannot hold (NaN, infinity, an object, a key that is not a string).
    """
    for name, value in parts.items():
        _require_string_keys(value, name)
    try:
        text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"an answer's key must be made of JSON values: {error}") from error
    return hashlib.sha256(utf8(text)).hexdigest()


def _require_string_keys(value: Any, where: str) -> None:
    # json.dumps would turn the key 1 into "1", and two different keys would collide.
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(
                    f"an answer's key must be made of JSON values: {where} has the key {key!r}, not a string"
                )
            if type(item) not in PLAIN:
                _require_string_keys(item, f"{where}.{key}")
    elif isinstance(value, list | tuple) and not set(map(type, value)) <= PLAIN:
        for index, item in enumerate(value):
            _require_string_keys(item, f"{where}[{index}]")


class Journal:
    """Answers by key, kept in a folder that survives a kill at any moment.

    Attributes:
        folder: where the files are.
        of: whose answers this process writes (a model), for `cultureval journal list`.
        dropped: how many damaged (half-written) records were found on opening and skipped.
    """

    def __init__(self, folder: Path, resume: bool | None = None, of: str = "") -> None:
        """Open a journal; earlier answers are found unless `resume` is False.

        Args:
            resume: None takes the current settings' (CULTUREVAL_RESUME, `--no-resume`).

        Raises:
            CulturevalError: a file of the journal cannot be read, or CULTUREVAL_RESUME is neither 0 nor 1.
        """
        self.folder, self.of = Path(folder), of
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._file = Path()
        self._owner = 0
        self._room: int | None = None  # a file without a name, which a kill leaves nothing of
        resumes = current_settings().resume if resume is None else resume
        self._index = JournalIndex(self.folder)
        self.dropped = self._refresh()
        self._opened = self._index.last_sequence()
        self._hidden = -1 if resumes else self._opened  # the last sequence that is not found
        self._hidden_of: dict[str, int] = {}  # likewise, of single keys
        self._before: dict[str, tuple[int, list[dict[str, Any]]]] = {}  # with the sequence of the line that it is of
        if self.dropped and resumes:
            logger.warning("journal %s: %d half-written record(s) skipped", self.folder, self.dropped)

    def __len__(self) -> int:
        return self._index.count(self._hidden)

    def __contains__(self, key: str) -> bool:
        return self._find(key) is not None

    def earlier(self, key: str, before: int | None = None) -> int | None:
        """When an answer was written (ns since 1970) if that was by another run, or before a time; else None."""
        where = self.elsewhere(key)
        entry = self._find(where[0] if where else key)
        if entry is None:
            return None
        of_another = entry.sequence <= self._opened or not _is_of_this_process(entry.file)
        is_earlier = of_another if before is None else entry.time < before
        return entry.time if is_earlier else None

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the newest answer of a key, or None."""
        entry = self._find(key)
        if entry is None:
            return None
        answer = self._read(entry)
        if answer is None:  # the file was pruned, or is not what it was
            self._refresh(anew=True)
            entry = self._find(key)
            answer = self._read(entry) if entry else None
        if answer is None:
            raise self._deleted()
        return answer

    def _deleted(self) -> CulturevalError:
        return CulturevalError(
            f"Answers in the journal {self.folder} were deleted or changed while this command was using them. "
            "Start it again: what is left is reused, and the rest is asked anew."
        )

    def withdraw(
        self, taken: Mapping[str, Mapping[str, Any] | None], elsewhere: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        """Take answers back, which turned out not to be what their keys say; they are then not in the journal.

        Args:
            taken: Key -> the answer, whose cost is kept, where it was not written yet; None: that of the journal.
            elsewhere: Key -> what is found as such from now on.
        """
        for key, answer in taken.items():
            self.take_back(key, answer or self.get(key))
        places = elsewhere or {}
        self.append({key: {ELSEWHERE: places[key]} if key in places else {} for key in taken}, WITHDRAWN)

    def elsewhere(self, key: str) -> tuple[str, str] | None:
        """The key under which an answer that was taken back is filed as another model's, and that model; else None."""
        entry = self._index.find(key)
        if entry is None or entry.of != WITHDRAWN or entry.sequence <= self._hidden:
            return None
        where = (self._read(entry) or {}).get(ELSEWHERE)
        return (where[0], where[1]) if where else None

    def take_back(self, key: str, answer: Mapping[str, Any] | None) -> None:
        """Keep what an answer cost that is of no use; it is written with the next answer of its key, or withdrawal."""
        if answer:  # with counts, the text is not needed to tell what it cost
            cost = {name: answer[name] for name in ("usage", "batch") if answer.get(name)}
            left_out = (CHECKS, BEFORE)
            whole = {name: value for name, value in answer.items() if name not in left_out}
            earlier = self._earlier(key)
            self._before[key] = self._before[key][0], [*earlier, cost if "usage" in cost else whole]

    def _earlier(self, key: str) -> list[dict[str, Any]]:
        entry = self._index.find(key)
        sequence = entry.sequence if entry else -1
        if key not in self._before or self._before[key][0] != sequence:  # another process may have written meanwhile
            answer = self._read(entry) if entry and sequence > self._hidden else None
            self._before[key] = sequence, (answer or {}).get(BEFORE, [])
        return self._before[key][1]

    def paid(self, key: str, answer: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
        """All answers to a question that were paid: those withdrawn or passed over, and `answer` as the last.

        Returns:
            A name of each payment -> the answer, or of an earlier one what tells its cost.
        """
        every = [*self._earlier(key), *([answer] if answer is not None else [])]
        return {f"{key} {place}" if place else key: one for place, one in enumerate(every)}

    def confirm(self, checks: Iterable[str]) -> None:
        """Note that servers were, at these checks, still who they were: so the answers that name them are confirmed.

        A disk that is full has room for it, so that the answers before are not paid for again.
        """
        self.append({check_key(check): {} for check in checks}, room=True)

    def hide_unconfirmed(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Pass over the answers that no check of who the server is followed, as if they were not here.

        Returns:
            The keys of those that are now hidden, which stay in the files until newer ones are written; and of those
            that another process wrote which is still running: its check is to come.
        """
        hidden, awaited = [], []
        passed: set[str] = set()
        for key in keys:
            answer, entry = self.get(key), self._find(key)
            checks = set(answer.get(CHECKS, ()) if answer else ()) - passed
            if checks and entry:
                runs = self._is_being_written(entry.file)  # looked up first, since it may end just after its check
                passed |= {check for check in checks if check_key(check) in self}
                if checks - passed and runs:
                    awaited.append(key)
                elif checks - passed:
                    self.take_back(key, answer)
                    self._hidden_of[key] = entry.sequence
                    hidden.append(key)
            elif answer is None:
                self._earlier(key)
        return hidden, awaited

    def _is_being_written(self, name: str) -> bool:
        """Whether another process of this machine writes a file, as its lock says."""
        if _is_of_this_process(name):
            return False
        try:
            with (self.folder / name).open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def refresh(self) -> None:
        """Finds what other machines have written meanwhile; what this one's processes write is found at once."""
        self._refresh()

    def append(self, records: Records, of: str | None = None, room: bool = False) -> None:
        """Write a batch of answers; when this returns they are on the disk.

        Args:
            records: answer_key -> the answer, a JSON object.
            of: whose they are; None: those of this process.
            room: whether they may have the room that is kept for a full disk.

        Raises:
            TypeError: an answer that JSON cannot hold; nothing of the batch is written.
            CulturevalError: the disk is full or the folder cannot be written.
        """
        if not records:
            return
        of = self.of if of is None else of
        earlier = {key: before for key in records if key in self._before and (before := self._earlier(key))}
        records = {**records, **{key: {**records[key], BEFORE: before} for key, before in earlier.items()}}
        with self._lock:
            try:
                try:
                    self._add(records, of)
                except OSError:
                    if not (room and self._room is not None):
                        raise
                    os.truncate(self._room, 0)
                    self._add(records, of)
                    self._reserve()
            except OSError as error:
                raise CulturevalError(
                    f"An answer or its confirmation cannot be written into the journal {self.folder}: "
                    f"{error.strerror or error}. Make room or set CULTUREVAL_JOURNAL to another folder; the same "
                    "command resumes from what was written and confirmed, and asks again for the rest."
                ) from error

    def _add(self, records: Records, of: str) -> None:
        """Write a batch to the disk, then into the index."""
        self._prepare_file()
        sequence, now = self._index.next_sequence(), time.time_ns()
        lines = {key: encode_line(key, answer, sequence, now, of) for key, answer in records.items()}
        start = self._write(b"".join(lines.values()))
        changed = self._file.stat().st_mtime_ns
        entries = []
        for key, line in lines.items():
            entries.append(IndexEntry(key, sequence, now, self._file.name, start, len(line), of))
            start += len(line)
        self._index.add(entries, start, changed)

    @contextmanager
    def appending(self) -> Iterator[Append]:
        """A context with an `append` that returns while a batch is being written, since disks take their time.

        The batch before is on the disk when it returns, and the last one at the end of the context. Both raise what
        `append` raises.
        """
        with ThreadPoolExecutor(1, "journal") as writer:
            written = writer.submit(self.append, {})  # which starts the thread, while there is memory for it

            def append(records: Records) -> None:
                nonlocal written
                written.result()
                written = writer.submit(self.append, records)

            try:
                yield append
            finally:
                written.result()

    def _find(self, key: str) -> IndexEntry | None:
        entry = self._index.find(key)
        hidden = self._hidden_of.get(key, self._hidden)
        return entry if entry and entry.sequence > hidden and entry.of != WITHDRAWN else None

    def _read(self, entry: IndexEntry) -> dict[str, Any] | None:
        """The answer of a line; None where the file is gone or holds another line there."""
        try:
            with (self.folder / entry.file).open("rb") as stream:
                stream.seek(entry.start)
                record = decode_line(stream.read(entry.length))
        except OSError:
            return None
        return record["answer"] if record and record["key"] == entry.key else None

    def _refresh(self, anew: bool = False) -> int:
        try:
            return self._index.refresh(anew)
        except OSError as error:
            raise CulturevalError(
                f"The journal {self.folder} cannot be read: {error}. Fix this, or set CULTUREVAL_JOURNAL to a "
                "folder of your own."
            ) from error

    def _prepare_file(self) -> None:
        """Makes sure that this process has a file of its own, also where the journal has been deleted meanwhile."""
        own = self._descriptor is not None and self._owner == os.getpid()
        if own and self._file.exists():
            return
        if own:
            logger.warning(
                "the journal's file %s was deleted in mid-run: answers so far are lost for a resumed run, further ones "
                "are kept in a new file",
                self._file,
            )
        self._create_file()
        self._index.settle()

    def _write(self, data: bytes) -> int:
        """Append bytes to this process's file and return where they begin."""
        assert self._descriptor is not None
        start = os.lseek(self._descriptor, 0, os.SEEK_END)
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
        except OSError:
            # Text after a half-written line would be lost with it: the next batch gets a new file.
            os.close(self._descriptor)
            self._descriptor = None
            raise
        return start

    def _create_file(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{time.time_ns()}-{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
        self._file = self.folder / name
        if self._owner != os.getpid():  # of a forked process the room would be its parent's
            self._owner, self._room = os.getpid(), None
        self._descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        with suppress(OSError):  # some file systems have no locks; this one only keeps `prune` away
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder = os.open(self.folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        if self._room is None:
            self._reserve()

    def _reserve(self) -> None:
        """Take the room for a full disk, or as much of it as there is."""
        with suppress(OSError):
            if self._room is None:
                self._room, name = tempfile.mkstemp(dir=self.folder)
                os.unlink(name)
            os.pwrite(self._room, secrets.token_bytes(ROOM), 0)  # not zeros, which some file systems keep nothing for
            os.fsync(self._room)


def _is_of_this_process(file: str) -> bool:
    return f"-{socket.gethostname()}-{os.getpid()}-" in file


def journal_folder() -> Path:
    """The journal of this machine: the folder CULTUREVAL_JOURNAL, or `journal` in the user's cache."""
    return current_settings().journal or user_cache() / "journal"


def open_journal(of: str = "") -> Journal:
    """The journal of this machine, for answers of a model (`of`); without earlier ones where CULTUREVAL_RESUME is 0."""
    return Journal(journal_folder(), of=of)
