"""`cultureval score alqasida`: scores outputs of other programs, and writes them as a run."""

import ast
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cultureval.prompts.alqasida.rows import LANGUAGES, prepare_request, prepare_translation
from cultureval.prompts.preparation import Preparation, PreparedRow
from cultureval.reports.submissions import safe_name
from cultureval.reports.summary_text import shown_run
from cultureval.runs.loading import load
from cultureval.runs.record import ModelRecord, SignatureRecord, TaskRecord, task_records
from cultureval.runs.recording import run_record
from cultureval.runs.signature import signature_record
from cultureval.runs.writing import save_run, write_summary
from cultureval.runtime import processes
from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.errors import BadRow, CulturevalError, all_of, did_you_mean, shorten
from cultureval.runtime.signatures import combined_hash, installed_versions
from cultureval.runtime.text_templates import short_hash
from cultureval.tasks.alqasida.benchmarks import KINDS
from cultureval.tasks.alqasida.sets import (
    DIALECTS,
    OWN_ITEMS,
    SetName,
    features_of,
    prompts_hash,
    same_requests,
    which_prompts,
)
from cultureval.tasks.catalogue import all_tasks, name_and_shots

FORM, OWN = "given", "own"  # in records: the form of the data; the genre of rows without one
COLUMNS = ("prompt", "completion", "dialect")
RELEASED_FILE = re.compile(r"Dialect(ID|MT)_(?P<corpus>[A-Za-z]+)_(?P<languages>[a-z_]+)_samples\.csv")
RELEASED_FOLDER = re.compile(r"(?P<model>.+)_(mono|crosslingual|mt)[a-z]*(-(?P<shots>\d+)-shot)?")
_DIRECTION = re.compile(r"Translate from (?P<source>[A-Za-z ]+) into (?P<target>[A-Za-z ]+)\.")
_ARABIC, _LATIN = re.compile(r"[\u0620-\u064a]"), re.compile(r"[A-Za-z]")
CODES = {name.lower(): code for code, name in LANGUAGES.items()}


@dataclass
class OutputSet:
    """The outputs of one model for one task.

    Attributes:
        model: The model's name.
        task: With `|k`, as in the catalogue: `alqasida_mono:btec_egy|0`. The corpus is `own` if the file has no genre.
        released: Whether it is a released set. Released sets of all dialects have their rows in the same order.
        rows: Prepared rows, as those of our sets.
        outputs: An output for each row.
        prompts: A prompt for each row: `Q: ...` after few-shot examples.
    """

    model: str
    task: str
    released: bool = False
    rows: list[PreparedRow] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)

    @property
    def group(self) -> str:
        """The group of the task."""
        return self.task.partition(":")[0]


def score_outputs(pred: Sequence[Path], output_dir: Path) -> str:
    """Scores outputs, writes results and details, and returns the summary of each model as text.

    Raises:
        CulturevalError: A file is not understood, or a scoring model cannot be used.
    """
    started = time.time()
    models: dict[str, list[OutputSet]] = {}
    for subset in read_outputs(pred):
        models.setdefault(safe_name(subset.model), []).append(subset)
    groups = dict.fromkeys(subset.group for members in models.values() for subset in members)
    all_of([instrument.check for group in groups if (instrument := KINDS[group].instrument)])
    processes.finish()
    details = {model: {subset.task: _details(subset) for subset in members} for model, members in models.items()}
    texts = []
    for model, members in models.items():
        tasks = {subset.task: _task_record(subset) for subset in members}
        by_group: dict[str, list[TaskRecord]] = {}
        for subset in members:
            by_group.setdefault(f"{subset.group}|{tasks[subset.task].shots}", []).append(tasks[subset.task])
        signatures = tuple(_signature(name, found) for name, found in by_group.items())
        record = run_record(started, tasks, signatures, ModelRecord(backend="outputs made elsewhere"))
        file = save_run(output_dir, model, details[model], record).file
        texts.append(shown_run(load(file).runs[0], None, full=True))
        write_summary(file, texts[-1])
    return "\n\n".join(texts)


def _details(subset: OutputSet) -> list[dict[str, Any]]:
    """The rows of the details, as LightEval logs them."""
    from lighteval.metrics import apply_metric
    from lighteval.models.model_output import ModelResponse

    docs = []
    for number, (row, prompt) in enumerate(zip(subset.rows, subset.prompts, strict=True)):
        doc = KINDS[subset.group].prompt(row, subset.task)
        doc.query, doc.id = prompt, str(number)
        docs.append(doc)
    responses = [ModelResponse(text=[text], input=doc.query) for text, doc in zip(subset.outputs, docs, strict=True)]
    metrics = apply_metric(responses, docs, list(KINDS[subset.group].metrics()))
    return [
        {"doc": asdict(doc), "metric": metric, "model_response": asdict(response)}
        for doc, metric, response in zip(docs, metrics, responses, strict=True)
    ]


def _task_record(subset: OutputSet) -> TaskRecord:
    """The record of a set, from the catalogue's task, or from a task of its group if the corpus is unknown."""
    bare, shots = name_and_shots(subset.task)
    known = all_tasks().get(bare)
    task_of_group = next(task.task for task in all_tasks().values() if task.group == subset.group)
    (record,) = task_records({f"{known.task if known else task_of_group}|{shots}": {}}, None).values()
    corpus = bare.partition(":")[2]
    of_corpus = {"task": subset.task, "subset": corpus, "benchmark": OWN, "domain": "", "expected_rows": None}
    fields = {
        "rows": len(subset.rows),
        "form": FORM,
        "source": ", ".join(dict.fromkeys(row["source_row"].rpartition(":")[0] for row in subset.rows)),
        "rows_hash": prompts_hash([row["prompt"] for row in subset.rows]),
        "prompt_hash": FORM if subset.group == "alqasida_mt" else which_prompts(subset.rows),
    }
    return record.model_copy(update=fields if known else of_corpus | fields)


def _signature(name: str, tasks: Sequence[TaskRecord]) -> SignatureRecord:
    group, shots = name_and_shots(name)
    instrument = KINDS[group].instrument
    return signature_record(
        name,
        task=f"{group}/{shots}-shot/v0",
        subsets=len(tasks),
        rows=sum(task.rows for task in tasks),
        data=",".join(sorted({task.source for task in tasks})),
        form=FORM,
        rows_hash=combined_hash(task.rows_hash for task in tasks),
        prompt=",".join(sorted({task.prompt_hash for task in tasks})),
        scorer=instrument.name() if instrument else None,
        backend="outputs made elsewhere",
        **installed_versions(),
    )


def read_outputs(paths: Sequence[Path]) -> list[OutputSet]:
    """The outputs of files, by model and task.

    Args:
        paths: CSV, TSV, JSON, JSON-lines or parquet files, `Dialect..._samples.csv` of the authors' repository, or
            folders of these. Columns: `prompt`, `completion`, `dialect` (a code or an English name; in translations the
            language of the completion); optional `reference` (translations, by AL-QASIDA's prompt), `genre`, `model`.

    Raises:
        CulturevalError: A file cannot be read, a column is missing, or a row is not understood.
    """
    files = [file for path in paths for file in (sorted(path.rglob("*_samples.csv")) if path.is_dir() else [path])]
    if not files:
        raise CulturevalError(f"{', '.join(map(str, paths))}: no file of outputs (Dialect..._samples.csv).")
    found: dict[tuple[str, str], OutputSet] = {}
    for file in files:
        rows = read_rows(file)
        if not rows:
            raise CulturevalError(f"{file} has no rows.")
        is_released = "generations" in rows[0]
        answers = _released_rows(file, rows) if is_released else _rows_with_texts(file, rows)
        for number, row in enumerate(answers):
            try:
                _add(found, row, f"{file.name}:{number}", is_released)
            except BadRow as error:
                raise CulturevalError(
                    f"{file}, row {number + 1}: column {error.column!r} {error.reason} (value: {shorten(error.value)})."
                ) from error
    for subset in found.values():
        _name_clusters(subset)
    return list(found.values())


def _rows_with_texts(file: Path, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows, checked: a completion may be null, but its column may not be missing."""
    columns = list(rows[0])
    for name in COLUMNS:
        if name not in columns:
            near = did_you_mean(name, columns)
            raise CulturevalError(f"{file} has no column {name!r}.{near} Columns found: {', '.join(columns)}.")
    about = {"model": file.stem, "genre": OWN, "shots": 0}
    for number, row in enumerate(rows, start=1):
        for name in ("prompt", "completion"):
            if not isinstance(row.get(name, 0), str | None):
                reason = "is not a text" if name in row else "is missing in this row"
                raise CulturevalError(f"{file}, row {number}: column {name!r} {reason}.")
    return [about | {name: cell for name, cell in row.items() if cell not in (None, "")} for row in rows]


def _released_rows(file: Path, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a released file in our columns; the names of file and folder give the set."""
    name, folder = RELEASED_FILE.fullmatch(file.name), RELEASED_FOLDER.fullmatch(file.parent.name)
    if not name:
        raise CulturevalError(
            f"{file} has the column 'generations' of the released files, but not the name of one, such as "
            "DialectID_BTEC_egy_samples.csv or DialectMT_FLORES_eng_to_sau_samples.csv. Rename the file, or rename its "
            f"columns to {', '.join(COLUMNS)}."
        )
    source, _, target = name["languages"].partition("_to_")
    about = {"model": folder["model"] if folder else file.stem, "genre": name["corpus"].lower()}
    about |= {"shots": int(folder["shots"] or 0) if folder else 0, "dialect": target or source}
    try:
        return [about | _released_row(row, bool(target)) for row in rows]
    except (SyntaxError, ValueError, KeyError, IndexError, TypeError) as error:
        raise CulturevalError(f"{file}: its rows are not those of a released file ({error!r}).") from error


def _released_row(row: Mapping[str, Any], translated: bool) -> dict[str, Any]:
    """A row with plain columns (`prompts`, `generations`), or with Python lists of turns and texts as strings."""
    if "_raw_turns" in row:
        prompt = ast.literal_eval(row["_raw_turns"])[-1]["content"][0]["text"]
        output = ast.literal_eval(row["generations"] or "['']")[0]
    else:
        prompt, output = row["prompts"], row["generations"]
    features = {"location": row.get("_3"), "phrasing": row.get("_4")}
    reference = {"reference": row["completion"]} if translated else {}
    return {"prompt": prompt, "completion": output or ""} | reference | {k: v for k, v in features.items() if v}


def _add(found: dict[tuple[str, str], OutputSet], row: dict[str, Any], place: str, released: bool) -> None:
    asked = str(row.get("prompt") or "")
    _, examples, last = asked.rpartition("\n\nQ: ") if row["shots"] else ("", "", asked)
    row["prompt"] = last.removesuffix("\nA:") if examples else asked
    name, translated = _set_name(row), bool(row.get("reference"))
    arabic = len(_ARABIC.findall(row["prompt"])) > len(_LATIN.findall(row["prompt"]))  # most letters of the prompt
    kind = "mt" if translated else "mono" if arabic else "cross"
    pair = f"{name.source}_to_{name.target}" if translated else name.target
    row |= features_of(row, name, []) | {"cluster": ""}
    if translated:
        prepared = prepare_translation(row | {"completion": row["reference"]}, Preparation())
    else:
        prepared = prepare_request({column: cell for column, cell in row.items() if column != "answer"}, Preparation())
    key = (str(row["model"]), f"alqasida_{kind}:{name.corpus}_{pair}|{row['shots']}")
    subset = found.setdefault(key, OutputSet(*key, released))
    subset.rows.append(prepared | {"source_row": place, "form": FORM})
    subset.outputs.append(str(row.get("completion") or ""))
    subset.prompts.append(f"Q: {last}" if examples else row["prompt"])


def _set_name(row: dict[str, Any]) -> SetName:
    """The set of a row; replaces the row's dialect by its code."""
    if not re.fullmatch("[a-z]+", str(row["genre"])):
        raise BadRow("genre", row["genre"], "is not a word of small letters")
    row["dialect"] = _code(row, "dialect", row.get("dialect"))
    asked = _DIRECTION.match(row["prompt"])
    if not row.get("reference"):
        if asked:
            raise BadRow("reference", None, "is null or empty, but the prompt asks for a translation")
        if row["dialect"] not in DIALECTS:
            raise BadRow("dialect", row["dialect"], "is no dialect, and the row has no `reference`")
        return SetName(row["genre"], row["dialect"], row["dialect"], False)
    if not asked:
        raise BadRow("prompt", row["prompt"], "is not AL-QASIDA's translation prompt, which names both languages")
    if _code(row, "prompt", asked["target"]) != row["dialect"]:
        raise BadRow("dialect", row["dialect"], f"is not the language that the prompt asks for, {asked['target']}")
    return SetName(row["genre"], _code(row, "prompt", asked["source"]), row["dialect"], False)


def _code(row: Mapping[str, Any], column: str, language: Any) -> str:
    text = str(language or "").strip().lower()
    code = text if text in LANGUAGES else CODES.get(text, CODES.get(f"{text} arabic"))
    if code is None:
        near = did_you_mean(text, [*LANGUAGES, *CODES])
        raise BadRow(column, row.get(column), f"is none of {', '.join(LANGUAGES)}.{near}")
    return code


def _name_clusters(subset: OutputSet) -> None:
    """Names clusters: all rows of one request are a cluster, named in released sets as in our runs."""
    corpus, _, language = name_and_shots(subset.task)[0].partition(":")[2].partition("_")
    cross = subset.task.startswith("alqasida_cross")
    if cross:
        firsts = same_requests(subset.rows, SetName(corpus, language, language, False))
    else:
        places: dict[str, int] = {}
        firsts = [places.setdefault(row["prompt"], number) for number, row in enumerate(subset.rows)]
    for row, first in zip(subset.rows, firsts, strict=True):
        text = subset.rows[first]["prompt"]
        bare = text.replace(LANGUAGES[language], "") if cross else text
        ours = subset.released and corpus not in OWN_ITEMS
        row["cluster"] = f"{corpus}:{first if ours else short_hash(bare)}"
