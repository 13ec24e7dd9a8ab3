"""All steps of a curation: from a folder of images to items with statements, and what that would cost."""

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from cultureval.audit.m2cqa import questions, statements
from cultureval.audit.m2cqa.files import IMAGE, METADATA, NEAR, metadata_file, read_images
from cultureval.audit.m2cqa.items import LANGUAGES, ChoiceQuestion, Item, Outcome, Rejected
from cultureval.metrics.judges.asking import Asker, CostEstimate
from cultureval.metrics.judges.settings import JudgeSettings, judge_identity
from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.dotted_names import load_attribute
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note
from cultureval.runtime.settings import current_settings

MAX_TOKENS = 1024
RULES = 1  # raised with a change of the rules for replies, which redoes the steps
# Approximate tokens of a reply, for estimates of cost.
REPLY_TOKENS = {"questions": 220, "blind": 4, "translation": 120, "statements": 110}
# In place of a question that is not yet written, in estimates.
STAND_IN = ChoiceQuestion("Which of these is shown at the centre of the image? " * 2, ("three or four words",) * 3, 0)
FORMAT = 1
_ITEM = TypeAdapter(Item)
Encode = Callable[[Sequence[str]], np.ndarray]


@dataclass(frozen=True)
class Contrast:
    """Mean cosines of one kind of texts.

    Attributes:
        within: Of true texts with the counterfactual ones of their item; nan without items.
        across: Of true texts with the counterfactual ones of another item; nan with fewer than two.
    """

    within: float
    across: float
    items: int


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        name: Of its file, such as `2_questions`.
        inputs: All that its outcome depends on, besides the step before; JSON.
        run: From the items that the step before kept to what becomes of them.
    """

    name: str
    inputs: Mapping[str, Any]
    run: Callable[[Sequence[Item]], Outcome]


@dataclass(frozen=True)
class CurationPlan:
    """A curation, into a folder of the steps' files and the data set.

    Attributes:
        writer: The model that writes questions and statements; it takes images.
        blind: The models of the image-blind filter.
        translators: Variety -> the model that translates into it, or `PACKAGE:FUNCTION`.
    """

    images: Path
    output: Path
    writer: JudgeSettings
    blind: tuple[JudgeSettings, ...]
    translators: Mapping[str, JudgeSettings | str] = field(default_factory=dict)
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

        models = [self.writer, *self.blind, *(one for one in self.translators.values() if not isinstance(one, str))]
        for one in models:
            if any(one.name == other.name and one != other for other in models):
                raise CulturevalError(f"Two models are called {one.name!r}: give each a different `name`.")

    @property
    def varieties(self) -> tuple[str, ...]:
        """English and those with a translator, in the order of the paper."""
        return tuple(name for name in LANGUAGES if name == "en" or name in self.translators)

    @property
    def folder(self) -> Path:
        """Of the steps' files."""
        return self.output / "steps"


@dataclass
class Models:
    """The models of a curation, each asked who it is when it is first needed."""

    known: dict[str, Asker] = field(default_factory=dict)

    def asker(self, settings: JudgeSettings) -> Asker:
        """The asker of a model, which may have several parts; CulturevalError where it does not answer."""
        if settings.name not in self.known:
            self.known[settings.name] = Asker(settings, judge_identity(settings))
        return self.known[settings.name]

    def translator(self, given: JudgeSettings | str) -> "Asker | questions.Translator":
        """A model, or the function of a dotted name; CulturevalError where there is none."""
        if isinstance(given, JudgeSettings):
            return self.asker(given)
        return load_attribute(given)


def writing(settings: JudgeSettings, budget: float | None) -> JudgeSettings:
    """A model's settings with room for the longest reply, unless they say how long one may be."""
    return settings.with_reply_length(MAX_TOKENS).with_(budget=budget)


def curate(plan: CurationPlan, models: Models) -> dict[str, Outcome]:
    """Runs the steps that are not done; name of a step -> its outcome, the last of which has all that was kept."""
    return run_steps(steps_of(plan, models), plan.folder)


def steps_of(plan: CurationPlan, models: Models) -> list[Step]:
    """The steps of a plan, in order."""
    rules = {"rules": RULES}
    writer = {"model": _facts(plan.writer)}
    mcq = {"prompts": [questions.MCQ.hash, questions.MCQ_INPUT.hash]} | writer | rules
    blind = {
        "prompts": [questions.BLIND.hash],
        "models": [_facts(one) for one in plan.blind],
        "seed": plan.seed,
    } | rules
    steps = [
        Step("1_images", {"files": _state_of(plan.images), "near": NEAR} | rules, lambda _: read_images(plan.images)),
        Step("2_questions", mcq, lambda items: questions.write_questions(items, models.asker(plan.writer))),
        Step(
            "3_blind",
            blind,
            lambda items: questions.filter_blind(items, [models.asker(one) for one in plan.blind], plan.seed),
        ),
    ]
    for variety in plan.varieties[1:]:
        given = plan.translators[variety]
        inputs = {"prompts": [questions.TRANSLATE.hash], "model": _facts(given)} | rules
        steps.append(Step(f"4_translation_{variety}", inputs, partial(_translate, variety, given, models)))
    for variety in plan.varieties:
        inputs = {"prompts": [statements.SYSTEM.hash, statements.INPUT.hash]} | writer | rules
        steps.append(Step(f"5_statements_{variety}", inputs, partial(_statements, variety, plan.writer, models)))
    return steps


def _translate(variety: str, given: JudgeSettings | str, models: Models, items: Sequence[Item]) -> Outcome:
    return questions.translate(items, variety, models.translator(given))


def _statements(variety: str, writer: JudgeSettings, models: Models, items: Sequence[Item]) -> Outcome:
    return statements.write_statements(items, variety, models.asker(writer))


def _facts(model: JudgeSettings | str) -> Any:
    """What of a model a step's outcome depends on: not addresses, prices or limits of time."""
    if isinstance(model, str):
        return model
    names = ("name", "model", "revision", "temperature", "max_tokens", "extra_body", "image_format", "image_max_side")
    return {name: getattr(model, name) for name in names}


def _state_of(folder: Path) -> list[Any]:
    """The metadata's hash, and size and time of change of each file that it may name."""
    table = metadata_file(folder)
    named = {str(row.get(name)) for row in read_rows(table) for name in IMAGE if row.get(name)}
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in METADATA)
    found = [(path.relative_to(folder).as_posix(), path.stat()) for path in files]
    state = [[name, info.st_size, info.st_mtime_ns] for name, info in found]
    return [hashlib.sha256(table.read_bytes()).hexdigest(), sorted(named), state]


def estimates(plan: CurationPlan, models: Models) -> dict[str, CostEstimate]:
    """`step by model` -> its calls and cost if no item were rejected from here on; no question of a step is asked.

    Where a step is not done, the questions that it will write are reckoned with a stand-in of usual length.
    """
    images = read_step(plan.folder / "1_images.jsonl") or read_images(plan.images)
    written = read_step(plan.folder / "2_questions.jsonl")
    items = [
        item.with_(questions={name: item.questions.get(name, STAND_IN) for name in plan.varieties})
        for item in (written or images).kept
    ]
    writer = models.asker(plan.writer)
    found = {
        f"2_questions by {plan.writer.name}": writer.estimate(
            questions.mcq_questions(images.kept), REPLY_TOKENS["questions"]
        )
    }
    blind = [question for question, _ in questions.blind_questions(items, plan.seed).values()]
    for model in plan.blind:
        found[f"3_blind by {model.name}"] = models.asker(model).estimate(blind, REPLY_TOKENS["blind"])
    for variety, given in plan.translators.items():
        if isinstance(given, JudgeSettings):
            asked = questions.translation_questions(items, variety)
            tokens = REPLY_TOKENS["translation"]
            found[f"4_translation_{variety} by {given.name}"] = models.asker(given).estimate(asked, tokens)
    for variety in plan.varieties:
        asked = statements.statement_questions(items, variety)
        found[f"5_statements_{variety} by {plan.writer.name}"] = writer.estimate(asked, REPLY_TOKENS["statements"])
    return found


def run_steps(steps: Sequence[Step], folder: Path) -> dict[str, Outcome]:
    """Runs the steps, in order, whose files are missing or out of date; all of them where nothing shall be resumed.

    Returns:
        Name of a step -> its outcome.

    Raises:
        CulturevalError: A step could not ask all its questions; its model's replies so far are kept.
    """
    found: dict[str, Outcome] = {}
    items: tuple[Item, ...] = ()
    before = ""
    for step in steps:
        file = folder / f"{step.name}.jsonl"
        key = _key(step, before)
        outcome = read_step(file, key) if current_settings().resume else None
        if outcome and any(one.reason.endswith("no_answer") for one in outcome.rejected):
            outcome = None  # a server failed with some questions, which are asked again; the journal has the others
        if outcome is None:
            print_note(f"{step.name}: {len(items):,} items" if items else step.name)
            outcome = step.run(items)
            if outcome.waiting:
                raise CulturevalError(
                    f"{step.name}: {outcome.waiting}. All replies so far are kept: run the same command to continue."
                )
            _write(file, step.name, key, outcome)
        found[step.name], items = outcome, outcome.kept
        before = hashlib.sha256(file.read_bytes()).hexdigest()
        if not items:
            why = Counter(one.reason for one in outcome.rejected).most_common()
            told = ", ".join(f"{count} {reason}" for reason, count in why)
            raise CulturevalError(f"{step.name} keeps no item ({told}): {file} has the details.")
    return found


def read_step(file: Path, key: str | None = None) -> Outcome | None:
    """The outcome in a step's file; None where it is missing, of another key (None takes any), or was changed."""
    try:
        head, _, body = file.read_bytes().partition(b"\n")
        told = json.loads(head)
        same = told["format"] == FORMAT and key in (None, told["key"]) and told["content"] == _hash(body)
        lines = [json.loads(line) for line in body.decode("utf-8").splitlines()] if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if lines is None:
        return None
    kept = tuple(_ITEM.validate_python(line["kept"]) for line in lines if "kept" in line)
    return Outcome(kept, tuple(Rejected(**line["rejected"]) for line in lines if "rejected" in line))


def _key(step: Step, before: str) -> str:
    parts = {"format": FORMAT, "name": step.name, "inputs": step.inputs, "before": before}
    return _hash(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode("utf-8"))


def _write(file: Path, name: str, key: str, outcome: Outcome) -> None:
    lines = [{"kept": asdict(item)} for item in outcome.kept]
    lines += [{"rejected": asdict(one)} for one in outcome.rejected]
    body = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode("utf-8")
    head = {"format": FORMAT, "step": name, "key": key, "content": _hash(body)}
    head |= {"kept": len(outcome.kept), "rejected": len(outcome.rejected)}
    write_atomically(file, json.dumps(head).encode("ascii") + b"\n" + body)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def contrasts(items: Sequence[Item], encode: Encode, seed: int) -> dict[str, Contrast]:
    """The check for full statements and for options, in English.

    `encode` turns texts into an array [texts, dimensions] of vectors of length 1; `seed` draws the other items.
    """
    statements = [item.statements["en"].texts for item in items]
    options = []
    for item in items:
        asked = item.questions["en"]
        wrong = [text for place, text in enumerate(asked.options) if place != asked.answer]
        options.append((asked.options[asked.answer], *wrong))
    return {"statements": _contrast(statements, encode, seed), "options": _contrast(options, encode, seed)}


def _contrast(texts: Sequence[Sequence[str]], encode: Encode, seed: int) -> Contrast:
    if not texts:
        return Contrast(float("nan"), float("nan"), 0)
    count, each = len(texts), len(texts[0])
    vectors = encode([text for some in texts for text in some]).reshape(count, each, -1)
    within = np.einsum("id,ijd->ij", vectors[:, 0], vectors[:, 1:])
    if count < 2:
        return Contrast(float(within.mean()), float("nan"), count)
    chance = random.Random(seed)
    others = [(place + chance.randrange(1, count)) % count for place in range(count)]
    across = np.einsum("id,ijd->ij", vectors[:, 0], vectors[others, 1:])
    return Contrast(float(within.mean()), float(across.mean()), count)
