"""The journal: every answer of a model, a judge or a code judge, written to disk at once.

Each model has a folder, and each process appends to its own file of JSON lines there. A batch of answers is one write
and one fsync: a kill loses at most the batch in flight, and a torn last line is skipped. Opening builds the index, a
dict; a line's key has a fixed place, so that no JSON is parsed. Processes may share a folder: each finds what was
written before it opened. To forget a model's answers, delete its folder.
"""

import hashlib
import json
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cultureval.runtime.data.user_cache import user_cache, write_atomically
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import current_settings

logger = logging.getLogger(__name__)

KEY_DIGITS = 32  # of hex: 128 bits
HEAD = b'{"key": "'
KEY = slice(len(HEAD), len(HEAD) + KEY_DIGITS)
PLACE_BITS = 44  # of an index entry: offset in a file of up to 16 TiB; the bits above are the file's number
LONGEST_NAME = 80  # characters of the model's name in a folder's name, before the hash
ABOUT = "about.json"  # in a model's folder: its name and identity

Records = Mapping[str, Mapping[str, Any]]  # key -> the answer


def answer_key(**parts: Any) -> str:
    """The key of an answer: a hash of everything that could change it, 32 hexadecimal digits.

    Raises:
        TypeError, ValueError: A part that JSON cannot hold, such as an object or NaN.
    """
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_DIGITS // 2).hexdigest()


def journal_folder() -> Path:
    """The folder of all journals: CULTUREVAL_JOURNAL, else `journal` in the user cache."""
    return current_settings().journal or user_cache() / "journal"


def open_journal(name: str, **identity: Any) -> "Journal":
    """The journal of a model, opened in its own folder.

    `identity` separates models of one name: revision or fingerprint, settings that change answers. Raises a
    CulturevalError where the folder cannot be read or made.
    """
    shown = re.sub(r"[^\w.-]+", "-", name).strip("-.")[-LONGEST_NAME:]
    folder = journal_folder() / f"{shown}-{answer_key(name=name, **identity)[:12]}"
    journal = Journal(folder)
    if not (folder / ABOUT).exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            about = json.dumps({"name": name, **identity}, ensure_ascii=False, indent=2)
            write_atomically(folder / ABOUT, about.encode("utf-8", "replace"))
        except OSError as error:
            raise journal.unwritable(error) from error
    return journal


class Journal:
    """Answers by key in a folder that survives a kill at any moment; of two answers to a key the later counts.

    Attributes:
        folder: Of the model.
        torn: Number of incomplete lines that were found at opening.
    """

    def __init__(self, folder: Path, resume: bool | None = None) -> None:
        """Opens a journal; `resume` False (None: the current setting) ignores its earlier answers.

        The first answer creates the folder. Raises a CulturevalError where a file cannot be read.
        """
        self.folder, self.torn = Path(folder), 0
        self._files: list[Path] = []
        self._places: dict[bytes, int] = {}
        self._lock = threading.Lock()
        self._descriptor, self._size, self._owner = -1, 0, 0
        resumes = current_settings().resume if resume is None else resume
        try:
            for file in sorted(self.folder.glob("*.jsonl")) if resumes else ():
                self._read_index(file)
        except OSError as error:
            raise CulturevalError(f"The journal {self.folder} cannot be read ({error.strerror or error}).") from error
        self._found = len(self._files)
        if self.torn:
            logger.warning("journal %s: %d half-written line(s) skipped", self.folder, self.torn)

    def __contains__(self, key: str) -> bool:
        return bytes.fromhex(key) in self._places

    def get(self, key: str) -> dict[str, Any] | None:
        """The newest answer of a key, or None; raises a CulturevalError where its file was deleted meanwhile."""
        place = self._places.get(bytes.fromhex(key))
        if place is None:
            return None
        try:
            with self._files[place >> PLACE_BITS].open("rb") as file:
                file.seek(place & (1 << PLACE_BITS) - 1)
                answer: dict[str, Any] = json.loads(file.readline().decode("utf-8", "surrogatepass"))["answer"]
        except (OSError, ValueError) as error:
            raise CulturevalError(
                f"Answers in the journal {self.folder} were deleted or changed while this command used them. Run it "
                "again: it reuses the answers that are left and asks for the rest."
            ) from error
        return answer

    def earlier(self, key: str) -> int | None:
        """When the file of an answer was created, in ns since 1970; None if the answer was not there at opening."""
        place = self._places.get(bytes.fromhex(key))
        if place is None or place >> PLACE_BITS >= self._found:
            return None
        return int(self._files[place >> PLACE_BITS].name.partition("-")[0])

    def append(self, answers: Records) -> None:
        """Writes a batch of answers: all are on the disk when this returns, or none where it raises.

        Raises a TypeError where JSON cannot hold an answer, a CulturevalError where the folder cannot be written.
        """
        lines = {key: _line(key, answer) for key, answer in answers.items()}
        with self._lock:
            try:
                if self._owner != os.getpid():  # the first answer of this process, or after a fork
                    self._begin_file()
                self._write(b"".join(lines.values()))
            except OSError as error:
                if self._owner == os.getpid():
                    os.ftruncate(self._descriptor, self._size)
                raise self.unwritable(error) from error
            for key, line in lines.items():
                self._places[bytes.fromhex(key)] = len(self._files) - 1 << PLACE_BITS | self._size
                self._size += len(line)

    def unwritable(self, error: OSError) -> CulturevalError:
        """The error of a folder that cannot be written."""
        return CulturevalError(
            f"Answers cannot be written into the journal {self.folder} ({error.strerror or error}). Make room or set "
            "CULTUREVAL_JOURNAL to another folder; the same command goes on from the answers in the journal."
        )

    def _write(self, data: bytes) -> None:
        if data and os.write(self._descriptor, data) < len(data):
            raise OSError("no room is left on the disk")
        os.fsync(self._descriptor)

    def _begin_file(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{time.time_ns()}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
        self._descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self._owner, self._size = os.getpid(), 0
        self._files.append(file)

    def _read_index(self, file: Path) -> None:
        self._files.append(file)
        number, start = len(self._files) - 1, 0
        with file.open("rb") as lines:
            for line in lines:
                if line.startswith(HEAD) and line.endswith(b"}\n"):
                    self._places[bytes.fromhex(line[KEY].decode("ascii"))] = number << PLACE_BITS | start
                else:
                    self.torn += 1
                start += len(line)


def _line(key: str, answer: Mapping[str, Any]) -> bytes:
    text = json.dumps({"key": key, "answer": dict(answer)}, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass") + b"\n"
