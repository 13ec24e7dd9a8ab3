"""Items that are answered without what they ask about: choices without the question, image questions without the image.

As BenchMarker (arXiv 2602.06221) asks them: the model sees the options alone, and one that is right more often than by
chance reads the answer from them. Here every item is asked with its options rotated, so that each stands at each place:
what a model does for the sake of a place or a label cancels out, and chance is one over the number of options.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cultureval.audit.checks.table import manifest_row
from cultureval.audit.items import AuditItem, guessed_language
from cultureval.metrics.proportions import holm, wilson_interval
from cultureval.prompts.templates import load_template
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.signatures import combined_hash, installed_versions, signature
from cultureval.tasks.manifest import ManifestRow

if TYPE_CHECKING:
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc

Without = Literal["question", "image"]
ROTATIONS = 5
LEVEL = 0.05
SURE = 0.5  # mean probability of the gold from which an item that is always right is named
ROUNDING = 1e-9  # means of the same probabilities in another order differ by less: they are equal
Score = Callable[[list["Doc"]], list["ModelResponse"]]


@dataclass(frozen=True)
class BlindAnswer:
    """What a model answered without the question, or without the image.

    Attributes:
        probabilities: Of each option, averaged over the rotations; they sum to 1.
        always: Whether the gold was the likeliest option in every rotation.
    """

    item: AuditItem
    without: Without
    probabilities: tuple[float, ...]
    always: bool

    @property
    def right(self) -> bool:
        """Whether the gold alone is the likeliest option."""
        others = [one for place, one in enumerate(self.probabilities) if place != self.item.gold[0]]
        return self.gold_probability > max(others) + ROUNDING

    @property
    def gold_probability(self) -> float:
        """Probability of the gold."""
        return self.probabilities[self.item.gold[0]]


@dataclass(frozen=True)
class SubsetShortcut:
    """How often a model is right in a subset without what is asked about, "question" or "image".

    Attributes:
        chance: Share right by chance: the mean of one over the number of options.
        low: Lower end of Wilson's 95% interval of the share right.
        high: Upper end.
        p_value: Of so many right by chance, adjusted by Holm over all subsets.
        named: Whether it is above chance: the interval is, and the p-value is below 0.05.
    """

    source: str
    subset: str
    without: Without
    right: int
    items: int
    chance: float
    low: float
    high: float
    p_value: float
    named: bool


def blind_questions(items: Sequence[AuditItem]) -> list[tuple[AuditItem, Without]]:
    """What can be asked: items with options of which one is right, and twice those about an image.

    Raises:
        CulturevalError: There is none.
    """
    usable = [item for item in items if item.split == "test" and len(item.gold) == 1 and len(set(item.options)) > 1]
    asked: list[tuple[AuditItem, Without]] = [(item, "question") for item in usable]
    asked += [(item, "image") for item in usable if item.images and item.question]
    if not asked:
        raise CulturevalError(
            "None of these items has options of which one is right, so that there is nothing to choose."
        )
    return asked


def template_of(item: AuditItem, without: Without) -> str:
    """Name of the prompt template of an item, by its language."""
    language = item.language if item.language in ("ar", "zh", "en") else guessed_language(" ".join(item.texts))
    return f"cultureval.audit:templates/no_{without}_{language}"


def answer_blindly(
    asked: Sequence[tuple[AuditItem, Without]], score: Score, rotations: int = ROTATIONS
) -> list[BlindAnswer]:
    """Asks a model for the labels of options, each item in several rotations of its options.

    Args:
        asked: Of `blind_questions`.
        score: `loglikelihood` of a LightEval model.
        rotations: At most so many an item; with fewer than its options, places do not quite cancel out.
    """
    orders = [_orders(len(item.options), rotations) for item, _ in asked]
    docs = [_doc(item, without, order) for (item, without), some in zip(asked, orders, strict=True) for order in some]
    responses = iter(score(docs))
    return [
        _answer(item, without, [(order, next(responses)) for order in some])
        for (item, without), some in zip(asked, orders, strict=True)
    ]


def _orders(count: int, rotations: int) -> list[list[int]]:
    """Rotations of the places of options, as far apart as can be."""
    number = min(count, rotations)
    starts = [turn * count // number for turn in range(number)]
    return [[(start + place) % count for place in range(count)] for start in starts]


def _doc(item: AuditItem, without: Without, order: Sequence[int]) -> "Doc":
    from lighteval.tasks.requests import Doc

    template = load_template(template_of(item, without))
    texts = {"options": template.options([item.options[place] for place in order])}
    if without == "image":
        texts["question"] = f"{item.context}\n{item.question}" if item.context else item.question
    return Doc(
        task_name=item.task or item.source,
        query=template.render(**texts),
        choices=template.scored_labels(len(order)),
        gold_index=order.index(item.gold[0]),
        specific={"source_row": item.row, "form": f"without_{without}"},
    )


def _answer(item: AuditItem, without: Without, found: Sequence[tuple[Sequence[int], "ModelResponse"]]) -> BlindAnswer:
    means, always = np.zeros(len(item.options)), True
    for order, response in found:
        logs = np.array(
            [
                total / max(len(tokens), 1)
                for total, tokens in zip(response.logprobs, response.output_tokens, strict=True)
            ]
        )
        chances = np.exp(logs - logs.max())
        means[list(order)] += chances / chances.sum() / len(found)
        always &= order[int(np.argmax(logs))] == item.gold[0] and bool((logs == logs.max()).sum() == 1)
    return BlindAnswer(item, without, tuple(means.tolist()), always)


def shortcuts_of(answers: Sequence[BlindAnswer]) -> list[SubsetShortcut]:
    """Each subset against chance, those that are furthest above it first."""
    grouped: dict[tuple[str, str, Without], list[BlindAnswer]] = {}
    for one in answers:
        grouped.setdefault((one.item.source, one.item.subset, one.without), []).append(one)
    p_values = holm([by_chance([len(one.item.options) for one in some], _right(some)) for some in grouped.values()])
    found = []
    for (source, subset, without), some, p_value in zip(grouped, grouped.values(), p_values, strict=True):
        right, chance = _right(some), math.fsum(1 / len(one.item.options) for one in some) / len(some)
        low, high = wilson_interval(right, len(some))
        named = low > chance and p_value < LEVEL
        found.append(SubsetShortcut(source, subset, without, right, len(some), chance, low, high, p_value, named))
    return sorted(found, key=lambda one: (not one.named, one.chance - one.low))


def _right(answers: Sequence[BlindAnswer]) -> int:
    return sum(one.right for one in answers)


def by_chance(options: Sequence[int], right: int) -> float:
    """Probability that `right` guesses or more are right: exact, for items with these numbers of options."""
    from scipy.stats import binom

    chances = np.ones(1)
    for number in sorted(set(options)):
        count = list(options).count(number)
        chances = np.convolve(chances, binom.pmf(np.arange(count + 1), count, 1 / number))
    return float(min(1.0, chances[right:].sum()))


def named_items(answers: Sequence[BlindAnswer], subsets: Sequence[SubsetShortcut]) -> list[BlindAnswer]:
    """Items of named subsets that are right in every rotation and with a mean probability of a half, surest first."""
    named = {(one.source, one.subset, one.without) for one in subsets if one.named}
    found = [
        one
        for one in answers
        if one.always and one.gold_probability >= SURE and (one.item.source, one.item.subset, one.without) in named
    ]
    return sorted(found, key=lambda one: -one.gold_probability)


def shortcut_rows(found: Sequence[BlindAnswer]) -> list[ManifestRow]:
    """Lines of a manifest that ask for a review of items."""
    reasons: dict[str, list[BlindAnswer]] = {}
    for one in found:
        reasons.setdefault(one.item.id, []).append(one)
    return [
        manifest_row(some[0].item, "review", [f"shortcuts:no_{one.without}" for one in some], ["shortcuts"])
        for some in reasons.values()
    ]


def shortcut_signature(answers: Sequence[BlindAnswer], rotations: int, model: Mapping[str, Any]) -> str:
    """All that the numbers depend on, as one line; `model` has the `signature_fields` of the model."""
    templates = sorted({template_of(one.item, one.without) for one in answers})
    data = sorted({f"{one.item.source}@{one.item.revision[:8]}" for one in answers})
    fields: dict[str, Any] = {"audit": "shortcuts", "rotations": rotations, "data": ",".join(data)}
    fields |= {"items": len(answers), "rows_hash": combined_hash(one.item.hash for one in answers)}
    fields["prompt"] = ",".join(f"{name.rpartition('/')[2]}-{load_template(name).hash}" for name in templates)
    return signature(**fields, **model, **installed_versions())
