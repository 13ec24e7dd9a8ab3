"""Fourteen checks that find bad items without a model. An error discards the item, a warning asks a person to look."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from cultureval.audit import check_patterns as patterns
from cultureval.audit.duplicates import TATWEEL, pairs
from cultureval.audit.items import AuditItem
from cultureval.prompts.cells import comparable
from cultureval.prompts.options import LABELS, split_label
from cultureval.runtime.errors import counted, shorten
from cultureval.runtime.extras import require_extra
from cultureval.runtime.progress import Progress
from cultureval.tasks.manifest import Decision, ManifestRow

Severity = Literal["error", "warning"]
FEWEST_LETTERS = 3  # accented ones of a text below which they may be a language's own


@dataclass(frozen=True)
class Check:
    """A check of the table.

    Attributes:
        severity: "error": the item cannot be scored fairly; "warning": a person should look.
        reason: Why it matters, one sentence.
        find: From an item to a clause on what is wrong, "" if nothing is; None for checks of `pairs` of items.
    """

    name: str
    severity: Severity
    reason: str
    find: Callable[[AuditItem], str] | None = None


@dataclass(frozen=True)
class Finding:
    """What a check found in an item, as a clause; `repeated` is the earlier item that it repeats."""

    check: Check
    item: AuditItem
    detail: str
    repeated: AuditItem | None = None


@dataclass(frozen=True)
class CheckResults:
    """The findings of all checks.

    Attributes:
        items: All items, few-shot examples among them.
        findings: In the order of the table of checks.
        rows: A manifest's row for each evaluated item: errors discard it, warnings ask for a review.
    """

    items: Sequence[AuditItem]
    findings: Sequence[Finding]
    rows: Sequence[ManifestRow]


CHECKS: list[Check] = []


def check(severity: Severity, reason: str) -> Callable[[Callable[[AuditItem], str]], Callable[[AuditItem], str]]:
    """A decorator that adds a function to the table of checks under its name."""

    def added(find: Callable[[AuditItem], str]) -> Callable[[AuditItem], str]:
        CHECKS.append(Check(find.__name__, severity, reason, find))
        return find

    return added


@check("error", "Without a gold that names an option no answer can be right.")
def bad_gold(item: AuditItem) -> str:
    """The gold is empty, or names an option that is not there."""
    return f"the gold {item.gold_problem}" if item.gold_problem else ""


@check("error", "Nothing is asked.")
def empty_question(item: AuditItem) -> str:
    """There is no question, or one of punctuation alone."""
    asked = any(unicodedata.category(letter)[0] in "LNS" for letter in seen_as(item.question))
    return "" if asked or item.refused else f"the question is {shorten(item.question, 20) or 'empty'}"


@check("error", "An empty option can be ruled out, or was lost.")
def empty_option(item: AuditItem) -> str:
    """There are fewer than two options, or one of them is empty."""
    if item.form != "mcq":
        return ""
    empty = [str(place) for place, option in enumerate(item.options, start=1) if not seen_as(option)]
    few = f"it has {counted(len(item.options), 'option')}" if len(item.options) < 2 else ""
    return few or (f"empty: option {', '.join(empty)}" if empty else "")


@check("warning", "Two equal options are right or wrong together, and only one counts.")
def duplicate_options(item: AuditItem) -> str:
    """Two options look the same: equal in NFC without direction marks, tatweel and spare white space."""
    places: dict[str, int] = {}
    for place, option in enumerate(map(seen_as, item.options), start=1):
        if option and (first := places.setdefault(option, place)) != place:
            return f"options {first} and {place} are both {shorten(option, 40)}"
    return ""


@check("error", "An option that says whether it is right gives the answer away.")
def marked_answer(item: AuditItem) -> str:
    """An option says that it is the right one, or wrong."""
    for place, option in enumerate(item.options, start=1):
        if found := patterns.MARKED.search(option):
            return f"option {place} holds {shorten(found[0], 40)}"
    starred = [place for place, option in enumerate(item.options) if "*" in option]
    if len(starred) == 1 and starred[0] in item.gold and _is_starred(item.options[starred[0]]):
        return f"stars mark option {starred[0] + 1}, the right one, alone: {shorten(item.options[starred[0]], 40)}"
    return ""


def _is_starred(option: str) -> bool:
    """Whether stars stand before or after words; `*ptr`, `int*` and `ab*` are code."""
    found = patterns.STARS.fullmatch(option.strip())
    if not found or not option.isascii():
        return bool(found)
    text = (found["after"] or found["before"]).strip()
    return " " in text and text[0].isupper() if found["before"] else " " in text or text[0].isupper()


@check("warning", "A question that states its answer asks nothing.")
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


@check("warning", "An option that refers to other options is wrong when they stand elsewhere.")
def all_of_the_above(item: AuditItem) -> str:
    """An option that refers to other options ("all of the above") is not the last, or options are shuffled."""
    refers = [_refers(option) for option in item.options]
    if not any(refers):
        return ""
    place = refers.index(True)
    if item.shuffled:
        return f"option {place + 1} {shorten(item.options[place], 40)} refers to other options, which are shuffled"
    if not all(refers[place:]):
        return f"option {place + 1} {shorten(item.options[place], 40)} refers to those above, and is not the last"
    return ""


def _refers(option: str) -> bool:
    text = seen_as(option).strip(" .،؛:()")
    return bool(patterns.REFERS.fullmatch(text) or patterns.NAMES_LABELS.fullmatch(text))


@check("warning", "Labels inside the options contradict those that the prompt gives them.")
def inconsistent_labels(item: AuditItem) -> str:
    """Only some options begin with a label, or the labels are out of order or repeated."""
    labels = [split_label(option) for option in item.options]
    # A later letter is a variable: س - 1 begins with no label of four options.
    found = [label if rest and (label or 0) < len(labels) else None for label, rest in labels]
    known = [label for label in found if label is not None]
    if len(known) < 2:
        return ""
    if len(known) < len(found):
        return f"{len(known)} of {len(found)} options begin with a label"
    return "" if known == list(range(len(known))) else "the labels of the options are out of order or repeated"


@check("error", "Damaged text measures how a model guesses letters.")
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
    if patterns.ENTITY.search(text):
        return "HTML entities"
    if patterns.LOST.search(text):
        return "letters lost as question marks"
    if patterns.REVERSED.search(text):
        return "reversed ligatures of lam and alef"
    return "wrongly decoded text" if not text.isascii() and (_is_mojibake(text) or _ftfy_mends(text)) else ""


def _is_mojibake(text: str) -> bool:
    """Arabic in Windows-1256 that was wrongly decoded as Windows-1252 or Latin-1 (`ÃÍãÏ`), which ftfy does not mend."""
    high = len(re.findall("[\u00c0-\u00ff]", text))
    if high < FEWEST_LETTERS or high < 0.6 * sum(letter.isalpha() for letter in text):
        return False
    arabic = text.encode("cp1252", "ignore").decode("cp1256", "ignore")
    return sum("\u0620" <= letter <= "\u0652" for letter in arabic) >= high - 1


def _ftfy_mends(text: str) -> bool:
    import ftfy
    from ftfy.badness import is_bad

    return is_bad(text) and ftfy.fix_encoding(text) != text


@check("warning", "What the question refers to is not in the item.")
def absent_reference(item: AuditItem) -> str:
    """The question refers to a figure, a table or a passage, and the item has none; or its image cannot be read."""
    if item.images:
        return f"the image {item.image[:80]!r} {item.image_problem}" if item.image_problem else ""
    if (found := patterns.UNDERLINED.search(item.question)) and not any(map(_shows_a_line, item.texts)):
        return f"it refers to {found[0]!r}, and nothing is underlined"
    if item.context:
        return ""
    shows_a_table = max(map(item.question.count, "|\t\n")) > 2
    if (found := patterns.ABSENT_THING.search(item.question)) and not shows_a_table:
        return f"it refers to {found[0]!r}, and has no image and no passage"
    if found := patterns.ABSENT_PASSAGE.search(item.question):
        before, after = item.question[: found.start()], item.question[found.end() :]
        rest = before if patterns.BEFORE.search(found[0]) else before + after
        short = len(rest.split()) < patterns.OWN_PASSAGE and len(rest) < patterns.OWN_LETTERS
        if short and not patterns.QUOTED.search(rest):
            return f"it refers to {found[0]!r}, and has no passage"
    return ""


def _shows_a_line(text: str) -> bool:
    """Whether a text may show what is underlined: by tags, signs or quotation marks, or as one word after a colon."""
    signs = r"</?u>|__|ـــ|\u0332|[\"«»“”()\[\]{}*'‘’]|[:：]\s*\S+\s*[.؟?]?\s*$"
    return bool(re.search(signs, text, re.IGNORECASE))


@check("error", "The task cannot score the row.")
def refused_by_reader(item: AuditItem) -> str:
    """The reader of the task refuses the row."""
    return item.refused


CHECKS += [
    Check("exact_duplicate", "error", "A repeated item counts twice."),
    Check("near_duplicate", "warning", "A nearly repeated item counts nearly twice."),
    Check("few_shot_in_test", "error", "The prompt of a few-shot run holds the item and its answer."),
]


def seen_as(text: str) -> str:
    """A text as a reader sees it: in NFC, without direction marks and tatweel, white space as single spaces."""
    return " ".join(comparable(text).replace(TATWEEL, "").split())


def run_checks(items: Sequence[AuditItem]) -> CheckResults:
    """What all checks find in items; MissingExtra without the packages they need."""
    require_extra("audit")
    findings: list[Finding] = []
    with Progress(len(items), "audit", "item") as bar:
        for item in items:
            for entry in CHECKS:
                if entry.find and (detail := entry.find(item)):
                    findings.append(Finding(entry, item, detail))
            bar.update()
    by_name = {entry.name: entry for entry in CHECKS}
    findings += [Finding(by_name[pair.kind], pair.item, pair.detail, pair.earlier) for pair in pairs(items)]
    findings.sort(key=lambda finding: CHECKS.index(finding.check))
    failed: dict[str, list[Check]] = defaultdict(list)
    for finding in findings:
        failed[finding.item.id].append(finding.check)
    return CheckResults(items, findings, [_decided(item, failed[item.id]) for item in items if item.split == "test"])


def _decided(item: AuditItem, failed: Sequence[Check]) -> ManifestRow:
    severities = {check.severity for check in failed}
    decision: Decision = "discard" if "error" in severities else "review" if failed else "keep"
    return manifest_row(item, decision, list(dict.fromkeys(f"check:{check.name}" for check in failed)), ["check"])


def manifest_row(item: AuditItem, decision: Decision, reasons: list[str], by: list[str]) -> ManifestRow:
    """The line of a manifest on an item."""
    place = {"source": item.source, "revision": item.revision, "subset": item.subset, "row": item.row}
    return ManifestRow(**place, hash=item.hash, decision=decision, reasons=reasons, by=by)
