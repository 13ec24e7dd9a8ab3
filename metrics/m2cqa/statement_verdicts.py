"""Verdicts in the outputs of M2CQA's and AynVQA's prompts: true, false, or unreadable.

Paper: arXiv 2602.05437, appendix A.5: "any output that does not match the required format is treated as incorrect".
Verified: the rule, the required formats (Table 8); the reading of the organisers of ImageEval 2026, Task 1b (profile
`organisers`, from the description of their scorer). Inferred: the verdict words of the dialects (Table 8's gold
answers), that a colon and a full stop are allowed (Table 9). Our own: the grammar, the normalisation, the profiles
`tolerant` and `lenient`. Every pattern is anchored, and adjacent parts never match the same whitespace, so that an
output of a megabyte takes milliseconds.
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
_NUMBER = re.compile(r"(?<![\w.])([1-3])(?!\w|\.\d)")  # of a statement, in the joint form


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
_STRICT_WORDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "en": (("true",), ("false",)),
    "msa": (("صحيح",), ("خطأ",)),
    "ajp": (("صحيح", "صح"), ("خطأ", "غلط")),
    "arz": (("صحيح", "صح"), ("خطأ", "غلط")),
}
_TOLERANT_ARABIC = (
    ("true", "صحيح", "صحيحة", "صح"),
    ("false", "خطأ", "خاطئ", "خاطئة", "غلط", "غير صحيح", "غير صحيحة"),
)
_TRUE = frozenset(normalise(word) for word in ("true", *_TOLERANT_ARABIC[0]))
_ANY = "|".join(sorted((normalise(word) for group in _TOLERANT_ARABIC for word in group), key=len, reverse=True))
# Words by which an output takes its verdict back, after it in the same sentence.
_DOUBTS = (
    r"\b(?:not (?:entirely |fully |quite |completely )?(?:sure|certain|true|false)|un(?:sure|certain)|maybe|perhaps|"
    r"possibly|part(?:ly|ially)|(?:could|might|may) be|can(?:not| ?t| not) (?:tell|say|determine)|half|somewhat)\b|"
)
_DOUBTS += "|".join(
    rf"\b{normalise(text)}\b"
    for text in (
        "جزئيا",
        "جزئيًا",
        "جزئي",
        "جزئية",
        "ربما",
        "لست متأكدا",
        "غير متأكد",
        "مش متأكد",
        "غير مؤكد",
        "نوعا ما",
    )
    + ("إلى حد ما", "أحيانا", "ليس تماما", "نصف", "بعضه", "لا يمكن الجزم", "لا يمكن التأكد")
)
_DOUBT = re.compile(_DOUBTS, re.IGNORECASE)
_SENTENCE = re.compile(
    r"(?:(?!\b(?:because|since|evidence|الدليل|لان|لانه|لانها|بسبب|حيث)\b)[^.!?؟؛;:]){0,200}", re.IGNORECASE
)
_REASON = r"because|since|الدليل|لان\w*|بسبب|حيث"
# A verdict that an output states: alone, at the end of its clause, or before a reason.
_STATEMENT = re.compile(
    rf"\b(?:و|او|ام)?({_ANY})\b(?= ?(?:$|[,،:()–—-]|(?:{_REASON}|that|ان)\b))",
    re.IGNORECASE,
)
_NO_STATEMENT = re.compile(
    rf"\b(?:{_REASON}|evidence|if|whether|اذا)\b"
    r"|\b(?:not|never|neither|nor|(?:is|was|are|does|do|did|would)n ?t|ليس|ليست|مش|مو|ما|لا) (?:\w+ ){0,3}$",
    re.IGNORECASE,
)
# Words by which an output takes an earlier verdict back.
_CORRECTION = re.compile(
    r"\b(?:actually|in fact|in reality|scratch that|strike that|nope|sorry|oops|or rather|on second thoughts?|i mean|"
    r"i meant|i was wrong|my mistake|never ?mind|let me correct|changed my mind|"
    r"(?:wait|no|correction|edit)(?= ?(?:[,:—–-]|$))|"
    + "|".join(
        normalise(text)
        for text in ("في الواقع", "في الحقيقة", "بل", "عفوا", "عذرا", "آسف", "تصحيح", "انتظر", "أقصد")
        + ("أعني", "بالأحرى", "أخطأت", "غيرت رأيي", "أتراجع", "لا(?= ?[،,:.])", "لا$")
    )
    + r")(?:\b|$)",
    re.IGNORECASE,
)
# Sentences by which an output takes a verdict back without another: of either verdict, of true, of false.
_OPENING = r"(?:(?:no|wait|hmm|sorry|correction|actually|in fact|on reflection|but|لا|بل|عفوا|في الواقع) ?[,،:–—-]? ?)"
_SUBJECT = r"(?:that|this|it|(?:the|this|my) (?:statement|claim|sentence|answer)|هذا|هذه|ذلك|العباره|الجمله|الجواب)"
_WRONG = r"(?:wrong|incorrect|inaccurate|untrue|not (?:true|correct|right|accurate))"
_WITHDRAWAL = (
    r"\bi (?:take (?:that|it) back|was wrong|disagree|doubt (?:it|that)|retract|withdraw)\b|\bjust kidding\b"
    r"|^ ?(?:wait|hmm|sorry) ?[,:–—-]? ?(?:that|this|my answer)(?: i|)s (?:wrong|incorrect|not right|not correct)$"
    rf"|^ ?(?:لقد )?(?:{'|'.join(map(normalise, ('أتراجع', 'أخطأت', 'غيرت رأيي')))})"
)
_DENIALS = {
    True: re.compile(
        rf"{_WITHDRAWAL}|^ ?{_OPENING}*{_SUBJECT}"
        rf"(?:(?: i| ?)s (?:{_WRONG}|not)| ?isn ?t(?: (?:true|correct|right|accurate))?"
        rf"| (?:ليس|ليست|مش|مو) (?:صحيح|دقيق)\w*)$|^ ?(?:no|nope|لا)$",
        re.IGNORECASE,
    ),
    False: re.compile(
        rf"{_WITHDRAWAL}|^ ?{_OPENING}*{_SUBJECT}(?: i| ?)s (?:correct|right|accurate)$|^ ?(?:yes|نعم)$", re.IGNORECASE
    ),
}
_CONDITION = re.compile(r" ?[,،]? ?(?:but )?(?:only )?(?:if|unless|provided|assuming|اذا|لو|بشرط)\b", re.IGNORECASE)
# How a verdict is set off, besides the phrase that the prompts ask for.
_BOX = re.compile(r"\$?\\boxed ?\{ ?(?:\\(?:text|textbf|mathrm|mathbf) ?\{ ?)?([^{}\\]{1,30})\}{1,2}\$?")
_BRACKETS = re.compile(rf"[<(\[{{] ?({_ANY}) ?[>)\]}}]", re.IGNORECASE)
_SIGNS = {True: "👍🟢", False: "❌✖✗✘👎🔴"}
_TICKS = "✅✔☑"  # of either verdict


def parse_verdict(text: str, prompt: Prompt, language: Language, profile: Profile = "strict") -> bool | None:
    """The verdict in an output.

    Args:
        text: The output, of any length.
        prompt: The prompt that asked for it: "tf" (True or False), "answer_reason" (Answer then Reason),
            "reason_first" (Reasoning First), or "one_word" (AynVQA's: "only one word: True or False").
        language: Of the statement: "en", "msa", "ajp" (Levantine) or "arz" (Egyptian).
        profile: "strict", the paper's rule: the complete output has the required format. "tolerant" also accepts an
            output that is a verdict and nothing more, more inflections of the Arabic verdict words, English ones
            after the Arabic phrase, any text before the phrase of reason_first, and an answer_reason without its
            evidence or without the label of the evidence. "lenient" also accepts the phrase with a verdict anywhere:
            where the prompt's format has it if there are several (the first of answer_reason, the last of
            reason_first; those of tf must agree), in brackets, in a LaTeX box or with a sign such as a tick, and the
            shorter "Final answer: True", unless the output doubts it ("partly") or states the other one too; where it
            clearly corrects itself ("True. Actually, False."), the last verdict counts; where it takes its verdict back
            or makes it conditional ("True. Wait, that is wrong.", "True if ..."), none does.
            "organisers": as ImageEval 2026 reads submissions (`organisers_verdict`).

    Returns:
        True, False, or None without a readable verdict.

    Raises:
        ValueError: An unknown prompt, language or profile.
    """
    for name, value, known in (
        ("prompt", prompt, Prompt),
        ("language", language, Language),
        ("profile", profile, Profile),
    ):
        if value not in get_args(known):
            raise ValueError(f"{name} {value!r} is not one of {', '.join(get_args(known))}")
    if profile == "organisers":
        return organisers_verdict(text)
    output = normalise(text)
    match = _pattern(prompt, language, "strict").fullmatch(output)
    if match is None and profile != "strict":
        match = _alone(language).fullmatch(output) or _pattern(prompt, language, "tolerant").fullmatch(output)
        if match and match.groupdict().get("unlabelled") and _last_statement(output, match) != _truth(match["verdict"]):
            match = None  # what follows is no evidence, but another verdict
    if match is not None:
        return _truth(match["verdict"])
    return _lenient(output, prompt, language) if profile == "lenient" else None


def _lenient(output: str, prompt: Prompt, language: Language) -> bool | None:
    """The verdict that is stated where the prompt's format has it; None if it is doubted, contradicted or absent."""
    output = _undressed(output, language)
    if match := _alone(language).fullmatch(output):
        return _truth(match["verdict"])
    found = [*_anywhere(language).finditer(output)]
    return _stated(output, found[-1 if prompt == "reason_first" else 0]) if found else None


def _undressed(output: str, language: Language) -> str:
    """An output whose verdicts stand without brackets and signs that say the same, those in boxes after the phrase."""
    phrase = f"{_HEAD['en' if language == 'en' else 'ar']}: "
    output = _BRACKETS.sub(r"\1", _BOX.sub(rf"{phrase}\1", output))
    for meant, signs in _SIGNS.items():
        output = re.sub(
            rf"\b({_ANY})(?: ?[.!])? ?[{signs}{_TICKS}]\ufe0f?",
            lambda match, meant=meant: match[1] if _truth(match[1]) is meant else match[0],
            output,
            flags=re.IGNORECASE,
        )
    return output


def _stated(output: str, match: re.Match[str]) -> bool | None:
    """The verdict of a phrase as `_last_statement` has it; None if its own sentence doubts it."""
    verdict, end = _truth(match["verdict"]), match.end("verdict")
    own = _SENTENCE.match(output, end)
    contrary = any(sign in output[end : own.end() + 3] for sign in _SIGNS[not verdict])
    return None if contrary or _DOUBT.search(own.group()) else _last_statement(output, match)


def _last_statement(output: str, match: re.Match[str]) -> bool | None:
    """The verdict of a phrase, or the last one after it that clearly corrects it.

    Returns:
        None if another verdict is stated after it without words of correction before that, or if it is conditional or
        taken back.
    """
    verdict, end = _truth(match["verdict"]), match.end("verdict")
    if _CONDITION.match(output, end):
        return None
    own, before, denied = _SENTENCE.match(output, end).end(), "", False
    for sentence in re.finditer(r"[^.!?؟؛;]+", output[end:]):
        states = None
        for one in _STATEMENT.finditer(sentence.group()):
            lead = sentence.group()[max(0, one.start() - 200) : one.start()]
            if end + sentence.start() + one.end() <= own or not _NO_STATEMENT.search(lead):
                states = _truth(one[1])
            if states not in (None, verdict):
                if not (_CORRECTION.search(before.strip()) or _CORRECTION.search(lead)):
                    return None
                verdict = states
        denied = states is None and (denied or bool(_DENIALS[verdict].search(sentence.group().strip()[-200:])))
        before = "" if states is not None else sentence.group()[-200:]
    return None if denied else verdict


def organisers_verdict(text: str) -> bool | None:
    """The verdict as the organisers of ImageEval 2026, Task 1b read it: the first label word anywhere in the output.

    Code blocks and text in double quotes are deleted. An abstention before the first label word gives none. With
    their quirks: الخطأ ("the error") is true, since it also stands among the true words, which are tried first; غير
    صحيح ("not true") is false only because it begins before its صحيح; and any "no" is false.
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


@cache
def _alone(language: Language) -> re.Pattern[str]:
    """A verdict and nothing more, but for brackets and a mark after it."""
    return re.compile(rf"[<(\[]? ?(?P<verdict>{_words(language, 'tolerant')}) ?[>)\]]? ?[.!،,]?", re.IGNORECASE)


@cache
def _anywhere(language: Language) -> re.Pattern[str]:
    """A phrase and its verdict; a choice of both, as the prompt has it ("true/false", "true or false"), is none."""
    verdict = rf"<? ?(?P<verdict>{_words(language, 'tolerant')})(?!\w| ?(?:/|or\b|ام\b|او\b))"
    shorter = r"final answer" if language == "en" else f"{normalise('الإجابة النهائية')}|{normalise('الجواب النهائي')}"
    choice = r"(?<!\bor )(?<!\bاو )(?<!\bام )"
    return re.compile(rf"{choice}(?:{_phrase(language)} ?:?|\b(?:{shorter}) ?[:=]) ?{verdict}", re.IGNORECASE)


@cache
def _pattern(prompt: Prompt, language: Language, profile: Profile) -> re.Pattern[str]:
    if prompt == "one_word":  # which is English for all languages
        words = "true|false" if profile == "strict" else _words(language, profile)
        return re.compile(rf"(?P<verdict>{words})\.?", re.IGNORECASE)
    script = "en" if language == "en" else "ar"
    verdict = rf"<? ?(?P<verdict>{_words(language, profile)}) ?>?"
    phrase, evidence = _phrase(language), rf"{_EVIDENCE[script]} ?: ?\S.*"
    text = {
        "tf": rf"{phrase} ?: ?{verdict} ?\.?",
        "answer_reason": rf"{phrase} ?: ?{verdict} ?[.،,]? ?{evidence}",
        "reason_first": rf"{_REASONING[script]} ?: ?\S.*? ?{phrase} ?:? ?{verdict} ?\.?",
    }[prompt]
    if profile == "tolerant" and prompt == "answer_reason":
        # Without its label, evidence must not state another verdict (`parse_verdict`) nor repeat the phrase.
        unlabelled = rf"[.،,] ?(?!.*{phrase})(?P<unlabelled>\S.*)"
        text = rf"{phrase} ?: ?{verdict} ?(?:[.،,]?|[.،,]? ?{evidence}|{unlabelled})"
    if profile == "tolerant" and prompt == "reason_first":
        text = rf"(?:.*?\W)?{phrase} ?:? ?{verdict} ?\.?"
    return re.compile(text, re.IGNORECASE | re.DOTALL)


def _phrase(language: Language) -> str:
    return _HEAD["en" if language == "en" else "ar"]


def _words(language: Language, profile: Profile) -> str:
    """The verdict words as alternatives, longer ones first."""
    words = _STRICT_WORDS[language] if profile == "strict" or language == "en" else _TOLERANT_ARABIC
    return "|".join(sorted((normalise(word) for group in words for word in group), key=len, reverse=True))


def _truth(word: str) -> bool:
    return word.lower() in _TRUE


def chosen_statement(text: str) -> int | None:
    """The place of the statement that an output of AynVQA's joint form chooses, from 0.

    There the image supports one of three statements, shown together. The prompt and the reading are ours. A model that
    knows that one is true cannot accept a false one beside it: CFHR is 0 by construction, and these scores are not
    comparable with those of independent verdicts (overview of ImageEval 2026, arXiv 2608.30475).

    Args:
        text: The output. Digits of any script count; prose around the number does too, as long as no second one of
            the three numbers is in it ("2", "Statement 2.", "الجواب: ٢").

    Returns:
        0, 1 or 2; None without a number from 1 to 3, or with different ones.
    """
    plain = "".join(_digit(letter) for letter in unicodedata.normalize("NFKC", text))
    found = {int(number) for number in _NUMBER.findall(plain)}
    return found.pop() - 1 if len(found) == 1 else None


def _digit(letter: str) -> str:
    value = unicodedata.digit(letter, None)
    return letter if value is None else str(value)
