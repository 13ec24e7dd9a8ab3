"""Batch files as OpenAI's Batch API and vLLM's `run_batch` read and write them: requests out, answers in.

A line of requests is `{"custom_id", "method": "POST", "url", "body"}`; a line of answers has the same `custom_id`
and `{"response": {"status_code", "body"}, "error"}`, in any order. A `custom_id` names the task, and has hashes of the
task, of the row, and of everything that the answer depends on (the key in the journal), so that an answer to another
prompt is never taken for this one.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cultureval.runtime.errors import CulturevalError, shorten
from cultureval.runtime.servers.answers import Answer, answer_of, check_response, is_error, usage_of
from cultureval.runtime.servers.errors import UNREADABLE, IncompleteAnswer
from cultureval.runtime.servers.replies import LARGEST_REPLY
from cultureval.runtime.text_templates import short_hash

MOST_REQUESTS, MOST_BYTES = 50_000, 200 * 10**6  # of a file: OpenAI's limits, as read in November 2026
NAMED = 10  # custom ids in one message
MISSING, DIFFERENT = "the batch has no answer to it", "the batch has different answers to it"
CHAT, PLAIN = "/v1/chat/completions", "/v1/completions"


@dataclass(frozen=True)
class BatchRequest:
    """One request of a batch to the path of an endpoint; an id has letters, digits, `-` and `_`, 64 at most."""

    custom_id: str
    url: str
    body: Mapping[str, Any]

    def line(self) -> bytes:
        """Its line in the file, with the line's end."""
        content = {"custom_id": self.custom_id, "method": "POST", "url": self.url, "body": dict(self.body)}
        return json.dumps(content, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


class Recorder:
    """Stands in for a client (`OpenAIClient`): takes a request down instead of sending it."""

    async def chat(self, **request: Any) -> Answer:
        """The request for chat completions as `{"url", "body"}`."""
        return _taken_down(CHAT, request)

    async def complete(self, **request: Any) -> Answer:
        """The request for plain completions, likewise."""
        return _taken_down(PLAIN, request)


def _taken_down(url: str, request: Mapping[str, Any]) -> Answer:
    body = {name: value for name, value in request.items() if name != "extra_body"}
    return {"url": url, "body": body | dict(request.get("extra_body") or {})}


def custom_id(task: str, row: str, key: str) -> str:
    """The id of a request: of the task, of whatever identifies the row, and of the answer's key in the journal."""
    readable = re.sub(r"[^A-Za-z0-9_]+", "_", task).strip("_")[:20]
    return f"{readable}-{short_hash(task)}-{short_hash(row)}-{key[:24]}"


class BatchWriter:
    """Writes requests, to several files where one would be larger than a provider takes: FILE, FILE-002 and so on.

    Attributes:
        count: Requests so far.
    """

    def __init__(self, file: Path, most: int = MOST_REQUESTS, size: int = MOST_BYTES) -> None:
        """Prepares the files; none is made before the first request.

        Args:
            file: The first file; its folder is made.
            most: Requests in one file.
            size: Bytes of one file.

        Raises:
            CulturevalError: The file, or one of its further parts, exists already.
        """
        self._file, self._most, self._size = file, most, size
        if there := next((one for one in (file, self._name(2)) if one.exists()), None):
            raise CulturevalError(f"--batch-out: {there} exists already; name another file, or remove it.")
        self._parts = 0
        self._left, self._room = 0, 0
        self.count = 0

    def add(self, request: BatchRequest) -> None:
        """Writes one request; raises CulturevalError where it is larger than a file may be, or cannot be written."""
        line = request.line()
        if len(line) > self._size:
            raise CulturevalError(
                f"The request {request.custom_id} has {len(line):,} bytes, more than a batch file may have "
                f"({self._size:,}): set image_max_side, or a higher batch_mib."
            )
        if not self._left or len(line) > self._room:
            self._parts, self._left, self._room = self._parts + 1, self._most, self._size
            mode = "wb"
        else:
            mode = "ab"
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with _unfinished(self._name(self._parts)).open(mode) as stream:
                stream.write(line)
        except OSError as error:
            raise CulturevalError(
                f"--batch-out {self._file}: it cannot be written ({error.strerror or error})."
            ) from error
        self._left, self._room, self.count = self._left - 1, self._room - len(line), self.count + 1

    def close(self) -> list[Path]:
        """Gives the files their names, which a run that was stopped leaves ending in `.part`; [] without requests."""
        names = [self._name(number) for number in range(1, self._parts + 1)]
        for name in names:
            _unfinished(name).replace(name)
        return names

    def _name(self, part: int) -> Path:
        return self._file if part == 1 else self._file.with_name(f"{self._file.stem}-{part:03d}{self._file.suffix}")


def _unfinished(file: Path) -> Path:
    return file.with_name(f"{file.name}.part")


@dataclass
class BatchAnswers:
    """The answers of files, by `custom_id`.

    Attributes:
        bodies: The bodies of answers, of which there may be several: also that of a try which failed.
        failed: Ids without an answer that can be used -> why, a clause.
        unused: Answers of no use, by id: those that differ, and those that cannot be read; all were paid.
        repeated: Ids that stand there more than once with one answer.
        unreadable: Lines that are no answers: `FILE, line N: why`.
        asked: The ids that the run asked for so far.
    """

    bodies: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    unused: dict[str, list[Answer]] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)

    def take(self, identifier: str, choices: int) -> Answer | None:
        """The answer to a request for so many choices, as a client gives it; None without, and `failed` says why."""
        self.asked.add(identifier)
        found: list[Answer] = []
        unread: list[Answer] = []
        for body in self.bodies.get(identifier, ()):
            response = None
            try:
                response = _response_of(body)
                check_response(response, choices)
                answer = answer_of(response)
            except (IncompleteAnswer, *UNREADABLE) as error:
                self.failed[identifier] = f"the batch's answer cannot be read ({shorten(str(error))})"
                unread.append({"usage": usage_of(response)})
                continue
            if any(answer | {"usage": one["usage"]} == one for one in found):
                self.repeated.append(identifier)
            else:
                found.append(answer)
        self.unused[identifier] = [one for one in [*unread, *(found if len(found) > 1 else [])] if one["usage"]]
        if len(found) == 1:
            self.failed.pop(identifier, None)  # of another try
            return found[0]
        self.failed[identifier] = DIFFERENT if found else self.failed.get(identifier, MISSING)
        return None

    def warnings(self) -> list[str]:
        """Sentences about all that did not fit: missing, failed, repeated and foreign answers, unreadable lines."""
        found = {identifier: why for identifier, why in self.failed.items() if identifier in self.asked}
        missing = [identifier for identifier, why in found.items() if why == MISSING]
        different = [identifier for identifier, why in found.items() if why == DIFFERENT]
        failed = [f"{identifier} ({why})" for identifier, why in found.items() if why not in (MISSING, DIFFERENT)]
        foreign = [identifier for identifier in {**self.bodies, **self.failed} if identifier not in self.asked]
        told = {
            "have no answer": missing,
            "failed": failed,
            "have different answers, of which none is used": different,
            "are there more than once with the same answer, which counts once": self.repeated,
            "are answers to other requests than those of this command, and are not used": foreign,
            "are lines that cannot be read": self.unreadable,
        }
        return [f"batch: {len(ids):,} {what}: {_listed(ids)}" for what, ids in told.items() if ids]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{', '.join(shorten(name) for name in names[:NAMED])}{more}."


def _response_of(body: Mapping[str, Any]) -> Any:
    from openai.types import Completion
    from openai.types.chat import ChatCompletion

    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    kind = ChatCompletion if isinstance(first, Mapping) and "message" in first else Completion
    return kind.construct(**body)


def read_answers(files: Sequence[Path]) -> BatchAnswers:
    """Reads files of answers, and of errors, which some services write apart.

    Raises:
        CulturevalError: A file cannot be read.
    """
    answers = BatchAnswers()
    for file in files:
        try:
            for number, line in _lines(file):
                _add(answers, f"{file.name}, line {number}", line)
        except OSError as error:
            raise CulturevalError(f"--batch-in {file}: it cannot be read ({error.strerror or error}).") from error
    return answers


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    with file.open("rb") as stream:
        number = 0
        while line := stream.readline(LARGEST_REPLY + 1):
            number += 1
            whole = line
            while len(line) > LARGEST_REPLY and not line.endswith(b"\n"):
                line = stream.readline(LARGEST_REPLY + 1)
            yield number, whole


def _add(answers: BatchAnswers, place: str, line: bytes) -> None:
    if not line.strip():
        return
    try:
        if len(line) > LARGEST_REPLY:
            raise ValueError(f"larger than {LARGEST_REPLY // 2**20} MiB")
        content = json.loads(line)
        identifier = content["custom_id"]
        if not isinstance(identifier, str):
            raise ValueError("its custom_id is no text")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        answers.unreadable.append(f"{place} ({shorten(f'{type(error).__name__}: {error}')})")
        return
    failure, body = _outcome(content)
    if body is None:
        answers.failed.setdefault(identifier, failure)
    else:
        answers.bodies.setdefault(identifier, []).append(body)


def _outcome(content: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """Why a line is no answer, and the body of one that is."""
    response = content.get("response")
    response = response if isinstance(response, Mapping) else {}
    status, body = response.get("status_code"), response.get("body")
    errors = (content.get("error"), body.get("error") if isinstance(body, Mapping) else None)
    error = next(filter(is_error, errors), None)
    succeeded = status in (None, 200, "200")
    if is_error(errors[0]) or not succeeded:  # one beside a body is told, and paid, with that
        told = error.get("message") or error.get("code") if isinstance(error, Mapping) else error
        code = "" if succeeded else f" {shorten(str(status)) if isinstance(status, str) else status}"
        return f"the batch says{code}: {shorten(str(told or 'no reason'))}", None
    missing = "the batch's line has no body" if body is None else "the body of the batch's line is no JSON object"
    return ("", dict(body)) if isinstance(body, Mapping) else (missing, None)
