"""Whether runs of one name are of one model: the only judgement of it, which every view asks."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cultureval.runs.record import Run

MODEL_FACTS = ("version", "dtype", "quantisation", "chat template")  # what tells two models of one name apart
MOST_FACTS = 2  # behind a name
ModelFacts = tuple[Any, ...]  # their values; behind nothing told, the folder whose runs alone are of the model


class ModelOfRun(NamedTuple):
    """What a results file says of its model: its name, the run's date, and as of `facts_told` what tells it apart."""

    file: Path
    name: str
    date: str
    facts: ModelFacts


def facts_told(model: Mapping[str, Any]) -> ModelFacts:
    """The values of `MODEL_FACTS` in a record of a model (`ModelRecord` as a mapping)."""
    version, dtype, quantisation = (str(model.get(name) or "") for name in MODEL_FACTS[:3])
    template = model.get("chat_template")
    return version, dtype, quantisation, template if isinstance(template, bool) else None


def facts_of_models(runs: Iterable[ModelOfRun]) -> dict[Path, ModelFacts]:
    """Results file -> what tells models of one name apart: runs of one name with other facts are of two models.

    A run that does not tell version and dtype (of code, of a server) is of the newest model of its folder that does;
    where it tells a version, else of the newest of its name and version. One that tells none is of no other folder's.
    """
    known: dict[tuple[Path | None, str], list[ModelFacts]] = {}
    found: dict[Path, ModelFacts] = {}
    for file, name, _, facts in sorted(runs, key=lambda run: (all(run.facts[:2]), run.facts[0] > "", run.date))[::-1]:
        version, places = facts[0], ((file.parent, name), (None, name))
        if not all(facts[:2]):
            others = (one for place in places[: 1 + bool(version)] for one in known.get(place, ()))
            untold = (version,) if version else ("", "", "", None, file.parent)
            facts = next((one for one in others if version in ("", one[0])), untold)
        found[file] = facts
        for place in places:
            known.setdefault(place, []).append(facts)
    return found


def facts_of_runs(runs: Iterable[Run]) -> dict[Path, ModelFacts]:
    """`facts_of_models` of runs that were read."""
    return facts_of_models(
        ModelOfRun(run.file, run.model, run.date, facts_told(run.record.model.model_dump())) for run in runs
    )


def told_behind(models: Sequence[tuple[str, ModelFacts]]) -> list[str]:
    """What stands behind the name of each model: in which facts it differs from others of the name; "" in none."""
    of_name: dict[str, list[ModelFacts]] = {}
    for name, facts in models:
        of_name.setdefault(name, []).append(facts)
    return [", ".join(facts_that_differ(facts, of_name[name])[:MOST_FACTS]) for name, facts in models]


def facts_that_differ(facts: ModelFacts, others: Iterable[ModelFacts]) -> list[str]:
    """What a model has that others of its name do not have, for behind the name: `dtype float32`."""
    mine, *theirs = (dict(zip(MODEL_FACTS, one, strict=False)) for one in (facts, *others))
    differing = [(name, value) for name, value in mine.items() if {one.get(name) for one in theirs} - {value}]
    return [f"{name} {str(value)[:8] or 'none'}" for name, value in differing]
