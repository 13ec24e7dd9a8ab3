"""Parsers of judges' replies that score criteria with 0 or 1 and explain each 0, as those of QIMMA's quality audit.

The reply that the paper (arXiv 2604.03395, Appendix C) asks for is one JSON object: `scores` with every criterion, each
0 or 1, and `issues` with one explanation for each criterion scored 0 and none for a 1; where a criterion of the
cascading rule is 0, those that it rules are 0. `read_binary` takes nothing else. `mend_binary` takes a reply that
breaks this form in a way that leaves no doubt what is meant, and says how it was mended; what contradicts itself stays
refused.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from cultureval.judge_prompts.replies import JudgeReplyError, ReplyReading
from cultureval.runtime.errors import shorten
from cultureval.runtime.reasoning import split_reasoning

LONGEST = 40_000  # characters of a reply
LONGEST_EXPLANATION = 2_000
MENDED = "mended_"  # before the flags of what was mended
LONGEST_HELD = 200  # characters of an explanation where the server holds the reply to a form
_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_TEXT_VALUES = {"0": 0, "1": 1, "٠": 0, "١": 1}

Cascade = Mapping[str, Sequence[str]]


class _Repeated(list[tuple[str, Any]]):
    """An object with a repeated key, as its pairs."""


def reply_schema(criteria: Sequence[str]) -> dict[str, Any]:
    """The JSON schema of the requested reply, for servers that hold replies to one.

    It has only what OpenAI's servers take: not that each 0 has its explanation, no lengths, no cascading rule.
    """
    names = list(criteria)
    issue = {
        "type": "object",
        "properties": {
            "criterion": {"type": "string", "enum": names},
            "explanation": {"type": "string"},
        },
        "required": ["criterion", "explanation"],
        "additionalProperties": False,
    }
    scores = {
        "type": "object",
        "properties": {name: {"type": "integer", "enum": [0, 1]} for name in names},
        "required": names,
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"scores": scores, "issues": {"type": "array", "items": issue}},
        "required": ["scores", "issues"],
        "additionalProperties": False,
    }


def reply_pattern(criteria: Sequence[str]) -> str:
    """A regular expression of the requested reply, for servers that hold replies to one (vLLM, SGLang).

    Unlike a schema it bounds lengths and white space, with which a model could fill a reply to its limit.
    """
    scores = ", ".join(f'"{name}": [01]' for name in criteria)
    explanation = rf'"[^"\\\u0000-\u001f\u007f]{{1,{LONGEST_HELD}}}"'
    issue = rf'\{{"criterion": "({"|".join(criteria)})", "explanation": {explanation}\}}'
    more = f"(, {issue}){{0,{len(criteria) - 1}}}"
    return rf'\{{"scores": \{{{scores}\}}, "issues": \[({issue}{more})?\]\}}'


def read_binary(reply: str, criteria: Sequence[str], cascade: Cascade) -> ReplyReading:
    """The scores and explanations of a reply that has the requested form.

    Reasoning before the reply and a code fence around it are passed over; they are no part of its content.

    Args:
        criteria: Names of the criteria, all of which must be scored.
        cascade: Criterion -> the criteria that must be 0 where it is.

    Returns:
        Criterion -> 0.0 or 1.0, and criterion scored 0 -> explanation (`notes`).

    Raises:
        JudgeReplyError: Says what breaks the form.
    """
    found = mend_binary(reply, criteria, cascade)
    if mended := [flag.removeprefix(MENDED).replace("_", " ") for flag in found.flags if flag.startswith(MENDED)]:
        raise JudgeReplyError(f"the reply breaks the form in {', '.join(mended)} ({shorten(reply)})")
    return found


def mend_binary(reply: str, criteria: Sequence[str], cascade: Cascade) -> ReplyReading:
    """The scores of a reply that breaks the form without leaving a doubt what is meant.

    Mended, each with a flag: text around the one object ("mended_prose"), other spellings of keys ("mended_keys"), 0
    and 1 as text, truth value or 1.0 ("mended_values"), further keys ("mended_extra_keys"), a 0 without an explanation
    or with several ("mended_issues"), criteria that the cascading rule sets to 0 ("mended_cascade").

    Raises:
        JudgeReplyError: What is meant is not certain: a criterion is missing or has two values, or one that is neither
            0 nor 1; an explanation is of a criterion scored 1, or of none; there are several objects, or none.
    """
    text, flags = _without_frame(reply)
    found = set(flags)
    try:
        content = _parsed(text)
    except JudgeReplyError:
        content = _only_object(text)
        found.add("mended_prose")
    if not isinstance(content, dict):
        raise JudgeReplyError(f"the reply is no JSON object, or has a repeated key ({shorten(reply)})")
    by_key = _by_key(content, ("scores", "issues"), found)
    scores = _mended_scores(by_key.get("scores"), criteria, found)
    notes = _mended_issues(by_key.get("issues"), scores, found)
    for name, ruled in _broken_cascades(scores, cascade).items():
        scores |= dict.fromkeys(ruled, 0)
        notes |= {one: notes.get(one, f"set to 0 by the cascading rule, since {name} is 0") for one in ruled}
        found.add("mended_cascade")
    values = {name: float(scores[name]) for name in criteria}
    return ReplyReading(values, flags=tuple(sorted(found)), notes=notes)


def _without_frame(reply: str) -> tuple[str, tuple[str, ...]]:
    if len(reply) > LONGEST:
        raise JudgeReplyError(f"the reply has {len(reply)} characters; {LONGEST} are the most")
    text, _ = split_reasoning(reply)
    text = text.rpartition("</think>")[2]
    flags = ("reasoning",) if len(text) < len(reply) else ()
    if fenced := _FENCE.match(text):
        text = fenced[1]
    return text.strip(), flags


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise JudgeReplyError(f"the reply is not JSON ({shorten(text)})") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Repeated:
    content = dict(pairs)
    return content if len(content) == len(pairs) else _Repeated(pairs)


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _only_object(text: str) -> Any:
    """The one JSON object in a text with more around it."""
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number)
    found, start = [], text.find("{")
    while start != -1 and len(found) < 2:
        try:
            content, end = decoder.raw_decode(text, start)
            found.append(content)
        except (ValueError, RecursionError):
            end = start + 1
        start = text.find("{", end)
    if len(found) != 1:
        raise JudgeReplyError(f"the reply holds {len(found) or 'no'} JSON objects ({shorten(text)})")
    return found[0]


def _broken_cascades(scores: Mapping[str, int], cascade: Cascade) -> dict[str, list[str]]:
    """Criterion that is 0 -> those that it rules and that are not."""
    broken = {name: [one for one in ruled if scores[one]] for name, ruled in cascade.items() if not scores[name]}
    return {name: ruled for name, ruled in broken.items() if ruled}


def _by_key(content: Mapping[str, Any], names: Sequence[str], found: set[str]) -> dict[str, Any]:
    """The values of an object by the names that are meant; keys that mean none are passed over.

    Raises:
        JudgeReplyError: Two keys mean one name.
    """
    meant = {_plain(name): name for name in names}
    values: dict[str, Any] = {}
    for key, value in content.items():
        name = meant.get(_plain(key))
        if name is None:
            found.add("mended_extra_keys")
            continue
        if name in values:
            raise JudgeReplyError(f"two keys mean {name}")
        found |= {"mended_keys"} if key != name else set()
        values[name] = value
    return values


def _plain(key: str) -> str:
    return re.sub(r"[\W_]+", "", key).casefold()


def _mended_scores(given: Any, criteria: Sequence[str], found: set[str]) -> dict[str, int]:
    if not isinstance(given, dict):
        raise JudgeReplyError("there is no object of scores, or it has a repeated key")
    by_key = _by_key(given, criteria, found)
    if missing := [name for name in criteria if name not in by_key]:
        raise JudgeReplyError(f"the scores lack {', '.join(missing)}")
    scores = {}
    for name in criteria:
        value = by_key[name]
        if type(value) is not int:
            found.add("mended_values")
            value = _TEXT_VALUES.get(value.strip()) if isinstance(value, str) else value
        if not isinstance(value, int | float) or value not in (0, 1):
            raise JudgeReplyError(f"{name} is {shorten(by_key[name], 20)}, neither 0 nor 1")
        scores[name] = int(value)
    return scores


def _mended_issues(given: Any, scores: Mapping[str, int], found: set[str]) -> dict[str, str]:
    meant = {_plain(name): name for name in scores}
    notes: dict[str, str] = {}
    if given is None:
        given = []
        found.add("mended_issues")
    for issue in given if isinstance(given, list) else [None]:
        if not isinstance(issue, dict):
            raise JudgeReplyError("issues is no list of objects")
        by_key = _by_key(issue, ("criterion", "explanation"), found)
        name = meant.get(_plain(str(by_key.get("criterion"))))
        if name is None or scores[name]:
            raise JudgeReplyError(f"an issue is of {shorten(by_key.get('criterion'), 40)}, which is not scored 0")
        found |= {"mended_keys"} if by_key["criterion"] != name else set()
        found |= {"mended_issues"} if name in notes else set()
        explanation = by_key.get("explanation")
        found |= {"mended_values"} if not isinstance(explanation, str | None) else set()
        text = str(explanation or "").strip()
        notes[name] = " ".join(filter(None, [notes.get(name), text]))[:LONGEST_EXPLANATION]
    if any(not value and not notes.get(name) for name, value in scores.items()):
        found.add("mended_issues")
        notes |= {name: notes.get(name, "") for name, value in scores.items() if not value}
    return notes
