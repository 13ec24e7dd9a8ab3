"""Which options a generated reply names: strictly, in the form that was asked for, or leniently, as a reader would.

The rules are ours (no paper of the suites generates labels). A reply is asked to end in a line `Final answer: LABEL`
(`prompts/generated_choices`), and may reason before it.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from cultureval.runtime.zero_width import INVISIBLE

Profile = Literal["strict", "lenient"]
LONGEST_READ = 20_000  # characters at the end of a reply that are read
_LONGEST_STATEMENT = 500  # characters of a statement after "the answer is"
_MOST_STATEMENTS = 200  # that are read, from the end
_SHORT = 6  # words of a sentence that may correct a label without a word for it: "However, D fits better"

_NOISE = re.compile(f"[{INVISIBLE}\u0640\u064b-\u065f\u0670\"'`*\u2018-\u201f\u00ab\u00bb\u2039\u203a_$]+")
_LETTERS = str.maketrans("أإآٱىیةک", "ااااييهك")
_MARKUP = re.compile(
    r"\\[()\[\]]|</?(?:answer|final_?answer|strong|b|em|i|p|br|span|div)\s*/?>|```\w*|[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f]",
    re.IGNORECASE,
)
_LINE_MARK = re.compile(r"^(?:[#>]+[^\S\n]*|[-+•·–][^\S\n]+)+", re.MULTILINE)  # of headings, quotations and lists
_BOXED = re.compile(r"\\(?:boxed|fbox|mbox|text[a-z]*|math[a-z]+)\s*\{([^{}\n]{0,200})\}")
_CROSS = re.compile("[\u274c\u274e\u2717\u2718\u2716]")  # said of what stands beside it: read as "wrong"

ARABIC = "ا ب ج د ه و ز ح ط ي ك ل م ن س ع ف ص ق ر ش ت ث خ ذ ض ظ غ".split()  # abjad, in one spelling
LATIN = [chr(ord("A") + place) for place in range(26)]
_WORDS = (
    ("الف", "الالف", "الاول", "الاولي", "first", "第一"),
    ("باء", "الباء", "الثاني", "الثانيه", "التاني", "التانيه", "second", "第二"),
    ("جيم", "الجيم", "الثالث", "الثالثه", "التالت", "التالته", "third", "第三"),
    ("دال", "الدال", "الرابع", "الرابعه", "fourth", "第四"),
    ("هاء", "الهاء", "الخامس", "الخامسه", "fifth", "第五"),
    ("واو", "الواو", "السادس", "السادسه", "sixth", "第六"),
)
_ORDINALS = ("first|اول", "second|ثاني|تاني", "third|ثالث|تالت", "fourth|رابع", "fifth|خامس", "sixth|سادس")
_ASKED = r"(?:الاجابه النهائيه|final answer|最终答案)"
_RIGHT = (
    r"(?:النهائيه?|الصحيح(?:ه|تان|تين)?|الصح|الاصح|الصواب|الوحيده?|الانسب|الافضل|المناسبه?|الادق|للسؤال|ديالي|تبعي|"
    r"السليمه?|الاقرب(?: (?:الي |لل?)?(?:ال|لل)?(?:صواب|صحه|صحيح))?)"
)
# What states an answer: "the answer", "the right option", "I choose"; an option alone may be named to reject it.
_STATES = (
    rf"(?:[فو]?(?:ال)?(?:اجابه|جواب|اجابتي|جوابي|ردي|اجابات|اجابتان|اجابتين|اجوبه)(?: {_RIGHT})*|"
    rf"[فو]?(?:ال)?(?:خيار|اختيار|بديل|حرف|رمز|خيارات|خياران|خيارين|اختيارات|بدائل|رموز)(?: {_RIGHT})+|"
    r"[فو]?(?:الحل|الرمز|الحرف|النتيجه)(?=[^\S\n]*(?:[:：]|هو|هي))|[فو]?(?:الصحيح|الصح|الصواب)|"
    r"(?:سا|[هحبن]|(?:راح|رح|سوف) ا)ختار|اختار|اخترت|[ابن]قول|[ابن]ظن(?:ها|ه)?|اعتقد(?: ان(?:ها|ه|و))?|(?:the )?"
    r"(?:final |correct |right |best )*answers?(?: here)?|"
    r"(?:the )?(?:correct |right |best )+(?:options?|choices?|letters?|labels?)|"
    r"my (?:choice|pick)|اختياري|\bi(?:d|ll| would| will)? (?:choose|pick|select|say|go with|opt for)|"
    r"(?:choice|response|label|option|finalanswer|answerkey|correctanswer|correctoption)(?=[^\S\n]?[:：])|ans[.:]|"
    r"reponse(?: correcte)?|réponse(?: correcte)?|egaba|ijaba|ejabe|gawab|jawab|"
    r"(?:最终|正确)?答案|正确(?:的)?选项(?:应该)?|(?:应该?|我)?选择?)"
)
_LINK = (
    r"[^\S\n]*(?:(?:هيا?|هو|هما|هم|[سهحب]?[تي]كون|(?:يجب|لا بد) ان [تي]كون|is|are|(?:would|must|should|will|"
    r"ha(?:s|ve) to|can only|could only) be|therefore|thus|probably|s|est|heya|hiya|howa|huwa)(?!\w)|应该是|是|为|"
    r"\([^()\n]{1,40} [^()\n]{1,40}\)(?=[^\S\n]?[:：])|[:：=\-–—>\u2192])*[^\S\n]*"
)
_LINKS = rf"(?:{_LINK}){{1,3}}"
_NAMED = (
    r"(?:(?:ال)?(?:خيار|اختيار|حرف|رمز|رقم|بديل)|(?:the )?(?:option|choice|letter|number)|选项)"
    r"[^\S\n]*(?:رقم[^\S\n]*)?[:：]?[^\S\n]*"
)
_OPEN, _CLOSE = r"[(\[{<（【]?[^\S\n]?", r"[^\S\n]?[)\]}>）】]?"
_NOT_AFTER = re.compile(
    r"[^\w\n]?[?؟]|[^\w\n]{0,4}(?:(?:هي|هو|is|are)[^\S\n]+)?"
    r"ف?(?:خاطئه?|خطا|غلط|غير|ليست?|مستبعده?|مرفوضه?|rejected|wrong|incorrect|not|isnt|cannot|cant|false|错|不)",
    re.IGNORECASE,
)
# Of the words before a statement. What makes them another thought than the statement's:
_CONTRAST = re.compile(
    r"\b(?:but|(?<!, )however|yet|so|therefore|thus|hence|و?لكن\w*|بل|بس|لذا|لذلك|اذن|وعليه|بالتالي)\b|但|所以|因此",
    re.IGNORECASE,
)
_CERTAIN = re.compile(
    r"\b(?:no|without|beyond) (?:an?y? )?(?:doubt|question)\b|(?<!\w)(?:لا|بلا|دون|بدون) (?:شك|ريب|بد)(?!\w)|无疑",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"(?<!\w)(?:wrong:|(?:format|form|example|مثال|صيغه|الصيغه)[^.]{0,12})(?: the)?\s*$", re.IGNORECASE
)
# It is denied, in its last words; asked, or supposed.
_DENIED = re.compile(
    r"(?<!\w)(?:not|never|cannot|n?either|nor|hard(?:ly)?|doubt\w*|disagree|wrong|incorrect|false|least|second|worst|"
    r"nobody|no one|rule out|assume|suppose|خاطئ\w*|الخاطئ\w*|خطا|الخطا|(?:ال)?اقل|(?:ال)?ابعد|(?:ل?ن?|ا)فترض|نفرض|"
    r"(?:do|does|did|is|are|was|ca|wo|would)nt|"
    r"ليست?|لست|لا|لم|لن|مش|مو|موش|ماشي|غير|(?:ما|م) ?(?:اظن|اعتقد|احسب|اتوقع|كاين\w*|في)|ماظن\w*|مظنش\w*)"
    r"(?: \w+){0,4}\s*$|(?:不是|并非|非|不认为)[^\S\n]*$",
    re.IGNORECASE,
)
_ASKED_WHETHER = re.compile(
    r"(?<!\w)(?:هل|whether|if|unless|لو|اذا|ان كانت?|是否|如果)(?: \w+){0,2}\s*$|"
    r"^\W*(?:(?:so|and|hmm|wait|then),? )*(?:is|are|was|could|would|can|might|does)(?: it(?: that)?)?(?: the)?\s*$",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"\b(?:if|had|suppos\w+|assuming|لو|اذا|ان كان)\b.*\b(?:question|asked|asking|about|meant|were|been|"
    r"السؤال|سؤال|سئل\w*|ب?تقصد|المقصود|قصدك)\b|\bلو\b.*\bلكان|如果",
    re.IGNORECASE,
)
_SUPPOSED_AFTER = re.compile(
    r"[^\w\n.!?؟]{0,4}(?:(?:if|unless|in case|provided|assuming)(?! i\b| im\b| my\b)|"
    r"اذا|لو|ان كانت?|في حاله|شريطه|بشرط|如果)(?!\w)",
    re.IGNORECASE,
)
# It is what others would answer, what was thought first, or told as a mistake.
_SOME = r"بعض\w*|البعض|كثير\w*|الكثير\w*|الناس|ناس|السائل|المستخدم|الاستاذ|المعلم|المدرس|الطلاب|احدهم|صديق\w*"
_THEY_SAY = r"[يت](?:ظن|عتقد|قول|ختار|حسب|زعم|دعي|ري|جيب)(?:ون)?\w{0,2}|قال\w{0,2}|زعم\w{0,2}"
_OTHERS = re.compile(
    r"\b(?:people|students?|some|many|most|others|someone|everyone|one|you|he|she|they|users?|prof\w*|teachers?|\w*book|key|"
    r"friends?|author)\b.{0,60}\b"
    r"(?:think|say|said|told|believe|assume|guess|claim|choose|pick|argue|answer|suggest|attribute|consider)(?:e?s|ed)?\b|"
    rf"(?:{_SOME}).{{0,60}}\b(?:{_THEY_SAY})\b|\b(?:{_THEY_SAY})\b.{{0,30}}(?:{_SOME})|"
    r"\b(?:misconceptions?|myths?|typo|mistakenly|wrongly|common (?:mistake|error)|خطا شائع|الخطا الشائع)\b|"
    r"(?:有人|很多人|用户).{0,10}(?:认为|觉得|说)",
    re.IGNORECASE,
)
_AT_FIRST = re.compile(
    r"\b(?:at first|first (?:glance|sight|thought)|initially|(?:ال|لل)وهله الاولي|في البدايه)\b|乍一看", re.IGNORECASE
)
_PERHAPS = re.compile(
    r"\b(?:قد|ربما|يمكن|ممكن|لعل|might|may|could|maybe|perhaps|possibly|或许|也许|可能)"
    r"(?: [تي]كون| ان [تي]كون| be)?(?: the)?\s*$",
    re.IGNORECASE,
)
# After it: "but that is wrong"; and what takes an earlier statement back: "wait", "no, it is".
_TAKEN_BACK = re.compile(
    r"\b(?:but|however|yet|though|which|and|لكن|ولكن|بس|و|الا ان)\s*"
    r"(?:that|this|it|which|هذا|هذه|ذلك|ده|دا|وهو)?s?(?: is| was| would be)?(?: an?| actually| also)? ?"
    r"(?:wrong|incorrect|not (?:right|correct|true)|mistaken?|false|خطا|غلط|غير صحيح\w*|خاطئ\w*)",
    re.IGNORECASE,
)
_ITSELF_WRONG = re.compile(
    r"\b(?:no|that|this|it|هذا|هذه|ذلك|ده|هاد|这)(?:s| is| was)? "
    r"(?:wrong|incorrect|not right|a mistake|خطا|غلط|خاطئ\w*|غير صحيح\w*)",
    re.IGNORECASE,
)
_SAID_ANEW = re.compile(
    r"^\W*(?:(?P<sure>also|و?كذلك|wait|no|sorry|scratch|correction|oops|عفوا|معذره|لا|تصحيح|لحظه|بل|等等|不对|更正)|"
    r"actually|however|but|و?لكن\w*|في الحقيقه|في الواقع)(?!\w)",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"\b(?:wait|no|actually|correct(?:ion|ing)|instead|reflection|second thought|recheck\w*|reconsider\w*|sorry|"
    r"mistake|scratch|but|however|wrong|incorrect|لا|بل|عفوا|معذره|تصحيح|لحظه|انتظر|لكن|ولكن|خطا|خاطئ\w*|مراجعه|الواقع)\b|"
    r"不对|不是|等等|更正|但|而是",
    re.IGNORECASE,
)
# A line that begins another question, which models invent where they are not stopped.
_NEXT_QUESTION = re.compile(
    r"\n(?:(?:السؤال|سؤال|question|q|human|user|المستخدم|问题|题目)(?![^\W\d_])[^\n:：]{0,30}[:：]|<\|?(?:im_start|user|endoftext))",
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
_JOINING = "(?:او|ام|و?ربما|و?قد تكون|ايضا|و|and|or|maybe|perhaps|possibly|also|either)"
_AND = re.compile(
    r"[^\S\n]{0,3}[)\]}>）】]?[^\S\n]{0,3}(?:[،,/&+、(]|\b(?:او|ام|و|and|or)\b|和|或|(?<=\s)و(?=\w))[^\S\n]{0,3}"
    rf"(?:{_JOINING}[^\S\n]+)*",
    re.IGNORECASE,
)
# A short text after "د. ", which may as well be a doctor's name as the label with a text.
_NAME_AFTER_TITLE = re.compile(
    r"\.[^\S\n]+(?!لان|حيث|because|since|as\b)[^\W\d_]+(?: [^\W\d_]+){1,3}\W*$", re.IGNORECASE
)
_OPTION = r"(?:(?:ال)?(?:خيار|اختيار|بديل)|(?:the )?(?:option|choice)|选项)[^\S\n]*(?:رقم )?"
_CALLED_RIGHT = (
    r"(?:(?:هو|هي) (?:(?:ال)?(?:خيار|جواب|اجابه|اختيار) )?(?:الصحيحه?|الصح|الانسب|الافضل|الادق|الجواب|الاجابه)|"
    r"(?:is|must be) (?:the )?(?:correct|right|best)(?: (?:answer|option|choice|one))?|(?:是|为)?正确的?)(?![\w-])"
)
_CALLED_ALL_RIGHT = re.compile(
    r"(?<!\w)(?:(?:ال)?(?:خياران|خيارات|خيارين|اجابتان|اجابات|اختيارات)|(?:options|choices|answers))[^\S\n]+(?P<listed>[^.\n]{1,80}?)"
    r"[^\S\n]+(?:(?:هما|هم|هي) )?(?:صحيح\w*|الصحيح\w*|are (?:all |both )?(?:the )?(?:correct|right))",
    re.IGNORECASE,
)
# A last word that concludes: "that leaves C", "so: D", يبقى ج.
_CONCLUDES = (
    r"(?<!\w)(?:(?:so|thus|therefore|hence|that leaves|leaving|definitely|certainly|clearly|it(?:s| is| has to be)|"
    r"it must be|left with|only|(?:لا )?يبقي(?: الا)?|يعني|اذن|[فو]?هي|[فو]?هو|اكيد|بل)(?!\w)|所以|因此|应该是)[\s,:،]*"
)
# The sentence around "option B is correct", from its last conclusion to its reason; some words make it no statement.
_BEGIN = re.compile(r"[.\n؛;!。]|\b(?:so|therefore|thus|hence|لذا|لذلك|اذن|بالتالي)\b|所以|因此", re.IGNORECASE)
_END = re.compile(r"[.\n؛;!。]|\b(?:because|since|لانه?ا?|حيث)\b|因为", re.IGNORECASE)
_UNSAID = re.compile(
    r"[?؟]|\b(?:if|whether|unless|why|n?or|n?either|not|(?:do|does|did|is|ca|wo)nt|no|doubt|but|except|false|wrong|incorrect|"
    r"هل|اذا|لو|ان كان|او|ام|ليست?|لا|لم|لكن|الا|خاطئه?|خطا)\b|如果|或|不|但|错|吗",
    re.IGNORECASE,
)
_TITLES = ("ا", "د", "م")  # also short for professor, doctor, engineer
_BETWEEN_LABELS = " ،,;؛|\\/&+()[]{}<>.:-–—、（）【】·•!و"
_BETWEEN = re.compile(r"[\s،,;؛|/&+()\[\]{}<>.:\-–、（）【】]+")
_COMMAS = re.compile("[،,、;؛|]")
_JOINERS = frozenset("and & و 和 或 كذلك وكذلك ايضا وايضا ثم also both كلاهما".split())
_RANGE = re.compile(r"\w[-–—]\w|(?<!\w)(?:الخ|etc)(?!\w)", re.IGNORECASE)  # "A-C", "A, B, etc.": which ones is not said
_END_OF_LIST = re.compile(
    r"(?<!\w)(?:لان(?:ه|ها|هم|هما)?|حيث|because|since|因为)(?!\w)|[؛;]|\.[^\S\n]+(?=\w\w)|"
    r"[(،,]?[^\S\n]*(?:\b(?:but|and) )?(?<!\w)(?:not|و?ليست?)(?!\w)",
    re.IGNORECASE,
)


def normalise(text: str) -> str:
    """A reply in one spelling: NFKC, digits in ASCII, one form of each Arabic letter, single spaces; lines are kept.

    Without diacritics, tatweel, quotation marks, and marks of Markdown and of direction.
    """
    text, boxes = _BOXED.subn(r" \1 ", _MARKUP.sub(" ", _CROSS.sub(" خطأ ", text[-LONGEST_READ:])))
    while boxes:  # one within another, from the inside: \boxed{\text{B}}
        text, boxes = _BOXED.subn(r" \1 ", text)
    plain = _NOISE.sub("", unicodedata.normalize("NFKC", text)[-2 * LONGEST_READ :]).translate(_LETTERS)
    plain = "".join(_digit(letter) for letter in plain) if not plain.isascii() else plain
    lines = (" ".join(line.split()) for line in plain.splitlines())
    return _LINE_MARK.sub("", "\n".join(line for line in lines if line.strip("-="))).strip()


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
        profile: "strict": the reply ends in `Final answer: LABEL` (or الإجابة النهائية, 最终答案; the label may be on a
            line of its own), or the whole reply is one label; no line names another label in that form. "lenient": the
            last statement of an answer ("the answer is", الجواب, I choose) anywhere, else a first or last line that is
            a label or an option, or "option B is correct" (الخيار ب هو الصحيح) anywhere, else the one label with which
            the last line concludes ("so D.") or that it has in brackets. Labels may be those shown, Arabic or Latin
            letters, digits, ordinals or names of letters, with the option's text or that text alone. A statement with
            two labels, with the text of another option, or that can be read in two ways, is none; one that is denied,
            supposed or told of others is passed over, and so is a next question that the model invents. Statements of
            different labels are none, unless words between them take the earlier back ("wait", بل), or the reply ends
            in the form that was asked for.
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
    strict = _strict(text, names, several)
    return strict if profile == "strict" or strict is not None else _lenient(text, names, several)


class _LabelNames:
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
        with_article = {f"ال{text}": place for text, place in self.texts.items() if len(text) > 2}
        self.texts = with_article | self.texts
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
        self.lone = re.compile(rf"(?<!\w){self.label.pattern}", re.IGNORECASE)
        self.statement = re.compile(rf"(?<!\w){_STATES}{_LINKS}(?P<named>{_NAMED})?{_OPEN}", re.IGNORECASE)
        self.called_right = re.compile(
            rf"(?:(?<!\w){_OPTION}|^(?!و )|\b(?:so|thus|therefore|hence|اذن|لذا|لذلك)\b[,،]? )"
            rf"{_OPEN}(?P<label>{self.any})(?![^\W是为正]){_CLOSE}[^\S\n]?"
            rf"(?:\((?P<text>[^()\n]{{1,200}})\)[^\S\n]?)?{_CALLED_RIGHT}",
            re.IGNORECASE | re.MULTILINE,
        )
        self.nth_right = re.compile(
            rf"(?<!\w)(?:the )?(?:{'|'.join(rf'(?P<n{place}>{one})' for place, one in enumerate(_ORDINALS))}) "
            rf"(?:option|choice|one|answer|خيار|اختيار|اجابه) {_CALLED_RIGHT}",
            re.IGNORECASE,
        )
        self.asked = re.compile(
            rf"(?<!\w){_ASKED} ?[:：]?\s?{_OPEN}(?P<label>{self.mine})(?!\w){_CLOSE}", re.IGNORECASE
        )
        self.added = re.compile(
            rf"(?:{_CONCLUDES}|\b(?:and|or|او|و)[^\S\n]+)(?:{_NAMED})?{_OPEN}(?P<label>{self.any})(?!\w)",
            re.IGNORECASE,
        )
        self.concluded = re.compile(rf"{_CONCLUDES}(?:{_NAMED})?{_OPEN}(?P<label>{self.any})(?!\w)", re.IGNORECASE)

    def is_clear(self, label: str) -> bool:
        """Whether a spelling stands for a label wherever it is: no digit, nor a small Latin letter, unless shown so."""
        return label in self.own or (not label.isdigit() and (not label.isascii() or label.isupper()))

    def places(self, label: str) -> set[int]:
        """The positions that a spelling can mean; one that the prompt shows means only itself."""
        if label in self.own:
            return {self.own[label]}
        cased = [place for own, place in self.own.items() if own.lower() == label.lower()]
        return set(cased) if len(cased) == 1 else self.readings.get(label.lower(), set())


@lru_cache(maxsize=4096)
def _names(labels: tuple[str, ...], options: tuple[str, ...]) -> _LabelNames:
    return _LabelNames(labels, options)


def _one(places: set[int]) -> tuple[int, ...] | None:
    return tuple(places) if len(places) == 1 else None


def _strict(text: str, names: _LabelNames, several: bool) -> tuple[int, ...] | None:
    if _without_next_question(text, names) != text:
        return None
    lines = text.split("\n")
    asked = re.compile(rf"{_ASKED} ?[:：]? ?(?P<rest>.*)", re.IGNORECASE)
    alone = [place for place, line in enumerate(lines) if (found := asked.fullmatch(line)) and not found["rest"]]
    if alone and alone[-1] < len(lines) - 1 and (several or alone[-1] == len(lines) - 2):  # the labels are below
        lines[alone[-1] :] = [lines[alone[-1]] + ("،" if several else "").join(lines[alone[-1] + 1 :])]
    found = asked.fullmatch(lines[-1])
    if not found and len(lines) > 1:
        return None
    stated = _strict_labels(found["rest"] if found else lines[-1], names, several)
    if several:
        earlier = {_strict_labels(one["rest"], names, several) for line in lines[:-1] if (one := asked.fullmatch(line))}
        return stated if earlier <= {stated, None} else None
    named = {(names.own[one["label"]],) for one in names.asked.finditer(text) if one["label"] in names.own}
    return stated if named <= {stated} else None


def _strict_labels(rest: str, names: _LabelNames, several: bool) -> tuple[int, ...] | None:
    """The labels after the asked words, which are nothing else."""
    rest = rest.strip().rstrip("!！")
    if several:
        parts = [part.strip(" ()[]<>") for part in re.split(r"[،,、]", rest.rstrip(" ."))]
        places = {names.own.get(part) for part in parts}
        return None if None in places else tuple(sorted(place for place in places if place is not None))
    label = re.fullmatch(rf"{_OPEN}(?P<label>{names.mine}){_CLOSE} ?[.。]?", rest)
    return (names.own[label["label"]],) if label and label["label"] in names.own else None


@dataclass(frozen=True)
class _Statement:
    """A statement of an answer: where it stands, and what it names; None if that is unclear."""

    start: int
    end: int
    named: tuple[int, ...] | None
    doubtful: bool


def _lenient(text: str, names: _LabelNames, several: bool) -> tuple[int, ...] | None:
    text = _without_next_question(text, names)
    if stated := _statements(text, names, several):
        agreed = _agreed(stated, text, names)
        more = several and agreed is not None and _called_right(text, names) - set(agreed)
        return None if more else agreed
    lines = text.split("\n")
    alone = {found for line in (lines[0], lines[-1]) if (found := _alone(line, names, several))}
    alone |= _called_all_right(text, names) if several else {(place,) for place in _called_right(text, names)}
    if alone:
        return alone.pop() if len(alone) == 1 else None
    return None if several else _one(_concluded(lines[-1], names) or _in_brackets(lines[-1], names))


def _in_brackets(line: str, names: _LabelNames) -> set[int]:
    """The options whose labels a line has in brackets, without those whose clause denies, asks or supposes them."""
    found = re.finditer(rf"[(\[]({names.any})[)\]]", line, re.IGNORECASE)
    clauses = ((one, re.split(r"[.,،;؛:]", line[: one.start()])[-1]) for one in found)
    return {place for one, clause in clauses if not _UNSAID.search(clause) for place in names.places(one[1])}


def _without_next_question(text: str, names: _LabelNames) -> str:
    """The text up to a question that the model invents after it has answered."""
    for match in _NEXT_QUESTION.finditer(text):
        if names.statement.search(text, 0, match.start()) or _alone(text.partition("\n")[0], names, several=False):
            return text[: match.start()]
    return text


def _statements(text: str, names: _LabelNames, several: bool) -> list[_Statement]:
    """The statements of an answer in order, without those that are denied, asked, supposed or told of others."""
    read, found = _listed if several else _named, []
    for match in [*names.statement.finditer(text)][-_MOST_STATEMENTS:]:
        begin = max(0, match.start() - _LONGEST_STATEMENT)
        before = _CONTRAST.split(re.split(r"[.!?؟。\n؛;]", text[begin : match.start()])[-1])[-1]
        if _is_not_meant(before):
            continue
        rest = text[match.end() : match.end() + _LONGEST_STATEMENT]
        line = re.sub(r"([,،])\n", r"\1 ", rest.lstrip("\n")).partition("\n")[0]
        named = _listed_below(rest, names) if several and rest.startswith("\n") else None
        named = read(line, names, named=bool(match["named"])) if named is None else named
        if named is False or _is_taken_back(line):
            continue
        doubtful = any(one.search(before) for one in (_PERHAPS, _AT_FIRST)) or _is_supposed_after(line, names)
        found.append(_Statement(match.start(), match.end(), named, doubtful))
    return found


def _is_not_meant(before: str) -> bool:
    """Whether the words of its sentence before a statement deny, ask or suppose it, or tell it of others."""
    before = _CERTAIN.sub(" ", _CONTRAST.split(before)[-1])
    clause = re.split("[,،:：]", before)[-1]
    return any(one.search(clause) for one in (_DENIED, _ASKED_WHETHER)) or any(
        one.search(before) for one in (_SUPPOSED, _OTHERS, _QUOTED)
    )


def _is_supposed_after(line: str, names: _LabelNames) -> bool:
    """Whether a condition follows the label with which a line begins: "A if ...", `أ في حالة ...`."""
    label = names.label.match(line.lstrip(" ([{<（【"))
    return bool(label and _SUPPOSED_AFTER.match(label.string, label.end()))


def _is_taken_back(line: str) -> bool:
    """Whether the sentence with which a line begins ends in "but that is wrong", of the statement itself."""
    sentence = re.split(r"[!?؟。؛;]|\.\s+(?=\w{3})", line, maxsplit=1)[0]
    back = _TAKEN_BACK.search(sentence)
    return bool(back) and not _OTHERS.search(sentence[: back.start()])


def _agreed(stated: Sequence[_Statement], text: str, names: _LabelNames) -> tuple[int, ...] | None:
    """What statements name: the last, if no earlier one differs, or words between them take the earlier one back."""
    last = stated[-1]
    if last.doubtful or _is_changed_after(last, text, names):
        return None
    others = [one for one in stated[:-1] if one.named not in (None, last.named) and not one.doubtful]
    asked = [bool(re.match(_ASKED, text[one.start :], re.IGNORECASE)) for one in (*others, last)]
    ends = "\n" not in text[last.end :].strip("\n")
    if not others or (asked.pop() and ends and not any(asked)) or _CORRECTION.search(text, others[-1].end, last.start):
        return last.named
    return None


def _is_changed_after(last: _Statement, text: str, names: _LabelNames) -> bool:
    """Whether a sentence after the last statement calls it wrong, or corrects it to another label: "Sorry, D"."""
    others = False
    for sentence in re.split(r"[.!?؟。\n]", text[last.end : last.end + _LONGEST_STATEMENT])[1:]:
        told, others = others, bool(_OTHERS.search(sentence))
        if told or others:
            continue
        anew = _SAID_ANEW.match(sentence)
        corrected = anew and (anew["sure"] or len(sentence.split()) <= _SHORT)
        if _ITSELF_WRONG.search(sentence) or (corrected and _other_labels(sentence[anew.end() :], last, names)):
            return True
    return False


def _other_labels(sentence: str, stated: _Statement, names: _LabelNames) -> bool:
    """Whether a sentence names, and does not deny, another label than a statement."""
    found = (one for one in names.lone.finditer(sentence) if _is_label(sentence, one, names, named=False))
    return any(
        not names.places(one.group()) & set(stated.named or ()) and not _NOT_AFTER.match(sentence, one.end())
        for one in found
    )


def _concluded(line: str, names: _LabelNames) -> set[int]:
    """The options with which a line concludes: "that leaves C.", "so: D"; none that is only supposed."""
    places: set[int] = set()
    for match in names.concluded.finditer(line):
        label, rest = match["label"], line[match.end() :].strip(" .،,:!)]-–(")
        own = names.is_clear(label)
        followed = names.texts.get(rest.lower())
        before = re.split(r"[.!?؟。؛;]", line[: match.start()])[-1]
        meant = bool(_CONTRAST.match(match.group())) or not _is_not_meant(before)
        if own and (not rest or followed is not None) and meant:
            places |= names.places(label) | ({followed} if followed is not None else set())
        elif own and not meant:
            return set()
    return places


def _listed_below(rest: str, names: _LabelNames) -> tuple[int, ...] | None:
    """The options of the lines below a statement, each a label, an option, or both; None where the first is neither."""
    places: set[int] = set()
    for line in rest.strip("\n").split("\n"):
        one = _alone(line, names, several=False)
        if one is None:
            break
        places |= set(one)
    return tuple(sorted(places)) or None


def _called_all_right(text: str, names: _LabelNames) -> set[tuple[int, ...]]:
    """The options that sentences such as "options A and B are correct" name."""
    found = (_listed(match["listed"], names) for match in _CALLED_ALL_RIGHT.finditer(text))
    return {one for one in found if one}


def _called_right(text: str, names: _LabelNames) -> set[int]:
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
    for match in names.nth_right.finditer(text):
        before = _BEGIN.split(text[max(0, match.start() - _LONGEST_STATEMENT) : match.start()])[-1]
        place = int(str(match.lastgroup)[1:])
        if not _UNSAID.search(before) and place < len(names.own):
            places.add(place)
    return places


def _alone(line: str, names: _LabelNames, several: bool) -> tuple[int, ...] | None:
    """The options of a line that is labels or the text of an option, and nothing else."""
    if several:
        return _listed(line, names, whole=True) or None
    named = re.match(_NAMED, line, re.IGNORECASE)
    rest = line[named.end() :] if named else line
    bare = rest.strip(" ()[]{}<>.،,:-–（）【】!！。")
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


def _named(line: str, names: _LabelNames, named: bool = False) -> tuple[int, ...] | None | Literal[False]:
    """The option that a statement names at its begin; None if it is unclear, False if it states none."""
    line = line.lstrip(" ([{<（【")
    whole = line.rstrip(" .،,)]}>。!").lower()
    match = names.label.match(line)
    if not match or not _is_label(line, match, names, named):
        text = names.texts.get(whole)
        text = _begins_with_text(line, names) if text is None else text
        return False if text is None else (text,)
    if whole in names.texts and match.group() not in names.own:
        return _one({names.texts[whole]} | (names.places(match.group()) if whole == match.group().lower() else set()))
    if _NOT_AFTER.match(line, match.end()) and not _denies_another(line, match, names):
        return False
    places = names.places(match.group())
    after = line[match.end() :]
    if match.group() in _TITLES and _NAME_AFTER_TITLE.match(after) and not _is_option(after, names):
        return None
    places = places | _more_labels(after, names)
    followed = names.texts.get(after.strip(" .،,:-–)]}>（）。!").lower())
    return _one(places | ({followed} if followed is not None else set()))


def _more_labels(after: str, names: _LabelNames) -> set[int]:
    """The further options that are named with a first: "A or B", "A (or B)", "A; B", `أ ب ج`, "A in Syria, it is B"."""
    joined = _AND.match(after)
    second = names.label.match(after, joined.end()) if joined else None
    found = [second] if second and _is_label(after, second, names, named=False) else []
    if not names.lone.sub(" ", after).strip(_BETWEEN_LABELS):
        found += names.lone.finditer(after)
    sentence = _END.split(re.split("[?؟]", after)[0], maxsplit=1)[0]
    found += [one for one in names.added.finditer(sentence) if names.is_clear(one["label"])]
    kept = (one for one in found if not _NOT_AFTER.match(one.string, one.end()))
    return {place for one in kept for place in names.places(one.groupdict().get("label") or one.group())}


def _is_option(text: str, names: _LabelNames) -> bool:
    return text.strip(" .،,:-–)]}>（）。!").lower() in names.texts


def _begins_with_text(line: str, names: _LabelNames) -> int | None:
    """The option whose text a line begins with, before a mark; None where a label after it is another's."""
    lowered = line.lower()
    fitting = [text for text in names.texts if len(text) > 2 and lowered.startswith(text)]
    text = max(fitting, key=len, default="")
    rest = lowered[len(text) :]
    if not text or not re.match(r"\s*[،,.؛;(:–-]", rest):
        return None
    label = re.match(rf"[\s،,.؛;(:–-]*(?:اي )?(?:{_NAMED})?(?P<label>{names.any})(?!\w)", rest, re.IGNORECASE)
    other = names.places(label["label"]) if label else set()
    return names.texts[text] if not other or names.texts[text] in other else None


def _denies_another(line: str, match: re.Match[str], names: _LabelNames) -> bool:
    """Whether what is denied after a label is another label."""
    found = _INSTEAD.match(line, match.end())
    return bool(found and (other := names.places(found["other"])) and not other & names.places(match.group()))


def _is_label(line: str, match: re.Match[str], names: _LabelNames, named: bool) -> bool:
    """Whether what stands there is a label: no article `a` or `A`, pronoun, nor number of something."""
    if not named and _NO_LETTER.match(line, match.start()):
        return False
    label, ends = match.group(), re.match(r"\s*(?:$|[^\w\s])", line[match.end() :]) is not None
    if label in names.own and not (label.isascii() and label.isdigit()):
        return True
    return named or ends or not label.isascii() or (label.isalpha() and label.isupper())


def _listed(
    line: str, names: _LabelNames, named: bool = False, whole: bool = False
) -> tuple[int, ...] | None | Literal[False]:
    """The options of a list of labels; None if something else is among them, False if it begins with none.

    What follows the list (a reason, another sentence) is not read, unless the `whole` line has to be a list.
    """
    lowered = line.lower()
    for text in sorted(names.texts, key=len, reverse=True):
        if len(text) > 1:
            lowered = lowered.replace(text, " ")
    lowered = lowered.replace("!", " ")[:_LONGEST_STATEMENT]
    if _RANGE.search(lowered):
        return None
    if not whole and re.search(r"\w", names.lone.sub("", re.sub(r"(?<!\w)(?:و|and)(?!\w)", "", lowered))):
        lowered = _END_OF_LIST.split(lowered, maxsplit=1)[0]
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
