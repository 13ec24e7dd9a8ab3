"""Tests for suites of any package: what means nothing changes nothing, and what must be told is told.

    from cultureval.testing import assert_metamorphic

    def test_changes_that_mean_nothing_change_nothing(tmp_path):
        assert_metamorphic(task, SAMPLES, tmp_path)

Each change of the table `CHANGES` is made in a copy of a task's data, and what `eval`, `check`, `audit` and the exports
then read, and the scores of a model that knows the task by halves, are compared with those before. The effects are
declared in the table (docs/metamorphic.md shows it).
"""

import csv
import gzip
import hashlib
import io
import json
import math
import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cultureval.audit.checks.table import run_checks
from cultureval.audit.columns import Columns, columns_found, options_in
from cultureval.audit.sources import items_of_task
from cultureval.prompts.cells import bare, is_empty
from cultureval.prompts.labelled_options import read_label
from cultureval.prompts.option_labels import LABELS, label_index
from cultureval.runtime.data.row_files import files_matching, format_of, read_rows
from cultureval.runtime.data_options import BadRows, DataOptions
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import kind_of
from cultureval.tasks.checking import check_task
from cultureval.tasks.reading import FoundSource, find_subset, forget_files, prepare_subset
from cultureval.tasks.suite import Task

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

Effect = Literal["nothing changes", "told and refused", "told and counted"]
PLACES = {"source_row", "cluster"}  # fields of prepared rows that say where a row stands
TYPED = {"wrong_type"}  # checks that look at the types of cells, which formats differ in


class DoesNotApply(Exception):
    """A change has no meaning for a table: no gold to write otherwise, a list in a CSV cell."""


@dataclass
class Table:
    """A copy of a task's data in which one file is changed.

    Attributes:
        root: The data root of the copy.
        task: The task that reads it; a change may give it another source.
        found: Its source and files before the change.
        rows: Those of its first file.
        columns: Which of their columns hold question, options and gold.
        labels: Those that the task scores; () where it scores none.
        places: The positions of each row's right options among its own; None where they cannot be told.
        bad_rows: How broken rows are read.
    """

    root: Path
    task: Task
    found: FoundSource
    rows: list[dict[str, Any]]
    columns: Columns
    labels: tuple[str, ...]
    places: list[tuple[int, ...]] | None
    bad_rows: BadRows = "stop"

    @property
    def file(self) -> Path:
        """The file that is changed."""
        return self.found.files[0]

    @property
    def stem(self) -> str:
        """Its name without the format."""
        return re.sub(rf"{re.escape(format_of(self.file))}(\.gz)?$", "", self.file.name, flags=re.IGNORECASE)

    def write(self, rows: Sequence[Mapping[str, Any]], format: str = "", encoding: str = "utf-8") -> Path:
        """Writes rows in place of the file, in its own format or in another, under the name that then fits."""
        format = format or "".join(self.file.suffixes[-2:] if self.file.suffix == ".gz" else [self.file.suffix])
        content = file_content(rows, format, encoding)
        target = self.file.with_name(f"{self.stem}{format}")
        self.file.unlink()
        target.write_bytes(content)
        self.declare(self.file, target)
        return target

    def declare(self, old: Path, new: Path) -> None:
        """Puts another name of a file into the README's declarations."""
        readme, folder = self.found.folder / "README.md", self.found.folder
        if readme.is_file() and old != new:
            text = readme.read_text(encoding="utf-8")
            path = rf"(?<![\w/.-]){re.escape(str(old.relative_to(folder)))}(?![\w.])"
            changed = re.sub(path, lambda _: str(new.relative_to(folder)), text)
            readme.write_text(changed, encoding="utf-8")

    def with_golds(self, name: Callable[[Mapping[str, Any], int], Any], as_text: bool = False) -> None:
        """Writes each gold anew: `name` gives what the position of an option is called, by a label or `as_text`."""
        if not as_text and any(label_index(label) != place for place, label in enumerate(self.labels)):
            raise DoesNotApply("the task has labels of its own")
        if self.places is None or not self.columns.gold or self.found.source.form == "curated":
            raise DoesNotApply("the golds stand in no column of their own")
        several = any(len(places) > 1 for places in self.places)
        golds = [[name(row, place) for place in places] for row, places in zip(self.rows, self.places, strict=True)]
        cells = [gold if several else gold[0] for gold in golds]
        rows = [row | {self.columns.gold: cell} for row, cell in zip(self.rows, cells, strict=True)]
        self.write(rows, "" if not several else ".jsonl")


def file_content(rows: Sequence[Mapping[str, Any]], format: str, encoding: str = "utf-8") -> bytes:
    """The bytes of a file of rows.

    Args:
        rows: The rows.
        format: Such as ".csv" or ".jsonl.gz".
        encoding: Of texts.

    Raises:
        DoesNotApply: Cells cannot stand in that format or encoding.
    """
    if format in (".parquet", ".arrow"):
        return _columnar(rows, format)
    if format.startswith((".csv", ".tsv")):
        if any(isinstance(cell, list | dict | bytes) for row in rows for cell in row.values()):
            raise DoesNotApply("cells hold lists or objects")
        names = list(dict.fromkeys(name for row in rows for name in row))
        text = io.StringIO(newline="")
        table = csv.DictWriter(text, names, delimiter="\t" if format.startswith(".tsv") else ",")
        table.writeheader()
        table.writerows(rows)
        content = text.getvalue()
    elif format.startswith(".jsonl"):
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    else:
        content = json.dumps(list(rows), ensure_ascii=False)
    try:
        encoded = content.encode(encoding)
    except UnicodeEncodeError as error:
        raise DoesNotApply("the texts have letters that the encoding lacks") from error
    return gzip.compress(encoded) if format.endswith(".gz") else encoded


def _columnar(rows: Sequence[Mapping[str, Any]], format: str) -> bytes:
    import pyarrow
    import pyarrow.ipc
    import pyarrow.parquet

    names = list(dict.fromkeys(name for row in rows for name in row))
    try:
        table = pyarrow.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise DoesNotApply("a column has cells of several types") from error
    sink = io.BytesIO()
    if format == ".parquet":
        pyarrow.parquet.write_table(table, sink)
    else:
        with pyarrow.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
    return sink.getvalue()


@dataclass(frozen=True)
class Change:
    """A change of a task's data.

    Attributes:
        name: What is done.
        effect: What it must do to what is read: nothing; the task is refused with a sentence; or it is counted.
        make: Makes it.
        counted: The counts of `Reading` that it raises, where it is counted; where it is refused, those that it may
            raise instead, the rows being read once.
        unless_evident: Whether it may also be refused, where the column of golds does not tell what numbers mean.
    """

    name: str
    effect: Effect
    make: Callable[[Table], None] = field(repr=False)
    counted: tuple[str, ...] = ()
    unless_evident: bool = False


@dataclass(frozen=True)
class Reading:
    """What `eval`, `check` and `audit` read of a task's data.

    Attributes:
        rows: Prepared rows without their places, in any order, and how often each is there; likewise `examples`.
        docs: What LightEval and the exports to other harnesses ask: prompts, choices, golds, images.
        scores: The task's own metrics and standard errors of answers that a hash of the row gives; () where a model
            of its own scores them.
        notes: Sentences on the data.
        duplicates: Rows that ask the same as an earlier one; `skipped`: broken ones; `unread`: files of no task.
        checked: The counts of `check`: scored, examples, broken, duplicates.
        audited: The items of `audit` (question, options, gold), and how often each of its checks finds something.
        refused: The sentence by which the task is refused; "" where it is read.
    """

    rows: Counter[str] = field(default_factory=Counter)
    examples: Counter[str] = field(default_factory=Counter)
    docs: Counter[str] = field(default_factory=Counter)
    scores: tuple[tuple[str, float], ...] = ()
    notes: tuple[str, ...] = ()
    duplicates: int = 0
    skipped: int = 0
    unread: int = 0
    checked: tuple[int, ...] = ()
    audited: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    refused: str = ""


def reading_of(task: Task, root: Path, bad_rows: BadRows = "stop") -> Reading:
    """What is read of a task's data below a data root."""
    forget_files()
    options = DataOptions(root=root, bad_rows=bad_rows)
    try:
        subset = prepare_subset(task, options)
    except CulturevalError as error:
        return Reading(refused=str(error))
    rows, examples = _written(subset.folder / "test.jsonl"), _written(subset.folder / "few_shot.jsonl")
    counts = check_task(task, options)
    items = list(items_of_task(task, options))
    found = Counter(one.check for one in run_checks(items) if one.check not in TYPED)
    docs = [kind_of(task.task).prompt(row, task.task) for row in rows]
    return Reading(
        rows=Counter(map(_without_places, rows)),
        examples=Counter(map(_without_places, examples)),
        docs=Counter(map(_asked, docs)),
        scores=_scores_by_hash(task, docs),
        notes=tuple(subset.report["notes"]),
        duplicates=subset.report["duplicate_rows"],
        skipped=len(subset.report["skipped_rows"]),
        unread=len(subset.report["unread_files"]),
        checked=(counts.scored, counts.few_shot, counts.broken, counts.duplicates),
        audited=(Counter(repr((one.question, one.options, one.gold, one.answers)) for one in items), found),
    )


def _written(file: Path) -> list[dict[str, Any]]:
    """The prepared rows of a file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n")[:-1]] if file.is_file() else []


def _without_places(row: Mapping[str, Any]) -> str:
    return json.dumps({name: row[name] for name in sorted(row) if name not in PLACES}, ensure_ascii=False)


def _asked(doc: "Doc") -> str:
    """What a Doc asks, as text; images by their names in the store, which are hashes."""
    images = [Path(image).name for image in doc.images or ()]
    return json.dumps([doc.query, doc.choices, doc.gold_index, images], ensure_ascii=False)


def _scores_by_hash(task: Task, docs: "Sequence[Doc]") -> tuple[tuple[str, float], ...]:
    """Scores and errors of answers by a hash of the question: log-probabilities of choices, or some golds as texts."""
    from lighteval.metrics import apply_metric
    from lighteval.models.model_output import ModelResponse

    kind = kind_of(task.task)
    if kind.instrument and kind.instrument.sources():
        return ()
    responses = []
    for doc in docs:
        drawn = [_drawn(f"{doc.query}\n{choice}") for choice in doc.choices]
        golds = [str(gold) for gold in doc.get_golds()] if doc.choices else []
        text = golds[0] if golds and _drawn(doc.query) % 2 else "?"
        generated = kind.generation_size >= 0
        logprobs, tokens = [-one / 100 for one in drawn], [[1]] * len(drawn)
        responses.append(
            ModelResponse(text=[text]) if generated else ModelResponse(logprobs=logprobs, output_tokens=tokens)
        )
    metrics = list(kind.metrics())
    rows = apply_metric(docs=list(docs), responses=responses, metrics=metrics)
    totals: dict[str, float] = {}
    for name, aggregate in [one for metric in metrics for one in metric.get_corpus_aggregations().items()]:
        total = aggregate([row[name] for row in rows])
        totals |= total if isinstance(total, Mapping) else {name: total}
    return tuple(sorted((name, round(float(total), 9)) for name, total in totals.items() if not math.isnan(total)))


def _drawn(text: str) -> int:
    """A number from 0 to 999, the same for the same text."""
    return int(hashlib.sha256(text.encode("utf-8")).hexdigest(), 16) % 1000


def table_of(task: Task, data: Path, folder: Path) -> Table:
    """A copy of a task's data.

    Args:
        task: The task.
        data: The data root that has them.
        folder: Where the copy is written, anew.

    Raises:
        CulturevalError: There are no data.
        DoesNotApply: Its first file is no table of rows.
    """
    forget_files()
    source = find_subset(task, DataOptions(root=data)).source
    root = folder / "data"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(data / source.repo, root / source.repo)
    forget_files()
    task = replace(task, sources=(source,))
    found = find_subset(task, DataOptions(root=root))
    try:
        rows = read_rows(found.files[0])
    except CulturevalError as error:
        raise DoesNotApply("its file is no table of rows") from error
    columns = columns_found(rows)
    labels = tuple(label.strip() for label in _first_prepared(task, root).get("labels", ()))
    return Table(root, task, found, rows, columns, labels, _places(task, root, rows, columns))


def _places(
    task: Task, root: Path, rows: Sequence[Mapping[str, Any]], columns: Columns
) -> list[tuple[int, ...]] | None:
    """The positions of the right options of each row among its cells; None where a row's are not found."""
    items = [one for one in items_of_task(task, DataOptions(root=root)) if one.split == "test"]
    if len(items) != len(rows):
        return None
    places: list[tuple[int, ...]] = []
    for item, row in zip(items, rows, strict=True):
        cells = [bare(str(cell)) for cell in options_in(row, columns)]
        texts = [label.text if (label := read_label(cell)) else cell for cell in cells]
        right = [bare(item.options[place]) for place in item.gold]
        named = cells if set(right) <= set(cells) else texts
        if not right or not set(right) <= set(named):
            return None
        places.append(tuple(sorted(map(named.index, right))))
    return places


def _text_of(table: Table) -> Callable[[Mapping[str, Any], int], str]:
    def text(row: Mapping[str, Any], place: int) -> str:
        cell = str(options_in(row, table.columns)[place])
        label = read_label(cell) if table.places is not None else None
        return label.text if label and label.ordinal == place else cell

    return text


def _shaped(text: str) -> str:
    """A text in the shapes of letters that typesetters use."""
    names = {unicodedata.normalize("NFKC", chr(code)): chr(code) for code in range(0xFE80, 0xFEFD)}
    return "".join(names.get(letter, letter) for letter in text)


def _with_gold_text(table: Table, written: Callable[[str], str]) -> None:
    """Golds as texts of their options, written in another way; not of options that are labels, numbers or signs."""
    cells = [bare(str(cell)) for row in table.rows for cell in _filled(table, row)]
    if any(len(cell) < 3 or cell.isdigit() for cell in cells):
        raise DoesNotApply("options are short or numbers")
    table.with_golds(lambda row, place: written(_text_of(table)(row, place)), as_text=True)


def _filled(table: Table, row: Mapping[str, Any]) -> list[Any]:
    return [cell for cell in options_in(row, table.columns) if not is_empty(cell)]


def _options_as(table: Table, written: Callable[[list[str]], Any]) -> None:
    """Options in one cell, where the reader of the task takes them so."""
    if (
        table.found.source.form == "curated"
        or len(table.columns.options) != 1
        or any(len(_filled(table, row)) < 2 for row in table.rows)
    ):
        raise DoesNotApply("each option has a column")
    column = table.columns.options[0]
    table.write([row | {column: written(list(map(str, _filled(table, row))))} for row in table.rows], ".jsonl")


def _as_object(options: list[str]) -> dict[str, str]:
    return {"ABCDEFGH"[place]: option for place, option in enumerate(options)}


def _two_shards(table: Table) -> list[Path]:
    if len(table.rows) < 2 or table.found.source.find:
        raise DoesNotApply("one row, or a reader of its own finds the file by its name")
    _all_files_as(table, ".jsonl")
    whole = table.file.with_name(f"{table.stem}.jsonl")
    whole.unlink()
    middle = len(table.rows) // 2
    shards = [table.file.with_name(f"{table.stem}-0000{number}-of-00002.jsonl") for number in range(2)]
    for shard, part in zip(shards, (table.rows[:middle], table.rows[middle:]), strict=True):
        shard.write_bytes(file_content(part, ".jsonl"))
    table.declare(whole, table.file.with_name(f"{table.stem}-*.jsonl"))
    return shards


def _saved_to_disk(table: Table) -> None:
    several = table.found.few_shot_files or len(table.found.files) > 1 or table.found.mixed
    if table.found.source.find or several or table.task.images:
        raise DoesNotApply("it has several files, or a reader of its own")
    import datasets

    datasets.disable_progress_bars()
    try:
        saved = datasets.Dataset.from_list([dict(row) for row in table.rows])
    except Exception as error:  # of pyarrow, of several kinds
        raise DoesNotApply("a column has cells of several types") from error
    shutil.rmtree(table.found.folder)
    below = table.found.folder if table.found.source.pool_configs else table.found.folder / table.task.subset_names[0]
    datasets.DatasetDict({table.found.source.splits[0]: saved}).save_to_disk(str(below))


def _renamed_columns(table: Table) -> None:
    """Columns of other names, which `--sources` gives."""
    if table.found.source.read or table.found.source.find or table.found.source.form == "curated":
        raise DoesNotApply("a reader of its own takes no names of columns")
    names = [one for one in (table.columns.question, table.columns.gold) if one]
    for file in files_matching(table.found.folder, ["*"]):
        rows = [
            {f"my {name}" if name in names else name: cell for name, cell in row.items()} for row in read_rows(file)
        ]
        file.write_bytes(file_content(rows, "".join(file.suffixes[-2:] if file.suffix == ".gz" else [file.suffix])))
    source = replace(table.found.source, columns={name: f"my {name}" for name in names}, given="sources.yaml@1")
    table.task = replace(table.task, sources=(source,))


def _one_shard(table: Table) -> None:
    _two_shards(table)[1].unlink()


def _second_format(table: Table) -> None:
    if table.found.source.find:
        raise DoesNotApply("a reader of its own finds the file by its name")
    other = ".jsonl" if format_of(table.file) != ".jsonl" else ".json"
    table.file.with_name(f"{table.stem}{other}").write_bytes(file_content(table.rows, other))
    table.declare(table.file, table.file.with_name(f"{table.stem}.*"))


def _readme(table: Table, encoding: str) -> None:
    readme = table.found.folder / "README.md"
    if not readme.is_file() or "configs:" not in readme.read_text(encoding="utf-8") or table.found.source.find:
        raise DoesNotApply("no README declares what is read")
    text = readme.read_text(encoding="utf-8")
    readme.write_bytes(f"{text}\nبيانات\n".encode(encoding, "ignore"))


def _row_twice(table: Table) -> None:
    if table.found.source.find or table.found.source.read or "cluster" not in _first_prepared(table.task, table.root):
        raise DoesNotApply("its items are made of several rows, or have names of their own")
    table.write([*table.rows, next(row for row in table.rows if _is_read(table, row))])


def _is_read(table: Table, row: Mapping[str, Any]) -> bool:
    source = table.found.source
    evaluated = not source.few_shot_column or str(row.get(source.few_shot_column)) in ("0", "0.0", "False", "None")
    named = source.subset_of(row) if source.subset_of and table.found.mixed else None
    return evaluated and (named is None or named in table.task.subset_names)


def _first_prepared(task: Task, root: Path) -> dict[str, Any]:
    subset = prepare_subset(task, DataOptions(root=root))
    return dict(json.loads((subset.folder / "test.jsonl").read_text(encoding="utf-8").split("\n")[0]))


def _broken_row(table: Table) -> None:
    """A row without a gold, left out by `--bad-rows skip`."""
    if not table.columns.gold or table.found.source.find or table.places is None:
        raise DoesNotApply("the golds stand in no column of their own")
    first = next(row for row in table.rows if _is_read(table, row))
    table.bad_rows = "skip"
    table.write([*table.rows, first | {table.columns.gold: None}])


def _file_of_no_task(table: Table) -> None:
    source = table.found.source
    if source.find or source.read or not (table.found.folder / "README.md").is_file() or source.subset_of:
        raise DoesNotApply("no README says which files there are")
    (table.found.folder / "another.jsonl").write_bytes(file_content(table.rows, ".jsonl"))


def _damaged(table: Table) -> None:
    if not table.columns.question or table.found.source.form == "curated":
        raise DoesNotApply("no column of a question")
    place = next(place for place, row in enumerate(table.rows) if _is_read(table, row))
    broken = dict(table.rows[place])
    if sum("\u0620" <= letter <= "\u064a" for letter in str(broken[table.columns.question])) < 5:
        raise DoesNotApply("the question is not in Arabic")
    broken[table.columns.question] = str(broken[table.columns.question]).encode("cp1256", "ignore").decode("latin-1")
    table.write([*table.rows[:place], broken, *table.rows[place + 1 :]])


def _in_other_encoding(table: Table) -> None:
    if format_of(table.file) == ".parquet" or all(str(row).isascii() for row in table.rows):
        raise DoesNotApply("no text that the encoding changes")
    table.write(table.rows, encoding="cp1256")


def _line_ends(table: Table) -> None:
    if format_of(table.file) not in (".jsonl", ".csv", ".tsv") or table.file.suffix == ".gz":
        raise DoesNotApply("no file of lines")
    if any("\n" in str(cell) for row in table.rows for cell in row.values()):
        raise DoesNotApply("cells of several lines")
    table.file.write_bytes(table.file.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))


def _byte_order_mark(table: Table) -> None:
    if format_of(table.file) in (".parquet", ".arrow") or table.file.suffix == ".gz":
        raise DoesNotApply("no text file")
    table.file.write_bytes(b"\xef\xbb\xbf" + table.file.read_bytes().removeprefix(b"\xef\xbb\xbf"))


def _all_files_as(table: Table, format: str) -> None:
    """Stores all data files of the folder in a format, which `datasets` wants to be one for all."""
    if table.found.source.find:
        raise DoesNotApply("a reader of its own finds the file by its name")
    contents = {file: file_content(read_rows(file), format) for file in files_matching(table.found.folder, ["*"])}
    for file, content in contents.items():
        stem = re.sub(rf"{re.escape(format_of(file))}(\.gz)?$", "", file.name, flags=re.IGNORECASE)
        file.unlink()
        file.with_name(f"{stem}{format}").write_bytes(content)
        table.declare(file, file.with_name(f"{stem}{format}"))


def _written_as(format: str) -> Callable[[Table], None]:
    return lambda table: _all_files_as(table, format)


def _reordered(table: Table) -> None:
    if table.found.source.read or table.found.source.reorder:
        raise DoesNotApply("the order of rows has a meaning")
    table.write(table.rows[::-1])


def _golds_as_lists(table: Table) -> None:
    if any(len(places) > 1 for places in table.places or ()):
        raise DoesNotApply("they are lists already")
    table.with_golds(lambda _, place: ["ABCDEFGH"[place]])
    table.write(read_rows(table.file), ".jsonl")


def _mixed_golds(table: Table) -> None:
    if len(table.rows) < 3:
        raise DoesNotApply("too few rows")
    order = {id(row): number for number, row in enumerate(table.rows)}
    table.with_golds(lambda row, place: place + 1 if order[id(row)] % 2 else "ABCDEFGH"[place])


def _in_file(table: Table) -> tuple[Any, list[dict[str, Any]]]:
    """The content of a file of records by id, which a reader of its own finds, and these records."""
    if not table.found.source.find or format_of(table.file) != ".json":
        raise DoesNotApply("no file of records by id")
    content = json.loads(table.file.read_text(encoding="utf-8-sig"))
    records = content.get("data") if isinstance(content, dict) else content
    if not isinstance(records, list):
        raise DoesNotApply("no list of records")
    return content, records


def _records_as(table: Table, changed: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Writes the records of a file anew."""
    content, records = _in_file(table)
    records[:] = changed(records)
    table.file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _other_json(table: Table) -> None:
    content, _ = _in_file(table)
    table.file.write_text(json.dumps(content, indent=3, sort_keys=True), encoding="utf-8")


def _without_gold(table: Table) -> None:
    columns = ("answer", "bbox", "caption")
    _records_as(table, lambda some: [{k: cell for k, cell in some[0].items() if k not in columns}, *some[1:]])


def _record_missing(table: Table) -> None:
    if len(table.found.files) < 2:
        raise DoesNotApply("no other file has the same records")
    _records_as(table, lambda some: some[1:])


def _image_missing(table: Table, bad_rows: BadRows) -> None:
    first = items_of_task(table.task, DataOptions(root=table.root))
    named = {
        str(cell) for row in (next(iter(first)).raw, *table.rows) for cell in row.values() if isinstance(cell, str)
    }
    images = [file for file in table.root.rglob("*") if file.suffix in (".png", ".jpg", ".webp")]
    used = [file for file in images if any(name.endswith(file.name) for name in named)]
    if not table.task.images or not used:
        raise DoesNotApply("no row names the file of an image")
    table.bad_rows = bad_rows
    used[0].unlink()


SAME, REFUSED, COUNTED = "nothing changes", "told and refused", "told and counted"
FORMATS = (".csv", ".tsv", ".json", ".jsonl", ".jsonl.gz", ".csv.gz", ".parquet", ".arrow")
GOLD_TEXTS: dict[str, Callable[[str], str]] = {
    "as the option's text": str,
    "in NFD": lambda text: unicodedata.normalize("NFD", text),
    "in shapes of letters": _shaped,
    "with tatweel": lambda text: re.sub(r"(?<=[بتسشلم])(?=[\u0620-\u064a])", "\u0640", text, count=1),
    "with vowel marks": lambda text: re.sub(r"(?<=[\u0628-\u064a])(?=[\u0628-\u064a])", "\u064e", text, count=1),
    "between direction marks": lambda text: f"\u2067{text}\u2069\u200f",
    "with a full stop": lambda text: f"{text}.",
}
CHANGES: tuple[Change, ...] = (
    Change("rows in reverse order", SAME, _reordered),
    Change("two shards", SAME, lambda table: [None for _ in _two_shards(table)][0]),
    *(Change(f"stored as {format[1:]}", SAME, _written_as(format)) for format in FORMATS),
    Change("stored by save_to_disk", SAME, _saved_to_disk),
    Change("a byte-order mark before the rows", SAME, _byte_order_mark),
    Change("line ends of Windows", SAME, _line_ends),
    Change("a byte-order mark before the README", SAME, lambda table: _readme(table, "utf-8-sig")),
    Change("columns renamed by --sources", SAME, _renamed_columns),
    Change("golds as Latin letters", SAME, lambda table: table.with_golds(lambda _, place: "ABCDEFGH"[place])),
    Change("golds as Arabic letters", SAME, lambda table: table.with_golds(lambda _, place: LABELS[place])),
    Change("golds as numbers from 0", SAME, lambda table: table.with_golds(lambda _, place: place), (), True),
    Change("golds as numbers from 1", SAME, lambda table: table.with_golds(lambda _, place: place + 1), (), True),
    Change(
        "golds as Arabic digits", SAME, lambda table: table.with_golds(lambda _, place: "١٢٣٤٥٦٧٨"[place]), (), True
    ),
    Change("golds as lists", SAME, _golds_as_lists),
    *(
        Change(f"golds {name}", SAME, lambda table, written=written: _with_gold_text(table, written))
        for name, written in GOLD_TEXTS.items()
    ),
    Change("options as a list", SAME, lambda table: _options_as(table, list)),
    Change("options as an object", SAME, lambda table: _options_as(table, _as_object)),
    Change(
        "options as an object in another order",
        SAME,
        lambda table: _options_as(table, lambda some: dict(reversed(_as_object(some).items()))),
    ),
    Change("options as the text of a list", SAME, lambda table: _options_as(table, str)),
    Change("options as JSON", SAME, lambda table: _options_as(table, lambda some: json.dumps(some))),
    Change("records by id in reverse order", SAME, lambda table: _records_as(table, lambda some: some[::-1])),
    Change("records as JSON with indents, escapes and names in another order", SAME, _other_json),
    Change("one of two shards is missing", REFUSED, _one_shard),
    Change("the same rows in a second format", REFUSED, _second_format, ("unread",)),
    Change("a README in another encoding", REFUSED, lambda table: _readme(table, "cp1256")),
    Change("rows in another encoding", REFUSED, _in_other_encoding),
    Change("golds partly letters, partly numbers", REFUSED, _mixed_golds),
    Change("a question in Windows-1256, read as Latin-1", REFUSED, _damaged),
    Change("an id twice", REFUSED, lambda table: _records_as(table, lambda some: [*some, some[0]])),
    Change("a record without its gold", REFUSED, _without_gold),
    Change("a record in one of two files", REFUSED, _record_missing),
    Change("the file of an image is missing", REFUSED, lambda table: _image_missing(table, "stop")),
    Change("a row twice", COUNTED, _row_twice, ("duplicates",)),
    Change("a row without a gold, skipped", COUNTED, _broken_row, ("skipped",)),
    Change(
        "rows without the file of their image, skipped",
        COUNTED,
        lambda table: _image_missing(table, "skip"),
        ("skipped",),
    ),
    Change("a file that no task reads", COUNTED, _file_of_no_task, ("unread",)),
)


def effects(task: Task, data: Path, folder: Path, changes: Sequence[Change] = CHANGES) -> Iterator[tuple[Change, str]]:
    """Makes each change in a copy of a task's data, and says what it did.

    Args:
        task: The task.
        data: The data root that has its rows.
        folder: An empty folder for the copies.
        changes: Those to make.

    Yields:
        (change, what is wrong): "" where the effect is the declared one, "does not apply: ..." where it has no meaning.
    """
    try:
        table = table_of(task, data, folder)
    except DoesNotApply as error:
        yield from ((change, f"does not apply: {error}") for change in changes)
        return
    before = reading_of(table.task, table.root)
    if before.refused:
        raise CulturevalError(f"{task.task}: its data cannot be read unchanged: {before.refused}")
    for change in changes:
        table = table_of(task, data, folder)
        try:
            change.make(table)
        except DoesNotApply as error:
            yield change, f"does not apply: {error}"
            continue
        yield change, _difference(change, before, reading_of(table.task, table.root, table.bad_rows))


def _uncounted(change: Change, before: Reading, after: Reading) -> list[str]:
    several = ("skipped",)  # an image may be that of several rows
    added = {name: getattr(after, name) - getattr(before, name) for name in change.counted}
    return [name for name, more in added.items() if more < 1 or (more > 1 and name not in several)]


def _difference(change: Change, before: Reading, after: Reading) -> str:
    """What a change did that it must not, or did not do that it must; "" where all is as declared."""
    if change.effect == REFUSED:
        told = change.counted and after.rows == before.rows and _uncounted(change, before, after) == []
        return "" if after.refused or told else "it is not refused"
    if after.refused:
        return "" if change.unless_evident and "gold_numbers" in after.refused else f"it is refused: {after.refused}"
    if change.effect == COUNTED:
        uncounted = _uncounted(change, before, after)
        return f"it is not counted in {', '.join(uncounted)}" if uncounted else ""
    fields = ("rows", "examples", "docs", "scores", "notes", "duplicates", "skipped", "checked", "audited")
    changed = [name for name in fields if getattr(after, name) != getattr(before, name)]
    told = (f"{name}, {getattr(before, name)} to {getattr(after, name)}" for name in changed)
    return f"it changes {'; '.join(told)}" if changed else ""


def assert_metamorphic(task: Task, data: Path, folder: Path, changes: Sequence[Change] = CHANGES) -> list[str]:
    """Asserts that every change that applies to a task's data has its declared effect.

    Args:
        task: The task.
        data: The data root that has its rows, such as a package's samples.
        folder: An empty folder for copies.
        changes: Those to make.

    Returns:
        The names of the changes that apply.

    Raises:
        AssertionError: A change has another effect; the message names each.
    """
    found = list(effects(task, data, folder, changes))
    wrong = [f"{change.name}: {what}" for change, what in found if what and not what.startswith("does not apply")]
    if wrong:
        raise AssertionError(f"{task.task}: " + "; ".join(wrong))
    return [change.name for change, what in found if not what]
