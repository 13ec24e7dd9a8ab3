"""Tasks of other harnesses by their own names: `lm-eval:NAME` and `lighteval:NAME`, on our models.

Prompts, examples, choices, metrics and averages are made by the harness's own code; models, journal, servers and
results are ours. A task enters the catalogue when its name is first selected.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from lighteval.tasks.lighteval_task import LightevalTask, LightevalTaskConfig
from lighteval.tasks.requests import Doc

from cultureval.metrics.declared import Metrics
from cultureval.prompts.preparation import PreparedRow
from cultureval.runtime.errors import CulturevalError, SourceUnavailable
from cultureval.runtime.patches.lighteval.row_order import LIGHTEVAL_SEED
from cultureval.runtime.printing import print_note
from cultureval.runtime.rows_report import RowsReport
from cultureval.runtime.signatures import text_hash
from cultureval.tasks.registration import HARNESSES, registered
from cultureval.tasks.suite import Kind, Source, Task

LM_EVAL, LIGHTEVAL = HARNESSES
MODULES = {LM_EVAL: "from_lm_eval", LIGHTEVAL: "from_lighteval"}


@dataclass
class HarnessConfig(LightevalTaskConfig):
    """The configuration of a task of another harness, with what results say of its rows."""

    rows_report: RowsReport = field(default_factory=RowsReport)


@dataclass(frozen=True)
class HarnessTask:
    """What another harness says of a task.

    Attributes:
        name: As the harness calls it.
        group: The harness's group that averages it; "" without one.
        by_size: Whether that average weights tasks by their rows.
        declared: Its metrics, the headline first.
        output: How it is asked, in the harness's words.
        repo: The data set of its rows.
        shots: Few-shot examples where `|k` names no number.
        generation_size: New tokens at most; -1 where nothing is generated.
        load: From a number of few-shot examples to the task as LightEval's object.
        language: ISO 639 code; "" where the harness does not say.
    """

    name: str
    group: str
    by_size: bool
    declared: Metrics
    output: str
    repo: str
    shots: int
    generation_size: int
    load: Callable[[int], LightevalTask]
    language: str = ""


def add_tasks(name: str) -> list[str]:
    """Adds the task, or the tasks of the group, that a name asks for to the catalogue; returns their names there.

    Raises:
        SourceUnavailable: No data of any of them are there.
        CulturevalError: The harness is not installed or has no such task, or the task cannot be asked here.
    """
    harness, _, bare = name.partition(":")
    module: Any = import_module(f"cultureval.tasks.harnesses.{MODULES[harness]}")
    found, missing = module.tasks_of(bare)
    if not found:
        raise SourceUnavailable(missing[0])
    if missing:
        print_note(f"{len(missing)} of {len(found) + len(missing)} tasks of {name} have no data and are left out.")
    added = {task.task: task for task in (_task(harness, one) for one in found)}
    registered().tasks.update(added)
    return list(added)


def _task(harness: str, found: HarnessTask) -> Task:
    kind = Kind(
        f"{harness} {found.output}",
        found.output,
        found.declared,
        partial(_not_ours, found.name),
        tuple,
        found.generation_size,
        load=found.load,
    )
    return Task(
        task=f"{harness}:{found.name}",
        suite=harness,
        benchmark=found.group or found.name,
        group=f"{harness}:{found.group or found.name}",
        subset=found.name,
        domain="",
        kind=kind,
        template="",
        sources=(Source(found.repo, "original", partial(_not_ours, found.name)),),
        subset_names=(found.name,),
        language=found.language or "ar",
        by_size=found.by_size,
        shots=found.shots,
    )


def _not_ours(name: str, *_: Any, **__: Any) -> PreparedRow:
    raise CulturevalError(f"{name} is another harness's task: its rows and prompts are made by its own code.")


def rows_report(repo: str, revision: str, docs: Sequence[Doc], few_shot: int, parity: str = "") -> RowsReport:
    """What results say of the rows of a task, whose hash is that of its finished prompts and choices."""
    texts = [f"{doc.query}\0{chr(0).join(doc.choices or [])}\0{doc.gold_index}" for doc in docs]
    return {
        "source": repo,
        "form": "original",
        "revision": revision,
        "fingerprint": text_hash("\1".join(texts)),
        "prompt": "published",
        "parity": parity,
        "rows": len(docs),
        "expected_rows": None,
        "few_shot_rows": few_shot,
        "skipped_rows": [],
        "skipped_few_shot_rows": [],
        "row_counts": {"rows": len(docs), "scored": len(docs)},
        "notes": [],
        "caveat": "",
        "other_data": "",
    }


class FinishedDocs(LightevalTask):
    """A task of LightEval whose Docs are finished: prompts with examples, choices, limits and stop strings."""

    def __init__(self, config: HarnessConfig, docs: Sequence[Doc]) -> None:
        """The task of Docs in the order of their rows."""
        super().__init__(config)
        self._docs = list(docs)

    def get_docs(self, max_samples: int | None = None) -> list[Doc]:
        """The Docs in LightEval's order of rows, so that a limit takes the rows that our own tasks take."""
        places = list(range(len(self._docs)))
        random.Random(LIGHTEVAL_SEED).shuffle(places)
        return [self._docs[place] for place in places[:max_samples]]


def with_place(doc: Doc, place: str, more: Mapping[str, Any] | None = None) -> Doc:
    """A Doc that names its row and copy of the data, as those of our own tasks do."""
    doc.specific = {**(doc.specific or {}), "source_row": place, "form": "original", **(more or {})}
    return doc
