"""Rows of other harnesses' tasks from the data root or the hub's cache, and task objects of LightEval over them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lighteval.tasks.lighteval_task import LightevalTask, LightevalTaskConfig
from lighteval.tasks.requests import Doc

from cultureval.runtime.data.hub import find_source
from cultureval.runtime.data.row_files import config_names, files_of_split, format_of, iter_rows
from cultureval.runtime.doc_fields import PAPER
from cultureval.runtime.errors import CulturevalError, SourceUnavailable, described
from cultureval.runtime.rows_report import RowsReport
from cultureval.runtime.signatures import text_hash
from cultureval.tasks.options import read_data_options

if TYPE_CHECKING:
    from datasets import Dataset

DEFAULT = "default"
PLACE = "source_row"  # `file:number`, as our own tasks call rows
Row = dict[str, Any]
Splits = dict[str, "Dataset"]


def local_rows(
    task: str, repo: str, config: str | None, splits: Iterable[str], wanted: Callable[[Row], bool] | None = None
) -> tuple[Splits, str]:
    """The rows that a task of another harness reads, and their commit on the hub ("local": unknown).

    Args:
        task: Its name, for messages.
        repo: `org/name` of the hub, also the folder below a data root.
        config: The configuration on the hub; None: the only one.
        splits: Names of the splits that the task may read.
        wanted: Whether a row is kept; None: all.

    Returns:
        Splits that are there, with the columns that `datasets.load_dataset` returns and `source_row`.

    Raises:
        SourceUnavailable: The data set, its configuration or all of its splits are not there.
        CulturevalError: A file cannot be read, or a column has values of several types.
    """
    root = read_data_options().root
    place = find_source(repo, None, root)
    searched = f"{root}/{repo}" if root else repo
    if place is None:
        raise SourceUnavailable(f"{task}: no data; looked in {searched}. Put {repo} below a folder and pass --data.")
    folder, revision = place
    found: Splits = {}
    for split in dict.fromkeys(splits):
        rows = [row | {PLACE: f"{file.name}:{n}"} for file in _files(folder, config, split) for n, row in _rows(file)]
        if kept := [row for row in rows if wanted is None or wanted(row)]:
            found[split] = _dataset(kept, folder)
    if not found:
        raise SourceUnavailable(f"{task}: {searched} has no split of {config or DEFAULT!r} that the task reads.")
    return found, revision


def _dataset(rows: list[Row], folder: Path) -> "Dataset":
    from datasets import Dataset

    columns = dict.fromkeys(name for row in rows for name in row)
    try:
        return Dataset.from_dict({name: [row.get(name) for row in rows] for name in columns})
    except (TypeError, ValueError) as error:  # of pyarrow
        raise CulturevalError(f"{folder}: {rows[0][PLACE]}: {described(error)}. Correct this column.") from error


def _files(folder: Path, config: str | None, split: str) -> list[Path]:
    """The files of a split: as the folder declares or implies them, else `CONFIG/SPLIT.*`."""
    names = config_names(folder)
    files = files_of_split(folder, [config or (names[0] if len(names) == 1 else DEFAULT)], [split])
    named = folder.joinpath(config or "").glob("*")
    return files or sorted(file for file in named if format_of(file) and file.name.partition(".")[0] == split)


def _rows(file: Path) -> Iterable[tuple[int, Row]]:
    """The rows of a file by number; cells of tables get the types that `load_dataset` gives them."""
    if format_of(file) in (".csv", ".tsv"):
        import pandas

        try:
            table = pandas.read_csv(file, sep="\t" if format_of(file) == ".tsv" else ",")
        except ValueError as error:
            raise CulturevalError(f"{file} cannot be read: {described(error)}.") from error
        return enumerate(table.astype(object).where(table.notna(), None).to_dict("records"))
    return enumerate(iter_rows(file))


@dataclass
class HarnessConfig(LightevalTaskConfig):
    """The configuration of a task of another harness, with the report of its rows."""

    rows_report: RowsReport = field(default_factory=RowsReport)


class FinishedDocs(LightevalTask):
    """A task of LightEval whose Docs are finished: prompts with examples, choices, limits and stop strings."""

    def __init__(self, config: HarnessConfig, docs: Sequence[Doc]) -> None:
        """The task of Docs in LightEval's order of rows, so that a limit takes the rows that our own tasks take."""
        super().__init__(config)
        self._finished = list(docs)

    def get_docs(self, max_samples: int | None = None) -> list[Doc]:
        """The first of its Docs."""
        return self._finished[:max_samples]


def with_place(doc: Doc, place: str, **more: Any) -> Doc:
    """A Doc with the tokens of the harness, that names its row and copy of the data as those of our own tasks do."""
    doc.specific = {**(doc.specific or {}), PLACE: place, "form": "original", "parity": PAPER, **more}
    return doc


def rows_report(repo: str, revision: str, docs: Sequence[Doc], examples: int, prompt: str) -> RowsReport:
    """The report of a task's rows; their hash is that of finished prompts, choices and correct answers."""
    texts = [f"{doc.query}\0{chr(0).join(doc.choices or [])}\0{doc.gold_index}" for doc in docs]
    return {
        "source": repo,
        "form": "original",
        "revision": revision,
        "fingerprint": text_hash("\1".join(texts)),
        "prompt": prompt,
        "parity": PAPER,
        "rows": len(docs),
        "expected_rows": None,
        "few_shot_rows": examples,
        "skipped_rows": [],
        "skipped_few_shot_rows": [],
        "row_counts": {"rows": len(docs), "scored": len(docs)},
        "duplicate_rows": 0,
        "notes": [],
        "caveat": "",
        "other_data": "",
    }
