"""Where each answer of a journal is: a SQLite database beside the journal's files, which a start need not read again.

The files are the journal; the index is made from them, and may be deleted at any time. Each machine has its own, since
SQLite's locks do not hold on every file system that nodes share. Nothing is fsynced here: what an index lacks is read
from the ends of the files, and an answer found through it is checked against its line.
"""

import logging
import os
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from cultureval.runtime.journal_lines import CHECK, decode_line, utf8

logger = logging.getLogger(__name__)

VERSION = 1
PATIENCE_S = 60.0  # how long another process's transaction is waited for; it takes milliseconds
ANNOUNCED = 2**28  # bytes of which reading them is announced
SCHEMA = f"""
PRAGMA user_version = {VERSION};
CREATE TABLE files (id INTEGER PRIMARY KEY, name TEXT UNIQUE, size INTEGER, changed INTEGER, damaged INTEGER);
CREATE TABLE labels (id INTEGER PRIMARY KEY, text TEXT UNIQUE);
CREATE TABLE answers (key BLOB PRIMARY KEY, sequence INTEGER, time INTEGER, file INTEGER, start INTEGER,
    length INTEGER, label INTEGER) WITHOUT ROWID;
CREATE TABLE counter (value INTEGER);
INSERT INTO counter VALUES (0);
"""
ADD = """
INSERT INTO answers VALUES (?, ?, ?, (SELECT id FROM files WHERE name = ?), ?, ?,
    (SELECT id FROM labels WHERE text = ?))
ON CONFLICT (key) DO UPDATE SET sequence = excluded.sequence, time = excluded.time, file = excluded.file,
    start = excluded.start, length = excluded.length, label = excluded.label
WHERE excluded.sequence >= answers.sequence
"""
ARE_ANSWERS = f"substr(key, 1, {len(CHECK)}) != CAST('{CHECK}' AS BLOB)"  # other lines are checks of servers

Result = TypeVar("Result")


class IndexEntry(NamedTuple):
    """An answer's line: its first byte and number of bytes in a file.

    Attributes:
        sequence: The line's place among all.
        time: In ns since 1970.
    """

    key: str
    sequence: int
    time: int
    file: str
    start: int
    length: int
    of: str


class JournalIndex:
    """The index of a journal's folder. Where its file cannot be used, it is made in memory, and this is said."""

    def __init__(self, folder: Path) -> None:
        """Prepare the index of a journal's folder; nothing is written before the folder exists."""
        self.folder = folder
        self._lock = threading.RLock()
        self._database: sqlite3.Connection | None = None
        self._owner = 0
        self._is_file = False
        self._file_is_unusable = False

    # --- reading ---

    def find(self, key: str) -> IndexEntry | None:
        """The newest line of a key, or None."""
        query = (
            "SELECT sequence, time, name, start, length, text FROM answers JOIN files ON files.id = file "
            "JOIN labels ON labels.id = label WHERE key = ?"
        )
        row = self._do(lambda database: database.execute(query, (packed(key),)).fetchone())
        return IndexEntry(key, *row) if row else None

    def count(self, after: int = -1) -> int:
        """Number of answers whose sequence is greater."""
        return self._number(f"SELECT count(*) FROM answers WHERE sequence > ? AND {ARE_ANSWERS}", after)

    def last_sequence(self) -> int:
        """The highest sequence so far."""
        return self._number("SELECT value FROM counter")

    def by_label(self) -> list[tuple[str, int, int, int, int]]:
        """For each model or judge (label, answers, bytes, oldest, newest time in ns), the largest first."""
        query = (
            "SELECT text, count(*), sum(length), min(time), max(time) FROM answers JOIN labels ON labels.id = label "
            f"WHERE {ARE_ANSWERS} GROUP BY text ORDER BY sum(length) DESC"
        )
        return self._do(lambda database: database.execute(query).fetchall())

    def chosen(self, label: str | None, before: int | None) -> set[bytes]:
        """Packed keys of the answers of a label (None: of all) that were written before a time (None: whenever)."""
        query = (
            "SELECT key FROM answers JOIN labels ON labels.id = label "
            "WHERE (?1 IS NULL OR text = ?1) AND (?2 IS NULL OR time < ?2)"
        )
        return self._do(lambda database: {key for (key,) in database.execute(query, (label, before))})

    def _number(self, query: str, *values: int) -> int:
        return int(self._do(lambda database: database.execute(query, values).fetchone()[0]))

    # --- writing ---

    def next_sequence(self) -> int:
        """A sequence that is higher than all before it, of all processes of this machine."""

        def count_on(database: sqlite3.Connection) -> int:
            database.execute("UPDATE counter SET value = value + 1")
            return database.execute("SELECT value FROM counter").fetchone()[0]

        return self._do(count_on, "IMMEDIATE")

    def add(self, entries: Sequence[IndexEntry], size: int, changed: int) -> None:
        """Record lines of one file that their process has just written; its size in bytes and time of change in ns."""

        def write(database: sqlite3.Connection) -> None:
            _add(database, entries, entries[0].file)
            query = "UPDATE files SET size = ?1, changed = ?2 WHERE name = ?3 AND size <= ?1"
            database.execute(query, (size, changed, entries[0].file))

        self._do(write, "IMMEDIATE")

    def refresh(self, anew: bool = False) -> int:
        """Read what the files hold beyond the index; everything `anew`, or where a file has shrunk, changed or gone.

        Returns:
            Number of half-written or changed lines in all files, ends that are just being written included.
        """
        return self._do(lambda database: self._refresh(database, anew), "IMMEDIATE")

    def settle(self) -> None:
        """Move to the folder, which has been made since this index was opened, or made again."""
        with self._lock:
            if not self._file_is_unusable:
                self._close()
            self.refresh()

    def _refresh(self, database: sqlite3.Connection, anew: bool = False) -> int:
        files = {path.name: path.stat() for path in journal_files(self.folder)}
        rows = database.execute("SELECT name, size, changed FROM files").fetchall()
        known = {name: size for name, size, _ in rows}
        if anew or any(_is_other(files.get(name), size, changed) for name, size, changed in rows):
            for table in ("answers", "files", "labels"):
                database.execute(f"DELETE FROM {table}")
            known = {}
        grown = {name: stat for name, stat in sorted(files.items()) if known.get(name, -1) != stat.st_size}
        unread = sum(stat.st_size - known.get(name, 0) for name, stat in grown.items())
        if unread > ANNOUNCED:
            logger.warning("%.0f MiB of the journal %s are read once, for its index", unread / 2**20, self.folder)
        unfinished = sum(self._read(database, name, known.get(name, 0), stat) for name, stat in grown.items())
        return unfinished + int(database.execute("SELECT total(damaged) FROM files").fetchone()[0])

    def _read(self, database: sqlite3.Connection, name: str, start: int, stat: os.stat_result) -> bool:
        """Index a file's lines from a byte on; returns whether its end is unfinished, and is read again next time."""
        end, damaged, unfinished = start, 0, False

        def entries() -> Iterator[IndexEntry]:
            nonlocal end, damaged, unfinished
            with (self.folder / name).open("rb") as file:
                file.seek(start)
                while end < stat.st_size and (line := file.readline(stat.st_size - end)):
                    record = decode_line(line)
                    if record is not None:
                        fields = (record[field] for field in ("key", "sequence", "time"))
                        yield IndexEntry(*fields, name, end, len(line), record["of"])
                    elif not line.endswith(b"\n"):
                        unfinished = True
                        return
                    else:  # a line break alone ends a line that was whole without it
                        damaged += line != b"\n"
                    end += len(line)

        _add(database, entries(), name)
        query = "UPDATE files SET size = ?, changed = ?, damaged = damaged + ? WHERE name = ?"
        database.execute(query, (end, stat.st_mtime_ns, damaged, name))
        return unfinished

    # --- the database ---

    def _do(self, work: Callable[[sqlite3.Connection], Result], kind: str = "DEFERRED") -> Result:
        """Work in a transaction; where the database fails, on another one: first as a file again, then in memory."""
        with self._lock:
            for attempt in range(3):
                try:
                    return _in_transaction(self._connected(), work, kind)
                except sqlite3.Error as error:
                    self._close()
                    if attempt == 2:
                        raise
                    self._make_anew(error, attempt)
        raise AssertionError("unreachable")

    def _make_anew(self, error: sqlite3.Error, attempt: int) -> None:
        if not attempt:
            if not isinstance(error, sqlite3.OperationalError):  # the file is no such database, or damaged
                with suppress(OSError):
                    index_path(self.folder).unlink()
            return  # other errors: the file may have been moved or deleted
        self._file_is_unusable = True
        logger.warning(
            "the index of the journal %s cannot be used (%s): all of the journal is read at each start",
            self.folder,
            error,
        )

    def _connected(self) -> sqlite3.Connection:
        # A connection must not be carried into a forked process, but a copy in memory is its own; one that was made
        # before the folder gives way to the file, in which other processes may have answers.
        fits = self._owner == os.getpid() if self._is_file else self._file_is_unusable or not self.folder.is_dir()
        if self._database is not None and fits:
            return self._database
        self._is_file = self.folder.is_dir() and not self._file_is_unusable
        path = str(index_path(self.folder)) if self._is_file else ":memory:"
        self._database = sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False)
        self._owner = os.getpid()
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute("PRAGMA journal_mode = TRUNCATE")
        _in_transaction(self._database, self._create, "IMMEDIATE")
        return self._database

    def _create(self, database: sqlite3.Connection) -> None:
        """Make the tables of a new database, and fill them."""
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version == VERSION:
            return
        if version:
            raise sqlite3.DatabaseError(f"it is of version {version}, not {VERSION}")
        for statement in SCHEMA.strip().rstrip(";").split(";"):
            database.execute(statement)
        self._refresh(database)

    def _close(self) -> None:
        if self._database is not None and self._owner == os.getpid():
            self._database.close()
        self._database = None


def journal_files(folder: Path) -> list[Path]:
    """The files of a journal, in the order of their names."""
    return sorted(folder.glob("*.jsonl"))


def index_path(folder: Path) -> Path:
    """This machine's index of a journal."""
    machine = "".join(letter if letter.isalnum() else "-" for letter in socket.gethostname())
    return folder / f"index-{machine}.sqlite"


def packed(key: str) -> bytes:
    """A key as the index holds it: half as long where it is a hash."""
    with suppress(ValueError):
        if len(key) == 64 and key.isalnum():
            return bytes.fromhex(key)
    return utf8(key)


def _is_other(now: os.stat_result | None, size: int, changed: int) -> bool:
    """Whether a file is gone, shorter, or as long but not the same: only its process writes, at its end."""
    return now is None or now.st_size < size or (now.st_size == size and now.st_mtime_ns != changed)


def _add(database: sqlite3.Connection, entries: Iterable[IndexEntry], name: str) -> None:
    """Add lines of one file; the newer of two of the same key stays."""
    database.execute("INSERT OR IGNORE INTO files VALUES (NULL, ?, 0, 0, 0)", (name,))
    labels: set[str] = set()
    highest = 0

    def rows() -> Iterator[tuple[bytes, int, int, str, int, int, str]]:
        nonlocal highest
        for entry in entries:
            if entry.of not in labels:
                database.execute("INSERT OR IGNORE INTO labels VALUES (NULL, ?)", (entry.of,))
                labels.add(entry.of)
            highest = max(highest, entry.sequence)
            yield packed(entry.key), entry.sequence, entry.time, name, entry.start, entry.length, entry.of

    database.executemany(ADD, rows())
    database.execute("UPDATE counter SET value = max(value, ?)", (highest,))


def _in_transaction(database: sqlite3.Connection, work: Callable[[sqlite3.Connection], Result], kind: str) -> Result:
    with database:  # which commits, or rolls back on an error
        database.execute(f"BEGIN {kind}")
        return work(database)
