"""A row of the details as data: name, prompt, gold, the metric's answer, scores."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cultureval.runs.files import read_details
from cultureval.runs.frame import FIELDS, NAMES, row_names
from cultureval.runs.loading import Run, load
from cultureval.runtime.data.image_store import stored_image
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError, described, did_you_mean, shown_names
from cultureval.tasks.catalogue import known_task, name_and_shots

ROWS_AT_ONCE = 64
NOT_READ = ("input_tokens", "argmax_logits_eq_gold", "unconditioned_logprobs", "logits", "input_images")
Row = dict[str, Any]


def find_task(path: Path, name: str) -> tuple[Run, str]:
    """The newest run of a path with saved answers to a task, and the task's name with `|k`.

    Args:
        path: An output folder, a folder in it, or a results file.
        name: With `|k`, or without for the fewest few-shot examples.

    Raises:
        CulturevalError: Nothing can be read, or no run has details of the task.
    """
    found_tasks: list[str] = []
    for run in load(path).runs:
        found = sorted(task for task in run.details if name in (task, name_and_shots(task)[0]))
        if found:
            return run, found[0]
        found_tasks += run.details
    known = list(dict.fromkeys(name_and_shots(task)[0] for task in found_tasks))
    near = did_you_mean(name, known)
    raise CulturevalError(f"{path} has no details of {name}.{near} It has {shown_names(known) or 'none at all'}.")


def rows_of(file: Path, judgements: Iterable[Path] = ()) -> list[Row]:
    """The rows of a details file, with metrics of later judgements; the last one counts.

    Raises:
        CulturevalError: A file cannot be read, or is not a details file of LightEval.
    """
    rows = [row for part in rows_in_parts(file) for row in part]
    added = judged_metrics(judgements)
    for name, row in zip(names_of(rows), rows, strict=True) if added else ():
        row["metric"] = row["metric"] | added.get(name, {})
    return rows


def judged_metrics(judgements: Iterable[Path]) -> dict[str, Row]:
    """Metrics of later judgements, by a row's name; the last file counts.

    Raises:
        CulturevalError: As of `rows_of`.
    """
    found: dict[str, Row] = {}
    for file in judgements:
        rows = rows_of(file)
        for name, row in zip(names_of(rows), rows, strict=True):
            found[name] = found.get(name, {}) | row["metric"]
    return found


def rows_in_parts(file: Path) -> Iterator[list[Row]]:
    """The rows of a details file, a few at a time, without the tokens of prompts.

    Raises:
        CulturevalError: As of `rows_of`.
    """
    import pyarrow
    import pyarrow.parquet

    read_details(file, [])
    try:
        with pyarrow.parquet.ParquetFile(file) as opened:
            doc, response = (opened.schema_arrow.field(name).type for name in ("doc", "model_response"))
            if not {"query", "choices", "gold_index"} <= {field.name for field in doc}:
                raise pyarrow.ArrowInvalid("its docs have no query, choices and gold_index")
            wanted = [f"model_response.{field.name}" for field in response if field.name not in NOT_READ]
            for batch in opened.iter_batches(ROWS_AT_ONCE, columns=["doc", "metric", *wanted]):
                yield batch.to_pylist()
    except (OSError, TypeError, pyarrow.ArrowException) as error:
        raise CulturevalError(f"{file} cannot be read as details of LightEval: {described(error)}.") from error


def names_of(rows: Sequence[Row]) -> list[str]:
    """The names of all rows of a task, as the frame has them (`runs.frame.row_names`)."""
    specifics = [specific_of(row["doc"]) for row in rows]
    return row_names({field: [specific.get(field) for specific in specifics] for field in (*NAMES, *FIELDS)}, len(rows))


def is_verdict(value: Any) -> bool:
    """Whether an entry of an item's metrics is a judge's verdict instead of a score."""
    return isinstance(value, Mapping) and "outcome" in value


def golds_of(row: Row) -> list[str]:
    """The correct answers."""
    doc = row["doc"]
    gold = doc["gold_index"] if isinstance(doc["gold_index"], list) else [doc["gold_index"]]
    return [doc["choices"][place].strip() for place in gold if 0 <= place < len(doc["choices"])]


def gold_of(row: Row) -> str:
    """The correct answers, separated by " | "."""
    return " | ".join(golds_of(row))


def is_choice(row: Row) -> bool:
    """Whether a model's answer is the log-probabilities of options."""
    return bool(row["model_response"].get("logprobs"))


def headline_of(task: str) -> str:
    """The first metric of a task of the catalogue; "" of others. `|k` may follow."""
    known = known_task(task)
    return known.metrics[0] if known and known.metrics else ""


def option_scores(row: Row, metric: str) -> list[float]:
    """The scores by which a metric (`acc_norm`) orders the options of a row with log-probabilities; larger is better.

    Raises:
        CulturevalError: The row has different numbers of options and log-probabilities.
    """
    from cultureval.metrics.likelihood import scores_of_options

    response, choices = row["model_response"], row["doc"]["choices"]
    tokens = response.get("output_tokens") or None
    try:
        return scores_of_options(metric, response["logprobs"], choices, tokens and list(map(len, tokens)))
    except ValueError as error:
        raise CulturevalError(f"An item of these details has unusable log-probabilities: {error}.") from error


def chosen_options(row: Row, metric: str) -> list[str]:
    """The model's answer by a metric: the best option, or as many as there are correct ones."""
    scores = option_scores(row, metric)
    best = sorted(range(len(scores)), key=lambda place: -scores[place])[: max(len(golds_of(row)), 1)]
    return [row["doc"]["choices"][place].strip() for place in best]


def answer_of(row: Row, metric: str) -> str:
    """The model's reply, or the options that a metric takes as its answer, separated by " | "."""
    return " | ".join(chosen_options(row, metric)) if is_choice(row) else saved_reply(row["model_response"])


def saved_reply(response: Mapping[str, Any]) -> str:
    """The scored reply of a saved model response, without reasoning; "" without a reply."""
    return next(iter(saved_texts(response)), "")


def saved_texts(response: Mapping[str, Any]) -> list[str]:
    """All replies of a saved model response, one a sample."""
    text = response.get("text")
    if isinstance(text, str):  # LightEval's vision backend; its post-processed text is a list of characters
        return [text]
    return [str(text or "") for text in response.get("text_post_processed") or text or []]


def saved_image(entry: Any) -> Path | bytes:
    """An image in the details: the file's bytes, or the path of a stored image.

    A path is read only if the file is named by the hash of its content, in this machine's store or at that path. So
    foreign details cannot make us send other files to a server.

    Returns:
        Bytes, or a path, which may not exist.
    """
    if isinstance(entry, Mapping):
        return entry["bytes"] if entry.get("bytes") else saved_image(entry.get("path") or "")
    path = Path(str(entry))
    try:
        return stored_image(path.name)
    except CulturevalError:
        named_by_content = path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == path.stem
        return path if named_by_content else path.with_name(f"{path.name} (not a stored image)")
