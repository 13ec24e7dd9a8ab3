"""Checks of the gold, and of the options: empty, equal, contained in each other, out of place, oddly labelled."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import permutations

from cultureval.audit.checks.findings import Found, check_all, check_each, seen_as, words
from cultureval.audit.items import AuditItem
from cultureval.prompts.cells import is_empty
from cultureval.prompts.options import split_label
from cultureval.runtime.errors import counted, shorten

FEWEST = 50  # items of a subset below which its distribution says nothing
SIGNIFICANT = 0.001
EXCESS = 0.10  # difference from the expected share that is worth a finding


@check_each("error", "Without a gold no answer can be right.")
def missing_gold(item: AuditItem) -> str:
    """The gold cell is null or empty."""
    return "the gold is null or empty" if item.gold_problem == "missing" else ""


@check_each("error", "The gold names an option that is not there, so that every answer is wrong.")
def gold_out_of_range(item: AuditItem) -> str:
    """The gold is a label or an index of an option that is not there."""
    if item.gold_problem != "out_of_range":
        return ""
    return f"the gold {shorten(item.cells.get('gold'), 40)} is none of the {len(item.options)} options"


@check_each("error", "The right answer cannot be chosen.")
def gold_not_in_options(item: AuditItem) -> str:
    """The gold is a text that no option has."""
    if item.gold_problem != "not_in_options":
        return ""
    return f"the gold {shorten(item.cells.get('gold'), 60)} is the text of no option"


@check_all("warning", "A model that prefers a position is scored for its preference.")
def gold_position(items: Sequence[AuditItem]) -> Iterator[Found]:
    """The gold of a subset stands at a position far more or far less often than at others (chi-square, p < 0.001)."""
    from scipy.stats import chisquare

    for some in _subsets([item for item in items if not item.shuffled]):
        count, _ = Counter(len(item.options) for item in some).most_common(1)[0]
        places = Counter(item.gold[0] for item in some if len(item.options) == count)
        total = places.total()
        if total < FEWEST or count < 2:
            continue
        observed = [places[place] for place in range(count)]
        furthest = max(abs(number / total - 1 / count) for number in observed)
        if chisquare(observed).pvalue < SIGNIFICANT and furthest > EXCESS:
            shares = ", ".join(f"{number / total:.0%}" for number in observed)
            yield Found(some[0], f"of {total} items with {count} options the gold stands at {shares}", True)


@check_all("warning", "The right answer can be guessed by its length.")
def longest_option(items: Sequence[AuditItem]) -> Iterator[Found]:
    """The longest option of a subset's items is right far more often than by chance (binomial test, p < 0.001)."""
    from scipy.stats import binomtest

    for some in _subsets(items):
        told = [(item, _longest(item)) for item in some]
        told = [(item, longest) for item, longest in told if longest is not None]
        if len(told) < FEWEST:
            continue
        right = sum(item.gold[0] == longest for item, longest in told)
        chance = sum(1 / len(item.options) for item, _ in told) / len(told)
        share = right / len(told)
        if share > chance + EXCESS and binomtest(right, len(told), chance, "greater").pvalue < SIGNIFICANT:
            yield Found(
                told[0][0],
                f"the longest option is right in {share:.0%} of {len(told)} items, {chance:.0%} by chance",
                True,
            )


def _subsets(items: Sequence[AuditItem]) -> Iterator[list[AuditItem]]:
    """The evaluated items of each subset that have one right option."""
    grouped: dict[tuple[str, str], list[AuditItem]] = defaultdict(list)
    for item in items:
        if item.split == "test" and len(item.gold) == 1:
            grouped[item.source, item.subset].append(item)
    yield from grouped.values()


def _longest(item: AuditItem) -> int | None:
    """The position of the longest option; None where another is within a tenth of its length."""
    lengths = [len(option) for option in item.options]
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    if len(order) < 2 or lengths[order[1]] > 0.9 * lengths[order[0]]:
        return None
    return order[0]


_EVERY = r"(?:جميع|كل|كافة|كلا?|أي|اي)"
_NONE = r"(?:ال?\s*شي[ءئ]|الشى[ءئ]|لا\s*شيء?|لاشيء|لا\s*شئ|لاشئ|ليس|لا\s+أحد|لا\s+احد|لا\s+واحد[ةه]?)"
_ABOVE = (
    r"(?:ما\s*سبق|مما\s*سبق|ما\s*ذكر|مما\s*ذكر|ما\s*تقدم|مما\s*تقدم|السابق[ةه]?|"
    r"(?:هذه\s+)?(?:الإجابات|الاجابات|الخيارات|البدائل|الاختيارات|الأجوبة)[^،؛]{0,25})"
)
_CHINESE = "(?:都|皆|全|均|全部)?(?:不?是|不?对|不?正确|错误|非|不成立)"
_OF_OTHERS = (
    rf"{_EVERY}\s+{_ABOVE}.{{0,20}}",
    rf"{_NONE}\s+(?:من\s+)?{_ABOVE}.{{0,20}}",
    r"لا\s+(?:يوجد|توجد)\s+[إا]جاب[ةه]\s+صحيح[ةه]",
    r"(?:جميعها|كلها|كلاهما)(?:\s+(?:صحيح|خاطئ|خطأ).{0,6})?",
    r"(?:all|none|any|both)\s+(?:of\s+)?(?:the\s+)?(?:above|previous|these|answers|options|choices).{0,20}",
    r"(?:all|none|both)\s+(?:are\s+)?(?:correct|true|right|wrong)",
    rf"以上(?:选项|答案|说法|所述|各项|[两二三四]项|所有|全部)*{_CHINESE}?|(?:都|皆|全|均|全部)+(?:不?是|不?对|不?正确|错误)",
    r"(?:هم(?:ه\s*[یي\u0654]?|\u06c0)|تمام[یي]?|[کك]ل[یي]ه\s*[یي\u0654]?)\s*(?:موارد|گز[یي]نه\s*ها).{0,15}",
    # Not of others than options: هیچ یک از پیامبران
    r"ه[یي]چ\s*(?:[کك]دام|[یي][کك]\b)(?:\s+از\s+(?:موارد|گز[یي]نه|پاسخ|جواب|ا[یي]ن|آن).{0,25}|(?!\s+از\b).{0,20})",
    r"هر\s+(?:دو|سه|چهار)\s+(?:مورد|گزینه).{0,10}",
)
_REFERS = re.compile("|".join(f"(?:{one})" for one in _OF_OTHERS), re.IGNORECASE)
_LABELS = r"(?:[A-Ea-e]|الف|[أابجد]|هـ?)"
_NAMES_LABELS = re.compile(
    rf"(?:(?:كلا?\s+من|both|neither|الإجابتان|الاجابتان|گزینه\S*|موارد)\s+)?\(?{_LABELS}\)?"
    rf"\s*(?:و|and|nor|&|\+|،|,|和|与|及|、)\s*\(?{_LABELS}\)?"
    r"(?:\s*(?:معا|معاً|صحيح.{0,6}|فقط|only|(?:are\s+)?(?:correct|true)|[都均皆]?(?:不?对|不?正确|是)))?"
    r"|[A-E]{2,4}[都均皆](?:不?对|不?正确|是)",
    re.IGNORECASE,
)


_MARKED = re.compile(
    r"[(\[{<]\s*(?:هذه\s+هي\s+)?(?:ال)?(?:إجابة|اجابة|جواب|خيار|صحيح|صواب|خطأ|صح)[ةه]?(?:\s+(?:ال)?(?:صحيح|خاطئ|خطأ|نموذجي)[ةه]?)?\s*[)\]}>]\s*$"
    r"|[(\[{<]\s*(?:the\s+)?(?:correct|right|true|wrong)(?:\s+(?:answer|option|choice))?\s*[)\]}>]\s*$"
    r"|[(\[（【]\s*(?:正确答案|正确|对)\s*[)\]）】]\s*$|[✓✔✅☑❌✗✘]",
    re.IGNORECASE,
)


_STARS = re.compile(
    r"\*{1,3}\s*(?P<after>[^\W\d_]{2}[^*&=;{}<>+]*)\*{0,3}|"
    r"(?P<before>[^\W\d_][^*&=;{}<>+]*[^\W\d_]{2}[\u064b-\u0652]?)\*{1,3}"
)


@check_each("error", "There is nothing to choose from.")
def too_few_options(item: AuditItem) -> str:
    """A question with options has fewer than two."""
    return f"it has {counted(len(item.options), 'option')}" if item.form == "mcq" and len(item.options) < 2 else ""


@check_each("error", "An empty option can be ruled out, or was lost.")
def empty_option(item: AuditItem) -> str:
    """An option before the last filled one is empty, also where the task's reader leaves it out."""
    cells = {int(name.split()[1]): cell for name, cell in item.cells.items() if name.startswith("option ")}
    shown = cells if item.task else dict(enumerate(item.options, start=1))
    empty = [str(place) for place, option in shown.items() if is_empty(option) or not seen_as(str(option))]
    told = f"options {', '.join(empty)} are" if len(empty) > 1 else f"option {', '.join(empty)} is"
    return f"{told} empty" if empty and len(empty) < len(shown) else ""


@check_each("error", "An option that says whether it is right gives the answer away.")
def marked_answer(item: AuditItem) -> str:
    """An option says that it is the right one, or wrong."""
    for place, option in enumerate(item.options, start=1):
        if found := _MARKED.search(option):
            return f"option {place} holds {shorten(found[0], 40)}"
    starred = [place for place, option in enumerate(item.options) if "*" in option]
    if len(starred) == 1 and starred[0] in item.gold and _is_starred(item.options[starred[0]]):
        return f"stars mark option {starred[0] + 1}, the right one, alone: {shorten(item.options[starred[0]], 40)}"
    return ""


def _is_starred(option: str) -> bool:
    """Whether stars stand before or after words; `*ptr`, `int*` and `ab*` are code."""
    found = _STARS.fullmatch(option.strip())
    if not found or not option.isascii():
        return bool(found)
    text = (found["after"] or found["before"]).strip()
    return " " in text and text[0].isupper() if found["before"] else " " in text or text[0].isupper()


@check_each("warning", "Two options that look the same are right or wrong together, and only one of them counts.")
def duplicate_options(item: AuditItem) -> str:
    """Two options look the same: equal in NFC without direction marks, tatweel and spare white space."""
    places: dict[str, int] = {}
    for place, option in enumerate(map(seen_as, item.options), start=1):
        if option and (first := places.setdefault(option, place)) != place:
            return f"options {first} and {place} are both {shorten(option, 40)}"
    return ""


@check_each("notice", "Where an option holds all of another, both may be right.")
def contained_option(item: AuditItem) -> str:
    """All words of an option stand side by side in another one, so that both may be right."""
    spelled = [words(option) for option in item.options]
    for (place, short), (other, long) in permutations(enumerate(spelled, start=1), 2):
        if short and len(short) < len(long) and not all(word.isdigit() for word in short) and _holds(long, short):
            return f"option {place} {shorten(item.options[place - 1], 40)} is part of option {other}"
    return ""


def _holds(long: tuple[str, ...], short: tuple[str, ...]) -> bool:
    return any(long[start : start + len(short)] == short for start in range(len(long) - len(short) + 1))


@check_each("warning", "What an option says of the others is wrong when they stand elsewhere.")
def all_of_the_above(item: AuditItem) -> str:
    """An option that refers to the others ("all of the above", "A and B") is not the last, or options are shuffled."""
    refers = [_refers(option) for option in item.options]
    if not any(refers):
        return ""
    place = refers.index(True)
    if item.shuffled:
        return f"option {place + 1} {shorten(item.options[place], 40)} refers to others, and options are shuffled"
    if not all(refers[place:]):
        return f"option {place + 1} {shorten(item.options[place], 40)} refers to those above, and is not the last"
    return ""


def _refers(option: str) -> bool:
    text = seen_as(option).strip(" .،؛:()")
    return bool(_REFERS.fullmatch(text) or _NAMES_LABELS.fullmatch(text))


@check_each("warning", "Labels inside the options contradict those that the prompt gives them.")
def inconsistent_labels(item: AuditItem) -> str:
    """Some options begin with a label of their own and others do not, or the labels are out of order or repeated."""
    labels = [split_label(option) for option in item.options]
    # A later letter is a variable: س - 1 begins with no label of four options.
    given = [label if rest and (label or 0) < len(labels) else None for label, rest in labels]
    known = [label for label in given if label is not None]
    if len(known) < 2:
        return ""
    if len(known) < len(given):
        return f"{len(known)} of {len(given)} options begin with a label"
    return "" if known == list(range(len(known))) else "the labels of the options are out of order or repeated"
