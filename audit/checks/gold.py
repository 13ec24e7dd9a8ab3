"""Checks of the gold: is there one, and is it one of the options?"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from cultureval.audit.checks.findings import Found, check_all, check_each
from cultureval.audit.items import AuditItem
from cultureval.runtime.errors import shorten

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
