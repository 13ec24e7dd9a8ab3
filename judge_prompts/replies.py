"""Parsers of judges' replies: strict about values, tolerant of formatting.

Tolerated: markdown, bullets, Arabic-Indic digits, full-width forms, directional marks, reasoning before the reply, and
prose around the lines (which is flagged). A reply that lacks a value, gives two different values, or gives one
outside the scale raises `JudgeReplyError`; it never becomes a score. The JEEM paper prints the form of the
replies (Figures 7-11) but not how its authors parsed them: the rules are ours.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cultureval.runtime.errors import CulturevalError, shorten
from cultureval.runtime.reasoning import split_reasoning

LOWEST, HIGHEST = 1.0, 5.0
PARSER_VERSION = 2

ALIASES: dict[str, tuple[str, ...]] = {
    "dialect authenticity": ("dialectal authenticity", "dialect's authenticity", "authenticity of dialect"),
}

_DIGITS = {ord(digit): str(value) for row in ("٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹") for value, digit in enumerate(row)}
_DIGITS[ord("٫")] = "."
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\u061c\ufeff\u0640\ufe0f]")
_MARKDOWN = re.compile(r"[*_`\[\](){}<>\"'«»“”‘’#]")
_REASONING_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)  # as chat models write them
_LONGEST = 20_000  # characters; far longer than any valid reply
_LINE_START = r"[\s|•·–—+\-]*(?:[0-9]{1,2}\s*[.:\-]?\s*)?"
_SEPARATOR = r"\s*[:=|–—\-]\s*"
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_OUT_OF = re.compile(r"\s*(?:[/\\]|\bout of\b|\bof\b|من أصل\b|من\b)\s*([0-9]+(?:\.[0-9]+)?(?![\w/]))?", re.IGNORECASE)
_STOPS = r"[\s.,;:!|=،؛…–—\-]*"
_JOINED = r"(?:to|or|and|then|الى|إلى|أو|او|ثم|و)\s*[0-9]"
# A second value after the first. After "4/5" a number may begin an explanation ("- 2 details are missing").
_SECOND_VALUE = re.compile(rf"{_STOPS}(?:[0-9%٪/\\]|[~→±]\s*[0-9]|{_JOINED})", re.IGNORECASE)
_SEPARATE_NUMBER = r"[0-9]+(?:\.[0-9]+)?\s*(?:[/,;|]|\.(?!\w)|$)"
_SECOND_FRACTION = re.compile(rf"{_STOPS}(?:[%٪/\\]|[~→±]\s*[0-9]|{_JOINED}|{_SEPARATE_NUMBER})", re.IGNORECASE)
_FRACTION = re.compile(r"(?<![0-9])([0-9]+(?:\.[0-9]+)?)?\s{0,3}(?:/|\bout of\b|من أصل)\s{0,3}([0-9]+)", re.IGNORECASE)


class JudgeReplyError(CulturevalError):
    """A judge's reply does not have the requested form; the message says why."""


@dataclass(frozen=True)
class Reading:
    """The content of a reply.

    Attributes:
        scores: Criterion -> score on its scale, which begins with 1; empty where a label was requested.
        label: The label; None where scores were requested.
        flags: Tolerated deviations: "extra_prose", "decimal", "repeated", "reasoning".
    """

    scores: dict[str, float] = field(default_factory=dict)
    label: str | None = None
    flags: tuple[str, ...] = ()


def parse_likert(reply: str, criteria: Sequence[str], highest: Mapping[str, int] | None = None) -> dict[str, float]:
    """Read one line `Criterion: X/5` for each criterion.

    A line begins with the criterion's name (in any case, after a bullet or a number), then one of `: = - |`, then a
    number from 1 to 5, then `/5` or `out of 5` or nothing. Text after it and lines between are ignored.

    Args:
        reply: The judge's complete reply.
        criteria: Names of the criteria, such as "Dialect Authenticity" ("Dialectal Authenticity" is an alias).
        highest: Criterion -> the highest score of its scale, where that is not 5.

    Returns:
        Criterion, as given -> its score from 1 to 5, for all criteria in their order.

    Raises:
        JudgeReplyError: A criterion is missing, has two values, a value outside 1 to 5, the placeholder X/5, or
            another denominator than 5.
        ValueError: No criteria, or a duplicated one.
    """
    return read_likert(reply, criteria, highest).scores


def read_likert(reply: str, criteria: Sequence[str], highest: Mapping[str, int] | None = None) -> Reading:
    """As `parse_likert`, with flags of tolerated deviations."""
    names = _checked(criteria)
    text, flags = _plain(reply)
    patterns = {name: _line_pattern(name) for name in names}
    found: dict[str, list[float]] = {name: [] for name in names}
    for line in text.splitlines():
        match, name = _criterion_of(line, patterns)
        if name is None:
            flags |= {"extra_prose"} if line.strip(" \t-|:.") else set()
            continue
        value, rest = _value(line[match.end() :], name, (highest or {}).get(name, HIGHEST))
        if value is None:
            flags.add("extra_prose")
            continue
        flags |= {"decimal"} if value % 1 else set()
        flags |= {"extra_prose"} if rest.strip(" \t|.،") else set()
        found[name].append(value)
    return _agreed(found, flags)


def parse_json_scores(
    reply: str, criteria: Sequence[str], highest: Mapping[str, int] | None = None
) -> dict[str, float]:
    """Read one JSON object `{"Criterion": 4, ...}`, alone, in a code fence or within prose.

    Args:
        reply: The judge's complete reply.
        criteria: Names of the criteria; the object's keys may differ in case, spaces and underscores.
        highest: As `parse_likert`.

    Returns:
        As `parse_likert`. A value may be a number or a string such as "4" or "4/5".

    Raises:
        JudgeReplyError: There is no such object or no complete one, a key is duplicated, a value is outside the scale.
        ValueError: No criteria, or a duplicated one.
    """
    return read_json_scores(reply, criteria, highest).scores


def read_json_scores(reply: str, criteria: Sequence[str], highest: Mapping[str, int] | None = None) -> Reading:
    """As `parse_json_scores`, with flags of tolerated deviations."""
    names = {_key(alias): name for name in _checked(criteria) for alias in _aliases(name)}
    text, flags = _without_reasoning(reply)
    found: dict[str, list[float]] = {name: [] for name in criteria}
    for pairs in _objects(text, flags):
        for key, value in pairs:
            name = names.get(_key(_normal(key)))
            if name is None:
                flags.add("extra_prose")
                continue
            number = _json_value(value, name, (highest or {}).get(name, HIGHEST))
            flags |= {"decimal"} if number % 1 else set()
            found[name].append(number)
    return _agreed(found, flags)


def parse_label(reply: str, labels: Sequence[str] | Mapping[str, Sequence[str]], prefix: str = "") -> str:
    """Read one label of a closed set.

    Args:
        reply: The judge's complete reply.
        labels: The labels, or each label with further spellings of it.
        prefix: Text that may precede the label, followed by a colon (as at the end of the JEEM paper's prompt).

    Returns:
        The label, as given.

    Raises:
        JudgeReplyError: No line is exactly one of the labels, or two lines are different ones.
        ValueError: No labels.
    """
    return str(read_label(reply, labels, prefix).label)


def read_label(reply: str, labels: Sequence[str] | Mapping[str, Sequence[str]], prefix: str = "") -> Reading:
    """As `parse_label`, with flags of tolerated deviations."""
    if not labels:
        raise ValueError("there must be at least one label")
    spellings = labels if isinstance(labels, Mapping) else {label: () for label in labels}
    known = {_key(text): label for label, others in spellings.items() for text in (label, *others)}
    text, flags = _plain(reply)
    lead = re.compile(rf"[\s\-•]*(?:{re.escape(_normal(prefix))}\s*[:：\-]\s*)?", re.IGNORECASE)
    found: dict[str, None] = {}
    for line in filter(str.strip, text.splitlines()):
        label = known.get(_key(line[lead.match(line).end() :].strip(" \t.:،؛,!")))
        if label is None:
            flags.add("extra_prose")
        else:
            found[label] = None
    if not found:
        raise JudgeReplyError(f"no line of the reply is one of the {len(spellings)} labels ({shorten(reply)})")
    if len(found) > 1:
        raise JudgeReplyError(f"the reply gives several labels: {', '.join(found)}")
    return Reading(label=next(iter(found)), flags=tuple(sorted(flags)))


def read_line(reply: str, prefix: str = "", longest: int = 100) -> Reading:
    """Read a short free text: the first line that is not empty, without `prefix:` and markdown.

    Raises:
        JudgeReplyError: The reply is empty, or its first line is longer than `longest` characters.
    """
    text, flags = _plain(reply)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = re.sub(rf"^{re.escape(_normal(prefix))}\s*:\s*", "", lines[0]).strip(" \t.:،؛,") if lines else ""
    if not first:
        raise JudgeReplyError("the reply's first line is empty")
    if len(first) > longest:
        raise JudgeReplyError(f"the reply's first line has {len(first)} characters; {longest} are the most")
    return Reading(label=first, flags=tuple(sorted(flags | ({"extra_prose"} if len(lines) > 1 else set()))))


def _checked(criteria: Sequence[str]) -> list[str]:
    names = [criteria] if isinstance(criteria, str) else list(criteria)
    if not names or len({_key(name) for name in names}) < len(names):
        raise ValueError(f"criteria must be distinct names, at least one: {names}")
    return names


def _normal(text: str) -> str:
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text).translate(_DIGITS))


def _without_reasoning(reply: str) -> tuple[str, set[str]]:
    if not isinstance(reply, str):
        raise JudgeReplyError(f"the reply is {type(reply).__name__}, not text")
    normal = _REASONING_TAG.sub(r"\n<\1think>", _normal(reply))  # a line break: what was apart is never read as one
    text, reasoning = split_reasoning(normal)
    # A judge's reasoning may quote an end tag of the reply under judgement; its verdict follows the last one.
    text = text.rpartition("</think>")[2]
    if len(text) > _LONGEST:
        raise JudgeReplyError(f"the reply has {len(text)} characters; {_LONGEST} are the most")
    if not text.strip():
        raise JudgeReplyError("the reply is reasoning without an answer" if reasoning else "the reply is empty")
    return text, {"reasoning"} if len(text) < len(normal) else set()


def _plain(reply: str) -> tuple[str, set[str]]:
    text, flags = _without_reasoning(reply)
    return _MARKDOWN.sub("", text), flags


def _key(text: str) -> str:
    return re.sub(r"[\s_'’\-]+", "", _normal(text)).casefold()


def _aliases(name: str) -> tuple[str, ...]:
    return (name, *ALIASES.get(" ".join(name.casefold().split()), ()))


def _line_pattern(name: str) -> re.Pattern[str]:
    # Underscores are deleted as markdown, so a name's words may be joined.
    spelled = [r"\s*".join(map(re.escape, _MARKDOWN.sub(" ", _normal(alias)).split())) for alias in _aliases(name)]
    return re.compile(rf"{_LINE_START}(?:{'|'.join(spelled)}){_SEPARATOR}", re.IGNORECASE)


def _criterion_of(line: str, patterns: Mapping[str, re.Pattern[str]]) -> tuple[Any, str | None]:
    for name, pattern in patterns.items():
        if match := pattern.match(line):
            return match, name
    return None, None


def _value(text: str, name: str, highest: float) -> tuple[float | None, str]:
    """The value at the start of a text (None where the text is prose) and the text after it."""
    if re.match(r"X\s*(?:/|$)", text, re.IGNORECASE):
        raise JudgeReplyError(f"{name} has the placeholder X instead of a value")
    number = _NUMBER.match(text)
    if number is None:
        return None, text
    value, rest = float(number.group()), text[number.end() :]
    second = _SECOND_VALUE
    if out_of := _OUT_OF.match(rest):
        if out_of.group(1) is None or float(out_of.group(1)) != highest:
            raise JudgeReplyError(f"{name} is not given out of {highest:g}: {shorten(text.strip(), 40)}")
        rest, second = rest[out_of.end() :], _SECOND_FRACTION
    if rest and (rest[0].isalnum() or rest[0] in "_+%٪/\\⁄±^°"):
        raise JudgeReplyError(f"{name} has the unclear value {shorten(text.strip(), 40)}")
    others = [(float(a or value), int(b)) for a, b in _FRACTION.findall(rest)]
    if second.match(rest) or any(other != (value, highest) for other in others):
        raise JudgeReplyError(f"{name} has more than one value: {shorten(text.strip(), 40)}")
    return _on_scale(value, name, highest), rest


def _on_scale(value: float, name: str, highest: float) -> float:
    if not LOWEST <= value <= highest:
        raise JudgeReplyError(f"{name} is {value:g}, outside {LOWEST:g} to {highest:g}")
    return value


def _agreed(found: Mapping[str, list[float]], flags: set[str]) -> Reading:
    missing = [name for name, values in found.items() if not values]
    if missing:
        raise JudgeReplyError(f"no value for {', '.join(missing)}")
    for name, values in found.items():
        if len(set(values)) > 1:
            raise JudgeReplyError(
                f"{name} is given as {' and as '.join(f'{value:g}' for value in sorted(set(values)))}"
            )
    if any(len(values) > 1 for values in found.values()):
        flags = flags | {"repeated"}
    return Reading({name: values[0] for name, values in found.items()}, flags=tuple(sorted(flags)))


def _objects(text: str, flags: set[str]) -> Iterator[list[tuple[str, Any]]]:
    """The JSON objects of a text, outermost ones only, as lists of pairs (duplicated keys are kept)."""
    decoder = json.JSONDecoder(object_pairs_hook=list, parse_constant=str)
    position, end, count = 0, 0, 0
    while (position := text.find("{", position)) >= 0:
        try:
            pairs, stop = decoder.raw_decode(text, position)
        except RecursionError as error:
            raise JudgeReplyError("the reply's JSON is nested too deeply") from error
        except json.JSONDecodeError as error:
            if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
                raise JudgeReplyError("the reply's JSON object is cut off") from error
            flags.add("extra_prose")
            position += 1
            continue
        flags |= {"extra_prose"} if text[end:position].replace("```json", "").strip("` \n\t") else set()
        yield pairs
        position, end, count = stop, stop, count + 1
    if not count:
        raise JudgeReplyError("the reply holds no complete JSON object")
    if text[end:].strip("` \n\t"):
        flags.add("extra_prose")


def _json_value(value: Any, name: str, highest: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise JudgeReplyError(f"{name} is {shorten(value, 40)}, not a number")
    if not isinstance(value, str):
        return _on_scale(float(value) if abs(value) < 1e9 else float("inf"), name, highest)
    number, rest = _value(_MARKDOWN.sub("", _normal(value)).strip(), name, highest)
    if number is None or rest.strip():
        raise JudgeReplyError(f"{name} is {shorten(value, 40)}, not a number")
    return number
