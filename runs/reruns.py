"""Several runs of one model: which scores of an older one a newer one replaces, and all of them as one run."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cultureval.metrics.judges.items import JUDGED
from cultureval.runs.comparable import (
    JUDGES,
    Protocol,
    Texts,
    fields_that_differ,
    protocol_of,
    settings_that_differ,
    texts_that_differ,
)
from cultureval.runs.means import agree
from cultureval.runs.record import Run, RunRecord, TaskRecord, TimingRecord
from cultureval.runs.same_model import ModelFacts, facts_of_runs
from cultureval.runs.warnings import OF_TASKS, narrowed, suite_of

Protocols = Mapping[tuple[str, str], Protocol]  # task and metric -> everything but the model that a score depends on


@dataclass
class Track:
    """Runs of a model whose scores of a suite, with one number of few-shot examples, are as of one run.

    Attributes:
        model: The model's name; `facts` what tells it from others of the name.
        runs: The newest first.
        protocols: Task and metric -> everything but the model that the score depends on.
        sources: Task with `|k` -> the run that its scores are from.
    """

    model: str
    facts: ModelFacts
    runs: list[Run] = field(default_factory=list)
    protocols: dict[tuple[str, str], Protocol] = field(default_factory=dict)
    sources: dict[str, Run] = field(default_factory=dict)

    def add(self, run: Run, tasks: Sequence[TaskRecord], protocols: Protocols) -> None:
        """Adds the scores that are not here yet."""
        self.runs.append(run)
        for task in tasks:
            self.sources.setdefault(task.task, run)  # all scores of a task are of one run, as its judgements
        protocols = {place: found for place, found in protocols.items() if self.sources.get(place[0]) is run}
        self.protocols |= {place: found for place, found in protocols.items() if place not in self.protocols}


def tracks_of(
    runs: Iterable[Run], models: Mapping[Path, ModelFacts], texts: Texts, allowed: Collection[str] = ()
) -> dict[tuple[str, int], list[Track]]:
    """What was run of each model in one way, by suite and number of few-shot examples; a model's newest first.

    Args:
        runs: In any order.
        models: Results file -> what tells its model from others of the name.
        texts: As of `texts_that_differ`.
        allowed: As of `with_older`.
    """
    found: dict[tuple[str, int], list[Track]] = {}
    for run in sorted(runs, key=lambda run: run.date, reverse=True):
        for place, tasks in parts_of(run).items():
            model, protocols = (run.model, models[run.file]), protocols_of_scores(run, tasks, allowed)
            known = [one for one in found.setdefault(place, []) if (one.model, one.facts) == model]
            fitting = (one for one in known if may_be_one(protocols, one.protocols, texts))
            if (track := next(fitting, None)) is None:
                found[place].append(track := Track(*model))
            track.add(run, tasks, protocols)
    return found


def with_older(runs: Iterable[Run], allowed: Collection[str] = ()) -> list[Run]:
    """Runs, each with what older ones of its model say otherwise (`Run.superseded`), have besides (`Run.in_older`), or
    were asked in another way (`Run.apart`).

    Args:
        allowed: Fields of signatures that may differ between runs that are taken as one, besides the model's own.

    Returns:
        In the given order.
    """
    runs = list(runs)
    models = facts_of_runs(runs)
    of_model: dict[object, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.date, reverse=True):
        of_model.setdefault((run.model, models[run.file]), []).append(run)
    several = [some for some in of_model.values() if len(some) > 1]
    told = {id(run): one for some in several for run, one in zip(some, _told(some, allowed), strict=True)}
    return [told.get(id(run), run) for run in runs]


def _told(runs: Sequence[Run], allowed: Collection[str]) -> list[Run]:
    """`with_older` of the runs of one model, the newest first."""
    texts = texts_that_differ(runs)
    parts = [
        {place: protocols_of_scores(run, tasks, allowed) for place, tasks in parts_of(run).items()} for run in runs
    ]
    found = []
    for number, run in enumerate(runs):
        superseded: dict[str, str] = {}
        in_older: dict[str, str] = {}
        apart: dict[str, str] = {}
        for place, protocols in parts[number].items():
            others = {at: part[place] for at, part in enumerate(parts) if at != number and place in part}
            tasks_of = {at: _tasks(one) for at, one in others.items() if may_be_one(protocols, one, texts)}
            newer = {task for at, tasks in tasks_of.items() if at < number for task in tasks}
            own = _tasks(protocols)
            for older, task in ((runs[at], task) for at, tasks in tasks_of.items() if at > number for task in tasks):
                if task not in own:
                    in_older.setdefault(task, older.date[:16])
                elif task not in newer and (words := _otherwise(run, older, task)):
                    superseded.setdefault(task, words)
            for older, other in ((runs[at], one) for at, one in others.items() if at > number and at not in tasks_of):
                names = ", ".join(_differing(protocols, other, texts)[:3])
                for task in own.keys() & _tasks(other).keys() - newer:
                    apart.setdefault(task, f"{older.date[:16]} ({names})")
        for older, part in zip(runs[number + 1 :], parts[number + 1 :], strict=True):  # of other suites, or shots
            for task in (task for place, one in part.items() if place not in parts[number] for task in _tasks(one)):
                in_older.setdefault(task, older.date[:16])
        found.append(replace(run, superseded=superseded, in_older=in_older, apart=dict(sorted(apart.items()))))
    return found


def _differing(one: Protocols, other: Protocols, texts: Texts) -> list[str]:
    """Names of what keeps scores of two runs of a model from standing beside each other."""
    pairs = dict.fromkeys((one[place], other[place]) for place in one if place in other)
    found = [name for pair in pairs for name in (*fields_that_differ(*pair, texts), *settings_that_differ(pair))]
    return list(dict.fromkeys(found))


def _tasks(protocols: Protocols) -> dict[str, None]:
    return dict.fromkeys(task for task, _ in protocols)


def _otherwise(run: Run, older: Run, task: str) -> str:
    """Words for the first score that an older run has otherwise, of the headline before others; "" for none."""
    names = {run.record.tasks[task].headline: None, **run.scores.get(task, {}), **older.scores.get(task, {})}
    for metric in names:
        now, before = (one.value(task, metric) for one in (run, older))
        if now == before or now is not None and before is not None and agree(now, before):
            continue
        near = now is not None and before is not None and abs(now - before) < 1e-4
        told, other = ("none" if value is None else f"{value:.{6 if near else 4}f}" for value in (now, before))
        return f"{metric} {told} here, and {other} in the run of {older.date[:16]}"
    return ""


def parts_of(run: Run) -> dict[tuple[str, int], list[TaskRecord]]:
    """The tasks of a run by their suite and number of few-shot examples."""
    parts: dict[tuple[str, int], list[TaskRecord]] = {}
    for task in run.record.tasks.values():
        parts.setdefault((task.suite, task.shots), []).append(task)
    return parts


def may_be_one(one: Protocols, other: Protocols, texts: Texts) -> bool:
    """Whether scores of two runs of a model may stand beside each other as those of one run."""
    return all(one[place].told == other[place].told for place in one.keys() & other.keys()) and agree_in_all(
        one, other, texts
    )


def protocols_of_scores(run: Run, tasks: Iterable[TaskRecord], allowed: Collection[str]) -> Protocols:
    """What each score of some tasks of a run depends on besides the model, but for what is allowed to differ."""
    found = {}
    for task in tasks:
        plain = protocol_of(run, task, "", allowed)
        for metric in run.scores.get(task.task, {}):
            if not metric.endswith("_stderr"):
                judged = metric.startswith(JUDGED)
                found[task.task, metric] = protocol_of(run, task, metric, allowed) if judged else plain
    return found


def agree_in_all(one: Protocols, other: Protocols, texts: Texts, judges: Collection[str] = ()) -> bool:
    """Whether scores may be compared wherever both are there; those of `judges`, whoever has the name."""
    begins = tuple(f"{JUDGED}{judge}_" for judge in judges)
    shared = {
        (id(one[place]), id(other[place])): (one[place], other[place], {JUDGES} if place[1].startswith(begins) else ())
        for place in one
        if place in other
    }
    return not any(fields_that_differ(*pair, texts).keys() - set(left_out) for *pair, left_out in shared.values())


def merged(sources: Mapping[str, Run]) -> Run:
    """Runs of a model as one.

    Args:
        sources: Task with `|k` -> the run that its scores and what is told of it are from; at least one.

    Returns:
        The newest run with them. A group's average is kept where one file has all tasks of the group that are here.
    """
    runs = sorted({id(run): run for run in sources.values()}.values(), key=lambda run: run.date, reverse=True)
    records = {task: run.record.tasks[task] for task, run in sources.items()}
    scores: dict[str, Mapping[str, float | None]] = {task: run.scores.get(task, {}) for task, run in sources.items()}
    for run in runs:
        there = _tasks_of_groups(run.record.tasks)
        for (group, shots), tasks in _tasks_of_groups(records).items():
            whole = tasks == there.get((group, shots)) and all(sources[task] is run for task in tasks)
            means = [name for name in run.scores if name.startswith(f"{group}:_") and name.endswith(f"|{shots}")]
            scores |= {name: run.scores[name] for name in means if whole}
    own = [(run, task) for task, run in sources.items()]
    suites = {one.suite for one in records.values()}
    present = {task.partition("|")[0] for task in records}

    def told(run: Run) -> RunRecord:
        def keep(task: str) -> bool:
            lacking = task.partition("|")[0] not in present and suite_of(task) in suites
            return lacking or sources.get(task) is run

        return narrowed(run, keep).record

    record = _joined([told(run) for run in runs]).model_copy(update={"tasks": records})
    claims = tuple(
        claim
        for run in runs
        for claim in run.claims
        if sources.get(claim.task) is run or claim.task in scores and claim.task not in sources
    )
    judgements = tuple(file for run in runs for file in run.judgements)
    of_tasks = {
        name: {task: getattr(run, name)[task] for run, task in own if task in getattr(run, name)} for name in OF_TASKS
    }
    return replace(runs[0], scores=scores, record=record, claims=claims, judgements=judgements, **of_tasks)


def _joined(records: Sequence[RunRecord]) -> RunRecord:
    """The newest of several records of a model, with what all of them tell of their runs as wholes."""
    newest = records[0]
    if len(records) == 1:
        return newest
    joined: dict[str, Any] = {
        name: {key: told for one in reversed(records) for key, told in getattr(one, name).items()}
        for name in ("unscorable", "unanswered", "unjudged")
    }
    joined["missing"] = tuple(dict.fromkeys(task for one in records for task in one.missing))
    joined["signatures"] = tuple(
        {(one.group, one.text): one for record in records for one in record.signatures}.values()
    )
    joined["model"] = next((one.model for one in records if one.model.backend), newest.model)
    return newest.model_copy(update=joined | {"timing": TimingRecord()})  # no run took this time, or cost this much


def _tasks_of_groups(records: Mapping[str, TaskRecord]) -> dict[tuple[str, int], set[str]]:
    """The tasks of each group with its number of few-shot examples."""
    found: dict[tuple[str, int], set[str]] = {}
    for record in records.values():
        found.setdefault((record.group, record.shots), set()).add(record.task)
    return found
