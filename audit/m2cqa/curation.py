"""All steps of a curation: from a folder of images to items with statements.

Replies are in the journal: a curation that was killed goes on where it stopped, and pays no reply twice.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cultureval.audit.m2cqa import questions, statements
from cultureval.audit.m2cqa.files import read_images
from cultureval.audit.m2cqa.items import LANGUAGES, Item, Outcome
from cultureval.metrics.judges.asking import Asker
from cultureval.metrics.judges.settings import JudgeSettings, judge_identity
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note

MAX_TOKENS = 1024
Encode = Callable[[Sequence[str]], np.ndarray]


@dataclass(frozen=True)
class CurationPlan:
    """A curation.

    Attributes:
        images: Folder of images with their metadata.
        writer: The model that writes questions and statements; it takes images.
        blind: The models of the image-blind filter.
        translators: Variety -> the model that translates into it.
        seed: Of shuffled options and of samples.
    """

    images: Path
    writer: JudgeSettings
    blind: tuple[JudgeSettings, ...]
    translators: Mapping[str, JudgeSettings] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.blind:
            raise CulturevalError(
                "Name the models of the image-blind filter (the paper has two): --blind A.yaml,B.yaml."
            )
        if not self.writer.images:
            raise CulturevalError(f"The writer {self.writer.name} takes no images (`images: false`).")
        for variety in self.translators:
            if variety not in LANGUAGES or variety == "en":
                raise CulturevalError(f"There is no translation into {variety!r}: the varieties are msa, ajp and arz.")
        models = [self.writer, *self.blind, *self.translators.values()]
        for one in models:
            if any(one.name == other.name and one != other for other in models):
                raise CulturevalError(f"Two models are called {one.name!r}: give each a different `name`.")

    @property
    def varieties(self) -> tuple[str, ...]:
        """English and those with a translator, in the order of the paper."""
        return tuple(name for name in LANGUAGES if name == "en" or name in self.translators)


def writing(settings: JudgeSettings, budget: float | None) -> JudgeSettings:
    """A model's settings with room for the longest reply, unless they say how long one may be."""
    return settings.with_reply_length(MAX_TOKENS).with_(budget=budget)


def curate(plan: CurationPlan) -> tuple[dict[str, Outcome], dict[str, Asker]]:
    """Runs all steps.

    Returns:
        (name of a step -> its outcome, the last of which has all that was kept; name of a model -> its asker).

    Raises:
        CulturevalError: A model does not answer, a step could not ask all its questions, or keeps no item.
    """
    models = {one.name: one for one in (plan.writer, *plan.blind, *plan.translators.values())}
    askers = {name: Asker(one, judge_identity(one)) for name, one in models.items()}
    writer, blind = askers[plan.writer.name], [askers[one.name] for one in plan.blind]
    steps: dict[str, Callable[[Sequence[Item]], Outcome]] = {
        "1_images": lambda _: read_images(plan.images),
        "2_questions": lambda items: questions.write_questions(items, writer),
        "3_blind": lambda items: questions.filter_blind(items, blind, plan.seed),
    }
    for variety in plan.varieties[1:]:
        translator = askers[plan.translators[variety].name]
        steps[f"4_translation_{variety}"] = lambda items, v=variety, t=translator: questions.translate(items, v, t)
    for variety in plan.varieties:
        steps[f"5_statements_{variety}"] = lambda items, v=variety: statements.write_statements(items, v, writer)
    found: dict[str, Outcome] = {}
    items: tuple[Item, ...] = ()
    for name, step in steps.items():
        print_note(f"{name}: {len(items):,} items" if items else name)
        found[name] = _complete(name, step(items))
        items = found[name].kept
    return found, askers


def _complete(name: str, outcome: Outcome) -> Outcome:
    """The outcome of a step that asked all its questions and kept some items."""
    if outcome.waiting:
        raise CulturevalError(f"{name}: {outcome.waiting}. Replies so far are kept: run the same command to continue.")
    if not outcome.kept:
        why = Counter(one.reason for one in outcome.rejected).most_common()
        told = ", ".join(f"{count} {reason}" for reason, count in why)
        raise CulturevalError(f"{name} keeps no item ({told}).")
    return outcome


@dataclass(frozen=True)
class Contrast:
    """Mean cosines of one kind of texts.

    Attributes:
        within: Of true texts with the counterfactual ones of their item.
        across: Of true texts with the counterfactual ones of another item; nan with fewer than two.
    """

    within: float
    across: float
    items: int


def contrasts(items: Sequence[Item], encode: Encode, seed: int) -> dict[str, Contrast]:
    """The check for full statements and for options, in English (M2CQA, Appendix A.2.3).

    `encode` turns texts into an array [texts, dimensions] of vectors of length 1; `seed` draws the other items.
    """
    said = [item.statements["en"].texts for item in items]
    options = []
    for item in items:
        asked = item.questions["en"]
        wrong = [text for place, text in enumerate(asked.options) if place != asked.answer]
        options.append((asked.options[asked.answer], *wrong))
    return {"statements": _contrast(said, encode, seed), "options": _contrast(options, encode, seed)}


def _contrast(texts: Sequence[Sequence[str]], encode: Encode, seed: int) -> Contrast:
    count, each = len(texts), len(texts[0])
    vectors = encode([text for some in texts for text in some]).reshape(count, each, -1)
    within = np.einsum("id,ijd->ij", vectors[:, 0], vectors[:, 1:])
    if count < 2:
        return Contrast(float(within.mean()), float("nan"), count)
    chance = random.Random(seed)
    others = [(place + chance.randrange(1, count)) % count for place in range(count)]
    across = np.einsum("id,ijd->ij", vectors[:, 0], vectors[others, 1:])
    return Contrast(float(within.mean()), float(across.mean()), count)
