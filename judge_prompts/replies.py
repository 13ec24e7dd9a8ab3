"""Parsers of judges' replies: strict about values and about form, tolerant of its dress.

A verdict is a reply that is the requested form and nothing else: each criterion once with its value, as lines or JSON.
Tolerated are markdown, bullets, numbers, a table, a code fence, Arabic-Indic digits, full-width forms, directional
marks, the criteria in one line, a heading such as "Scores:", and reasoning before the reply. With anything else beside
the scores (prose, quotations, further keys, symbols such as a cross), or with two values for a criterion, equal or not,
it is open whose the scores are: `DoubtfulReply` is raised, and the judge is asked once more, for the form between two
marks. The marks hold a code that no judged text can know; between them stand the judge's scores, whatever it writes
around them.

So whether a value counts depends on where it stands and on the reply's form: never on which value of the scale it is,
on what the prose beside it says, or on what the judged text holds. A reply without a value for each criterion, or with
one outside the scale, raises `JudgeReplyError`. The JEEM paper prints the form of the replies (Figures 7-11) but not
how its authors parsed them: the rules are ours.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from cultureval.judge_prompts.suspicions import ALIASES, HOLDS_A_TAG
from cultureval.runtime.errors import CulturevalError, shorten
from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.zero_width import INVISIBLE

LOWEST, HIGHEST = 1.0, 5.0
PARSER_VERSION = 7

_DIGITS = {ord(digit): str(value) for row in ("٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹") for value, digit in enumerate(row)}
_DIGITS[ord("٫")] = "."
_SLASHES = str.maketrans("\u2044\u2215", "//")  # before NFKC, which makes the first of ⅘
_INVISIBLE = re.compile(f"[{INVISIBLE}\u0640\ufe0f]")
_MARKDOWN = re.compile(r"[*_`\[\](){}<>\"'«»“”‘’#]")
_FENCE = re.compile(r"^[ \t]*```\w*[ \t]*$", re.MULTILINE)
_REASONING_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)  # as chat models write them
_LONGEST = 20_000  # characters; far longer than any valid reply

_SCORE = r"(?:score|rating|grade)"
_SEPARATOR = r"[ \t]*[:=|–—\-][ \t]*"
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_VALUE = (
    rf"[\[(<]?(?P<value>[-+]?{_NUMBER})[\])>]?"
    rf"(?:[ \t]{{0,3}}(?:[/\\]|out of|of|من أصل|من)[ \t]{{0,3}}(?P<of>{_NUMBER})[\])]?)?(?![\w%٪/\\+°^])"
)
_WHOLE_VALUE = re.compile(_VALUE, re.IGNORECASE)
# What may stand between scores: white space, punctuation, symbols that say nothing, a heading, the head of a table.
_HEADING = re.compile(
    r"^[ \t|\-]*(?:(?:my|final)\s+)*(?:scores?|ratings?|evaluations?|results?|output)[ \t]*(?::|$)"
    r"|\|[ \t]*criteri(?:on|a)[ \t]*\|[ \t]*(?:score|rating)s?[ \t]*\|",
    re.IGNORECASE | re.MULTILINE,
)
_GAPS = frozenset(" \t\n|,;.،؛•·–—-:!=✅✔☑⭐🌟●○◦■□▪▫◆◇▶►➤🔹🔸🔷🔶📊📝")
_SIGNS_OF_NAMES = _GAPS | set("_'’()[]/&+*`#")
_SCORE_KEYS = {"score", "rating", "value", "points", "grade"}
_NAME_KEYS = {"criterion", "criteria", "name", "aspect", "dimension", "metric"}
_WRAPPING_KEYS = {
    "scores",
    "ratings",
    "evaluation",
    "evaluations",
    "results",
    "result",
    "output",
    "criteria",
    "verdict",
}


class JudgeReplyError(CulturevalError):
    """A judge's reply does not have the requested form; the message says why."""


class DoubtfulReply(JudgeReplyError):
    """It is open whether the scores in a judge's reply are the judge's own."""


@dataclass(frozen=True)
class ReplyReading:
    """The content of a reply.

    Attributes:
        scores: Criterion -> score on its scale, which begins with 1; empty where a label was requested.
        label: The label; None where scores were requested.
        flags: Tolerated deviations: "decimal", "reasoning", and of a line of text "extra_prose".
        notes: Criterion -> the judge's explanation, where the template asks for some.
    """

    scores: dict[str, float] = field(default_factory=dict)
    label: str | None = None
    flags: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)


def read_scores(
    reply: str,
    criteria: Sequence[str],
    highest: Mapping[str, int] | None = None,
    of_text: Collection[str] = (),
    code: str = "",
) -> ReplyReading:
    """Read `Criterion: X/5` for each criterion, or one JSON object `{"Criterion": X, ...}`.

    A criterion's name may be in any case, with a bullet, a number or "score", before one of `: = - |` or a line break;
    its value is a number from 1 to 5, then `/5`, `out of 5` or nothing. Objects may lie within objects
    (`{"scores": {"Criterion": {"score": 4}}}`) and in lists (`[{"criterion": "...", "score": 4}]`); values there may be
    texts such as "4/5".

    Args:
        criteria: Names of the criteria, such as "Dialect Authenticity" ("Dialectal Authenticity" is an alias).
        highest: Criterion -> the highest score of its scale, where that is not 5.
        of_text: The flags of the judged text (`suspicions`): where it has a tag of reasoning, what looks like a reply
            after reasoning may be a quotation of it.
        code: Of the marks between which the form was requested; "" where none were.

    Returns:
        Criterion, as given -> its score, for all criteria in their order; and flags of tolerated deviations.

    Raises:
        DoubtfulReply: The reply has more than its scores (outside marks), or two for one criterion.
        JudgeReplyError: A criterion is missing, or has a value outside its scale or with another denominator.
        ValueError: No criteria, or a duplicated one.
    """
    names = tuple(_checked(criteria))
    text, flags = _without_reasoning(reply)
    marked = _between_marks(text, code)
    form = _FENCE.sub("", "\n".join((text if marked is None else marked).splitlines())).strip()
    found, more = (_json_values if form[:1] in {"{", "["} else _values)(form, names, highest or {})
    scores = _single(found)
    flags |= {"decimal"} if any(value % 1 for value in scores.values()) else set()
    if more:
        raise DoubtfulReply(f"the reply has more than its scores: {shorten(more, 60)}")
    if marked is None and "reasoning" in flags and HOLDS_A_TAG in of_text:
        raise DoubtfulReply("the text holds a tag of reasoning, and so does the reply")
    return ReplyReading(scores, flags=tuple(sorted(flags)))


def read_label(
    reply: str, labels: Sequence[str] | Mapping[str, Sequence[str]], prefix: str = "", code: str = ""
) -> ReplyReading:
    """Read one label of a closed set: a reply that is the label and nothing else.

    Args:
        labels: The labels, or each label with further spellings of it.
        prefix: Text that may precede the label, followed by a colon (as at the end of the JEEM paper's prompt).
        code: As of `read_scores`.

    Returns:
        The label, as given, and flags of tolerated deviations.

    Raises:
        DoubtfulReply: The reply has more than its label (outside marks).
        JudgeReplyError: No line is exactly one of the labels, or two lines are different ones.
        ValueError: No labels.
    """
    if not labels:
        raise ValueError("there must be at least one label")
    spellings = labels if isinstance(labels, Mapping) else {label: () for label in labels}
    known = {_key(text): label for label, others in spellings.items() for text in (label, *others)}
    text, flags = _plain(reply)
    marked = _between_marks(text, code)
    lead = re.compile(rf"[\s\-•]*(?:{re.escape(_normal(prefix))}\s*[:：\-]\s*)?", re.IGNORECASE)
    found: dict[str, None] = {}
    more: list[str] = []
    for line in (text if marked is None else marked).splitlines():
        written = line[lead.match(line).end() :].strip(" \t.:،؛,!")
        label = known.get(_bare_key(written))
        if label is not None:
            found[label] = None
        elif written:
            more.append(written)
    if not found:
        raise JudgeReplyError(f"no line of the reply is one of the {len(spellings)} labels ({shorten(reply)})")
    if len(found) > 1:
        raise JudgeReplyError(f"the reply gives several labels: {', '.join(found)}")
    if more:
        raise DoubtfulReply(f"the reply has more than its label: {shorten(more[0], 60)}")
    return ReplyReading(label=next(iter(found)), flags=tuple(sorted(flags)))


def read_line(reply: str, prefix: str = "") -> ReplyReading:
    """Read a short free text: the first line that is not empty, without `prefix:` and markdown.

    Raises:
        JudgeReplyError: The reply is empty, or its first line is longer than 100 characters.
    """
    text, flags = _plain(reply)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = re.sub(rf"^{re.escape(_normal(prefix))}\s*:\s*", "", lines[0]).strip(" \t.:،؛,") if lines else ""
    if not first:
        raise JudgeReplyError("the reply's first line is empty")
    if len(first) > 100:
        raise JudgeReplyError(f"the reply's first line has {len(first)} characters; 100 are the most")
    return ReplyReading(label=first, flags=tuple(sorted(flags | ({"extra_prose"} if len(lines) > 1 else set()))))


def _checked(criteria: Sequence[str]) -> list[str]:
    names = [criteria] if isinstance(criteria, str) else list(criteria)
    if not names or len({_key(name) for name in names} - {""}) < len(names):
        raise ValueError(f"criteria must be distinct names, at least one: {names}")
    return names


def _normal(text: str) -> str:
    if text.isascii():
        return text
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


def _between_marks(text: str, code: str) -> str | None:
    """What a reply has between the marks with a code; None where it has none of them.

    Raises:
        DoubtfulReply: It has one, or more than two.
    """
    parts = text.split(code) if code else [text]
    if len(parts) not in (1, 3):
        raise DoubtfulReply(f"the reply has the mark {code} {len(parts) - 1} times, not at both ends of its scores")
    return parts[1] if len(parts) == 3 else None


@lru_cache(1000)
def _key(text: str) -> str:
    """A name as names are compared: its letters and digits, in lower case."""
    return re.sub(r"[\W_]+", "", _normal(text)).casefold()


def _bare_key(text: str) -> str:
    """As `_key`; "" where the text has symbols that could say something, such as a cross."""
    bare = all(one.isalnum() or unicodedata.category(one)[0] == "M" or one in _SIGNS_OF_NAMES for one in text)
    return _key(text) if bare else ""


@cache
def _keys(criteria: tuple[str, ...]) -> Mapping[str, str]:
    """Every spelling of a criterion, as of `_key` -> the criterion."""
    endings = ("", "score", "rating")
    return {_key(f"{one} {end}"): name for name in criteria for one in _aliases(name) for end in endings}


def _aliases(name: str) -> tuple[str, ...]:
    return (name, *ALIASES.get(" ".join(name.casefold().split()), ()))


@cache
def _entry(criteria: tuple[str, ...]) -> re.Pattern[str]:
    """A criterion with its value: the groups `name`, `value`, and `of` for its denominator."""
    spelled = [re.findall(r"[^\W_]+", _normal(alias)) for name in criteria for alias in _aliases(name)]
    joined = (r"[\s_'’()/&.,–—\-]{0,3}".join(words) for words in spelled)
    names = "|".join(sorted(joined, key=len, reverse=True))
    number = r"^[ \t|•·–—\-]*+[0-9]{1,2}[ \t]?[.):\-][ \t]*"
    named = rf"(?P<quote>[\"'\[])?(?<!\w)(?P<name>{names})(?:\s*{_SCORE})?(?(quote)[\"'\]]|\)?)"
    scale = r"(?:\s?\(1\s?[-–]\s?[0-9]+\))?"
    between = rf"(?:{_SEPARATOR}(?:\n\s*+)?|[ \t]*\n\s*+)(?:[-•|][ \t]+)?(?:{_SCORE}{_SEPARATOR})?"
    return re.compile(
        rf"(?:{number})?(?:\b(?:and|و)\s+)?(?:{_SCORE}\s+(?:for|of)\s+)?{named}{scale}{between}{_VALUE}",
        re.IGNORECASE | re.MULTILINE,
    )


_Found = tuple[dict[str, list[float]], str]  # the values of each criterion, and what the reply has besides


def _values(text: str, criteria: tuple[str, ...], highest: Mapping[str, int]) -> _Found:
    """The values in lines."""
    text, entry, found = re.sub(r"[*_`#]", "", text), _entry(criteria), {name: [] for name in criteria}
    for match in entry.finditer(text):
        name = _keys(criteria)[_key(match["name"])]
        found[name].append(_on_scale(match, name, highest.get(name, HIGHEST)))
    rest = _HEADING.sub(" ", entry.sub(" ", text))
    return found, "" if _GAPS.issuperset(rest) else " ".join(rest.split())


def _on_scale(match: re.Match[str], name: str, highest: float) -> float:
    """The value of a match of `_VALUE`.

    Raises:
        JudgeReplyError: It is outside the scale, or has another denominator.
    """
    if match["of"] is not None and float(match["of"]) != highest:
        raise JudgeReplyError(f"{name} is not given out of {highest:g}: {shorten(match.group(), 40)}")
    value = float(match["value"])
    if not LOWEST <= value <= highest:
        raise JudgeReplyError(f"{name} is {value:g}, outside {LOWEST:g} to {highest:g}")
    return value


def _single(found: Mapping[str, list[float]]) -> dict[str, float]:
    """The values of criteria that have one each.

    Raises:
        JudgeReplyError: A criterion has none.
        DoubtfulReply: One has several. Equal ones are no exception: a quoted rating would let those pass that agree
            with it, and stop the others.
    """
    if missing := [name for name, values in found.items() if not values]:
        raise JudgeReplyError(f"no value for {', '.join(missing)}")
    for name, values in found.items():
        if len(values) > 1:
            given = " and as ".join(f"{value:g}" for value in sorted(set(values)))
            raise DoubtfulReply(f"{name} is given {len(values)} times, as {given}")
    return {name: values[0] for name, values in found.items()}


class _Object(list[tuple[str, Any]]):
    """A JSON object as pairs, so that duplicated keys are kept."""


def _json_values(text: str, criteria: tuple[str, ...], highest: Mapping[str, int]) -> _Found:
    """The values in one JSON text, and its keys that are of no criterion.

    Raises:
        DoubtfulReply: There is more after it.
        JudgeReplyError: It is cut off or nested too deeply, or a value is no number of its scale.
    """
    found: dict[str, list[float]] = {name: [] for name in criteria}
    more: list[str] = []
    try:
        content = json.loads(text, object_pairs_hook=_Object, parse_constant=str, parse_int=_whole)
        for name, value in _named(content, _keys(criteria), more):
            found[name].append(_json_value(value, name, highest.get(name, HIGHEST)))
    except RecursionError:
        raise JudgeReplyError("the reply's JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise DoubtfulReply("the reply has more than one JSON object") from None
        raise JudgeReplyError(f"the reply's JSON is cut off or wrong ({error.msg})") from None
    return found, ", ".join(one or "an empty key" for one in more)


def _named(content: Any, keys: Mapping[str, str], more: list[str]) -> Iterator[tuple[str, Any]]:
    """(criterion, its value) of an object or a list of objects; what else they have is added to `more`."""
    for entry in [content] if isinstance(content, _Object) else content:
        if not isinstance(entry, _Object):
            more.append(str(entry))
            continue
        titles = [value for key, value in entry if _bare_key(key) in _NAME_KEYS and isinstance(value, str)]
        if titles and (name := keys.get(_bare_key(titles[0]))) is not None:
            yield from ((name, value) for key, value in entry if _bare_key(key) in _SCORE_KEYS)
            more += [key for key, _ in entry if _bare_key(key) not in _SCORE_KEYS | _NAME_KEYS]
            more += titles[1:]
            continue
        for key, value in entry:
            wraps = _bare_key(key) in _WRAPPING_KEYS and isinstance(value, list)
            if (name := keys.get(_bare_key(key))) is None and wraps:
                yield from _named(value, keys, more)
            elif name is None:
                more.append(key)
            elif isinstance(value, _Object):
                yield from ((name, one) for inner, one in value if _bare_key(inner) in _SCORE_KEYS)
                more += [inner for inner, _ in value if _bare_key(inner) not in _SCORE_KEYS]
            else:
                yield name, value


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < 20 else float(digits)  # Python refuses to read thousands of digits


def _json_value(value: Any, name: str, highest: float) -> float:
    text = _normal(str(value)) if isinstance(value, int | float | str) and not isinstance(value, bool) else ""
    if (match := _WHOLE_VALUE.fullmatch(text.strip())) is None:
        raise JudgeReplyError(f"{name} is {shorten(value, 40)}, not a number from {LOWEST:g} to {highest:g}")
    return _on_scale(match, name, highest)
