"""Checks of the texts: broken encoding, mixed scripts, references to what is not there, wrong types of cells."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from cultureval.audit.checks.findings import Found, check_all, check_each, seen_as
from cultureval.audit.items import AuditItem
from cultureval.prompts.cells import is_empty
from cultureval.prompts.options import LABELS
from cultureval.runtime.errors import shorten

FEWEST_LETTERS = 3  # accented ones of a text below which they may be a language's own
_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,8}|#[0-9]{2,6}|#x[0-9a-fA-F]{2,6});")
# PDF readers that reverse the ligature of lam and alef: األسرة for الأسرة, which no word begins with.
_REVERSED = re.compile(r"(?<!\w)[وفبك]?ا(?:أل|إل|آل)\w")
_SHAPES = re.compile("[\ufb50-\ufbc1\ufe70-\ufefc]")
_TAG = re.compile(
    r"</?(?:p|br|b|i|u|em|strong|span|div|sup|sub|font|img|table|tr|t[dh]|li|[uo]l|h[1-6]|a)(?:\s[^<>]*)?/?>|"
    r"\[/?(?:b|i|u|url|img|quote)\]|!\[[^\]\n]*\]\(|\*\*\w[^*\n]*\*\*",
    re.IGNORECASE,
)
_ZERO_WIDTH = re.compile("[\u00ad\u180e\u200b\u2060-\u2064\ufeff]")
_LOST = re.compile(r"\?{4,}")
_LATIN, _ARABIC, _CYRILLIC = "LATIN", "ARABIC", "CYRILLIC"
_LETTERS = re.compile(r"[^\W\d_]+")
# Arabic particles are written onto a foreign word: الـDNA, وGDP, بالـpH; و also stands between two names of variables.
_PARTICLES = re.compile(r"(?:[وفبكل]{0,2}(?:ال)?ـ*|[وفبكل]?لل?ـ*)$")

# The article may follow a particle: بالفقرة, والفقرة, للفقرة.
_THINGS = r"(?:ال|لل)(?:شكل|رسم|مخطط|صور[ةه]|جدول|خريط[ةه]|منحنى|بياني)"
_PASSAGES = r"(?:ال|لل)(?:نص|فقر[ةه]|قطع[ةه]|قصيد[ةه]|أبيات|ابيات)"
_WHERE = (
    r"(?:التالي[ةه]?|الآتي[ةه]?|الاتي[ةه]?|المقابل[ةه]?|المجاور[ةه]?|أعلاه|اعلاه|أدناه|ادناه|السابق[ةه]?|المرفق[ةه]?|"
    r"الموضح[ةه]?|المرسوم[ةه]?|(?:التي\s+|الذي\s+)?[أا]مامك)"
)
_ON = r"(?:(?:استناد|رجوع|نظر)[ًا]*\s+[إا]لى|بناء[ًا]*\s+على|من\s+خلال|كما\s+ورد\s+في)"
_BY = rf"(?<!\w)(?:ب?حسب|(?:وفق|طبق)[ًا]*|{_ON})"
_LOOK = r"(?<!\w)(?:[اأ]نظر|لاحظ|تأمل|شاهد|شوف)(?:\s+(?:[إا]لى|في))?"
_ABSENT_THING = re.compile(
    rf"{_THINGS}(?:\s+البياني[ةه]?)?\s+{_WHERE}"
    # Not الشكل القانوني, الصورة الشعرية, على الشكل 2س + 3.
    rf"|{_BY}\s+{_THINGS}(?:\s+البياني[ةه]?)?(?=\s*[،,:؟?])"
    rf"|{_LOOK}\s+{_THINGS}(?:\s+البياني[ةه]?)?(?=\s*(?:[.،,:؟?!]|$)|\s+(?:ثم|و\w+)(?!\w))"
    r"|(?:ال|لل)(?:شكل|رسم|صور[ةه])\s+(?:رقم\s*[(\[]?\s*\d{1,2}(?!\d)|[(\[]\s*\d{1,2}\s*[)\]])"
    r"|\b(?:figure|table|image|picture|diagram|graph|chart|map)s?\s+(?:below|above|shown|opposite)\b"
    r"|\b(?:following|above|below|given)\s+(?:figure|table|image|picture|diagram|graph|chart|map)\b"
    # Not 例如图像, 网上图片, 以下表述, 在数轴上表示, 会上表扬, 上表皮.
    r"|(?:(?<![例比诸諸譬])如|(?<![网網墙牆皇])上|[下右左])"
    r"(?:[图圖](?![书書画畫])|表(?![述达達现現情演面明彰决決态態示扬揚皮白率层層]))"
    r"|(?:ش[کك]ل|تصو[یي]ر|جدول|نمودار|نقشه)\s+(?:ز[یي]ر|بالا|مقابل|فوق|روبه?\s*رو)",
    re.IGNORECASE,
)
# What only text before the question can be, and what only a typesetter can show.
_BEFORE = re.compile(r"(?:السابق[ةه]?|أعلاه|اعلاه|above|بالا)$", re.IGNORECASE)
_UNDERLINED = re.compile(
    r"تحته[اما]*\s+خط|(?:المخطوط|المسطر)\s+تحته[اما]*|\bunderlined\b|[划畫画]线(?:的?[词字句]|部分)|زیر\s*آن\s*خط",
    re.IGNORECASE,
)
_ABSENT_PASSAGE = re.compile(
    rf"{_PASSAGES}\s+{_WHERE}|\b(?:passage|text|paragraph|poem)\s+(?:below|above)\b"
    r"|\b(?:following|above|below|given)\s+(?:passage|text|paragraph|poem)\b"
    r"|\b(?:according\s+to|based\s+on)\s+th(?:e|is)\s+(?:passage|text|paragraph|poem|story|author)\b(?!\s+(?:of|in|by)\b)"
    r"|\b(?:in|from)\s+th(?:e|is)\s+passage\b(?!\s+(?:of|in|from|to|through)\b)"
    # Not وفقا للنص القرآني, حسب الفقرة 3 من المادة.
    rf"|{_BY}\s+{_PASSAGES}(?=\s*[،,:؟?])"
    r"|(?:متن|شعر|ب[یي]ت)\s+(?:ز[یي]ر|بالا|فوق)"
    r"|(?:[根依][据據]|[阅閱][读讀])[上下](?:文(?![化件])|[面列述]的?(?:短文|材料|文字|文章|段落))",
    re.IGNORECASE,
)
_OWN_PASSAGE = 12  # words beside the reference that may be the passage itself
_OWN_LETTERS = 100  # likewise of Chinese, which has no spaces
# A quotation, or a passage after a colon; in Chinese a whole sentence after a colon or another sentence.
_QUOTED = re.compile(r"[\"«“(\[{]|[:：]\s*\S+\s+\S+|[:：。][^:：。（）]{8,}。")


@check_each("error", "Nothing is asked.")
def empty_question(item: AuditItem) -> str:
    """There is no question, or one of punctuation alone."""
    if not seen_as(item.question):
        return "the question is empty"
    asked = any(unicodedata.category(letter)[0] in "LNS" for letter in item.question)
    return "" if asked else f"the question is {shorten(item.question, 20)} alone"


@check_each("error", "Damaged text measures how a model guesses letters.")
def broken_encoding(item: AuditItem) -> str:
    """A text is damaged: wrongly decoded (ftfy mends it), or with replacement characters, entities or lost letters."""
    for text in item.texts:
        if damage := _damage(text):
            return f"{damage} in {shorten(text, 60)}"
    return ""


def _damage(text: str) -> str:
    if "\ufffd" in text:
        return "replacement characters"
    if any(unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\t\n\r\x0b\x0c\x85" for letter in text):
        return "control characters"
    if _ENTITY.search(text):
        return "HTML entities"
    if _LOST.search(text):
        return "letters lost as question marks"
    if _REVERSED.search(text):
        return "reversed ligatures of lam and alef"
    return "wrongly decoded text" if not text.isascii() and (_is_mojibake(text) or _ftfy_mends(text)) else ""


def _is_mojibake(text: str) -> bool:
    """Arabic in UTF-8 or Windows-1256 that was wrongly decoded as Windows-1252 or Latin-1 (`Ø§Ù„`, `ÃÍãÏ`)."""
    high = len(re.findall("[\u00c0-\u00ff]", text))
    if high >= FEWEST_LETTERS and high >= 0.6 * sum(letter.isalpha() for letter in text):
        arabic = text.encode("cp1252", "ignore").decode("cp1256", "ignore")
        if sum("\u0620" <= letter <= "\u0652" for letter in arabic) >= high - 1:
            return True
    if "Ø" not in text and "Ù" not in text:
        return False
    for encoding in ("cp1252", "latin-1"):
        try:
            repaired = text.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
        if any("\u0600" <= character <= "\u06ff" for character in repaired):
            return True
    return False


def _ftfy_mends(text: str) -> bool:
    import ftfy
    from ftfy.badness import is_bad

    return is_bad(text) and ftfy.fix_encoding(text) != text


@check_each("warning", "Tags and signs of a page are no words of the question.")
def markup(item: AuditItem) -> str:
    """A text holds tags or marks of HTML, BBCode or Markdown."""
    for text in item.texts:
        if found := _TAG.search(text):
            return f"{shorten(found[0], 30)} in {shorten(text, 60)}"
    return ""


@check_each("warning", "Characters that nobody sees make other tokens of a text.")
def zero_width(item: AuditItem) -> str:
    """A text holds characters without a width that are neither direction marks nor joiners, which some scripts need."""
    for text in item.texts:
        if (found := _ZERO_WIDTH.search(text)) and not _damage(text):
            return f"U+{ord(found[0]):04X} in {shorten(text, 60)}"
    return ""


@check_each("warning", "A question that states its answer asks nothing.")
def answer_in_question(item: AuditItem) -> str:
    """The question states its answer: after its question mark, in brackets at its end, or as "the answer is ..."."""
    if not item.options or not item.gold:
        return ""
    right = {seen_as(item.options[place]).rstrip(" .") for place in item.gold} - {""}
    texts = "|".join(map(re.escape, sorted(right, key=len, reverse=True)))
    labels = "|".join(label for place in item.gold if place < 26 for label in (LABELS[place], chr(ord("A") + place)))
    says = r"(?:(?:ال)?(?:[إا]جابة|جواب)|answer|答案)(?:\s+(?:الصحيحة|الصحيح))?\s*(?::|：|هي|هو|is)\s*"
    stated = rf"{says}(?:{texts}|{labels})(?!\w)"
    # ج: after a sentence is an answer; between أ: and د: it is a label.
    after = rf"[?؟？.!]\s*(?:جـ?|ans)\s*[:：]\s*(?:{texts})\s*[.。]?\s*$"
    after += rf"|[?؟？]\s*[(\[]?(?:{texts})[)\]]?\s*[.。]?\s*$|[(\[]\s*(?:{texts})\s*[)\]]\s*[.?؟]?\s*$"
    found = re.search(f"{stated}|{after}", seen_as(item.question), re.IGNORECASE) if texts else None
    return f"{shorten(found[0], 60)} in the question" if found else ""


@check_each("warning", "Tokenizers know letters, not the shapes that a typesetter gave them.")
def presentation_forms(item: AuditItem) -> str:
    """A text is written in the shapes of letters that typesetters use (U+FE70 and on), not in letters."""
    for text in item.texts:
        if not text.isascii() and len(_SHAPES.findall(text)) > 2:
            return f"{shorten(text, 60)} is written in shapes of letters"
    return ""


@check_each("warning", "A letter of another script makes other tokens of a word that looks right.")
def mixed_scripts(item: AuditItem) -> str:
    """A word mixes letters of two scripts, Arabic or Cyrillic with Latin, as typing errors and look-alikes do."""
    for text in item.texts:
        if text.isascii():
            continue
        for word in _LETTERS.findall(text):
            if _is_mixed(word):
                return f"the word {shorten(word, 40)}"
    return ""


def _is_mixed(word: str) -> bool:
    if word.isascii():
        return False
    scripts = [(letter, _script(letter)) for letter in word]
    kinds = {script for _, script in scripts}
    if {_LATIN, _CYRILLIC} <= kinds:
        return True
    if not {_LATIN, _ARABIC} <= kinds:
        return False
    runs = re.findall(r"[A-Za-z\u00c0-\u024f]+|[^A-Za-z\u00c0-\u024f]+", word)
    arabic = [run for run in runs if _script(run[0]) == _ARABIC]
    return not all(_PARTICLES.fullmatch(run) for run in arabic)


def _script(letter: str) -> str:
    if "a" <= letter.lower() <= "z":
        return _LATIN
    return next((name for name in (_ARABIC, _LATIN, _CYRILLIC) if unicodedata.name(letter, "").startswith(name)), "")


@check_each("warning", "What the question refers to is not in the item.")
def absent_reference(item: AuditItem) -> str:
    """The question refers to a figure, a table or a passage, and the item has none."""
    if item.images:
        return ""
    if (found := _UNDERLINED.search(item.question)) and not any(map(_shows_a_line, item.texts)):
        return f"it refers to {found[0]!r}, and nothing is underlined"
    if item.context:
        return ""
    if (found := _ABSENT_THING.search(item.question)) and not _shows_a_table(item.question):
        return f"it refers to {found[0]!r}, and has no image and no passage"
    if found := _ABSENT_PASSAGE.search(item.question):
        before, after = item.question[: found.start()], item.question[found.end() :]
        rest = before if _BEFORE.search(found[0]) else before + after
        if len(rest.split()) < _OWN_PASSAGE and len(rest) < _OWN_LETTERS and not _QUOTED.search(rest):
            return f"it refers to {found[0]!r}, and has no passage"
    return ""


@check_each("warning", "Nobody can see what is asked about.")
def absent_image(item: AuditItem) -> str:
    """The image is not there, or cannot be decoded."""
    return f"{item.image[:80]!r} {item.image_problem}" if item.image_problem else ""


def _shows_a_line(text: str) -> bool:
    """Whether a text may show what is underlined: by tags, signs or quotation marks, or as one word after a colon."""
    signs = r"</?u>|__|ـــ|\u0332|[\"«»“”()\[\]{}*'‘’]|[:：]\s*\S+\s*[.؟?]?\s*$"
    return bool(re.search(signs, text, re.IGNORECASE))


def _shows_a_table(text: str) -> bool:
    return text.count("|") > 2 or text.count("\t") > 2 or text.count("\n") > 2


@check_all("warning", "A cell of another type was converted on its way (3 to 3.0).")
def wrong_type(items: Sequence[AuditItem]) -> Iterator[Found]:
    """A cell of the question holds no text, or another type than most rows of its subset have."""
    grouped: dict[tuple[str, str], list[AuditItem]] = defaultdict(list)
    for item in items:
        grouped[item.source, item.subset].append(item)
    for some in grouped.values():
        types: dict[str, Counter[str]] = defaultdict(Counter)
        for item in some:
            for name, cell in item.cells.items():
                if not is_empty(cell):
                    types[_column(name)][_type(cell)] += 1
        usual = {name: counts.most_common(1)[0][0] for name, counts in types.items()}
        for item in some:
            if detail := _odd_cell(item, usual):
                yield Found(item, detail)


def _odd_cell(item: AuditItem, usual: dict[str, str]) -> str:
    for name, cell in item.cells.items():
        if is_empty(cell):
            continue
        kind, expected = _type(cell), usual[_column(name)]
        if kind != expected or (name != "gold" and kind not in ("text", "whole number")):
            wanted = expected if kind != expected else "text"
            return f"the {name} holds {_a(kind)} where {_a(wanted)} is expected: {shorten(cell, 40)}"
    return ""


def _a(kind: str) -> str:
    return f"an {kind}" if kind == "object" else f"a {kind}"


def _column(name: str) -> str:
    return "option" if name.startswith("option ") else name


def _type(cell: Any) -> str:
    if isinstance(cell, bool):
        return "truth value"
    kinds = ((str, "text"), (int, "whole number"), (float, "decimal number"), (dict, "object"), (bytes, "byte string"))
    return next((name for kind, name in kinds if isinstance(cell, kind)), "list")


@check_each("error", "The task cannot score the row.")
def refused_by_reader(item: AuditItem) -> str:
    """The reader of the task refuses the row."""
    return item.refused
