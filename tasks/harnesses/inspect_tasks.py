"""Our tasks in Inspect, which finds this module by its entry point: `inspect eval cultureval/jeem_caption --model ...`.

Every task and group of the catalogue that generates is registered, of installed suites too. Data are read, and
LightEval is loaded, when one of them is asked for: Inspect imports this module also where others are.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentImage,
    ContentReasoning,
    ContentText,
    get_model,
)
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.viewer import ViewerConfig

import cultureval
from cultureval.metrics.code.report import verdict_lines
from cultureval.metrics.declared import DEN, SUMS
from cultureval.runtime.errors import CulturevalError, SourceUnavailable
from cultureval.runtime.patches.inspect_ai import refusal
from cultureval.runtime.printing import print_note
from cultureval.runtime.settings import Settings, use_settings
from cultureval.tasks.catalogue import all_suites, all_tasks, groups, kind_of
from cultureval.tasks.harnesses.lm_eval_files import harness_name

if TYPE_CHECKING:
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc

    from cultureval.tasks.harnesses.inspect_scoring import AskedTask

MESSAGES = {"user": ChatMessageUser, "assistant": ChatMessageAssistant, "system": ChatMessageSystem}
# Plain text in the viewer, each line in its own direction; images are shown only in logs that it trusts.
PLAIN = ViewerConfig(trust_content=False)


def suite_task(name: str, shots: int, limit: int | None, options: Mapping[str, str]) -> Task:
    """A task or group of our catalogue as a task of Inspect.

    Args:
        shots: Few-shot examples, the first of the source.
        limit: At most this many rows of each task; items of several rows stay complete.
        options: Texts by the names of settings and of suites' options.

    Raises:
        CulturevalError: An option is wrong, data cannot be read, or what scores the task is missing.
    """
    from cultureval.tasks.harnesses.inspect_scoring import in_turn, members_of, settings_of
    from cultureval.tasks.running import complete_items

    settings = settings_of(options)
    asked = _with_data(members_of(name), shots, json.dumps(options, sort_keys=True), settings.data_root)
    names = [one.name for one in asked]
    with ThreadPoolExecutor(1) as pool:  # judges are asked by an event loop of their own
        pool.submit(_check, settings, [f"{one}|{shots}" for one in names]).result()
    columns = []
    for one in asked:
        kept = islice(one.docs.values(), complete_items(limit, [one.name]))
        columns.append([sample_of(one.name, doc, place, name) for place, doc in enumerate(kept)])
    rows = list(in_turn(columns, max(kind_of(one).rows_per_item for one in names)))
    return Task(
        dataset=MemoryDataset(rows, name=name),
        solver=ask(),
        scorer=suite_scores(task=name, shots=shots, options=dict(options)),
        display_name=name,
        version=cultureval.__version__,
        metadata={"cultureval": {one.name: dict(one.report) for one in asked}},
        viewer=None if any(all_tasks()[one].images for one in names) else PLAIN,
    )


def _check(settings: Settings, names: list[str]) -> None:
    from cultureval.tasks.preflight import check_scorers

    with use_settings(settings):
        check_scorers(names)


def _with_data(names: Sequence[str], shots: int, options: str, root: Path | None) -> "list[AskedTask]":
    """The tasks with their rows; a data root may hold a part of a group. Raises CulturevalError for unreadable data."""
    from cultureval.tasks.harnesses.inspect_scoring import asked_task

    found: list[AskedTask] = []
    absent: list[SourceUnavailable] = []
    for name in names:
        try:
            found.append(asked_task(name, shots, options))
        except SourceUnavailable as error:
            absent.append(error)
    if absent and (not found or root is None):
        raise absent[0]
    if absent:
        print_note(f"{len(absent)} of {len(names)} tasks have no data under {root} and are left out.")
    return found


def sample_of(name: str, doc: "Doc", place: int | None = None, group: str = "") -> Sample:
    """A row as a sample of Inspect; of a group that is asked, samples' names begin with the task's.

    `place` is its place in LightEval's order, for its name; None: Inspect numbers the samples.
    """
    from cultureval.runtime.doc_fields import specific_of
    from cultureval.tasks.harnesses.inspect_scoring import generation_of, row_key, turns_of

    specific, label = specific_of(doc), name.partition(":")[2]
    about = {"task": name, "row": row_key(doc), "generation": generation_of(doc, kind_of(name).generation_size)}
    shown = {key: specific[key] for key in ("source_row", "cluster") if specific.get(key)}
    identity = f"{label} {place}" if group not in ("", name) else str(place)
    target = [str(gold) for gold in doc.get_golds()] if doc.choices else ""
    return Sample(
        id=None if place is None else identity,
        input=[_message(turn) for turn in turns_of(doc)],
        target=target,
        metadata=about | shown,
    )


def _message(turn: Mapping[str, Any]) -> ChatMessage:
    content = turn["content"]
    if not isinstance(content, str):
        content = [
            ContentImage(image=part["image"]) if part["type"] == "image" else ContentText(text=part["text"])
            for part in content
        ]
    return MESSAGES[turn["role"]](content=content)


@solver(name="ask")
def ask() -> Solver:
    """Asks once, with the task's length and stop strings at temperature 0 where the run does not say otherwise."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        given = get_model().config
        wanted = state.metadata["generation"]
        return await generate(state, **{key: wanted[key] for key in wanted if getattr(given, key) is None})

    return solve


@metric(name="cultureval", scores="unreduced")
def suite_totals() -> Metric:
    """The scores of a task or group and their standard errors, clustered as in our own results; epochs are averaged."""

    def compute(scores: list[SampleScore]) -> Value:
        from cultureval.tasks.harnesses.inspect_scoring import asked_task, group_totals, restored

        rows: dict[tuple[str, int, str], list[tuple[str, dict[str, Any]]]] = {}
        group = ""
        for one in scores:
            about = (one.score.metadata or {})["cultureval"]
            values = {name: restored(value) for name, value in about["values"].items()}
            asked = about["task"], int(about["shots"]), json.dumps(about["options"], sort_keys=True)
            rows.setdefault(asked, []).append((about["row"], values))
            group = about["asked"]
        found = {asked[0]: asked_task(*asked).totals(values) for asked, values in rows.items()}
        single = found.get(group) if group in found else group_totals(group, found) if found else {}
        return {name: float(value) for name, value in (single or {}).items()}

    return compute


@scorer(metrics=[suite_totals()], name="cultureval")
def suite_scores(task: str, shots: int = 0, options: dict[str, str] | None = None) -> Scorer:
    """Our scores of an answer, by the names of our metrics; arguments as of `suite_task`."""
    texts = options or {}
    together = _ScoredTogether(shots, json.dumps(texts, sort_keys=True))

    async def score(state: TaskState, target: Target) -> Score:
        about = {"task": state.metadata["task"], "row": state.metadata["row"], "asked": task}
        return await together.score(about | {"shots": shots, "options": texts}, *_written(state))

    return score


def _written(state: TaskState) -> tuple[str, str | None]:
    """The text of an answer and its reasoning."""
    content = state.output.message.content if state.output.choices else ""
    reasoning = [part.reasoning for part in content if isinstance(part, ContentReasoning)] if content else []
    return state.output.completion, "\n\n".join(reasoning) or None


class _ScoredTogether:
    """Scores answers in batches: those that wait while others are scored are scored next, together.

    Classifiers, judges and the sandbox of code take many answers at once much faster than one after the other.
    """

    def __init__(self, shots: int, options: str) -> None:
        self._shots, self._options = shots, options
        self._waiting: dict[str, list[_Answer]] = {}
        self._lock = anyio.Lock()

    async def score(self, about: Mapping[str, Any], text: str, reasoning: str | None) -> Score:
        """The score of one answer; raises what scoring it raised."""
        mine = _Answer(about, text, reasoning)
        self._waiting.setdefault(about["task"], []).append(mine)
        async with self._lock:
            if not mine.found:
                batch = self._waiting.pop(about["task"], [mine])
                await anyio.to_thread.run_sync(self._score, about["task"], batch)
        if isinstance(mine.found, Exception):
            raise mine.found
        assert mine.found is not None
        return mine.found

    def _score(self, name: str, batch: "Sequence[_Answer]") -> None:
        from cultureval.tasks.harnesses.inspect_scoring import asked_task

        try:
            asked = asked_task(name, self._shots, self._options)
            scored = asked.score([(one.about["row"], one.response(asked.docs)) for one in batch])
        except Exception as error:
            if len(batch) > 1:  # only what cannot be scored fails
                for one in batch:
                    self._score(name, [one])
            else:
                batch[0].found = error
            return
        for one, (doc, values) in zip(batch, scored, strict=True):
            one.found = one.score(doc, values)


class _Answer:
    """An answer that waits for its score."""

    def __init__(self, about: Mapping[str, Any], text: str, reasoning: str | None) -> None:
        self.about, self.text, self.reasoning = about, text, reasoning
        self.found: Score | Exception | None = None

    def response(self, docs: "Mapping[str, Doc]") -> "ModelResponse":
        """The answer as our metrics read it; raises CulturevalError where the data have changed since it was given."""
        from cultureval.tasks.harnesses.inspect_scoring import response_of

        if self.about["row"] not in docs:
            raise CulturevalError(f"{self.about['task']}: a row of this log is no longer in the data.")
        return response_of(docs[self.about["row"]], self.text, self.reasoning)

    def score(self, doc: "Doc", values: Mapping[str, Any]) -> Score:
        """Inspect's score: each value of the answer, and beside it what totals are made of."""
        from cultureval.tasks.harnesses.inspect_scoring import kept, shown

        headline = all_tasks()[self.about["task"]].metrics[0]
        scores = [name for name in values if not name.endswith((DEN, SUMS))]  # which the scores themselves carry
        ordered = sorted(scores, key=lambda name: name != headline)
        plain = {name: kept(values[name]) for name in ordered}
        return Score(
            # A score of an item of several rows is no answer's own: the totals alone have it.
            value={name: shown(values[name]) for name in ordered if not hasattr(values[name], "item_id")},
            answer=self.text,
            explanation=_reasons(doc, values) or None,
            metadata={"cultureval": {**self.about, "values": plain}},
        )


def _reasons(doc: "Doc", values: Mapping[str, Any]) -> str:
    """Why a program failed, and what judges said."""
    lines = verdict_lines(doc.specific or {})
    judged = {name: value for name, value in values.items() if isinstance(value, Mapping)}
    lines += [f"{name}: {value['outcome']}\n{value.get('reply') or ''}" for name, value in judged.items()]
    return "\n".join(lines)


def _register(name: str) -> None:
    @task(name=harness_name(name))
    def evaluated(
        data: str | None = None,
        judge: str | list[str] | None = None,
        shots: int = 0,
        limit: int | None = None,
        **options: Any,
    ) -> Task:
        """Asks and scores as `cultureval eval` does.

        Args:
            data: Data root (DIR/<org>/<name>), or `samples`.
            judge: Judges, as of CULTUREVAL_JUDGE.
            limit: At most this many rows of each task.
            **options: form, bad_rows, sources, manifest, and options of suites, such as box_format.
        """
        given = {"data_root": data, "judges": judge} | options
        texts = {key: _text(value) for key, value in given.items() if value is not None}
        try:
            return suite_task(name, shots, limit, texts)
        except CulturevalError as error:
            raise refusal(str(error)) from error


def _register_refusal(suite: str) -> None:
    """Else Inspect passes over the name of a suite without a word where another task is named beside it."""

    @task(name=harness_name(suite))
    def refused(**_: Any) -> Task:
        """A suite: it has no scores of its own."""
        raise refusal(
            f"{suite} is a suite, not a task: name tasks or groups; `cultureval tasks --suite {suite}` lists them."
        )


def _text(value: Any) -> str:
    """What a variable would hold: Inspect reads `-T` as YAML, where `off` is false."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _generates(name: str) -> bool:
    try:
        return kind_of(name).generation_size > 0
    except CulturevalError:
        return False  # an installed suite whose kinds cannot be loaded; `cultureval tasks` says why


_found = [name for name in all_tasks() if _generates(name)]
for _name in _found:
    _register(_name)
for _name in groups():
    if _name not in all_tasks() and any(all_tasks()[one].group == _name for one in _found):
        _register(_name)
for _name in all_suites().keys() - groups().keys() - all_tasks().keys():
    _register_refusal(_name)
