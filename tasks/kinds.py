r"""How a benchmark is asked and scored: the kinds of a benchmark in one file, and the generated form of choices.

    from cultureval import Benchmark, multiple_choice

    BENCHMARKS = [Benchmark(
        "proverbs", repo="my-lab/proverbs", split="test", language="fa",
        kind=multiple_choice(labels="1 2 3 4", prompt="پرسش: $question\n$options\nپاسخ:"),
        row=lambda r: {"question": r["question"], "options": r["options"], "gold": r["answer"]},
    )]

`row` returns the slots of the prompt and, by the kind, the gold. `image` in it is a file's bytes or path, or the hub's
image; `context` is a passage that questions share: their errors are clustered by it.
"""

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from string import Template
from typing import Any

from cultureval.metrics.declared import CHOICE_REPLIES, MULTIPLE_CHOICE, Range, declare
from cultureval.prompts.cells import readable, text_list
from cultureval.prompts.choices import (
    answer_prompt,
    choice_prompt,
    choice_reply_prompt,
    choice_row,
    cluster_of,
    instruction_name,
)
from cultureval.prompts.preparation import Preparation, PreparedRow
from cultureval.prompts.templates import load_template
from cultureval.runtime.dotted_names import lazy_call
from cultureval.runtime.errors import BadRow, CulturevalError
from cultureval.runtime.settings import current_settings
from cultureval.tasks.suite import Benchmark, Instrument, Kind

Score = Callable[[str, Sequence[str]], float]

CHOICES = "cultureval.metrics.lighteval.multiple_choice"
ANSWERS = "cultureval.metrics.lighteval.free_answers"
SEVERAL = {"multiple_choice": False, "multi_select": True}  # kinds with a generated form -> may several be right
REPLY_TOKENS = 2048  # reasoning included
PARSER = Instrument(name=lambda: "labels(strict, v5)")
JUDGED = declare("answered")  # the judges' own scores are beside it
MULTIPLE_CHOICE_KIND = Kind(
    "multiple_choice", "MCQ", MULTIPLE_CHOICE, choice_prompt, lazy_call(f"{CHOICES}:multiple_choice_metrics")
)


def multiple_choice(labels: str, prompt: str) -> Kind:
    """Questions with one right option, whose label the model scores.

    `row` returns `question`, `options` (a list of texts) and `gold` (the label of the right one) or `index` (from 0).

    Args:
        labels: Of the options, in order, separated by spaces.
        prompt: With the slots `$question` and `$options`, which are listed as `1. text`. A space comes between it and
            the label, unless it ends in white space.

    Raises:
        ValueError: The labels are fewer than two or repeated, or the prompt lacks a slot.
    """
    names = labels.split()
    if len(set(names)) < max(len(names), 2):
        raise ValueError(f"multiple_choice: the labels {labels!r} are not two or more distinct ones, such as 'A B C D'")
    if missing := [slot for slot in ("question", "options") if slot not in Template(prompt).get_identifiers()]:
        raise ValueError(f"multiple_choice: the prompt has no slot ${missing[0]}")
    text = _template(prompt, labels=names, separator="" if prompt[-1:].isspace() else " ")
    return replace(MULTIPLE_CHOICE_KIND, template=text, rows=partial(_choice, names))


def generate(
    metrics: Mapping[str, Score],
    prompt: str,
    new_tokens: int = 256,
    stop: Sequence[str] = (),
    ranges: Mapping[str, Range] | None = None,
    lower: Sequence[str] = (),
) -> Kind:
    """Questions with free answers, scored by functions.

    `row` returns the slots of the prompt and `answers`, the right ones (a text or a list of texts).

    Args:
        metrics: Name -> function of the answer and the right ones, that returns a number; the headline first. The
            score of a task is its mean.
        new_tokens: At most.
        stop: Texts that end an answer, such as a newline.
        ranges: Lowest and highest value of a metric, where these are not 0 and 1.
        lower: Metrics of which lower values are better.

    Raises:
        ValueError: There are no metrics, or `ranges` or `lower` name others.
    """
    if not metrics:
        raise ValueError("generate: name at least one metric")
    declared = declare(*metrics, ranges=ranges, lower=lower)
    return Kind(
        *("generation", "generation", declared, answer_prompt),
        lazy_call(f"{ANSWERS}:function_metrics", declared, dict(metrics)),
        new_tokens,
        tuple(stop),
        Instrument(name=lambda: ",".join(f"{name}@{_hash(score)}" for name, score in metrics.items())),
        template=_template(prompt, separator=""),
        rows=_answer,
    )


def judged(template: str, prompt: str, new_tokens: int = 512, stop: Sequence[str] = ()) -> Kind:
    """Questions with free answers, scored by the judges of CULTUREVAL_JUDGE.

    `row` returns the slots of the prompt and those of the judge's template, which gets the answer in its own slot.

    Args:
        template: The judge's template: one of ours (`jeem_vqa`), or `MODULE:FILE`, a text file beside the benchmark's
            module, without `.txt`. Its head is described in `cultureval.judge_prompts.templates`.
        new_tokens: At most.
        stop: Texts that end an answer.
    """
    return Kind(
        *("judged_answers", "judged answers", JUDGED, partial(answer_prompt, judge=template)),
        lazy_call(f"{ANSWERS}:function_metrics", JUDGED, {"answered": _answered}),
        new_tokens,
        tuple(stop),
        Instrument(name=lambda: "judges", check=_require_judges, before_generation=True, needs="judge"),
        judge_templates=(template,),
        template=_template(prompt, separator=""),
        rows=_judged,
    )


def generated(benchmarks: Iterable[Benchmark], suite: str) -> tuple[Benchmark, ...]:
    """The multiple-choice benchmarks of a suite with generated answers: `qimma_gat:Algebra` is `qimma_gen_gat:Algebra`.

    Those of other kinds are left out. They are for models without log-probabilities, and belong into a suite of their
    own, so that no average, table or comparison holds both forms.
    """
    prefix = f"{suite}_gen_"
    return tuple(
        replace(one, group=prefix + one.group.removeprefix(f"{suite}_"), kind=_choice_reply(one.kind, one.language))
        for one in benchmarks
        if one.kind.name in SEVERAL
    )


def _choice_reply(kind: Kind, language: str) -> Kind:
    several = SEVERAL[kind.name]
    return Kind(
        f"{kind.name}_reply_{language}",
        f"{kind.task_type}, generated",
        CHOICE_REPLIES,
        choice_reply_prompt(language, several),
        lazy_call(f"{CHOICES}:choice_reply_metrics", several),
        REPLY_TOKENS,
        instrument=PARSER,
        instruction=instruction_name(language, several),
        template=kind.template,
        rows=kind.rows,
    )


def _template(prompt: str, **head: Any) -> str:
    """The text of a template file."""
    settings = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in head.items())
    return f"---\n{settings}---\n{prompt}"


def _hash(score: Score) -> str:
    """Eight digits of the hash of a function's source, so that runs with different functions are not compared."""
    try:
        text = inspect.getsource(score)
    except (OSError, TypeError):
        text = f"{getattr(score, '__module__', '')}.{getattr(score, '__qualname__', score)}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _answered(answer: str, references: Sequence[str]) -> float:
    return float(bool(answer.strip()))


def _require_judges() -> None:
    if not current_settings().judges:
        raise CulturevalError("Its answers are scored by judges: name one in CULTUREVAL_JUDGE.")


# --- what `row` returns -> a prepared row ---------------------------------------------------------------------


def _given(given: Mapping[str, Any], name: str) -> Any:
    if name not in given:
        raise CulturevalError(f"The function `row` returned no {name!r}; it returned {', '.join(map(str, given))}.")
    return given[name]


def _slots(given: Mapping[str, Any], *others: str) -> dict[str, str]:
    """The texts for the prompt's slots: all but the image and what the kind reads itself."""
    return {name: _text(value, name) for name, value in given.items() if name not in ("image", *others)}


def _text(value: Any, name: str) -> str:
    text = readable(value, name)
    if not text:
        raise BadRow(name, value, "is empty")
    return text


def _choice(labels: Sequence[str], given: Mapping[str, Any], preparation: Preparation) -> PreparedRow:
    options = text_list(_given(given, "options"), "options")
    if "index" in given:
        gold = dict(enumerate(labels)).get(given["index"], str(given["index"]))
    else:
        gold = str(_given(given, "gold")).strip()
    if not 2 <= len(options) <= len(labels):
        raise BadRow("options", options, f"are not two to {len(labels)} options, as there are labels")
    if gold not in labels[: len(options)]:
        raise BadRow("gold", gold, f"is not one of the labels {' '.join(labels[: len(options)])}, or its index")
    question = _text(_given(given, "question"), "question")
    slots = _slots(given, "question", "options", "gold", "index")
    return choice_row(
        preparation.template, question, options, [labels.index(gold)], slots.pop("context", None), **slots
    )


def _answer(given: Mapping[str, Any], preparation: Preparation) -> PreparedRow:
    answers = _given(given, "answers")
    references = text_list([answers] if isinstance(answers, str) else answers, "answers")
    slots = _slots(given, "answers")
    prompt = load_template(preparation.template).render(**slots)
    return {"prompt": prompt, "answers": references, "cluster": cluster_of(slots.get("context"))}


def _judged(given: Mapping[str, Any], preparation: Preparation) -> PreparedRow:
    slots = _slots(given)
    prompt = load_template(preparation.template).render(**slots)
    return {"prompt": prompt, "answers": [], "slots": slots, "cluster": cluster_of(slots.get("context"))}
