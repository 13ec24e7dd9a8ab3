"""Batch files as OpenAI's Batch API and vLLM's `run_batch` read and write them: requests out, answers in.

A line of requests is `{"custom_id", "method": "POST", "url", "body"}`; a line of answers has the same `custom_id` and
`{"response": {"status_code", "body"}, "error"}`, in any order. The `custom_id` is the answer's key in the journal, so
that no answer is taken for another prompt.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import CulturevalError, shorten
from cultureval.runtime.servers.errors import RowError
from cultureval.runtime.servers.replies import UNREADABLE, Answer, answer_of, checked_body

MOST_REQUESTS, MOST_BYTES = 50_000, 200 * 10**6  # limits of a file for OpenAI, November 2026
CHAT, PLAIN = "/v1/chat/completions", "/v1/completions"
KEY = re.compile(r"[0-9a-f]{32}")


class Recorder:
    """In place of an `OpenAIClient`: records a request instead of sending it."""

    async def chat(self, **request: Any) -> Answer:
        """The request for chat completions as `{"url", "body"}`."""
        return _recorded(CHAT, request)

    async def complete(self, **request: Any) -> Answer:
        """The request for plain completions, likewise."""
        return _recorded(PLAIN, request)


def _recorded(url: str, request: Mapping[str, Any]) -> Answer:
    body = {name: value for name, value in request.items() if name != "extra_body"}
    return {"url": url, "body": body | dict(request.get("extra_body") or {})}


def write_requests(file: Path, requests: Iterable[tuple[str, Answer]]) -> list[Path]:
    """Writes requests to FILE, FILE-002 and so on, each within a provider's limits.

    `requests` are pairs of an answer's key and a request of `Recorder`. Returns the files; raises a CulturevalError
    where the first exists already.
    """
    if file.exists():
        raise CulturevalError(f"--batch-out: {file} exists already; name another file, or remove it.")
    parts: list[list[bytes]] = []
    size = 0
    for key, request in requests:
        content = {"custom_id": key, "method": "POST", **request}
        line = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        if not parts or len(parts[-1]) == MOST_REQUESTS or size + len(line) > MOST_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(line)
        size += len(line)
    names = [file.with_name(f"{file.stem}-{part:03d}{file.suffix}") for part in range(1, len(parts) + 1)]
    names[:1] = [file]
    try:
        for name, lines in zip(names, parts, strict=False):
            write_atomically(name, b"".join(lines))
    except OSError as error:
        raise CulturevalError(f"--batch-out {file}: it cannot be written ({error.strerror or error}).") from error
    return names[: len(parts)]


@dataclass
class BatchAnswers:
    """The answers in files."""

    answers: dict[str, Answer] = field(default_factory=dict)  # by key; of several answers the last readable one
    problems: list[str] = field(default_factory=list)  # `FILE, line N: reason`, for lines without a usable answer


def read_answers(files: Iterable[Path]) -> BatchAnswers:
    """Reads files of answers (some services write errors into a second file); CulturevalError on an unreadable file."""
    found = BatchAnswers()
    for file in files:
        try:
            with file.open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    if line.strip():
                        _read(found, f"{file.name}, line {number}", line)
        except OSError as error:
            raise CulturevalError(f"--batch-in {file}: it cannot be read ({error.strerror or error}).") from error
    return found


def _read(found: BatchAnswers, place: str, line: bytes) -> None:
    try:
        content = json.loads(line)
        key, response = content["custom_id"], content.get("response") or {}
        if not KEY.fullmatch(key):
            raise ValueError(f"the custom_id {shorten(key)} was not written by --batch-out")
        if content.get("error") or response.get("status_code", 200) != 200:
            raise ValueError(f"the batch says {shorten(str(content.get('error') or response))}")
        body = response["body"]
        found.answers[key] = answer_of(checked_body(body, max(1, len(body["choices"])))) | {"batch": True}
    except (RowError, *UNREADABLE) as error:
        found.problems.append(f"{place}: {shorten(str(error)) or type(error).__name__}")
