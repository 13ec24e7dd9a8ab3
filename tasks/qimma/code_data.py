"""Arabic HumanEval+ and MBPP+ (3LM's `tiiuae/evalplus-arabic`): finding, checking and handing over the problems."""

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.prompts.preparation import PreparedRow
from cultureval.prompts.qimma.code_problems import INPUT_COLUMNS
from cultureval.runtime.data.content_store import stored_problem
from cultureval.runtime.data.hub import go_offline_if_unreachable
from cultureval.runtime.data.row_files import Row, require_one_file
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.extras import require_extra
from cultureval.runtime.patches.evalplus import evalplus_problems
from cultureval.runtime.printing import print_note
from cultureval.runtime.settings import current_settings

if TYPE_CHECKING:
    from cultureval.metrics.code.rules import Dataset

REPO = "tiiuae/evalplus-arabic"
JUDGED = ("task_id", "prompt", "entry_point", "canonical_solution")  # besides inputs and tolerance


@dataclass(frozen=True)
class CodeDataset:
    """One of the two data sets.

    Attributes:
        name: EvalPlus's name, `humaneval` or `mbpp`.
        title: The name in QIMMA's tables.
        file: Name of its data file, there also with `.gz`.
        prefix: What its task ids begin with.
        rows: Problems that the published file holds.
        task: Name of its LightEval task.
        published: The `hash_of_problems` of the problems that 3LM published.
    """

    name: "Dataset"
    title: str
    file: str
    prefix: str
    rows: int
    task: str
    published: str


CODE_DATASETS = {
    dataset.name: dataset
    for dataset in (
        CodeDataset(
            *("humaneval", "HumanEval+", "HumanEvalPlus.jsonl", "HumanEval/", 164, "qimma_code:humaneval_plus"),
            published="9689929b9faf992cbc7c9af3658122eb942a7144cc262db94cd1f7c5da7cf7c6",
        ),
        CodeDataset(
            *("mbpp", "MBPP+", "MBPPPlus.jsonl", "Mbpp/", 378, "qimma_code:mbpp_plus"),
            published="14fa224045be2ab9c223e53cdfd155bf713ec5aea7ba81984d99c851d97fed0f",
        ),
    )
}


@dataclass(frozen=True)
class ProblemSet:
    """The problems of a run.

    Attributes:
        dataset: Which of the two data sets they are of.
        rows: The rows by task id, as the source's file holds them.
        revision: Commit of the source, or "local".
        refined: How many have a refined prompt.
        other_data: A sentence where the source's problems are not the published ones, or "".
        left_out: The source's problems that a manifest of the settings leaves out, by task id.
        manifest: What a run records of a manifest of the settings; {} without one.
    """

    dataset: CodeDataset
    rows: Mapping[str, Row]
    revision: str
    refined: int
    other_data: str
    left_out: Mapping[str, Row] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of all that is asked and judged, as of `hash_of_problems`."""
        return hash_of_problems(self.rows.values())

    @functools.cached_property
    def file_content(self) -> bytes:
        """A data file with exactly these problems."""
        return "".join(json.dumps(row) + "\n" for row in self.rows.values()).encode("ascii")

    @property
    def evalplus_hash(self) -> str:
        """EvalPlus's hash of a data set: the MD5 of its file."""
        return hashlib.md5(self.file_content, usedforsecurity=False).hexdigest()

    def problems(self) -> dict[str, dict[str, Any]]:
        """The problems by task id as EvalPlus's loader gives them: MBPP's inputs get back their tuples and sets."""
        return evalplus_problems(self.dataset.name, self.rows)


def load_problems(
    dataset: str, data: str | None = None, prompts: Path | None = None, limit: int | None = None
) -> ProblemSet:
    """Finds, reads and checks the problems of a data set, as the task of LightEval does.

    Args:
        dataset: `humaneval` or `mbpp`.
        data: Data root, the folder of the data files, "samples", or "" for the hub; None: that of the current settings.
        prompts: File or folder of refined prompts; None: the suite option `refined_prompts`.

    Raises:
        MissingExtra: EvalPlus is not installed.
        SourceUnavailable: The file is missing, or the hub cannot be reached.
        CulturevalError: Too many rows are broken, a refined prompt differs in more than its docstring's Arabic, or a
            manifest does not fit the data or leaves nothing.
    """
    require_extra("code")
    known, settings = CODE_DATASETS[dataset], current_settings().with_(data_root=data)
    if not settings.data_root and (problem := go_offline_if_unreachable()):
        print_note(f"the hub does not answer ({problem}).")
    from cultureval.tasks.catalogue import all_tasks
    from cultureval.tasks.options import read_data_options
    from cultureval.tasks.reading import prepare_subset

    task, options = all_tasks()[known.task], replace(read_data_options(settings), columns={})
    if prompts:
        options = replace(options, suite={**options.suite, "refined_prompts": str(prompts)})
    if options.root and not (options.root / REPO).is_dir():  # the folder of the data files itself
        task = replace(task, sources=(replace(task.sources[0], repo="."),))
    whole = prepare_subset(task, replace(options, manifests=()))
    chosen = prepare_subset(task, options) if options.manifests else whole
    rows = {row["task_id"]: {**stored_problem(row["problem"]), "prompt": row["prompt"]} for row in whole.rows()}
    kept = chosen.rows()[:limit]
    names = {row["task_id"] for row in chosen.rows()}
    return ProblemSet(
        known,
        {row["task_id"]: rows[row["task_id"]] for row in kept},
        chosen.report["revision"],
        refined=sum(row.get("refined", False) for row in kept),
        other_data=chosen.report["other_data"],
        left_out={name: row for name, row in rows.items() if name not in names},
        manifest=chosen.report.get("manifest", {}),
    )


def hash_of_problems(rows: Iterable[Row]) -> str:
    """SHA-256 of all that is asked and judged, whatever the file's packing, order and further fields are."""
    hashes = []
    for row in rows:
        tests = [[json.dumps(test) for test in row[column]] for column in INPUT_COLUMNS]
        judged = [[*(row[name] for name in JUDGED), float(row["atol"])], *tests]
        hashes.append(hashlib.sha256(json.dumps(judged).encode("ascii")).hexdigest()[:16])
    return hashlib.sha256(" ".join(sorted(hashes)).encode("ascii")).hexdigest()


def other_data(rows: Sequence[PreparedRow], dataset: CodeDataset) -> str:
    """A sentence where a task's prepared rows are not the published problems; "" where they are."""
    problems = [stored_problem(row["problem"]) for row in rows]
    if hash_of_problems(problems) == dataset.published:
        return ""
    tests = sum(len(problem[column]) for problem in problems for column in INPUT_COLUMNS)
    return (
        f"Not the published {dataset.title}, so not comparable with its scores: {len(problems)} problems with "
        f"{tests:,} tests, or other content."
    )


def find_problem_files(folder: Path, task: object = None, *, dataset: CodeDataset) -> tuple[list[Path], list[Path]]:
    """The one data file of a data set in a folder, packed or not, in the form that `Source.find` has."""
    found = [path for name in (dataset.file, f"{dataset.file}.gz") if (path := folder / name).is_file()]
    require_one_file(found, folder)
    return found, []


def check_problems(rows: Sequence[PreparedRow]) -> None:
    """Refuses two problems of one id."""
    seen: set[str] = set()
    for row in rows:
        if row["task_id"] in seen:
            raise CulturevalError(f"{REPO}: {row['task_id']} is duplicated.")
        seen.add(row["task_id"])
