"""Verdicts in the outputs of M2CQA's and AynVQA's prompts: true, false, or unreadable.

Paper: arXiv 2602.05437, appendix A.5: "any output that does not match the required format is treated as incorrect".
Verified: the rule, the required formats (Table 8); the profile `organisers`, from the description of the scorer of
ImageEval 2026, Task 1b. Inferred: the verdict words of the dialects (Table 8's gold answers); that a colon and a full
stop are allowed (Table 9). Ours: the grammar, the normalisation, the profile `lenient`. Patterns are anchored, and
adjacent parts never match the same whitespace: a megabyte of output takes milliseconds.
"""

import re
import unicodedata
from functools import cache
from typing import Literal, get_args

from cultureval.metrics.m2cqa.names import Profile
from cultureval.runtime.zero_width import INVISIBLE

Prompt = Literal["tf", "answer_reason", "reason_first", "one_word"]
Language = Literal["en", "msa", "ajp", "arz"]

# Zero-width and bidi marks, tatweel, diacritics, quotation marks, backticks and asterisks are deleted.
_DELETED = f"{INVISIBLE}\u0640\u064b-\u065f\u0670"
_QUOTES = "\"'`*\u2018-\u201f\u00ab\u00bb\u2039\u203a"
_NOISE = re.compile(f"[{_DELETED}{_QUOTES}]+")
_LETTERS = str.maketrans("أإآٱىیةک", "ااااييهك")
_NUMBER = re.compile(r"(?<![\w.])([1-3١-٣])(?!\w|\.\d)")  # of a statement, in the joint form


def normalise(text: str) -> str:
    """Normalise outputs and the words below: NFKC, no marks and quotes, one form of each letter.

    Alef variants become bare alef, alef maqsura and the Persian yeh yeh, the Persian keheh kaf, teh marbuta heh;
    whitespace becomes single spaces, none at the ends. Nothing else changes, not even digits.
    """
    text = _NOISE.sub("", unicodedata.normalize("NFKC", text)).translate(_LETTERS)
    return " ".join(text.split())


_HEAD = {"en": "The final answer is", "ar": normalise("الإجابة النهائية هي")}
_EVIDENCE = {"en": "Evidence", "ar": normalise("الدليل")}
_REASONING = {"en": "Thinking Steps", "ar": normalise("خطوات التفكير")}
_STRICT_WORDS = {"en": "true false", "msa": "صحيح خطا", "ajp": "صحيح صح خطا غلط", "arz": "صحيح صح خطا غلط"}
_TRUE = frozenset("true صحيح صحيحه صح".split())
_ANY = "غير صحيحه|غير صحيح|صحيحه|صحيح|صح|خاطئه|خاطئ|خطا|غلط|true|false"  # of the lenient profile, the longest first
_BOX = re.compile(r"\\boxed ?\{ ?(?:\\text ?\{ ?)?([^{}\\]{1,30})\}{1,2}")
_ALONE = re.compile(rf"[<(\[]? ?(?P<verdict>{_ANY}) ?[>)\]]? ?[.!،,]?", re.IGNORECASE)
_SHORTER = "|".join(("final answer", normalise("الجواب النهائي"), normalise("الإجابة النهائية")))
# What states a verdict in the lenient profile; a choice of two words ("True or False") is none.
_STATED = re.compile(
    rf"(?:{_HEAD['en']}|{_HEAD['ar']}|(?<!\w)(?:{_SHORTER})(?= ?[:=])) ?[:=]? ?[<(\[{{]? ?"
    rf"(?P<verdict>{_ANY})(?!\w| ?/| (?:or|ام|او) )",
    re.IGNORECASE,
)


def parse_verdict(text: str, prompt: Prompt, language: Language, profile: Profile = "strict") -> bool | None:
    """The verdict in an output.

    Args:
        text: The output, of any length.
        prompt: The prompt that asked for it: "tf" (True or False), "answer_reason" (Answer then Reason),
            "reason_first" (Reasoning First), or "one_word" (AynVQA's: "only one word: True or False").
        language: Of the statement: "en", "msa", "ajp" (Levantine) or "arz" (Egyptian).
        profile: "strict", the paper's rule: the complete output has the required format. "lenient": also an output
            that is only a verdict, or has the requested phrase (or "Final answer: True", or a LaTeX box) anywhere, with
            further inflections of the Arabic words. Of several verdicts answer_reason takes the first, reason_first
            the last; for other prompts they must agree.
            "organisers": as ImageEval 2026 reads submissions (`organisers_verdict`).

    Returns:
        True, False, or None without a readable verdict.

    Raises:
        ValueError: An unknown prompt, language or profile.
    """
    arguments = {"prompt": (prompt, Prompt), "language": (language, Language), "profile": (profile, Profile)}
    for name, (value, allowed) in arguments.items():
        if value not in get_args(allowed):
            raise ValueError(f"{name} {value!r} is not one of {', '.join(get_args(allowed))}")
    if profile == "organisers":
        return organisers_verdict(text)
    output = normalise(text)
    if match := _strict_pattern(prompt, language).fullmatch(output):
        return _truth(match["verdict"])
    return _lenient(output, prompt) if profile == "lenient" else None


def _lenient(output: str, prompt: Prompt) -> bool | None:
    output = _BOX.sub(rf"{_HEAD['en']}: \1", output)
    if alone := _ALONE.fullmatch(output):
        return _truth(alone["verdict"])
    found = [_truth(match["verdict"]) for match in _STATED.finditer(output)]
    if prompt in ("answer_reason", "reason_first"):
        found = found[:1] if prompt == "answer_reason" else found[-1:]
    return found[0] if len(set(found)) == 1 else None


@cache
def _strict_pattern(prompt: Prompt, language: Language) -> re.Pattern[str]:
    """The pattern of a complete, normalised output; the one-word prompt is English for all languages."""
    words = "|".join(sorted(_STRICT_WORDS["en" if prompt == "one_word" else language].split(), key=len, reverse=True))
    script = "en" if language == "en" else "ar"
    verdict, evidence = rf"<? ?(?P<verdict>{words}) ?>?", rf"{_EVIDENCE[script]} ?: ?\S.*"
    text = {
        "one_word": rf"(?P<verdict>{words})\.?",
        "tf": rf"{_HEAD[script]} ?: ?{verdict} ?\.?",
        "answer_reason": rf"{_HEAD[script]} ?: ?{verdict} ?[.،,]? ?{evidence}",
        "reason_first": rf"{_REASONING[script]} ?: ?\S.*? ?{_HEAD[script]} ?:? ?{verdict} ?\.?",
    }[prompt]
    return re.compile(text, re.IGNORECASE | re.DOTALL)


def _truth(word: str) -> bool:
    return word.lower() in _TRUE


def organisers_verdict(text: str) -> bool | None:
    """The verdict as the organisers of ImageEval 2026, Task 1b read it: the first label word anywhere in the output.

    Code blocks and text in double quotes are deleted. An abstention before the first label word gives no verdict. Their
    quirks are kept: الخطأ ("the error") is true, since it is also a true word, and those come first; غير صحيح ("not
    true") is false only because it begins before its صحيح; any "no" is false.
    """
    plain = re.sub(r'"[^"]*"', " ", re.sub(r"```.*?```", " ", text, flags=re.DOTALL)).lower()
    true, false, abstained = (pattern.search(plain) for pattern in (_ORGANISERS_TRUE, _ORGANISERS_FALSE, _ABSTENTION))
    places = [(found.start(), verdict) for found, verdict in ((true, 0), (false, 1)) if found]
    if not places or (abstained and abstained.start() < min(places)[0]):
        return None
    return min(places)[1] == 0


_ORGANISERS_TRUE = re.compile(r"\b(?:true|yes|صح|صحيح|صحيحة|الصحيح|الخطأ)\b")
_ORGANISERS_FALSE = re.compile(r"\b(?:false|falsy|no|خطأ|الخطأ|غلط|غير صحيحة?|خاطئة?)\b")
_ABSTENTION = re.compile(
    r"\bcan(?:not|'t| not) (?:determine|tell)\b|\bnot enough information\b|\bcan(?:not|'t| not) be sure\b|\bunclear\b|"
    r"\b(?:لا يمكن الجزم|لا يمكن تحديد|لا نستطيع التأكد|لا يمكن الحكم)\b"
)


def chosen_statement(text: str) -> int | None:
    """The index (from 0) of the statement that an output of AynVQA's joint form chooses.

    The joint form shows three statements, one of them true. The prompt and the reading are ours. A model can accept
    only one statement, so CFHR is 0 by construction, and scores are not comparable with those of independent
    verdicts (overview of ImageEval 2026, arXiv 2608.30475).

    Args:
        text: The output. Arabic digits and prose around the number are allowed, but no second number from 1 to 3 ("2",
            "Statement 2.", "الجواب: ٢").

    Returns:
        0, 1 or 2; None without a number from 1 to 3, or with different ones.
    """
    found = {int(number) for number in _NUMBER.findall(unicodedata.normalize("NFKC", text))}
    return found.pop() - 1 if len(found) == 1 else None
