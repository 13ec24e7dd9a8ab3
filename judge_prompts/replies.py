"""Reads a judge's reply: a verdict is the requested lines, or one JSON object, and nothing else.

Reasoning before the reply, a code fence around it, Markdown's marks, and a bullet or number before a line are ignored.
Anything else raises `JudgeReplyError`, and the judge is asked once more. The rules are the same for all values of a
scale. They are ours: the JEEM paper prints the form of replies (arXiv 2503.21910, Figures 7 to 11), but not how they
were read.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cultureval.runtime.errors import CulturevalError, shorten, wrong_settings
from cultureval.runtime.reasoning import split_reasoning

LOWEST, HIGHEST = 1.0, 5.0
PARSER_VERSION = 8
LONGEST = 40_000  # characters of a reply without its reasoning
LONGEST_LINE, LONGEST_EXPLANATION = 100, 2_000  # characters of a free text and of an explanation
ALIASES = {"dialectal authenticity": "dialect authenticity"}

_FENCE = re.compile(r"```\w*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_MARKDOWN = re.compile(r"[*_`\[\]]")
_LINE = re.compile(
    r"(?:[-•] ?|[0-9]{1,2}[.)] ?)?(?P<name>[^:=]+?) ?[:=-] ?"
    r"(?P<value>[0-9]{1,3}(?:\.[0-9]{1,3})?)(?: ?/ ?(?P<top>[0-9]{1,3}))?"
)


class JudgeReplyError(CulturevalError):
    """A reply does not have the requested form; the message says why, as a clause."""


@dataclass(frozen=True)
class ReplyReading:
    """The content of a reply.

    Attributes:
        scores: Criterion -> score on its scale; empty if a label was requested.
        label: The label or the free text; None if scores were requested.
        notes: Criterion scored 0 -> the judge's explanation, if the template asks for explanations.
    """

    scores: dict[str, float] = field(default_factory=dict)
    label: str | None = None
    notes: Mapping[str, str] = field(default_factory=dict)


def read_scores(reply: str, criteria: Sequence[str], highest: Mapping[str, int] | None = None) -> ReplyReading:
    """Read a line `Criterion: X/5` for each criterion, or one JSON object `{"Criterion": X, ...}`.

    A name may be in any case; after it stands `:`, `=` or `-`, then a number from 1 to 5, then `/5` or nothing.

    Args:
        criteria: Names of the criteria, at least one, all distinct.
        highest: Criterion -> the highest score of its scale, if it is not 5.

    Returns:
        Criterion -> its score, for all criteria in their order.

    Raises:
        JudgeReplyError: A criterion is missing, given twice or off its scale, or the reply has anything else.
    """
    names = {_key(name): name for name in criteria}
    text = answer_of(reply)
    is_object = text.startswith("{")
    lines = [f"{name}: {value}" for name, value in _json_object(text).items()] if is_object else text.splitlines()
    scores: dict[str, float] = {}
    for line in filter(str.strip, lines):
        found = _LINE.fullmatch(_plain(line))
        key = _key(found["name"]) if found else ""
        name = names.get(ALIASES.get(key, key))
        if found is None or name is None:
            raise JudgeReplyError(f"the reply has more than its scores: {shorten(line, 60)}")
        if name in scores:
            raise JudgeReplyError(f"{name} is given twice")
        top = (highest or {}).get(name, int(HIGHEST))
        scores[name] = float(found["value"])
        if not LOWEST <= scores[name] <= top or (found["top"] and int(found["top"]) != top):
            raise JudgeReplyError(f"{name} is not on the scale from 1 to {top}: {shorten(line, 60)}")
    if missing := [name for name in criteria if name not in scores]:
        raise JudgeReplyError(f"no value for {', '.join(missing)}")
    return ReplyReading({name: scores[name] for name in criteria})


def read_label(reply: str, labels: Mapping[str, Sequence[str]], prefix: str = "") -> ReplyReading:
    """Read one label of a closed set: one line that is the label, with or without `prefix:` before it.

    Args:
        labels: Each label with further spellings of it.
        prefix: Text that may precede the label (the end of the JEEM paper's prompt).

    Raises:
        JudgeReplyError: The reply is not a single line, or no label.
    """
    spellings = {_key(text): label for label, further in labels.items() for text in (label, *further)}
    line = _only_line(reply, prefix)
    if (label := spellings.get(_key(line))) is None:
        raise JudgeReplyError(f"the reply is none of the {len(labels)} labels: {shorten(line, 60)}")
    return ReplyReading(label=label)


def read_line(reply: str, prefix: str = "") -> ReplyReading:
    """Read a short free text: one line of at most 100 characters, with or without `prefix:` before it.

    Raises:
        JudgeReplyError: The reply is no such line.
    """
    line = _only_line(reply, prefix)
    if not 0 < len(line) <= LONGEST_LINE:
        raise JudgeReplyError(f"the reply's line has {len(line)} characters, not 1 to {LONGEST_LINE}")
    return ReplyReading(label=line)


class _Issue(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    criterion: str
    explanation: str = Field(min_length=1, max_length=LONGEST_EXPLANATION)


class _BinaryReply(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    scores: dict[str, Annotated[int, Field(ge=0, le=1)]]
    issues: list[_Issue]


def read_binary(reply: str, criteria: Sequence[str], cascade: Mapping[str, Sequence[str]]) -> ReplyReading:
    """Read the JSON object of QIMMA's quality audit (arXiv 2604.03395, Appendix C).

    It has `scores` with every criterion, each 0 or 1, and `issues` with one explanation for each criterion scored 0.

    Args:
        criteria: Names of the criteria, all of which must be scored.
        cascade: Criterion -> the criteria that must be 0 if it is 0.

    Returns:
        Criterion -> 0.0 or 1.0, and criterion scored 0 -> explanation.

    Raises:
        JudgeReplyError: The reply has another form, or contradicts itself.
    """
    try:
        found = _BinaryReply.model_validate(_json_object(answer_of(reply)))
    except ValidationError as error:
        raise JudgeReplyError(f"the reply has another form: {shorten(wrong_settings(error), 200)}") from None
    if found.scores.keys() != set(criteria):
        different = sorted(found.scores.keys() ^ set(criteria))
        raise JudgeReplyError(f"the scores miss or add {shorten(', '.join(different), 100)}")
    failed = sorted(name for name, value in found.scores.items() if not value)
    if sorted(issue.criterion for issue in found.issues) != failed:
        raise JudgeReplyError("the issues are not one for each criterion scored 0")
    for name, implied in cascade.items():
        if not found.scores[name] and any(found.scores[criterion] for criterion in implied):
            raise JudgeReplyError(f"{name} is 0, but not all criteria that depend on it")
    notes = {issue.criterion: issue.explanation for issue in found.issues}
    return ReplyReading({name: float(found.scores[name]) for name in criteria}, notes=notes)


def answer_of(reply: str) -> str:
    """A reply without its reasoning and the code fence around it; JudgeReplyError if nothing is left."""
    text, reasoning = split_reasoning(reply.strip())
    if len(text) > LONGEST:
        raise JudgeReplyError(f"the reply has {len(text):,} characters; {LONGEST:,} are the most")
    if fenced := _FENCE.fullmatch(text):
        text = fenced[1].strip()
    if not text:
        raise JudgeReplyError("the reply is reasoning without an answer" if reasoning else "the reply is empty")
    return text


def _json_object(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text, object_pairs_hook=_without_repeated_keys)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise JudgeReplyError(f"the reply is not one JSON object: {shorten(text, 60)}")
    return content


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(content := dict(pairs)) < len(pairs):
        raise JudgeReplyError("a key of the reply's JSON is repeated")
    return content


def _only_line(reply: str, prefix: str) -> str:
    if "\n" in (line := answer_of(reply)):
        raise JudgeReplyError("the reply has several lines, not one")
    head, colon, rest = _plain(line).partition(":")
    return (rest if colon and _key(head) == _key(prefix) else f"{head}{colon}{rest}").strip(" .،؛")


def _plain(line: str) -> str:
    """A line without Markdown's marks, with single spaces."""
    return " ".join(_MARKDOWN.sub("", line).split())


def _key(name: str) -> str:
    return _plain(name).casefold()
