"""All steps of a curation, from a folder of images to items with statements.

Replies are in the journal: the same command continues a curation that was killed, and pays no reply twice.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cultureval.audit.m2cqa.files import read_images
from cultureval.audit.m2cqa.items import LANGUAGES, Item, Outcome
from cultureval.audit.m2cqa.steps import filter_blind, translate, write_questions, write_statements
from cultureval.metrics.judges.asking import Asker
from cultureval.metrics.judges.settings import JudgeSettings, judge_identity
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note

MAX_TOKENS = 1024


@dataclass(frozen=True)
class CurationPlan:
    """A curation.

    Attributes:
        images: Folder of images with their metadata.
        writer: The model that writes questions and statements; it takes images.
        blind: The models of the image-blind filter.
        translators: Variety -> the model that translates into it.
    """

    images: Path
    writer: JudgeSettings
    blind: tuple[JudgeSettings, ...]
    translators: Mapping[str, JudgeSettings] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.writer.images:
            raise CulturevalError(f"The writer {self.writer.name} takes no images (`images: false`).")
        for variety in self.translators:
            if variety not in LANGUAGES or variety == "en":
                raise CulturevalError(f"There is no translation into {variety!r}: the varieties are msa, ajp and arz.")
        named: dict[str, JudgeSettings] = {}
        for model in (self.writer, *self.blind, *self.translators.values()):
            if named.setdefault(model.name, model) != model:
                raise CulturevalError(f"Two models are called {model.name!r}: give each a different `name`.")

    @property
    def varieties(self) -> tuple[str, ...]:
        """English and those with a translator, in the order of the paper."""
        return tuple(name for name in LANGUAGES if name == "en" or name in self.translators)


def curate(plan: CurationPlan) -> tuple[dict[str, Outcome], dict[str, Asker]]:
    """Runs all steps.

    Returns:
        (step -> its outcome, the last with all items that were kept; model -> its asker).

    Raises:
        CulturevalError: A model does not answer, stops before the end of a step, or a step keeps no item.
    """
    models = {model.name: model for model in (plan.writer, *plan.blind, *plan.translators.values())}
    askers = {name: Asker(model, judge_identity(model)) for name, model in models.items()}
    writer = askers[plan.writer.name]
    outcomes: dict[str, Outcome] = {}

    def done(step: str, outcome: Outcome) -> tuple[Item, ...]:
        for name, asker in askers.items():
            if asker.stopped:
                raise CulturevalError(
                    f"{step}: {name} stopped ({asker.stopped}). Replies so far are saved: run the same command to "
                    "continue."
                )
        if not outcome.kept:
            reasons = Counter(one.reason for one in outcome.rejected).most_common()
            raise CulturevalError(f"{step} keeps no item ({', '.join(f'{n} {reason}' for reason, n in reasons)}).")
        outcomes[step] = outcome
        print_note(f"{step}: {len(outcome.kept):,} items")
        return outcome.kept

    items = done("1_images", read_images(plan.images))
    items = done("2_questions", write_questions(items, writer))
    items = done("3_blind", filter_blind(items, [askers[model.name] for model in plan.blind]))
    for variety in plan.varieties[1:]:
        translator = askers[plan.translators[variety].name]
        items = done(f"4_translation_{variety}", translate(items, variety, translator))
    for variety in plan.varieties:
        items = done(f"5_statements_{variety}", write_statements(items, variety, writer))
    return outcomes, askers


def contrasts(items: Sequence[Item], encode: Callable[[Sequence[str]], np.ndarray]) -> dict[str, tuple[float, float]]:
    """The check of minimal contrast in English (M2CQA, Appendix A.2.3).

    Args:
        encode: From texts to an array [texts, dimensions] of vectors of length 1.

    Returns:
        "statements" and "options" -> mean cosines of true texts with the counterfactual texts of their own item, and
        with those of another item, which is nan for one item.
    """
    asked = [item.questions["en"] for item in items]
    options = [sorted(one.options, key=lambda option, one=one: option != one.options[one.answer]) for one in asked]
    chance, count = random.Random(0), len(items)
    shifted = [(place + chance.randrange(1, max(count, 2))) % count for place in range(count)]
    found = {}
    for name, texts in (("statements", [item.statements["en"].texts for item in items]), ("options", options)):
        vectors = encode([text for three in texts for text in three]).reshape(count, 3, -1)
        within, across = (
            float(np.einsum("id,ijd->ij", vectors[:, 0], wrong[:, 1:]).mean()) for wrong in (vectors, vectors[shifted])
        )
        found[name] = within, across if count > 1 else float("nan")
    return found
