"""Options that a generated reply names: strictly in the requested form, or leniently in common words.

The rules are ours (no paper of the suites generates labels). The prompt asks for a last line `Final answer: LABEL`
(`prompts/generated_choices`); reasoning may come before it.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

from cultureval.runtime.zero_width import INVISIBLE

Profile = Literal["strict", "lenient"]
Answer = tuple[int, ...] | None
LONGEST_READ = 20_000  # characters at the end of a reply that are read
_LONGEST_SENTENCE = 300

_NOISE = re.compile(f"[{INVISIBLE}\u0640\u064b-\u065f\u0670\"'`*\u2018-\u201f\u00ab\u00bb\u2039\u203a_$]+")
_LETTERS = str.maketrans("أإآٱىیةک", "ااااييهك")
_MARKUP = re.compile(
    r"\\[()\[\]]|</?(?:answer|strong|b|em|i|p|br)\s*/?>|```\w*|[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f]",
    re.IGNORECASE,
)
_LINE_MARK = re.compile(r"^(?:[#>]+[^\S\n]*|[-+•·–][^\S\n]+)+", re.MULTILINE)  # of headings, quotations and lists
_BOX = re.compile(r"\\(boxed|fbox|mbox|text[a-z]*|math[a-z]+)\s*\{([^{}\n]{0,200})\}")
_OPEN, _CLOSE = r"[(\[{<（【]?[^\S\n]?", r"[^\S\n]?[)\]}>）】]?"
ARABIC = "ا ب ج د ه و ز ح ط ي ك ل م ن س ع ف ص ق ر ش ت ث خ ذ ض ظ غ".split()  # abjad, in one spelling
LATIN = [chr(ord("A") + place) for place in range(26)]

# The patterns of both profiles, for normalised text: the requested words; a statement before a label; links of labels.
_ASKED = r"(?:الاجابه النهائيه|final answer|最终答案)"
_RIGHT = r"(?: (?:النهائيه?|الصحيح(?:ه|تان|تين)?|الصح|الصواب|الوحيده?|الانسب|الافضل|المناسبه?|الادق|للسؤال)){0,2}"
_STATES = (
    r"(?:final |correct |right |best ){0,3}answers?|(?:correct |right |best ){1,3}(?:options?|choices?|letters?)|"
    r"my choice|i(?:d|ll| would| will)? (?:choose|pick|select|say|go with)|(?:choice|option)(?= ?:)|"
    rf"[فو]?(?:ال)?(?:اجابه|جواب|اجابتي|جوابي|اجابات|اجابتان|اجابتين|اجوبه){_RIGHT}|"
    rf"[فو]?(?:ال)?(?:خيار|اختيار|بديل|حرف|رمز|خيارات|اختيارات)(?=(?: \w+)? (?:ال|هي|هو)|:){_RIGHT}|"
    r"[فو]?(?:الحل|الصحيح|الصح|الصواب)|اختياري|(?:سا|[هحبن])?ا?ختار|اخترت|(?:最终|正确)?答案|正确的?选项|我?选择?"
)
_LINKS = (
    r"(?:[^\S\n]?(?:(?:is|are|(?:would|must|should) be|هي|هو|هما|هم|[تي]كون|يجب ان [تي]كون)(?!\w)|应该是|是|为|"
    r"[:：=\-–—>\u2192])){0,3}\s{0,3}(?:(?:the )?(?:option|choice|letter)|(?:ال)?(?:خيار|حرف|رقم)|选项)?[:：]?[^\S\n]?"
)
_STATEMENT = re.compile(rf"(?i)(?<!\w)(?:(?:{_STATES}){_LINKS})")
_AND = re.compile(r"[^\S\n]?(?:[،,]\n?|[/&+、;؛\n]|(?:و|and)(?!\w)|和|و(?=\w))[^\S\n]?(?:(?:و|and) |و(?=\w))?", re.I)
# Words before a statement in its sentence that deny, ask, suppose or report it; words right after its label that deny
# it. A second label in a statement's line makes it unclear, unless a denial or a reason comes before that label.
_UNCERTAIN = re.compile(
    r"(?i)(?<!\w)(?:not|never|\w+nt|n?either|nor|nobody|if|whether|unless|assum\w+|suppose|least|second|worst|wrong|incorrect|"
    r"false|rule|hard|might|may|could|maybe|perhaps|possibly|people|many|most|some|others|students?|friend|first|"
    r"initially|says?|said|told|claims?|suggests?|argues?|key|misconception|example|form(?:at)?|هل|لو|اذا|ان كانت?|"
    r"ليست?|لست|لا|لم|لن|ما|مش|مو|غير|ماشي|ربما|قد|ممكن|يمكن|لعل|[اني]ف?ترض|لنفترض|نفرض|بعض\w*|البعض|كثير\w*|الكثير\w*|"
    r"الناس|الطلاب|يقول|يقولون|تقول|قال|يظن|يظنون|يعتقد|اقل|ابعد|خاطئه?|الخاطئه?|خطا|الخطا|الاولي|مثال|مثلا|صيغه|الصيغه)"
    r"(?!\w)|不|非|如果|是否|可能|认为|有人",
)
_DENIED = re.compile(
    r"(?i)[^\w\n]{0,3}[?؟]|[^\w\n]{0,4}(?:(?:is|are|هي|هو) )?ف?(?:not (?:correct|right|true)|wrong|incorrect|خاطئه?|"
    r"خطا|غلط|غير|مستبعده?|if\b|unless|اذا|لو|في حاله|etc|الخ|不正确|不对|错|如果)|[^\S\n]?(?:…|\.\.)",
)
_ASIDE = re.compile(
    r"(?<!\w)(?:not|rather than|instead of|و?ليست?|مش|مو|because|since|لان\w*|حيث)(?!\w)|不是|并非|因为|\n", re.I
)
_END = re.compile(rf"{_ASIDE.pattern}|[.؛;!](?!\w)|。", re.I)
_SENTENCE_END = re.compile(r"[.!?؟。\n؛;]|(?<!\w)(?:but|so|بل|لكن|اذن|لذا|لذلك)(?!\w)|但|所以")
# A line that begins another question; models without a stop string invent questions.
_NEXT_QUESTION = re.compile(
    r"(?i)\n(?:(?:السؤال|سؤال|question|q|human|user|المستخدم|问题|题目)(?![^\W\d_])[^\n:：]{0,30}[:：]|<\|?(?:im_start|user|endoftext))",
)


def normalise(text: str, boxed: str = "") -> str:
    """A reply in one spelling: NFKC, ASCII digits, one form of each Arabic letter, single spaces; lines are kept.

    Diacritics, tatweel, quotation marks, Markdown and direction marks are deleted.

    Args:
        boxed: Text that replaces the name of a LaTeX box.
    """
    text, boxes = _MARKUP.sub(" ", text[-LONGEST_READ:]), 1
    while boxes:  # one within another, from the inside: \boxed{\text{B}}
        text, boxes = _BOX.subn(lambda box: f" {boxed if box[1] == 'boxed' else ''}{box[2]} ", text)
    plain = _NOISE.sub("", unicodedata.normalize("NFKC", text)[-2 * LONGEST_READ :]).translate(_LETTERS)
    plain = "".join(str(unicodedata.digit(letter, letter)) for letter in plain) if not plain.isascii() else plain
    lines = (" ".join(line.split()) for line in plain.splitlines())
    return _LINE_MARK.sub("", "\n".join(line for line in lines if line.strip("-="))).strip()


def parse_labels(
    reply: str,
    labels: Sequence[str],
    options: Sequence[str] = (),
    profile: Profile = "strict",
    several: bool = False,
) -> Answer:
    """The options that a reply names.

    Args:
        reply: The text without reasoning; of more than `LONGEST_READ` characters the last ones are read.
        labels: The labels that the prompt shows, one for each option.
        options: The options' texts, which the lenient profile also reads.
        profile: "strict": the reply ends in `Final answer: LABEL` (or الإجابة النهائية, 最终答案; the label may be on
            the next line), or the whole reply is one label. No other line gives another label in this form.
            "lenient": also statements ("the answer is B", الجواب ب, a LaTeX box). Without statements, a first or
            last line that is a label, alone or with a text (`B. Damascus`), or an option. A label may be the shown
            one, the Arabic or Latin letter or the number of the same position, or the option's text. Sentences that
            deny, ask, suppose or report an answer are ignored. Different statements, or a second option in one,
            give no answer. A question that the model invents ends the reply; such a reply is not strict.
        several: Whether several options may be right; the answer is then all named options.

    Returns:
        Positions from 0, ascending; None for no option, or (unless `several`) more than one.

    Raises:
        ValueError: An unknown profile.
    """
    if profile not in ("strict", "lenient"):
        raise ValueError(f"profile {profile!r} is not strict or lenient")
    names, text, cut = _names(tuple(labels), tuple(options)), normalise(reply, "answer: "), False
    for question in _NEXT_QUESTION.finditer(text):
        if _lenient(text[: question.start()], names, several):
            text, cut = text[: question.start()], True
            break
    strict = None if cut else _strict(normalise(reply), names, several)
    return strict if strict or profile == "strict" else _lenient(text, names, several)


class _Names:
    """The names of the options of one question.

    Attributes:
        labels: Normalised label -> position.
        spelled: Any name, in lower case -> its position; None if it means no option or several.
        pattern: The name of an option, perhaps in brackets.
        unambiguous: A name that means an option in any position.
    """

    def __init__(self, labels: Sequence[str], options: Sequence[str]) -> None:
        self.labels = {normalise(label): place for place, label in enumerate(labels)}
        texts = [normalise(option).lower().strip(" .،,") for option in options]
        pairs = [(text, place) for place, text in enumerate(texts) if text]
        for place in range(len(labels)):
            pairs += [(row[place].lower(), place) for row in (ARABIC, LATIN) if place < len(row)]
            pairs.append((str(place + 1), place))
        self.spelled: dict[str, int | None] = {name.lower(): None for name in (*ARABIC, *LATIN)}
        self.spelled |= {
            name: place for name, place in pairs if all(at == place for other, at in pairs if other == name)
        }
        self.spelled |= {
            name: None for name, place in pairs if any(at != place for other, at in pairs if other == name)
        }
        self.spelled |= {label.lower(): place for label, place in self.labels.items()}
        shown = {*(label.lower() for label in self.labels), *texts}
        capitals = _any_of(name.upper() for name in self.spelled if re.fullmatch("[a-z]", name) and name not in shown)
        any_case = _any_of(name for name in self.spelled if not re.fullmatch("[a-z]", name) or name in shown)
        no_article = r"(?!(?<=[AaIi]) (?!(?:is|because|since|as|and|or|for|with|based|according|not) )(?-i:[a-z]))"
        label = rf"(?P<label>(?-i:{capitals})|{any_case})(?!\w|[.,]\d)"
        self.pattern = re.compile(rf"{_OPEN}{label}{no_article}{_CLOSE}", re.I)
        clear = {*self.labels, *LATIN[: len(labels)], *(text for text in texts if len(text) > 2)}
        self.unambiguous = re.compile(rf"(?<!\w)(?:{_any_of(clear)})(?!\w)")

    def read(self, text: str, place: int) -> tuple[set[int], int]:
        """The options that a text names from a position on, and the end of their names; {} for none.

        Raises:
            ValueError: A name can be read in two ways.
        """
        places: set[int] = set()
        found = self.pattern.match(text, place)
        while found:
            if (here := self.spelled[found["label"].lower()]) is None:
                raise ValueError(f"{found.group()!r} is not one option")
            places, place = places | {here}, found.end()
            joined = _AND.match(text, place)
            found = self.pattern.match(text, joined.end()) if joined else None
        return places, place

    def has_others(self, text: str, places: set[int]) -> bool:
        """Whether a text names an option that is not in `places`."""
        return any(self.spelled[match.group().lower()] not in places for match in self.unambiguous.finditer(text))


def _any_of(names: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)"


@lru_cache(maxsize=4096)
def _names(labels: tuple[str, ...], options: tuple[str, ...]) -> _Names:
    return _Names(labels, options)


def _lenient(text: str, names: _Names, several: bool) -> Answer:
    """The options of all statements if they agree; without statements those of a first or last line."""
    try:
        named = [stated for match in _STATEMENT.finditer(text) if (stated := _stated(text, match, names, several))]
        if not named:
            lines = {line.strip(" .،,!。") for line in (text.partition("\n")[0], text.rpartition("\n")[2])}
            read = [(line, *names.read(line, 0)) for line in lines]
            named = [places for line, places, end in read if places and _is_alone(line, places, end, names)]
    except ValueError:
        return None
    agreed = named[0] if named and named[1:] == named[:-1] else set()
    return tuple(sorted(agreed)) if len(agreed) == 1 or (several and agreed) else None


def _is_alone(line: str, places: set[int], end: int, names: _Names) -> bool:
    """Whether only names, or a text after `B. ` without further names, are in a line."""
    rest = line[end:]
    marked = rest[:1] in (".", ":", "-") and rest[1:2] == " " or line[end - 1] in ")]" and rest[:1] == " "
    return not rest or (marked and not names.has_others(rest, places))


def _stated(text: str, match: re.Match[str], names: _Names, several: bool) -> set[int]:
    """The options that a statement names; {} if its sentence denies, asks, supposes or reports it.

    Raises:
        ValueError: As of `_Names.read`; or a further option follows in its sentence (with `several` in its line).
    """
    places, end = names.read(text, match.end())
    before = _SENTENCE_END.split(text[max(0, match.start() - _LONGEST_SENTENCE) : match.start()])[-1]
    if not places or _UNCERTAIN.search(before) or _DENIED.match(text, end):
        return set()
    rest = (_ASIDE if several else _END).split(text[end : end + _LONGEST_SENTENCE], maxsplit=1)[0]
    if names.has_others(rest, places):
        raise ValueError("a further option is named")
    return places


def _strict(text: str, names: _Names, several: bool) -> Answer:
    """The options of the last line in the requested form; None if another line gives others in this form."""
    lines = text.split("\n")
    requested = re.compile(rf"{_ASKED} ?[:：]? ?(?P<rest>.*)", re.I)
    alone = [place for place, line in enumerate(lines) if (found := requested.fullmatch(line)) and not found["rest"]]
    if alone and alone[-1] < len(lines) - 1 and (several or alone[-1] == len(lines) - 2):  # the labels are below
        lines[alone[-1] :] = [lines[alone[-1]] + ("،" if several else "").join(lines[alone[-1] + 1 :])]
    found = requested.fullmatch(lines[-1])
    if not found and len(lines) > 1:
        return None
    stated = _labels_alone(found["rest"] if found else lines[-1], names, several)
    if several:
        named = {
            _labels_alone(match["rest"], names, True) for line in lines[:-1] if (match := requested.fullmatch(line))
        }
        return stated if named <= {stated, None} else None
    label = rf"(?<!\w){_ASKED} ?[:：]?\s?{_OPEN}(?P<label>{_any_of(names.labels)})(?!\w)"
    places = {names.labels.get(match["label"]) for match in re.finditer(label, text, re.I)}
    return stated if {(place,) for place in places - {None}} <= {stated} else None


def _labels_alone(rest: str, names: _Names, several: bool) -> Answer:
    """The labels of a text that has only labels; else None."""
    rest = rest.strip().rstrip("!！")
    if several:
        places = {names.labels.get(part.strip(" ()[]<>")) for part in re.split(r"[،,、]", rest.rstrip(" ."))}
        return None if None in places else tuple(sorted(place for place in places if place is not None))
    label = re.fullmatch(rf"{_OPEN}(?P<label>{_any_of(names.labels)}){_CLOSE} ?[.。]?", rest)
    return (names.labels[label["label"]],) if label else None
