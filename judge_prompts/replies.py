"""Parsers of judges' replies: strict about values, tolerant of formatting.

Tolerated: markdown, bullets, Arabic-Indic digits, full-width forms, directional marks, reasoning before the reply, all
criteria in one line, JSON, and prose around the lines (which is flagged). A reply that lacks a value, gives two, or
gives one outside the scale raises `JudgeReplyError`; it never becomes a score. Nor does a rating that is quoted: in
quotation marks, after `>`, or between our delimiters.

Whether a value counts depends on where it stands in the reply and on the reply's form, never on the value: two equal
ones are two, and what the judged text holds is not compared with what the reply gives. Where it is open whose the
values are, since the reply refuses or says that another demands them, or has prose beside them while the judged text
holds ratings itself, `DoubtfulReply` is raised, and the judge is asked once more in a fixed form. The JEEM paper prints
the form of the replies (Figures 7-11) but not how its authors parsed them: the rules are ours.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from cultureval.judge_prompts.quotations import attributes_or_refuses, holding_quotation, without_quotations
from cultureval.judge_prompts.suspicions import ALIASES, HOLDS_A_TAG, SUSPICIOUS
from cultureval.runtime.errors import CulturevalError, shorten
from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.zero_width import INVISIBLE

LOWEST, HIGHEST = 1.0, 5.0
PARSER_VERSION = 5

_DIGITS = {ord(digit): str(value) for row in ("٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹") for value, digit in enumerate(row)}
_DIGITS[ord("٫")] = "."
_SLASHES = str.maketrans("\u2044\u2215", "//")  # before NFKC, which makes the first of ⅘
_INVISIBLE = re.compile(f"[{INVISIBLE}\u0640\ufe0f]")
_MARKDOWN = re.compile(r"[*_`\[\](){}<>\"'«»“”‘’#]")
_REASONING_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)  # as chat models write them
_LONGEST = 20_000  # characters; far longer than any valid reply
_LINE_START = r"[\s|•·–—+\-]*(?:[0-9]{1,2}\s*[.:\-]?\s*)?"
_LEAD_IN = (
    r"(?:(?:(?:my|the|final|here are the)\s+)*(?:scores?|ratings?|evaluation|answer|output|results?)\s*[:\-–—]\s*)?"
)
_SCORE = r"(?:score|rating|grade)"
_SEPARATOR = r"\s*[:=|–—\-]\s*"
_BARE_VALUE = re.compile(
    rf"[\s|•·–—+\-]*(?:{_SCORE}{_SEPARATOR})?([0-9]+(?:\.[0-9]+)?\s*(?:(?:/|out of)\s*[0-9]+\b.*|\.?\s*$))",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    r"[+-]?[0-9]+(?:\.[0-9]+)?(?:\s*(?:[/\\]|out of|of|من أصل|من)\s*[0-9]+)?|X\s*/\s*[0-9]+", re.IGNORECASE
)
_BETWEEN = r"[\s,;|.،؛/•·+–—\-]*(?:\b(?:and|و)\s*)?"
_SCORE_KEYS = {"score", "rating", "value", "points", "grade"}
_NAME_KEYS = {"criterion", "criteria", "name", "aspect", "dimension", "metric"}
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


class DoubtfulReply(JudgeReplyError):
    """It is open whether the scores in a judge's reply are the judge's own."""


@dataclass(frozen=True)
class Reading:
    """The content of a reply.

    Attributes:
        scores: Criterion -> score on its scale, which begins with 1; empty where a label was requested.
        label: The label; None where scores were requested.
        flags: Tolerated deviations: "extra_prose", "remarks" (in the lines of the scores), "decimal", "reasoning",
            "quoted".
        notes: Criterion -> the judge's explanation, where the template asks for some.
    """

    scores: dict[str, float] = field(default_factory=dict)
    label: str | None = None
    flags: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)


def parse_likert(reply: str, criteria: Sequence[str], highest: Mapping[str, int] | None = None) -> dict[str, float]:
    """Read `Criterion: X/5` for each criterion.

    A line begins with the criterion's name (in any case, after a bullet or a number; "score" or words in brackets
    may follow), then one of `: = - |` or a line break, then a number from 1 to 5, then `/5` or `out of 5` or nothing.
    The next criterion may follow in the same line. Text after it and lines between are ignored. JSON is read as in
    `parse_json_scores`.

    Args:
        reply: The judge's complete reply.
        criteria: Names of the criteria, such as "Dialect Authenticity" ("Dialectal Authenticity" is an alias).
        highest: Criterion -> the highest score of its scale, where that is not 5.

    Returns:
        Criterion, as given -> its score from 1 to 5, for all criteria in their order.

    Raises:
        JudgeReplyError: A criterion is missing, has two values, a value outside 1 to 5, the placeholder X/5, or
            another denominator than 5; or the reply refuses, or gives its scores as another's.
        ValueError: No criteria, or a duplicated one.
    """
    return read_likert(reply, criteria, highest).scores


def read_likert(
    reply: str, criteria: Sequence[str], highest: Mapping[str, int] | None = None, of_text: Collection[str] = ()
) -> Reading:
    """As `parse_likert`, with flags of tolerated deviations.

    Args:
        reply: The judge's complete reply.
        criteria: Names of the criteria.
        highest: Criterion -> the highest score of its scale, where that is not 5.
        of_text: The flags of the judged text (`suspicions`): prose in the reply could repeat what it holds.

    Raises:
        DoubtfulReply: It is open whether the scores are the judge's own.
        JudgeReplyError, ValueError: As `parse_likert`.
    """
    collected = _Scores(_checked(criteria), highest or {})
    text, flags = _without_reasoning(reply)
    text = "\n".join(text.splitlines())
    for start, stop, content in reversed(_objects(text)):
        if collected.add_object(text, start, stop, content, flags):
            text = text[:start] + "\n" + text[stop:]
    text, quoted = without_quotations(text, collected.holds_a_rating)
    flags |= {"quoted"} if quoted else set()
    for line in collected.lines(text):
        if not collected.add_line(line, flags) and line.strip(" \t-|:."):
            flags.add("extra_prose")
    return collected.reading(flags, reply, of_text)


def parse_json_scores(
    reply: str, criteria: Sequence[str], highest: Mapping[str, int] | None = None
) -> dict[str, float]:
    """Read one JSON object `{"Criterion": 4, ...}`, alone, in a code fence or within prose.

    Also read: objects within objects (`{"scores": {"Criterion": {"score": 4, "reason": "..."}}}`), and lists of
    `{"criterion": "...", "score": 4}`.

    Args:
        reply: The judge's complete reply.
        criteria: Names of the criteria; the object's keys may differ in case, spaces and underscores.
        highest: As `parse_likert`.

    Returns:
        As `parse_likert`. A value may be a number or a string such as "4" or "4/5".

    Raises:
        JudgeReplyError: There is no such object or no complete one, a key is duplicated, a value is outside the scale;
            or as `parse_likert`.
        ValueError: No criteria, or a duplicated one.
    """
    return read_json_scores(reply, criteria, highest).scores


def read_json_scores(
    reply: str, criteria: Sequence[str], highest: Mapping[str, int] | None = None, of_text: Collection[str] = ()
) -> Reading:
    """As `parse_json_scores`, with flags of tolerated deviations; arguments and errors as of `read_likert`."""
    collected = _Scores(_checked(criteria), highest or {})
    text, flags = _without_reasoning(reply)
    objects = _objects(text, strict=True)
    rest = list(text)
    for start, stop, content in objects:
        collected.add_object(text, start, stop, content, flags)
        rest[start:stop] = " " * (stop - start)
    flags |= {"extra_prose"} if "".join(rest).replace("```json", "").strip("` \n\t") else set()
    return collected.reading(flags, reply, of_text)


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
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text.translate(_SLASHES)).translate(_DIGITS))


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


def _spelled(name: str) -> str:
    """A pattern of a criterion's name and its aliases; a line break or an underscore may stand for a space."""
    words = [map(re.escape, _MARKDOWN.sub(" ", _normal(alias)).split()) for alias in _aliases(name)]
    return "|".join(r"[\s_]*".join(alias) for alias in words)


@dataclass(frozen=True)
class _Spellings:
    """How a template's criteria are written in replies.

    Attributes:
        keys: A name as `_key` makes it -> its criterion.
        name: Any of the names, anywhere.
        first: The criterion at the start of a line, with the separator after it.
        next: A further criterion in a line, before its value.
        alone: A line that is a criterion and nothing more.
        bracketed: A name with words in brackets after it; one with a fraction may be the score itself.
    """

    keys: Mapping[str, str]
    name: re.Pattern[str]
    first: re.Pattern[str]
    next: re.Pattern[str]
    alone: re.Pattern[str]
    bracketed: re.Pattern[str]


@cache
def _spellings(criteria: tuple[str, ...]) -> _Spellings:
    endings = ("", "score", "rating")
    keys = {_key(f"{one} {end}"): name for name in criteria for one in _aliases(name) for end in endings}
    spelled = [_spelled(name) for name in criteria]
    bare, named = "|".join(spelled), "|".join(f"(?P<c{place}>{one})" for place, one in enumerate(spelled))
    anywhere = rf"(?<!\w)(?:{named})(?:\s*{_SCORE})?"
    start = rf"{_LINE_START}{_LEAD_IN}(?:{_SCORE}\s+(?:for|of)\s+)?"
    bracketed = rf"((?<!\w)(?:{bare})[*_ ]*)\((?![^()\n]*[0-9]\s*/)[^()\n]{{0,100}}\)(?=[*_ ]*(?:[:=|–—\-]|$))"
    return _Spellings(
        keys,
        name=re.compile(bare, re.IGNORECASE),
        first=re.compile(rf"{start}{anywhere}{_SEPARATOR}", re.IGNORECASE),
        next=re.compile(rf"{anywhere}{_SEPARATOR}(?=[0-9X+])", re.IGNORECASE),
        alone=re.compile(rf"{start}{anywhere}[\s:=|–—\-]*", re.IGNORECASE),
        bracketed=re.compile(bracketed, re.IGNORECASE | re.MULTILINE),
    )


class _Scores:
    """The scores of a reply, collected from its lines and objects."""

    def __init__(self, criteria: Sequence[str], highest: Mapping[str, int]) -> None:
        self.criteria, self.highest = criteria, highest
        self.found: dict[str, list[float]] = {name: [] for name in criteria}
        self.spelled = _spellings(tuple(criteria))

    def holds_a_rating(self, text: str) -> bool:
        """Whether a quoted passage names a criterion and holds a digit."""
        return re.search("[0-9]", text) is not None and self.spelled.name.search(text) is not None

    def lines(self, text: str) -> list[str]:
        """The lines without markdown, each name that stands alone joined with the value below it."""
        lines = _MARKDOWN.sub("", self.spelled.bracketed.sub(r"\1", text)).split("\n")
        joined: list[str] = []
        for line in lines:
            value = _BARE_VALUE.match(line)
            above = next((place for place in range(len(joined) - 1, -1, -1) if joined[place].strip()), None)
            if value and above is not None and self.spelled.alone.fullmatch(joined[above]):
                joined[above] = f"{joined[above].rstrip(' :=|–—-')}: {value.group(1)}"
            else:
                joined.append(line)
        return joined

    def add_line(self, line: str, flags: set[str]) -> bool:
        """Add the values of a line; False where it begins with no criterion."""
        begins = match = self.spelled.first.match(line)
        while match is not None:
            follows = self._following(line, match.end())
            part = line[match.end() : follows.start() if follows else None]
            self._add_part(match, re.sub(rf"{_BETWEEN}$", "", part) if follows else part, flags)
            match = follows
        return begins is not None

    def _following(self, line: str, start: int) -> re.Match[str] | None:
        """The next criterion in a line: after a comma or the like, or directly after a value."""
        for match in self.spelled.next.finditer(line, start):
            before = line[start : match.start()]
            if re.search(r"[,;|.،؛/•·–—\-]\s*(?:\band\s+|\bو\s*)?$", before) or re.fullmatch(
                rf"(?:{_GIVEN.pattern}){_BETWEEN}", before, re.IGNORECASE
            ):
                return match
        return None

    def _add_part(self, match: re.Match[str], text: str, flags: set[str]) -> None:
        name = self.criteria[next(place for place in range(len(self.criteria)) if match[f"c{place}"] is not None)]
        value, rest = _value(text, name, self.highest.get(name, HIGHEST))
        if value is None:
            flags.add("extra_prose")
            return
        flags |= {"remarks"} if rest.strip(" \t|.،") else set()
        self._add(name, value, flags)

    def add_object(self, text: str, start: int, stop: int, content: "_Object", flags: set[str]) -> bool:
        """Add the values of the JSON object at a place of the text; False where it has none of the criteria."""
        if holding_quotation(text, start, stop):
            flags.add("quoted")
            return True
        try:
            values = list(self._named(content, flags))
        except RecursionError as error:
            raise JudgeReplyError("the reply's JSON is nested too deeply") from error
        for name, value in values:
            self._add(name, _json_value(value, name, self.highest.get(name, HIGHEST)), flags)
        return bool(values)

    def _named(self, content: list[Any], flags: set[str]) -> Iterator[tuple[str, Any]]:
        """(criterion, its value) of an object or a list and of all within."""
        if not isinstance(content, _Object):
            for entry in content:
                yield from self._named(entry, flags) if isinstance(entry, list) else ()
            return
        scores = [value for key, value in content if _key(key) in _SCORE_KEYS]
        titles = [value for key, value in content if _key(key) in _NAME_KEYS and isinstance(value, str)]
        named = next((title for title in titles if _key(title) in self.spelled.keys), None)
        if named is not None:
            yield from ((self.spelled.keys[_key(named)], score) for score in scores)
            return
        for key, value in content:
            name = self.spelled.keys.get(_key(key))
            if name is None and isinstance(value, list):
                yield from self._named(value, flags)
            elif name is None:
                flags.add("extra_prose")
            else:
                inner = (
                    [score for one, score in value if _key(one) in _SCORE_KEYS] if isinstance(value, _Object) else []
                )
                yield from ((name, score) for score in inner or [value])

    def _add(self, name: str, value: float, flags: set[str]) -> None:
        flags |= {"decimal"} if value % 1 else set()
        self.found[name].append(value)

    def reading(self, flags: set[str], reply: str, of_text: Collection[str]) -> Reading:
        """The scores, where each criterion has one and the form of the reply leaves no doubt whose they are."""
        if phrase := attributes_or_refuses(reply):
            raise DoubtfulReply(f"the reply refuses, or gives its scores as another's ({shorten(phrase, 60)})")
        values = _single(self.found, flags)
        # A tag that the reply quotes would make reasoning of what stands before it.
        more = {"extra_prose", "quoted"} | ({"reasoning"} if HOLDS_A_TAG in of_text else set())
        if SUSPICIOUS & set(of_text) and flags & more:
            raise DoubtfulReply("the text holds ratings or orders, and the reply has more than its scores")
        return Reading(values, flags=tuple(sorted(flags)))


class _Object(list[tuple[str, Any]]):
    """A JSON object as pairs, so that duplicated keys are kept."""


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
    if second.match(rest) or _FRACTION.search(rest):
        raise JudgeReplyError(f"{name} has more than one value: {shorten(text.strip(), 40)}")
    return _on_scale(value, name, highest), rest


def _on_scale(value: float, name: str, highest: float) -> float:
    if not LOWEST <= value <= highest:
        raise JudgeReplyError(f"{name} is {value:g}, outside {LOWEST:g} to {highest:g}")
    return value


def _single(found: Mapping[str, list[float]], flags: set[str]) -> dict[str, float]:
    """The values of criteria that have one each.

    Raises:
        JudgeReplyError: A criterion has none.
        DoubtfulReply: One has several. Equal ones are no exception: a quoted rating would let those pass that agree
            with it, and stop the others.
    """
    if missing := [name for name, values in found.items() if not values]:
        but = " (a quoted one does not count)" if "quoted" in flags else ""
        raise JudgeReplyError(f"no value for {', '.join(missing)}{but}")
    for name, values in found.items():
        if len(values) > 1:
            given = " and as ".join(f"{value:g}" for value in sorted(set(values)))
            raise DoubtfulReply(f"{name} is given {len(values)} times, as {given}")
    return {name: values[0] for name, values in found.items()}


def _objects(text: str, strict: bool = False) -> list[tuple[int, int, _Object]]:
    """The JSON objects of a text, outermost ones only: their places and contents.

    Raises:
        JudgeReplyError: Only if strict: there is none, or one is cut off or nested too deeply.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_Object, parse_constant=str, parse_int=_whole)
    position, found, problem = 0, [], "the reply holds no complete JSON object"
    while (position := text.find("{", position)) >= 0:
        try:
            content, stop = decoder.raw_decode(text, position)
        except RecursionError:
            problem, found = "the reply's JSON is nested too deeply", []
            break
        except json.JSONDecodeError as error:
            if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
                problem, found = "the reply's JSON object is cut off", []
                break
            position += 1
            continue
        found.append((position, stop, content))
        position = stop
    if strict and not found:
        raise JudgeReplyError(problem)
    return found


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < 20 else float(digits)  # Python refuses to read thousands of digits


def _json_value(value: Any, name: str, highest: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise JudgeReplyError(f"{name} is {shorten(value, 40)}, not a number")
    if not isinstance(value, str):
        return _on_scale(float(value) if abs(value) < 1e9 else float("inf"), name, highest)
    number, rest = _value(_MARKDOWN.sub("", _normal(value)).strip(), name, highest)
    if number is None or rest.strip():
        raise JudgeReplyError(f"{name} is {shorten(value, 40)}, not a number")
    return number
