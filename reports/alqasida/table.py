"""AL-QASIDA's tables: ADI2 of requests by dialect and genre, translation by corpus and direction, judges.

Paper: arXiv 2412.04193, Figures 3 to 6, 9 and 10; `published.csv` has their numbers from its repository.
Ours: standard errors, the average over all sets and the gain over the untranslated source.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from cultureval.metrics.alqasida.names import ADI2, GAIN, NAMES
from cultureval.runs.loading import Run
from cultureval.runs.table import (
    AVERAGE,
    Mean,
    Numbers,
    Place,
    ScoreNames,
    Table,
    equal,
    judges_of,
    published_model,
    published_rows,
)
from cultureval.runtime.errors import shown_names
from cultureval.tasks.alqasida.benchmarks import direction_of
from cultureval.tasks.alqasida.sets import NOT_PUBLISHED
from cultureval.tasks.catalogue import all_tasks, name_and_shots

PUBLISHED = Path(__file__).with_name("published.csv")
KINDS = {"mono": "monolingual", "cross": "cross-lingual"}
TRANSLATION, SPBLEU = "mt", "spbleu"
SUITE = "alqasida"
MAIN = (AVERAGE, KINDS["mono"])
DIRECTIONS = {
    "dialect_to_eng": "dialect to English",
    "eng_to_dialect": "English to dialect",
    "dialect_to_msa": "dialect to MSA",
    "msa_to_dialect": "MSA to dialect",
}
# Models whose published cross-lingual numbers are of the profile `released`.
RELEASED_PROFILE = ("c4ai-command-r-v01", "c4ai-command-r-plus", "command-r-base", "command-r-plus-base", "gpt-4o")
CRITERIA = {  # template and criterion, as in metrics' names
    "adherence_adherence": "Adherence (1-3)",
    "fulfilment_fulfilment": "Fulfilment",
    "adequacy_adequacy": "Adequacy",
    "fluency_fluency": "Fluency",
    "dialectal_fidelity_dialectal_fidelity": "Dialectal fidelity",
}


class _Set(NamedTuple):
    """A task, its genre or corpus, and its dialect's or direction's label."""

    task: str
    genre: str
    label: str


def tables(score_names: ScoreNames, suite: str = SUITE) -> list[Table]:
    """The tables of requests and translations, and a table for each judge.

    Args:
        suite: `alqasida`, or `alqasida_dev` for the development sets.
    """
    sets = {kind: _sets(suite, kind, score_names) for kind in (*KINDS, TRANSLATION)}
    numbers = published_numbers() if suite == SUITE else {}
    unit = "spBLEU 0 to 100, gain over the untranslated source"
    return [
        Table(
            "AL-QASIDA, requests",
            _requests(sets),
            "ADI2 in percent",
            MAIN,
            published=numbers,
            notes=partial(_notes, suite=suite),
        ),
        Table("AL-QASIDA, translations", _translations(sets[TRANSLATION]), unit, published=numbers),
        *(_judge_table(judge, sets, score_names) for judge in judges_of(score_names, CRITERIA)),
    ]


development_tables = partial(tables, suite="alqasida_dev")


def published_numbers() -> dict[str, Numbers]:
    """Model -> task and metric -> ADI2 of requests in percent, spBLEU of translations."""
    metric = {task.task: SPBLEU if task.group.endswith(TRANSLATION) else ADI2 for task in all_tasks().values()}
    return {
        row["model"]: {(name, metric[name]): float(cell) for name, cell in row.items() if cell and name != "model"}
        for row in published_rows(PUBLISHED)
    }


def _sets(suite: str, kind: str, score_names: ScoreNames) -> list[_Set]:
    """The paper's sets; if a run has none of them, its own sets (`cultureval score alqasida`)."""
    group = f"{suite}_{kind}"
    of_paper = {task.task: task.benchmark for task in all_tasks().values() if task.group == group}
    of_user = {task: "" for task in score_names if task.partition(":")[0] == group and task not in of_paper}
    chosen = of_paper if not of_user or any(task in score_names for task in of_paper) else of_user
    return [_set_of(task, genre) for task, genre in chosen.items()]


def _set_of(task: str, genre: str) -> _Set:
    corpus, _, languages = task.partition(":")[2].partition("_")
    source, _, target = languages.partition("_to_")
    label = DIRECTIONS[direction_of(source, target)] if target else NAMES.get(languages, languages)
    return _Set(task, genre or corpus, label)


def _requests(sets: Mapping[str, Sequence[_Set]]) -> dict[Place, Mean]:
    """A row for each dialect (the mean of its genres), the average of all sets, a row for each genre."""
    groups: tuple[dict[Place, list[tuple[str, str]]], ...] = ({}, {}, {})
    for kind, column in KINDS.items():
        for member in sets[kind]:
            for group, row in zip(groups, (member.label, AVERAGE, member.genre), strict=True):
                group.setdefault((row, column), []).append((member.task, ADI2))
    dialects, average, genres = groups
    found = {place: dialects[place] for place in sorted(dialects, key=itemgetter(0))} | average | genres
    return {place: Mean(equal(parts), 100, 1, of_present=place[0] != AVERAGE) for place, parts in found.items()}


def _translations(sets: Sequence[_Set]) -> dict[Place, Mean]:
    """Means over dialects: a row for each direction, a column for each corpus."""
    members: dict[Place, list[str]] = defaultdict(list)
    for member in sorted(sets, key=lambda member: list(DIRECTIONS.values()).index(member.label)):
        members[member.label, member.genre].append(member.task)
    cells: dict[Place, Mean] = {}
    for (label, genre), tasks in members.items():
        cells[label, genre] = Mean(equal((task, SPBLEU) for task in tasks), digits=1, of_present=True)
        gains = equal((task, GAIN) for task in tasks)
        cells[label, f"{genre} gain"] = Mean(gains, digits=1, of_present=True, ours=True)
    return cells


def _judge_table(judge: str, sets: Mapping[str, Sequence[_Set]], score_names: ScoreNames) -> Table:
    """A judge's means over the sets of each kind, on the scales of the paper's human ratings (of two dialects)."""
    cells: dict[Place, Mean] = {}
    for kind, label in {**KINDS, TRANSLATION: "translation"}.items():
        for criterion, column in CRITERIA.items():
            metric = f"judge_{judge}_{criterion}"
            members = [member.task for member in sets[kind] if metric in score_names.get(member.task, ())]
            if members:
                cells[label, column] = Mean(equal((task, metric) for task in members))
    return Table("AL-QASIDA by judge", cells, "1 to 5", judge=judge)


def _notes(run: Run, shots: int, suite: str) -> list[str]:
    """Notes on published numbers of another profile, and on sets with other prompts than the paper's."""
    requests = [task for task in run.tasks_of(suite) if task.shots == shots and not task.group.endswith(TRANSLATION)]
    cross = suite == SUITE and not shots and any(task.group.endswith("cross") for task in requests)
    notes = []
    if cross and published_model(run.model, RELEASED_PROFILE):
        notes = ["The paper's cross-lingual numbers leave replies without a line of five words out."]
    names = [name_and_shots(task.task)[0].partition("_")[2] for task in requests if task.prompt_hash == NOT_PUBLISHED]
    if names:
        lead = f"{NOT_PUBLISHED[0].upper()}{NOT_PUBLISHED[1:]}: {shown_names(names, 3)}"
        notes.append(f"{lead} ({len(names)} of {len(requests)} sets).")
    return notes
