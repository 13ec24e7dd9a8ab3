"""Which options a generated reply names: strictly, in the form that was asked for, or leniently, as a reader would.

The rules are ours (no paper of the suites generates labels). A reply is asked to end in a line `Final answer: LABEL`
(`prompts/generated_choices`), and may reason before it.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from cultureval.runtime.invisible_marks import INVISIBLE

Profile = Literal["strict", "lenient"]
LONGEST_READ = 20_000  # characters at the end of a reply that are read
_LONGEST_STATEMENT = 500  # characters of a statement after "the answer is"

_NOISE = re.compile(f"[{INVISIBLE}\u0640\u064b-\u065f\u0670\"'`*\u2018-\u201f\u00ab\u00bb\u2039\u203a_$]+")
_LETTERS = str.maketrans("أإآٱىیةک", "ااااييهك")
_BOXED = re.compile(r"\\(?:boxed|text|mathbf|textbf)\s*\{([^{}\n]{0,200})\}")

ARABIC = "ا ب ج د ه و ز ح ط ي ك ل م ن س ع ف ص ق ر ش ت ث خ ذ ض ظ غ".split()  # abjad, in one spelling
LATIN = [chr(ord("A") + place) for place in range(26)]
_WORDS = (
    ("الف", "الاول", "الاولي", "first", "第一"),
    ("باء", "الثاني", "الثانيه", "second", "第二"),
    ("جيم", "الثالث", "الثالثه", "third", "第三"),
    ("دال", "الرابع", "الرابعه", "fourth", "第四"),
    ("هاء", "الخامس", "الخامسه", "fifth", "第五"),
    ("واو", "السادس", "السادسه", "sixth", "第六"),
)
_ASKED = r"(?:الاجابه النهائيه|final answer|最终答案)"
_RIGHT = r"(?:النهائيه?|الصحيحه?|الانسب|الافضل|المناسبه?|الادق)"
# What states an answer: "the answer", "the right option", "I choose"; an option alone may be named to reject it.
_STATES = (
    rf"(?:(?:ال)?(?:اجابه|جواب|اجابتي|جوابي)(?: {_RIGHT})*|(?:ال)?(?:خيار|اختيار|بديل|حرف|رمز)(?: {_RIGHT})+|"
    r"(?:ساختار|اختار|اخترت)|(?:the )?(?:final |correct |right |best )*answer|"
    r"(?:the )?(?:correct |right |best )+(?:option|choice|letter)|my choice|اختياري|\bi (?:choose|pick|select)|"
    r"(?:最终|正确)?答案|正确(?:的)?选项(?:应该)?|我?选择?)"
)
_LINK = r"[^\S\n]*(?:(?:هي|هو|ستكون|تكون|is|are|would be)(?!\w)|应该是|是|为|[:：=\-–>\u2192])*[^\S\n]*"
_LINKS = rf"(?:{_LINK}){{1,3}}"
_NAMED = (
    r"(?:(?:ال)?(?:خيار|اختيار|حرف|رمز|رقم|بديل)|(?:the )?(?:option|choice|letter|number)|选项)"
    r"[^\S\n]*(?:رقم[^\S\n]*)?[:：]?[^\S\n]*"
)
_OPEN, _CLOSE = r"[(\[{<（【]?[^\S\n]?", r"[^\S\n]?[)\]}>）】]?"
_NOT_BEFORE = re.compile(r"(?:ليست?|ليس|غير|مش|مو|لا|not|isnt|不是|并非|非)[^\S\n]*(?:the[^\S\n]*)?$", re.IGNORECASE)
_NOT_AFTER = re.compile(
    r"[^\w\n]?[?؟][^\S\n]*(?:لا|no|不)(?!\w)|[^\w\n]{0,4}(?:(?:هي|هو|is|are)[^\S\n]+)?"
    r"(?:خاطئه?|خطا|غير|ليست?|مستبعده?|wrong|incorrect|not|isnt|cannot|cant|false|错|不)",
    re.IGNORECASE,
)
# The article A and the pronoun I before a word that would not follow a label.
_NO_LETTER = re.compile(
    r"[AI] (?!(?:because|since|as|is|and|or|for|with|which|due|not|by|according|based|but|given that)\b)"
    r"(?!(?<=A )(?:in this case|rather than|instead of|given (?:the|this))\b)[a-z]"
)
# "C, not B" states C; what follows may be denied in turn.
_INSTEAD = re.compile(
    r"[^\S\n]?[)\]}>）】]?[^\S\n]?[,،;؛(][^\S\n]*(?:and |و[^\S\n]?)?(?:not|ليست?|不是|并非)[^\S\n]*"
    r"(?:(?:the )?(?:option|choice)|الخيار)?[^\S\n]*[(\[]?(?P<other>\w{1,3})(?!\w)",
    re.IGNORECASE,
)
_AND = re.compile(
    r"[^\S\n]{0,3}[)\]}>）】]?[^\S\n]{0,3}(?:[،,/&+、]|\b(?:او|ام|و|and|or)\b|和|或|(?<=\s)و(?=\w))[^\S\n]{0,3}"
    r"(?:(?:و|او|and|or)[^\S\n]+)?",
    re.IGNORECASE,
)
_OPTION = r"(?:(?:ال)?(?:خيار|اختيار|بديل)|(?:the )?(?:option|choice)|选项)[^\S\n]*(?:رقم )?"
_CALLED_RIGHT = (
    r"(?:(?:هو|هي) (?:(?:ال)?(?:خيار|جواب|اجابه|اختيار) )?(?:الصحيحه?|الانسب|الافضل|الادق|الجواب|الاجابه)|"
    r"is (?:the )?(?:correct|right|best)(?: (?:answer|option|choice))?|(?:是|为)?正确的?)(?![\w-])"
)
# The sentence around "option B is correct", from its last conclusion to its reason; some words make it no statement.
_BEGIN = re.compile(r"[.\n؛;!。]|\b(?:so|therefore|thus|hence|لذا|لذلك|اذن|بالتالي)\b|所以|因此", re.IGNORECASE)
_END = re.compile(r"[.\n؛;!。]|\b(?:because|since|لانه?ا?|حيث)\b|因为", re.IGNORECASE)
_UNSAID = re.compile(
    r"[?؟]|\b(?:if|whether|unless|why|n?or|n?either|not|(?:do|does|did|is|ca|wo)nt|no|doubt|but|except|false|wrong|incorrect|"
    r"هل|اذا|لو|ان كان|او|ام|ليست?|لا|لم|لكن|الا|خاطئه?|خطا)\b|如果|或|不|但|错|吗",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"[\s،,;؛/&+()\[\]{}<>.:\-–、（）【】]+")
_COMMAS = re.compile("[،,、;؛]")
_JOINERS = frozenset(("and", "&", "و", "和", "或"))
_END_OF_LIST = re.compile(
    r"(?<!\w)(?:لان|لانه|لانها|حيث|because|since|因为)(?!\w)|[؛;]|\.[^\S\n]+(?=\w\w)", re.IGNORECASE
)


def normalise(text: str) -> str:
    """A reply in one spelling: NFKC, digits in ASCII, one form of each Arabic letter, single spaces; lines are kept.

    Without diacritics, tatweel, quotation marks, and marks of Markdown and of direction.
    """
    text, boxes = _BOXED.subn(r" \1 ", text[-LONGEST_READ:])
    while boxes:  # one within another, from the inside: \boxed{\text{B}}
        text, boxes = _BOXED.subn(r" \1 ", text)
    plain = _NOISE.sub("", unicodedata.normalize("NFKC", text)[-2 * LONGEST_READ :]).translate(_LETTERS)
    plain = "".join(_digit(letter) for letter in plain) if not plain.isascii() else plain
    lines = (" ".join(line.split()) for line in plain.splitlines())
    return "\n".join(line for line in lines if line)


def _digit(letter: str) -> str:
    value = None if letter.isascii() else unicodedata.digit(letter, None)
    return letter if value is None else str(value)


def parse_labels(
    reply: str,
    labels: Sequence[str],
    options: Sequence[str] = (),
    profile: Profile = "strict",
    several: bool = False,
) -> tuple[int, ...] | None:
    """The options that a reply names.

    Args:
        reply: The text without reasoning; of more than `LONGEST_READ` characters the last ones are read.
        labels: The labels that the prompt shows, one an option.
        options: The options' texts, which the lenient profile also reads.
        profile: "strict": the last line is `Final answer: LABEL` (or الإجابة النهائية, 最终答案), or the whole reply is
            one label; no line names another label in that form. "lenient": the last statement of an answer
            ("the answer is", الجواب, I choose) anywhere, else a first or last line that is a label or an option, or
            "option B is correct" (الخيار ب هو الصحيح) anywhere, else the one label in brackets in the last line. Labels
            may be those shown, Arabic or Latin letters, digits, ordinals or names of letters, with the option's text
            or that text alone. A statement with two labels, with the text of another option, or that can be read in
            two ways, is none; one that is denied is passed over.
        several: Whether several may be right; the answer is then all that are named.

    Returns:
        Positions from 0, ascending; None where the reply names none, or (unless `several`) more than one.

    Raises:
        ValueError: An unknown profile.
    """
    if profile not in ("strict", "lenient"):
        raise ValueError(f"profile {profile!r} is not strict or lenient")
    text, names = normalise(reply), _names(tuple(labels), tuple(options))
    if not text:
        return None
    return _strict(text, names, several) if profile == "strict" else _lenient(text, names, several)


class _Names:
    """How the options of one question can be named.

    Attributes:
        own: Normalised label -> position.
        readings: Any other spelling of a label, in lower case -> the positions that it can mean.
        texts: Normalised text of an option, in lower case -> position; without texts that several share.
    """

    def __init__(self, labels: Sequence[str], options: Sequence[str]) -> None:
        plain = [normalise(label) for label in labels]
        self.own = {label: place for place, label in enumerate(plain)}
        texts = [normalise(option).lower().strip(" .،,") for option in options]
        self.texts = {text: place for place, text in enumerate(texts) if text and texts.count(text) == 1}
        self.readings: dict[str, set[int]] = {}
        for place in range(len(plain)):
            words = _WORDS[place] if place < len(_WORDS) else ()
            for name in (*(row[place] for row in (ARABIC, LATIN) if place < len(row)), str(place + 1), *words):
                self.readings.setdefault(name.lower(), set()).add(place)
        for text, place in self.texts.items():
            if text in self.readings:
                self.readings[text].add(place)
        spelled = sorted({*self.own, *self.readings}, key=len, reverse=True)
        self.any = "|".join(map(re.escape, spelled))
        self.mine = "|".join(map(re.escape, sorted(self.own, key=len, reverse=True)))
        self.label = re.compile(rf"(?:{self.any})(?!\w|[.,]\d)", re.IGNORECASE)
        self.statement = re.compile(rf"(?<!\w){_STATES}{_LINKS}(?P<named>{_NAMED})?{_OPEN}", re.IGNORECASE)
        self.called_right = re.compile(
            rf"(?:(?<!\w){_OPTION}|^(?!و )){_OPEN}(?P<label>{self.any})(?![^\W是为正]){_CLOSE}[^\S\n]?"
            rf"(?:\((?P<text>[^()\n]{{1,200}})\)[^\S\n]?)?{_CALLED_RIGHT}",
            re.IGNORECASE | re.MULTILINE,
        )
        self.asked = re.compile(rf"(?<!\w){_ASKED} ?[:：]? ?{_OPEN}(?P<label>{self.mine})(?!\w){_CLOSE}", re.IGNORECASE)

    def places(self, label: str) -> set[int]:
        """The positions that a spelling can mean; one that the prompt shows means only itself."""
        if label in self.own:
            return {self.own[label]}
        cased = [place for own, place in self.own.items() if own.lower() == label.lower()]
        return set(cased) if len(cased) == 1 else self.readings.get(label.lower(), set())


@lru_cache(maxsize=4096)
def _names(labels: tuple[str, ...], options: tuple[str, ...]) -> _Names:
    return _Names(labels, options)


def _one(places: set[int]) -> tuple[int, ...] | None:
    return tuple(places) if len(places) == 1 else None


def _strict(text: str, names: _Names, several: bool) -> tuple[int, ...] | None:
    lines = text.split("\n")
    asked = re.compile(rf"{_ASKED} ?[:：]? ?(?P<rest>.*)", re.IGNORECASE)
    found = asked.fullmatch(lines[-1])
    if not found and len(lines) > 1:
        return None
    rest = (found["rest"] if found else lines[-1]).strip()
    if several:
        parts = [part.strip(" ()[]<>") for part in re.split(r"[،,、]", rest.rstrip(" ."))]
        places = {names.own.get(part) for part in parts}
        return None if None in places else tuple(sorted(place for place in places if place is not None))
    label = re.fullmatch(rf"{_OPEN}(?P<label>{names.mine}){_CLOSE} ?[.。]?", rest)
    if not label:
        return None
    stated = {names.own[one["label"]] for one in names.asked.finditer(text) if one["label"] in names.own}
    return _one(stated | {names.own[label["label"]]})


def _lenient(text: str, names: _Names, several: bool) -> tuple[int, ...] | None:
    read = _listed if several else _named
    for match in reversed([*names.statement.finditer(text)]):
        if _NOT_BEFORE.search(text[max(0, match.start() - 20) : match.start()].rpartition("\n")[2]):
            continue
        line = text[match.end() : match.end() + _LONGEST_STATEMENT].lstrip("\n").partition("\n")[0]
        found = read(line, names, named=bool(match["named"]))
        if found is not False:
            return found
    lines = text.split("\n")
    alone = {found for line in (lines[0], lines[-1]) if (found := _alone(line, names, several))}
    if not several:
        alone |= {(place,) for place in _called_right(text, names)}
    if alone:
        return alone.pop() if len(alone) == 1 else None
    brackets = {
        place
        for one in re.finditer(rf"[(\[]({names.any})[)\]]", lines[-1], re.IGNORECASE)
        for place in names.places(one[1])
    }
    return None if several else _one(brackets)


def _called_right(text: str, names: _Names) -> set[int]:
    """The options that sentences such as "option B is correct" name, without those that ask, suppose or deny it."""
    places: set[int] = set()
    for match in names.called_right.finditer(text):
        begin, end = max(0, match.start() - _LONGEST_STATEMENT), match.end() + _LONGEST_STATEMENT
        before, after = (
            _BEGIN.split(text[begin : match.start()])[-1],
            _END.split(text[match.end() : end], maxsplit=1)[0],
        )
        if not _UNSAID.search(before) and not _UNSAID.search(after):
            followed = names.texts.get((match["text"] or "").lower().strip(" .،,"))
            places |= names.places(match["label"]) | ({followed} if followed is not None else set())
    return places


def _alone(line: str, names: _Names, several: bool) -> tuple[int, ...] | None:
    """The options of a line that is labels or the text of an option, and nothing else."""
    if several:
        found = _listed(line, names)
        return found or None
    named = re.match(_NAMED, line, re.IGNORECASE)
    rest = line[named.end() :] if named else line
    bare = rest.strip(" ()[]{}<>.،,:-–（）【】")
    text = names.texts.get(bare.lower())
    label = names.places(bare)
    if bare in names.own:
        return _one(label)
    if label or text is not None:
        return _one(label | ({text} if text is not None else set()))
    match = re.match(rf"{_OPEN}(?P<label>{names.any})[^\S\n]?[)\].:\-–）】]+[^\S\n]?(?P<text>.+)", rest, re.IGNORECASE)
    if not match:
        return None
    followed = names.texts.get(match["text"].lower().strip(" .،,"))
    return (
        _one(names.places(match["label"]))
        if followed is not None and {followed} == names.places(match["label"])
        else None
    )


def _named(line: str, names: _Names, named: bool = False) -> tuple[int, ...] | None | Literal[False]:
    """The option that a statement names at its begin; None if it is unclear, False if it states none."""
    line = line.lstrip(" ([{<（【")
    whole = line.rstrip(" .،,)]}>。!").lower()
    match = names.label.match(line)
    if not match or not _is_label(line, match, names, named):
        text = names.texts.get(whole)
        return False if text is None else (text,)
    if whole in names.texts and match.group() not in names.own:
        return _one({names.texts[whole]} | (names.places(match.group()) if whole == match.group().lower() else set()))
    if _NOT_AFTER.match(line, match.end()) and not _denies_another(line, match, names):
        return False
    places = names.places(match.group())
    after = line[match.end() :]
    joined = _AND.match(after)
    second = names.label.match(after, joined.end()) if joined else None
    if second and _is_label(after, second, names, named=False):
        places = places | names.places(second.group())
    followed = names.texts.get(after.strip(" .،,:-–)]}>（）。!").lower())
    return _one(places | ({followed} if followed is not None else set()))


def _denies_another(line: str, match: re.Match[str], names: _Names) -> bool:
    """Whether what is denied after a label is another label."""
    found = _INSTEAD.match(line, match.end())
    return bool(found and (other := names.places(found["other"])) and not other & names.places(match.group()))


def _is_label(line: str, match: re.Match[str], names: _Names, named: bool) -> bool:
    """Whether what stands there is a label: no article `a` or `A`, pronoun, nor number of something."""
    if not named and _NO_LETTER.match(line, match.start()):
        return False
    label, ends = match.group(), re.match(r"\s*(?:$|[^\w\s])", line[match.end() :]) is not None
    if label in names.own and not (label.isascii() and label.isdigit()):
        return True
    return named or ends or not label.isascii() or (label.isalpha() and label.isupper())


def _listed(line: str, names: _Names, named: bool = False) -> tuple[int, ...] | None | Literal[False]:
    """The options of a list of labels; None if something else is among them, False if it begins with none."""
    line = _END_OF_LIST.split(line, maxsplit=1)[0][:_LONGEST_STATEMENT]
    lowered = line.lower()
    for text in sorted(names.texts, key=len, reverse=True):
        if len(text) > 1:
            lowered = lowered.replace(text, " ")
    parts = [[word for word in _BETWEEN.split(part) if word] for part in _COMMAS.split(lowered)]
    # و is a label where it stands alone between commas or at the end, else the word and.
    words = [
        word for part in parts for number, word in enumerate(part, 1) if word not in _JOINERS or number == len(part)
    ]
    places: set[int] = set()
    for word in words:
        found = names.places(word) or (names.places(word[1:]) if word.startswith("و") else set())
        if len(found) != 1:
            return None if places else False
        places |= found
    return tuple(sorted(places)) or False
