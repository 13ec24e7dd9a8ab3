"""What a judge's reply quotes is not what the judge gives: a refusal may repeat a text that holds ratings."""

import re
from collections.abc import Callable
from functools import cache

from cultureval.judge_prompts.suspicions import folded

_MARKED = re.compile(r"<<<text\s+([0-9a-f]{6,})\b.*?(?:\1\s+text>>>|\Z)", re.DOTALL)
_BLOCK = re.compile(r"<blockquote>.*?(?:</blockquote>|\Z)", re.DOTALL | re.IGNORECASE)
_QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|‘[^’]*’|(?<!\w)'[^']*'(?!\w)")

_PASSAGES = (_MARKED, _BLOCK, _QUOTED_LINE)
_TEXT = r"\b(?:caption|text|answer|description|reply|response|translation)\b"
_TEXT_AR = r"(?:ال(?:وصف|نص|كابشن|جواب|ترجمه|رد)|مكتوب فيه)"
_TEXT_ZH = r"(?:描述|标题|文本|文字|答案|回答|说明|译文|内容|文中)"
_SCORED = r"\s*?\n\W*(?:json\s+)?[^\n.]{2,40}[:=|–-]\W*[0-9]"  # a line with a value begins below
# "I cannot rate it higher", "not 4": any value alike, since no verdict may depend on its own.
_NOT_HIGHER = r"(?!.{0,25}\b(?:higher|better|more|above|full|any|\d|one|two|three|four|five)\b)"
_SCORES = r"(?:scores?|ratings?|lines?|values?|marks?|verdicts?|outputs?|instructions?)"
# Words by which a reply refuses, or says that somebody demands its scores; after `folded`. Only in the first person or
# about the judge: a remark on what a text says, asks or claims, which low scores come with, is none of them.
_CANNOT = r"\bi\s*(?:will not|won't|can ?not|can't|am (?:not able|unable) to|'m (?:not able|unable) to)\b"
_DOUBTS = (
    r"\bi\s+(?:(?:must|have to|will|would|therefore|hereby)\s+)?(?:refuse|decline|reject)\b",
    r"\brefus(?:e|ing) to (?:follow|comply|obey|rate|score|answer)\b",
    rf"(?:{_CANNOT}|\bi\s*(?:do not|don't|should not|must not|am not going to|'m not going to)\b).{{0,30}}"
    r"\b(?:follow|comply|obey)\b",
    rf"{_CANNOT}\s+(?:\w+\s+)?(?:rate|score|evaluate|grade|judge)\b{_NOT_HIGHER}",
    r"(?<!you )(?<!you have )(?<!you've )\b(?:instruct|order|command|ask|tell|told|direct|urg|request|want|induc"
    r"|persuad|pressur|trick|manipulat|influenc|demand)\w*\s+(?:(?:from|of)\s+)?(?:me|(?:the\s+)?(?:judge|evaluator|grader"
    r"|rater))\b",
    rf"{_TEXT}(?:\s+itself)?\s+(?:demand|instruct|dictat|command)\w*",
    rf"\b(?:demanded|dictated|prescribed|claimed|injected|embedded|self-assigned)\s+{_SCORES}\b",
    r"\bas (?:it|the \w+) (?:demands|instructs|requests|orders)\b|\bif i (?:were to )?(?:follow|obey|compl)",
    r"\b(?:attempt|tr(?:y|ies))\w*\s+(?:to|at)\s+(?:manipulat|influenc|instruct|steer|trick)|\bprompt injection\b",
    r"(?:\bi\b[^.\n]{0,20}|^\W*)\b(?:ignor|disregard)\w*\s+(?:the|this|that|its|these|those|any)\s+(?:\w+\s+)?"
    r"(?:instruction|request|demand|order)",
    rf"{_TEXT}.{{0,20}}\b(?:says|reads|contains|states|claims|includes|holds|writes|lists)\b[^.\n]{{0,40}}:{_SCORED}",
    r"(?<!\w)(?:ارفض|نرفض|كنرفض|برفض|رافض)",
    r"(?<!\w)(?:لن|لا|ما|مش|مو|لست|غير|ماشي)\s*.{0,20}(?:اتبع|امتثل|انفذ|اطيع|نتبع|استجيب)",
    r"(?<!\w)(?:لن|لا|ما|مش|مو|ماشي)\s*(?:\w+\s+){0,2}?[هحبن]?(?:ا?قيم|نقيم|تقييم)(?!\w*.{0,20}(?:اعلي|اكثر|افضل|\d))",
    r"(?<!\w)(?:[يت]|بي|بت|كي|كت)?طلب(?:ت|ون)?\s+مني|(?<!\w)(?:[يت]|بي|بت|كي|كت)(?:امر|طالب|لقن)ني|(?<!\w)[يت]ريدني",
    rf"{_TEXT_AR}\s+(?:ذاته\s+)?(?:ي|ت|بي|كي)?(?:طلب|طالب|امر|فرض|ملي|لزم)(?!\w)",
    r"(?<!\w)(?:سا|سن|ا|ن)تجاهل\w*\s+(?:هذه\s+|هذا\s+|تلك\s+)?(?:ال)?(?:تعليمات|طلب|اوامر|امر)",
    rf"{_TEXT_AR}[^.\n]{{0,40}}:{_SCORED}",
    r"我(?:拒绝|不会|不能|无法|不愿|没法).{0,10}(?:遵|照|听从|服从|执行|评|打分|给分)|拒绝(?:遵|执行|评|打分|照)",
    r"(?<![您你])(?:要求|指示|命令|请求|诱导|强迫)(?:我|评委|评审|裁判|评估者)",
    rf"{_TEXT_ZH}中?(?:直接|明确|试图)?(?:要求|命令|指示)|(?:试图|企图|意图).{{0,6}}(?:操纵|影响|诱导|干扰)",
    r"我.{0,3}(?:忽略|无视|不理会).{0,6}(?:指令|要求|指示|命令)",
    rf"{_TEXT_ZH}[^。\n]{{0,12}}(?:写道|写着|说|包含|声称|如下)[^。\n]{{0,20}}:{_SCORED}",
)
_PAIRS = {'""', "“”", "„“", "„”", "«»", "‘’", "''", "「」", "『』"}


def without_quotations(text: str, is_rating: Callable[[str], bool]) -> tuple[str, bool]:
    """A reply without the passages that are marked as quotations, and whether there were any.

    Args:
        text: The reply, with newlines as its only line breaks.
        is_rating: Whether a passage in quotation marks holds a rating; others are kept, such as the name of a key.
    """
    kept = _MARKED.sub("\n", text)
    kept = _QUOTED_LINE.sub("", _BLOCK.sub("\n", kept))
    kept = _QUOTED.sub(lambda match: "\n" if is_rating(match.group()) else match.group(), kept)
    return kept, kept != text


def holding_quotation(text: str, start: int, stop: int) -> bool:
    """Whether the passage from `start` to `stop` stands in a marked quotation, or itself in quotation marks."""
    marked = any(match.start() < start < match.end() for one in _PASSAGES for match in one.finditer(text))
    return marked or (text[:start].rstrip()[-1:] + text[stop:].lstrip()[:1]) in _PAIRS


def attributes_or_refuses(reply: str) -> str:
    """The words by which a reply refuses, or says that its scores are demanded by another; "" without any.

    They are looked for in English, Arabic and Chinese, anywhere in the reply, in quotations too.
    """
    found = _doubts().search(folded(reply))
    return found.group() if found else ""


@cache
def _doubts() -> re.Pattern[str]:
    return re.compile("|".join(_DOUBTS), re.MULTILINE)
