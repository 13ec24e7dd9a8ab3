r"""The kinds of a benchmark in one file (prompt and scoring), and the generated form of choices.

    from cultureval import Benchmark, multiple_choice

    BENCHMARKS = [Benchmark(
        "proverbs", repo="my-lab/proverbs", split="test", language="fa",
        kind=multiple_choice(labels="1 2 3 4", prompt="پرسش: $question\n$options\nپاسخ:"),
        row=lambda r: {"question": r["question"], "options": r["options"], "gold": r["answer"]},
    )]

`row` returns the slots of the prompt and, depending on the kind, the gold. `image` is a file's bytes or path, or an
image of the hub. `context` is a passage that questions share; standard errors are clustered by it.
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
SEVERAL = {"multiple_choice": False, "multi_select": True}  # kinds with a generated form -> several right options
REPLY_TOKENS = 2048  # reasoning included
PARSER = Instrument(name=lambda: "labels(strict, v5)")
JUDGED = declare("answered")  # beside the judges' scores
MULTIPLE_CHOICE_KIND = Kind(
    "multiple_choice", "MCQ", MULTIPLE_CHOICE, choice_prompt, lazy_call(f"{CHOICES}:multiple_choice_metrics")
)


def multiple_choice(labels: str, prompt: str) -> Kind:
    """Questions with one right option; the model scores the labels.

    `row` returns `question`, `options` (a list of texts) and `gold` (the right label) or `index` (from 0).

    Args:
        labels: Of the options, in order, separated by spaces.
        prompt: With the slots `$question` and `$options` (listed as `1. text`). A space separates prompt and label,
            unless the prompt ends in white space.

    Raises:
        ValueError: There are fewer than two labels, a label is repeated, or a slot is missing in the prompt.
    """
    names = labels.split()
    if len(set(names)) < max(len(names), 2):
        raise ValueError(f"multiple_choice: write two or more distinct labels such as 'A B C D', not {labels!r}")
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

    `row` returns the slots of the prompt and `answers`, the right answers (a text or a list of texts).

    Args:
        metrics: Name -> function of the answer and the right answers that returns a number; the headline first. A
            task's score is the mean.
        new_tokens: Maximum number of new tokens.
        stop: Texts that end an answer, such as a newline.
        ranges: Metric -> lowest and highest value, if these are not 0 and 1.
        lower: Metrics for which lower values are better.

    Raises:
        ValueError: There are no metrics, or `ranges` or `lower` have an unknown metric.
    """
    if not isinstance(metrics, Mapping) or not metrics:
        raise ValueError('generate: name at least one metric, as {"name": function}')
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

    `row` returns the slots of the prompt and of the judge's template, except the slot of the answer.

    Args:
        template: The judge's template: one of ours (`jeem_vqa`), or `MODULE:FILE`, a text file beside the benchmark's
            module, without `.txt`. `cultureval.judge_prompts.templates` describes its head.
        new_tokens: Maximum number of new tokens.
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

    They are for models without log-probabilities. Put them into a separate suite, so that no average, table or
    comparison mixes both forms.
    """
    prefix = f"{suite}_gen_"
    return tuple(
        replace(
            benchmark,
            group=prefix + benchmark.group.removeprefix(f"{suite}_"),
            kind=_choice_reply(benchmark.kind, benchmark.language),
        )
        for benchmark in benchmarks
        if benchmark.kind.name in SEVERAL
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
    """Eight digits of a hash of a function's source; runs with different functions are not comparable."""
    try:
        text = inspect.getsource(score)
    except (OSError, TypeError):
        text = f"{getattr(score, '__module__', '')}.{getattr(score, '__qualname__', score)}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _answered(answer: str, references: Sequence[str]) -> float:
    return float(bool(answer.strip()))


def _require_judges() -> None:
    if not current_settings().judges:
        raise CulturevalError("Judges score its answers: name a judge in CULTUREVAL_JUDGE.")


# --- what `row` returns -> a prepared row ---------------------------------------------------------------------


def _value(returned: Mapping[str, Any], name: str) -> Any:
    if name not in returned:
        raise CulturevalError(f"The function `row` must return {name!r}; it returned {', '.join(map(str, returned))}.")
    return returned[name]


def _slots(returned: Mapping[str, Any], *used: str) -> dict[str, str]:
    """The texts for the prompt's slots, without the image and the fields that the kind uses."""
    return {name: _text(value, name) for name, value in returned.items() if name not in ("image", *used)}


def _text(value: Any, name: str) -> str:
    text = readable(value, name)
    if not text:
        raise BadRow(name, value, "is empty")
    return text


def _choice(labels: Sequence[str], returned: Mapping[str, Any], preparation: Preparation) -> PreparedRow:
    options = text_list(_value(returned, "options"), "options")
    if "index" in returned:
        gold = dict(enumerate(labels)).get(returned["index"], str(returned["index"]))
    else:
        gold = str(_value(returned, "gold")).strip()
    if not 2 <= len(options) <= len(labels):
        raise BadRow("options", options, f"are not two to {len(labels)} options, at most one for each label")
    if gold not in labels[: len(options)]:
        raise BadRow("gold", gold, f"is not one of the labels {' '.join(labels[: len(options)])}, or its index")
    question = _text(_value(returned, "question"), "question")
    slots = _slots(returned, "question", "options", "gold", "index")
    return choice_row(
        preparation.template, question, options, [labels.index(gold)], slots.pop("context", None), **slots
    )


def _answer(returned: Mapping[str, Any], preparation: Preparation) -> PreparedRow:
    answers = _value(returned, "answers")
    references = text_list([answers] if isinstance(answers, str) else answers, "answers")
    slots = _slots(returned, "answers")
    prompt = load_template(preparation.template).render(**slots)
    return {"prompt": prompt, "answers": references, "cluster": cluster_of(slots.get("context"))}


def _judged(returned: Mapping[str, Any], preparation: Preparation) -> PreparedRow:
    slots = _slots(returned)
    prompt = load_template(preparation.template).render(**slots)
    return {"prompt": prompt, "answers": [], "slots": slots, "cluster": cluster_of(slots.get("context"))}
