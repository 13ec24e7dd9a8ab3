"""Arabic HumanEval+ and MBPP+ (3LM's `tiiuae/evalplus-arabic`): finding, checking and handing over the problems."""

import csv
import functools
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.prompts.preparation import PreparedRow
from cultureval.prompts.qimma.code_problems import INPUT_COLUMNS, check_problem, generation_prompt
from cultureval.prompts.qimma.refined_prompts import check_refinement, match_prompts
from cultureval.runtime.data.content_store import stored_problem
from cultureval.runtime.data.hub import find_source, recorded_revision
from cultureval.runtime.data.row_files import PlacedRow, Row, read_rows
from cultureval.runtime.data.user_cache import user_cache, write_atomically
from cultureval.runtime.errors import BadRow, CulturevalError, MissingColumn, SourceUnavailable, counted, shown_names
from cultureval.runtime.patches.evalplus import evalplus_problems
from cultureval.runtime.settings import Option, current_settings
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.cleaned_data import SOURCE_ROW, CleanedRecord, cleaned_files, cleaned_record
from cultureval.tasks.manifest import Selection, manifest_of, refuse_on_cleaned

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

    from cultureval.metrics.code.rules import Dataset

REPO = "tiiuae/evalplus-arabic"
SHORTENED_CODE = Option(
    "shortened_code",
    "CULTUREVAL_SHORTENED_CODE",
    "refuse",
    "`score` scores code problems that are fewer, or have fewer tests, than published; `refuse` (default) does not",
    values=("refuse", "score"),
)


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
    """

    name: "Dataset"
    title: str
    file: str
    prefix: str
    rows: int
    task: str


CODE_DATASETS = {
    dataset.name: dataset
    for dataset in (
        CodeDataset("humaneval", "HumanEval+", "HumanEvalPlus.jsonl", "HumanEval/", 164, "qimma_code:humaneval_plus"),
        CodeDataset("mbpp", "MBPP+", "MBPPPlus.jsonl", "Mbpp/", 378, "qimma_code:mbpp_plus"),
    )
}
JUDGED = ("task_id", "prompt", "entry_point", "canonical_solution", "base_input", "plus_input", "atol")


@dataclass(frozen=True)
class JudgedContent:
    """What of a problem is asked and judged.

    Attributes:
        base: Number of its different base tests.
        extra: Number of its different extra tests.
        hash: Of all of it, whatever further fields there are.
    """

    base: int
    extra: int
    hash: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "JudgedContent":
        """That of a row of a data file."""
        tests = [[json.dumps(test) for test in row[column]] for column in INPUT_COLUMNS]
        other = [row[name] for name in JUDGED if name not in (*INPUT_COLUMNS, "atol")] + [float(row["atol"])]
        content = hashlib.sha256(json.dumps([other, *tests]).encode("ascii")).hexdigest()[:16]
        return cls(*(len(set(texts)) for texts in tests), content)

    def __str__(self) -> str:
        return f"{self.base:,} base and {counted(self.extra, 'extra test')}"


@functools.cache
def published_problems(dataset: CodeDataset) -> Mapping[str, JudgedContent]:
    """The problems that 3LM published, by task id: `code_tests.csv`."""
    with (Path(__file__).parent / "code_tests.csv").open(encoding="utf-8", newline="") as file:
        return {
            row["task_id"]: JudgedContent(int(row["base"]), int(row["extra"]), row["hash"])
            for row in csv.DictReader(file)
            if row["task_id"].startswith(dataset.prefix)
        }


@dataclass(frozen=True)
class ProblemSet:
    """The problems of a run.

    Attributes:
        dataset: Which of the two data sets they are of.
        rows: The rows by task id, as the file holds them.
        file: A data file with exactly these rows, for EvalPlus.
        revision: Commit of the source, or "local".
        content_hash: Hash of all rows of the file with these prompts, before `limit` and manifests.
        difference: What the source's rows are instead of the published ones, or "".
        shortened: Why scores of the source's rows are too good to be those of the data set, or "". For both see
            `compare_with_published`.
        source: The hub's data set.
        left_out: The file's rows that a manifest of the settings leaves out, by task id.
        manifest: What a run records of it, or of the one that cleaned the data (`Selection.report`); {} without one.
    """

    dataset: CodeDataset
    rows: Mapping[str, Row]
    file: Path
    revision: str
    refined: int
    content_hash: str
    difference: str = ""
    shortened: str = ""
    source: str = REPO
    left_out: Mapping[str, Row] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of all that is asked and judged, as of `_content_hash`."""
        return _content_hash(self.rows)

    @property
    def evalplus_hash(self) -> str:
        """EvalPlus's hash of a data set: the MD5 of its file."""
        return hashlib.md5(self.file.read_bytes(), usedforsecurity=False).hexdigest()

    @property
    def other_data(self) -> str:
        """`difference`, and why they are shortened."""
        return _told(self.difference, self.shortened)

    def problems(self) -> dict[str, dict[str, Any]]:
        """The problems by task id as EvalPlus's loader gives them: MBPP's inputs get back their tuples and sets."""
        return evalplus_problems(self.dataset.name, self.rows)

    def docs(self, samples: int, thinking: bool, server: bool) -> "list[Doc]":
        """The problems as EvalPlus's own generation asks them (`code_problems.generation_prompt`)."""
        known = self.dataset
        return [generation_prompt(row, known.name, known.task, samples, thinking, server) for row in self.rows.values()]

    def description(self) -> dict[str, Any]:
        """What is written beside solutions of these problems."""
        data = {"data_revision": self.revision, "data_hash": self.content_hash}
        return data | {"problems": len(self.rows), "refined_prompts": self.refined}


def problems_of(task: str, data: str) -> ProblemSet:
    """The problems of a task (`qimma_code:mbpp_plus`), of a data root; see `load_problems`."""
    return load_problems(next(name for name, known in CODE_DATASETS.items() if known.task == task), data)


def load_problems(
    dataset: str,
    data: str | None = None,
    prompts: Path | None = None,
    limit: int | None = None,
) -> ProblemSet:
    """Finds, reads and checks the problems of a data set.

    Args:
        dataset: `humaneval` or `mbpp`.
        data: Data root, a folder that holds the data files themselves, "samples", or "" for the hub; None: that of
            the current settings.
        prompts: File of refined prompts, which replace those of the source.

    Raises:
        SourceUnavailable: The file is missing, or the hub cannot be reached.
        CulturevalError: The data root is no folder, a row is broken, or a refined prompt differs in more than its
            docstring's Arabic, or a manifest does not fit the data or leaves nothing.
    """
    known = CODE_DATASETS[dataset]
    found = find_file(known, current_settings().with_(data_root=data).data_root)
    rows = _checked_rows(known, found.file)
    left_out, manifest = _discarded(found, rows)
    difference, shortened = compare_with_published(
        known, {name: row for name, row in rows.items() if name not in left_out}, found.excused(rows, left_out)
    )
    refined = _refined(prompts, rows) if prompts else {}
    rows = {name: row | {"prompt": refined.get(name, row["prompt"])} for name, row in rows.items()}
    content_hash = _content_hash(rows)[:16]
    kept = dict([(name, row) for name, row in rows.items() if name not in left_out][:limit])
    if refined or found.cleaned or len(kept) < len(rows):
        file = _written(known, kept)
    else:
        file = found.file
    refinements = sum(name in kept for name in refined)
    dropped = {name: rows[name] for name in left_out}
    return ProblemSet(
        *(known, kept, file, found.revision, refinements, content_hash, difference, shortened),
        left_out=dropped,
        manifest=manifest,
    )


def _discarded(found: "FoundFile", rows: Mapping[str, Row]) -> tuple[list[str], Mapping[str, Any]]:
    """The problems that the settings' manifest discards, and what a run records of it or of cleaned data's."""
    manifest, file = manifest_of(current_settings().manifest), found.file
    if not manifest:
        return [], found.cleaned.report(found.dataset.task) if found.cleaned else {}
    if found.cleaned:
        refuse_on_cleaned(manifest, found.folder)
    selection = Selection(manifest, REPO, found.folder, all_tasks()[found.dataset.task].subset)
    placed = [(name, PlacedRow(file.name, number, row, file)) for number, (name, row) in enumerate(rows.items())]
    left_out = [name for name, one in placed if selection.leaves_out(one, [file])]
    selection.finish([file])
    if len(left_out) == len(rows):
        raise CulturevalError(f"The manifest {manifest.name} discards all problems of {file}.")
    return left_out, selection.report(len(left_out))


def compare_with_published(
    dataset: CodeDataset, rows: Mapping[str, Mapping[str, Any]], left_out: Collection[str] = ()
) -> tuple[str, str]:
    """What problems are instead of those that 3LM published, and why fewer tests make their scores too good.

    Problems of other numbers than the published ones, such as the samples', are shortened only where they have no
    extra tests; a test that comes twice is one.

    Args:
        left_out: Ids of problems that a manifest leaves out on purpose, which shortens nothing.

    Returns:
        A sentence, and a clause; both name the problems, and are "" where they do not apply.
    """
    published, own = published_problems(dataset), {task: JudgedContent.of(row) for task, row in rows.items()}
    if own == published:
        return "", ""
    missing = [task for task in published if task not in own]
    changed = [task for task in published if task in own and own[task] != published[task]]
    fewer = [
        task for task in changed if own[task].base < published[task].base or own[task].extra < published[task].extra
    ]
    untested = [task for task in own if not own[task].extra and (task not in published or published[task].extra)]
    told = [f"{len(changed)} with other content: {shown_names(changed)}"] if changed else []
    parts = (
        [f"{len(untested)} of {len(rows)} problems have no extra tests: {shown_names(untested)}"] if untested else []
    )
    if len(missing) < len(published):
        gone, excused = ([task for task in missing if (task in left_out) == known] for known in (False, True))
        told += [f"{len(gone)} missing: {shown_names(gone)}"] if gone else []
        told += [f"{len(excused)} left out by a manifest: {shown_names(excused)}"] if excused else []
        if added := [task for task in own if task not in published]:
            told.append(f"{len(added)} added: {shown_names(added)}")
        if gone:
            here = counted(len(published) - len(missing), "problem")
            parts.append(f"{here} of the {len(published)} of {dataset.title}, without {shown_names(gone)}")
        if fewer:
            each = [f"{task} ({own[task]}, published {published[task]})" for task in fewer]
            parts.append(f"{counted(len(fewer), 'problem')} with fewer tests than published: {shown_names(each)}")
    sizes = f"{counted(len(rows), 'problem')} with {_sum(own)}, published {len(published)} with {_sum(published)}"
    difference = f"Not the published {dataset.title}, so not comparable with its scores: {sizes}, each counted once"
    return f"{'; '.join([difference, *told])}.", "; ".join(parts)


def _sum(problems: Mapping[str, JudgedContent]) -> JudgedContent:
    return JudgedContent(*(sum(getattr(one, name) for one in problems.values()) for name in ("base", "extra")), "")


def other_data(rows: Sequence[PreparedRow], dataset: CodeDataset) -> str:
    """What differs between a task's prepared rows and the published problems; "" for nothing."""
    return _told(*_prepared_and_published(rows, dataset))


def _told(difference: str, shortened: str) -> str:
    return f"{difference} Shortened: {shortened}." if shortened else difference


def _prepared_and_published(rows: Sequence[PreparedRow], dataset: CodeDataset) -> tuple[str, str]:
    """`compare_with_published` of a task's prepared rows; what a manifest leaves out is excused."""
    stored, settings = {row["task_id"]: stored_problem(row["problem"]) for row in rows}, current_settings()
    difference, shortened = compare_with_published(dataset, stored)
    if not shortened:
        return difference, ""
    found = find_file(dataset, settings.data_root)
    in_file = {row.get("task_id") for row in read_rows(found.file) if isinstance(row, dict)}
    left_out = in_file - set(stored) if settings.manifest else set()
    return compare_with_published(dataset, stored, found.excused(in_file, left_out))


@dataclass(frozen=True)
class FoundFile:
    """The data file of a data set.

    Attributes:
        folder: The source's, from which manifests count paths.
        revision: Commit, or "local".
        cleaned: What `audit apply` recorded, where it wrote the file.
    """

    dataset: CodeDataset
    file: Path
    folder: Path
    revision: str
    cleaned: CleanedRecord | None = None

    def excused(self, in_file: Collection[str], left_out: Collection[str]) -> set[str]:
        """The problems that manifests leave out: of the file, and of cleaned data those that it lacks, if no others."""
        lacking = [task for task in published_problems(self.dataset) if task not in in_file]
        discarded = self.cleaned.tasks[self.dataset.task].discarded if self.cleaned else 0
        return {*left_out, *(lacking if discarded == len(lacking) else ())}


def find_file(dataset: CodeDataset, root: Path | None) -> FoundFile:
    """The data file of a data set, as it was published or as `audit apply` cleaned it.

    Raises:
        SourceUnavailable: It is in none of the known places; the message names them.
    """
    places = [find_source(REPO, None, root)]
    if root is not None:
        places.append((root, recorded_revision(root)))
    for folder, commit in filter(None, places):
        record = cleaned_record(folder)
        if record and (known := record.tasks.get(dataset.task)):
            return FoundFile(dataset, cleaned_files(folder, known)[0][0], folder, commit, record)
        files, _ = find_problem_files(folder, dataset=dataset)
        if files:
            return FoundFile(dataset, files[0], folder, commit)
    if root is None:
        raise SourceUnavailable(
            f"The hub shows no {REPO} with {dataset.file}.gz; give a folder that has it: --data DIR."
        )
    raise SourceUnavailable(
        f"{dataset.title}: neither {root / REPO} nor {root} holds {dataset.file}.gz (or {dataset.file}). "
        "`cultureval mirror qimma --output-dir DIR` fetches it on a connected machine; `--data samples` has the "
        "shipped ones."
    )


def find_problem_files(folder: Path, task: object = None, *, dataset: CodeDataset) -> tuple[list[Path], list[Path]]:
    """The one data file of a data set in a folder, in the form that `Source.find` has; there are no few-shot files.

    Raises:
        CulturevalError: There are two, packed and not, or in other letters.
    """
    names = (dataset.file.lower(), f"{dataset.file.lower()}.gz")
    found = [path for path in sorted(folder.iterdir()) if path.name.lower() in names]
    if found[1:]:
        raise CulturevalError(f"{folder} holds {found[0].name} and {found[1].name}: remove one.")
    return found, []


def check_problems(rows: Sequence[PreparedRow], dataset: CodeDataset) -> None:
    """Refuses two problems of one id, and shortened data unless an option asks for them.

    A manifest excuses the problems that it leaves out of the data file, and no others.
    """
    seen: set[str] = set()
    for row in rows:
        if row["task_id"] in seen:
            raise CulturevalError(f"{REPO}: {row['task_id']} is duplicated.")
        seen.add(row["task_id"])
    if SHORTENED_CODE.read(current_settings()) == "refuse":
        shortened = _prepared_and_published(rows, dataset)[1]
        require_whole(shortened, f"{SHORTENED_CODE.flag} score ({SHORTENED_CODE.variable}=score)")


def require_whole(shortened: str, option: str) -> None:
    """Refuses shortened data (the clause of `compare_with_published`), and says which option scores them anyway."""
    if shortened:
        raise CulturevalError(
            f"The data are shortened, so that their scores would be too good: {shortened}. Give the whole data, or "
            f"{option} to score them anyway."
        )


def _checked_rows(dataset: CodeDataset, file: Path) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for number, row in enumerate(read_rows(file)):
        try:
            if not isinstance(row, dict):
                raise BadRow("*", row, "is not a JSON object")
            row.pop(SOURCE_ROW, None)
            check_problem(row, dataset.prefix)
            if row["task_id"] in rows:
                raise BadRow("task_id", row["task_id"], "is duplicated")
        except (BadRow, MissingColumn) as error:
            raise CulturevalError(f"{file}, row {number}: {error}.") from error
        rows[row["task_id"]] = row
    if not rows:
        raise CulturevalError(f"{file} holds no problem.")
    return rows


def _refined(file: Path, rows: Mapping[str, Row]) -> dict[str, str]:
    """The prompts of a file that differ from the rows'."""
    if not file.is_file():
        raise CulturevalError(f"The file of refined prompts {str(file)!r} does not exist.")
    try:
        matched = match_prompts(read_rows(file), list(rows))
    except CulturevalError as error:
        raise CulturevalError(f"{file}: {error}") from error
    matched = {name: prompt.replace("\r\n", "\n") for name, prompt in matched.items()}
    for name, prompt in matched.items():
        try:
            check_refinement(rows[name]["prompt"], prompt)
        except BadRow as error:
            raise CulturevalError(
                f"{file}, {name}: {error}. Only the Arabic of a docstring may differ from the source's prompt."
            ) from error
    return {name: prompt for name, prompt in matched.items() if prompt != rows[name]["prompt"]}


def _content_hash(rows: Mapping[str, Row]) -> str:
    """Hash of all that is asked and judged, whatever the file's packing, order and further fields are."""
    hashes = sorted(JudgedContent.of(row).hash for row in rows.values())
    return hashlib.sha256(" ".join(hashes).encode("ascii")).hexdigest()


def _written(dataset: CodeDataset, rows: Mapping[str, Row]) -> Path:
    """The rows as a data file below the user cache, written atomically; the folder's name is a hash of the content."""
    content = "".join(json.dumps(row) + "\n" for row in rows.values()).encode("ascii")
    file = user_cache() / "code_problems" / hashlib.sha256(content).hexdigest()[:16] / dataset.file
    if not file.is_file():
        write_atomically(file, content)
    return file
