"""Filling a judge template's slots so that the judged text cannot act as part of the prompt.

A plain paragraph is inserted unchanged, so that the paper's prompt stays verbatim. A text that could be taken for a
part of the prompt (several lines, a rating, one of the prompt's headings, an instruction to the judge) is put between
delimiters with a hash of the text, so that the text cannot close them, and our notice is put before the prompt.
"""

import hashlib
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from cultureval.runtime.text_templates import TextTemplate

NOTICE = TextTemplate(Path(__file__).with_name("delimiter_notice.txt"))

_IGNORED = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\u061c\ufeff\u0640\u064b-\u065f\u0670*_`]")
_FOLDED = str.maketrans("أإآٱىة٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹", "اااايه01234567890123456789")
_RATING = re.compile(r"\b[0-9X](?:\.[0-9])?\s*(?:/|out of|من اصل|من)\s*5\b", re.IGNORECASE)
_ORDERS = (
    r"\b(?:ignore|disregard|forget|override)\b.{0,60}\b(?:instruction|previous|above|earlier|prompt|criteria|rule)",
    r"\b(?:give|assign|award|rate|score|output|respond|reply|return|print|answer)\b.{0,60}"
    r"(?:\b(?:5|five)\b\s*(?:/|out of|stars?|points?|marks?|scores?|ratings?|on|for|in|as|to|\W*$)"
    r"|\b(?:full|maximum|highest|perfect|top)\s+(?:marks?|scores?|ratings?|grades?|points?))",
    r"\b(?:dear|hey|note to|attention|as an?|you are an?|you are now an?)\s+(?:the\s+)?(?:\w+\s+)?"
    r"(?:judge|evaluator|grader|rater|assistant|ai)\b",
    r"<\|?\s*/?\s*(?:system|assistant|user|im_?start|im_?end|end|instructions?|s|eot_?id)\s*\|?>|\[/?INST\]",
    r"^\s*(?:system|assistant|user|human)\s*:",
    r"(?<!\w)(?:تجاهل|انس|اهمل|لا تتبع)(?:ي|وا)?\s.{0,60}(?:تعليمات|توجيهات|السابق|ما سبق|اعلاه|معايير)",
    r"(?<!\w)(?:قيم|(?:اعط|امنح|ضع|اكتب|اجب)(?:ه|ها|ني|نا)?)(?:ي|وا)?\s"
    r".{0,60}(?:\b5\b|خمس|كامل|اعلي|الدرجات|الدرجه|ممتاز)",
    r"(?<!\w)(?:ايها|عزيزي|يا)\s+(?:المقيم|الحكم|القاضي|المصحح|المحكم)",
)
_ORDER = re.compile("|".join(_ORDERS), re.IGNORECASE | re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^([^:$\n]{2,40}?)(?:\s*\([^:\n]*\))?:", re.MULTILINE)


@dataclass(frozen=True)
class FilledPrompt:
    """A prompt for a judge.

    Attributes:
        text: The text that is sent.
        flags: Signs of manipulation in the judged text: "looks_like_a_rating", "holds_a_heading", "gives_orders".
        delimited: Slots that were put between delimiters.
    """

    text: str
    flags: tuple[str, ...] = ()
    delimited: tuple[str, ...] = ()


def fill(
    template: TextTemplate,
    slots: Mapping[str, str],
    judged: str,
    trusted: Collection[str] = (),
    always_delimit: bool = False,
) -> FilledPrompt:
    """Fill a template's slots.

    Args:
        template: The prompt with its slots.
        slots: Slot -> text; slots that the template does not have are ignored.
        judged: The slot of the judged text, which is the one that is flagged.
        trusted: Slots whose texts are ours, such as a country's name.
        always_delimit: Delimiters around every slot that is not trusted.

    Raises:
        CulturevalError: A slot of the template is not given.
    """
    source = template.template.template
    headings = _headings(source)
    texts: dict[str, str] = {}
    delimited = []
    for name in _slots_of(template.template):
        text = slots[name] if name in trusted else slots[name].strip()
        if name not in trusted and (always_delimit or "\n" in _lines(text) or suspicions(text, headings)):
            text = _between_marks(text)
            delimited.append(name)
        texts[name] = text
    notice = NOTICE.template.template + "\n" if delimited else ""
    return FilledPrompt(
        notice + template.render(**texts), suspicions(slots.get(judged, ""), headings), tuple(delimited)
    )


def suspicions(text: str, headings: Collection[str] = ()) -> tuple[str, ...]:
    """Signs that a text could manipulate a judge: the flags of `FilledPrompt`.

    Args:
        text: Any text.
        headings: The prompt's own headings, without colons.
    """
    plain = _folded(text)
    found = {
        "looks_like_a_rating": _RATING.search(plain),
        "holds_a_heading": any(
            re.search(rf"(?<!\w){re.escape(_folded(h))}\s*(?:\([^)]*\)\s*)?[:=]", plain) for h in headings
        ),
        "gives_orders": _ORDER.search(plain),
    }
    return tuple(name for name, hit in found.items() if hit)


def share_of_arabic(text: str) -> float:
    """Share of a text's letters that are Arabic; 1 for a text without letters."""
    letters = [character for character in text if character.isalpha()]
    arabic = sum(unicodedata.name(letter, "").startswith("ARABIC") for letter in letters)
    return arabic / len(letters) if letters else 1.0


def _headings(source: str) -> frozenset[str]:
    return frozenset(match.strip() for match in _HEADING.findall(source))


def _slots_of(template: Template) -> list[str]:
    return list(dict.fromkeys(template.get_identifiers()))


def _lines(text: str) -> str:
    """The text with every kind of line break as a newline."""
    return "\n".join(text.splitlines())


def _folded(text: str) -> str:
    """The text normalised for pattern matching: no diacritics, one spelling of alef and of digits, lower case."""
    return _IGNORED.sub("", unicodedata.normalize("NFKC", text)).translate(_FOLDED).casefold()


def _between_marks(text: str) -> str:
    code = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"<<<text {code}\n{text}\n{code} text>>>"
