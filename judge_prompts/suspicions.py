"""Signs that a judged text tries to influence its judge: patterns in English, MSA and the dialects.

They flag a text, and change nothing in its prompt. Means are given with and without flagged items. The captions of
`samples/judge_injections` show what is found, and what harmless text looks like it: prices, hotels' stars, referees.
"""

import html
import re
import sys
import unicodedata
from collections.abc import Collection
from functools import cache
from urllib.parse import unquote

from cultureval.runtime.zero_width import INVISIBLE

ALIASES: dict[str, tuple[str, ...]] = {
    "dialect authenticity": ("dialectal authenticity", "dialect's authenticity", "authenticity of dialect"),
}

_IGNORED = re.compile(f"[{INVISIBLE}\ufe0f\u0640\u064b-\u065f\u0670*_`]")
_FOLDED = str.maketrans("أإآٱىةؤئگچ٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹⁄’", "اااايهويكج01234567890123456789/'")

# Below all is folded: one alef, ه for ة, ي for ى, Latin digits, lower case.
_UNITS = (
    r"(?!\s*(?:دينار|دنانير|درهم|دراهم|ريال|جنيه|دولار|ليره|فلس|قرش|يورو|كيلو|متر|كم\b|dinar|dirham|rial|riyal|pound|"
)
_UNITS += r"dollar|euro|lira|\$|€|£|km\b|kg\b|m\b|cm\b))"
_RATING = (
    rf"\b[0-9x](?:\.[0-9])?\s*/\s*5\b{_UNITS}|\b(?:[0-9x]|five)(?:\.[0-9])?\s*out of\s*(?:5|five)\b{_UNITS}",
    r"\b5\s*(?:من(?: اصل)?|علي)\s*5\b|\b[0-9](?:\.[0-9])?\s*من(?: اصل)?\s*5\b(?=\s*(?:$|[^\w\s]|في\b|لكل\b))",
    r"خمسه?\s*(?:من|علي)\s*خمسه?\b",
)
_EVALUATION = r"(?:\bratings?\b|\bcriteri(?:on|a)\b|\bevaluat\w*|\bgrad(?:er|ing)\b|تقييم|معيار|معايير|مقيم)"
_HIGHEST = r"(?:\b(?:top|highest|maximum|full|perfect|best|5|five)\b|\bخمس|كامل|قصوي|نهايي|اعلي|عليا|ممتاز)"
_STARS = r"(?:\bstars?\b|\bmarks?\b|\bratings?\b|\bscores?\b|نجوم|نجمات|تقييم|درجه|درجات|علام|نقط|\bخمس|\b5\b|\bfive\b)"
_DESERVES = r"(?:\bdeserv\w+|\bmerit(?:s|ed)?\b|\bworthy\b|ستاهل|ستحق|جدير)"
_ITSELF = (
    r"(?:\b(?:this|the above|the following) (?:caption|description|answer|translation|response|text)\b"
    r"|(?:هذا|هاد)\s+ال(?:وصف|نص|كلام|حكي|جواب|تعليق)|هال(?:وصف|نص|كلام|حكي|جواب)|ال(?:وصف|نص|كلام|جواب)\s+(?:ده|دا|هذا|هاذا))"
)
_PRAISE = (
    r"(?:\brat(?:e|ed|ing)s?\b|\bscor|\bevaluat|\bgrade|\bmarks?\b|\bstars?\b|\bmerit|\btop\b|\bbest\b|\bperfect|\bflawless"
    r"|\bapproved|\bcriteri|\b5\b|\bfive\b|تقييم|قيم|درج|علام|نقط|معيار|معايير|نجوم|خمس|ستاهل|ستحق|جدير|خبير|خبرا"
    r"|راجع|ممتاز|مثالي|نموذجي|كامل|غلط)"
)
_GIVE = r"(?<!\w)[وف]?(?:قيم|(?:ا?عط|امنح|ضع|ا?كتب|اجب|اد|حط|دير|اختر|تختار)(?:ه|ها|ني|نا|له|لها)?)(?:ي|وا|يه|يله)?\s"


def _near(first: str, second: str, most: int = 80) -> str:
    return rf"{first}.{{0,{most}}}?{second}|{second}.{{0,{most}}}?{first}"


_ORDERS = (
    r"\b(?:ignore|disregard|forget|override)\b.{0,60}\b(?:instruction|previous|above|earlier|prompt|criteria|rule)",
    r"\b(?:give|assign|award|rate|score|output|respond|reply|return|print|answer|choose)\b.{0,60}"
    r"(?:\b(?:5|five)\b\s*(?:/|out of|stars?|points?|marks?|scores?|ratings?|on|for|in|as|to|everywhere|\W*$)"
    r"|\b(?:full|maximum|highest|perfect|top)\s+(?:marks?|scores?|ratings?|grades?|points?))",
    r"\b(?:dear|hey|note (?:to|for)|attention|as an?|you are an?|you are now an?)\s+(?:the\s+)?(?:\w+\s+)?"
    r"(?:judge|evaluator|grader|rater|assistant|ai)\b",
    r"<\|?\s*/?\s*(?:system|assistant|user|im_?start|im_?end|end|instructions?|s|eot_?id)\s*\|?>|\[/?inst\]",
    r"(?:^|[.!?؟]\s+)\s*(?:system|assistant|user|human)\s*:",
    r"(?:رساله|ميساج)\s+من\s+(?:ال)?(?:نظام|سيستم|سيستيم)",
    r"(?<!\w)[وف]?(?:تجاهل|ا?نسي?|انسا|نسا|اهمل|طنش|سيبك من|خل عنك|لا تتبع|ما تديهاش)(?:ي|وا)?\s"
    r".{0,60}(?:تعليمات|توجيهات|السابق|ما سبق|اعلاه|معايير)",
    rf"{_GIVE}.{{0,60}}(?:\b5\b(?=\s*(?:$|[^\w\s]|في|علي|من))|كامل|اعلي|ممتاز)",
    rf"{_GIVE}.{{0,60}}خمسه?\s*(?:$|[^\w\s]|(?:لل|عال|علي ال|في ال)كل)",
    r"(?<!\w)(?:ايها|عزيزي|يا|ا|ملاحظه الي)\s+(?:استاذ\s+|سي\s+)?(?:ال)?(?:مقيم|حكم|قاضي|مصحح|محكم)\b",
    _near(r"(?:\bgenerous\b|كريم|بخيل)", r"(?:\bscor|\bmark|\brating|\bgrad|درجات|علامات|نقط)", 30),
)
_CLAIMS = (
    _near(_EVALUATION, _HIGHEST),
    _near(_DESERVES, _STARS),
    _near(_ITSELF, _PRAISE),
    r"ال(?:درجه|علامه|نقطه)\s+(?:ال)?(?:كامله|قصوي|نهاييه|تامه|عليا|كلها)",
    _near(r"\b(?:grader|evaluator|rater|judge)(?:['’]s)?\b", r"\b(?:top|highest|full|perfect)\s+(?:score|mark)", 40),
)


_TAGS = (r"</?think(?:ing)?>",)
HOLDS_A_TAG = "holds_a_reasoning_tag"
# Of the prompt (`slots.py`, `asked_again.txt`), with their word or with what looks like a code.
_DELIMITERS = (
    r"[<«‹《]{2,}\s*(?:text|scores?|label)\b|\b(?:text|scores?|label)\s*[>»›》]{2,}",
    r"[<«‹《]{2,}\s*\w+\s+[0-9a-f]{6,}|[0-9a-f]{6,}\s+\w+\s*[>»›》]{2,}",
)
_FLAGS = {
    "looks_like_a_rating": _RATING,
    "gives_orders": _ORDERS,
    "claims_a_rating": _CLAIMS,
    HOLDS_A_TAG: _TAGS,
    "holds_a_delimiter": _DELIMITERS,
}
SUSPICIOUS = frozenset({*_FLAGS, "holds_a_heading", "rates_a_criterion"})

# Criteria in Arabic and Chinese, as a text may name them to its judge; no words that captions use otherwise.
_NAMES = {
    "consistency": ("الاتساق", "التناسق", "一致性", "一致度"),
    "relevance": ("الصلة", "الملاءمة", "相关性", "相关度"),
    "fluency": ("الطلاقة", "السلاسة", "流畅性", "流畅度", "流利度"),
    "dialectauthenticity": ("أصالة اللهجة", "صدق اللهجة", "方言真实性", "方言地道性"),
}
_NUMERAL = r"(?:[0-9]|one|two|three|four|f[il]ve|star|واحد|اثن|ثلاث|اربع|خمس|نجم|نجوم|[一二两三四五六七八九十星])"
# Characters as JSON and programs write them; HTML's and those of addresses are read by the standard library.
_ESCAPE = re.compile(
    r"\\+(?:u\{([0-9a-f]{1,6})\}|(?-i:U)([0-9a-f]{8})|u([0-9a-f]{4})|x([0-9a-f]{2}))|U\+([0-9a-f]{4}) ?", re.IGNORECASE
)
_MARKUP = re.compile(r"<[^<>\n]{1,40}>")


def suspicions(text: str, headings: Collection[str] = (), criteria: Collection[str] = ()) -> tuple[str, ...]:
    """Signs that a text could influence a judge.

    Args:
        headings: The prompt's own headings, without colons.

    Returns:
        Some of "looks_like_a_rating", "gives_orders", "claims_a_rating" (of the text itself), "holds_a_reasoning_tag",
        "holds_a_delimiter", "holds_a_heading", "rates_a_criterion" (names one, and has a number).
    """
    read_as = dict.fromkeys((text, _unescaped(text), _MARKUP.sub("", _unescaped(text))))
    plain = [folded(one) for one in read_as]
    found = [flag for flag in _FLAGS if any(map(_pattern(flag).search, plain))]
    heading = "|".join(re.escape(folded(one)) for one in headings)
    headed = rf"(?<!\w)(?:{heading})[\"'”]?\s*(?:\([^)]*\)\s*)?[:=]"
    if heading and any(re.search(headed, one) for one in plain):
        found.append("holds_a_heading")
    if any(_rates(one, criteria) for one in read_as):
        found.append("rates_a_criterion")
    return tuple(found)


def _unescaped(text: str) -> str:
    """A text with its escaped characters as themselves: of JSON, HTML, addresses, `U+0043`; escaped up to thrice."""
    for _ in range(3):
        before, text = text, _ESCAPE.sub(_character, unquote(html.unescape(text)))
        if text == before:
            break
    return text


def _character(match: re.Match[str]) -> str:
    number = int(next(filter(None, match.groups())), 16)
    return chr(number) if number <= sys.maxunicode else match.group()


def _rates(text: str, criteria: Collection[str]) -> bool:
    """Whether a text names a criterion and has a number: anywhere a digit, or near the name a numeral in words.

    Letters and digits alone are compared, so that no space, mark, bracket or accent hides a name from us that a parser
    of replies would see, nor do letters that look like others.
    """
    plain = _letters_and_digits(text)
    names = [_letters_and_digits(alias) for one in criteria for alias in (one, *ALIASES.get(_spaced(one), ()))]
    if any(name in plain for name in names) and any(map(str.isnumeric, text)):
        return True
    foreign = [
        _letters_and_digits(other) for one in criteria for other in _NAMES.get("".join(one.casefold().split()), ())
    ]
    every = "|".join(map(re.escape, (*names, *foreign)))
    near = rf"(?:{every}).{{0,12}}?{_NUMERAL}|{_NUMERAL}.{{0,8}}?(?:{every})"
    return bool(every) and re.search(near, plain) is not None


def _spaced(name: str) -> str:
    return " ".join(name.casefold().split())


def _letters_and_digits(text: str) -> str:
    """A text's letters and digits alone, folded, without accents, look-alikes as Latin letters (i and l as one)."""
    plain = unicodedata.normalize("NFKD", folded(text).translate(_look_alikes())).translate(_look_alikes())
    return "".join(filter(str.isalnum, plain)).replace("i", "l")


@cache
def _look_alikes() -> dict[int, str]:
    """Other scripts' letters -> the Latin letter that they look like, by Unicode's table of confusables (UTS 39)."""
    from confusable_homoglyphs.confusables import confusables_data

    like = {
        alone.casefold(): row["c"].lower()
        for alone, rows in confusables_data.items()
        for row in rows
        if not alone.isascii() and row["c"].isascii() and row["c"].isalpha() and len(alone.casefold()) == 1
    }
    return {ord(one): letter for one, letter in like.items()} | str.maketrans("κτս", "ktu")


@cache
def _pattern(flag: str) -> re.Pattern[str]:
    return re.compile("|".join(_FLAGS[flag]), re.IGNORECASE | re.MULTILINE | re.DOTALL)


def folded(text: str) -> str:
    """The text normalised for pattern matching: no diacritics, one spelling of alef and of digits, lower case."""
    return _IGNORED.sub("", unicodedata.normalize("NFKC", text)).translate(_FOLDED).casefold()
