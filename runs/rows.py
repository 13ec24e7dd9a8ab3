"""A row of the details as data: its name, prompt, gold, the answer that its metric chose, its scores.

Every command names an item by `row_names`, and asks `chosen_options` which option a model chose.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from cultureval.runs.files import SavedTask, derived_from, read_details
from cultureval.runtime.data.image_store import stored_image
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError, shorten, shown_names
from cultureval.tasks.catalogue import all_tasks

# Fields of `doc.specific` that name a row, the first that all rows of its task have; a row without it is its place.
NAMES = ("id", "source_row", "task_id")
ROWS_AT_ONCE = 64
NOT_ASKED = "not_asked"  # the outcome of a verdict that a judge was not asked for
NOT_READ = ("input_tokens", "argmax_logits_eq_gold", "unconditioned_logprobs", "logits", "input_images")
OTHER_NAMES = ("id", "source_row", "task_id", "item_id")  # by which a command finds rows, too
Row = dict[str, Any]


class _Doc(TypedDict):
    query: str
    choices: list[str]
    gold_index: int | list[int]
    specific: NotRequired[dict[str, Any] | None]


class _Row(TypedDict):
    """What is read of a row of the details."""

    doc: _Doc
    model_response: dict[str, Any]
    metric: dict[str, Any]


_ROWS = TypeAdapter(list[_Row])


def rows_of(file: Path) -> list[Row]:
    """The rows of a details file, checked.

    Raises:
        CulturevalError: The file is cut short or of another kind.
    """
    return checked_rows(read_details(file).to_pylist(), file)


def checked_rows(rows: list[Row], file: Path) -> list[Row]:
    """Rows of a details file, which are of the form that reports read.

    Raises:
        CulturevalError: They are not.
    """
    try:
        _ROWS.validate_python(rows)
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"row {'.'.join(map(str, first['loc']))}: {first['msg']} ({shorten(first['input'])})"
        raise CulturevalError(f"{file} is not a details file of LightEval: {reason}.") from error
    return rows


def rows_in_parts(file: Path) -> Iterator[list[Row]]:
    """The rows of a details file, a few at a time, without the tokens of prompts.

    Raises:
        CulturevalError: The file cannot be read, or is not a details file of LightEval.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(file) as opened:
            schema = opened.schema_arrow
            missing = {"doc", "metric", "model_response"} - set(schema.names)
            if missing:
                raise CulturevalError(f"{file} is not a details file of LightEval: it lacks {', '.join(missing)}.")
            kind = schema.field("model_response").type
            fields = [one.name for one in kind] if pyarrow.types.is_struct(kind) else []
            response = [f"model_response.{name}" for name in fields if name not in NOT_READ] or ["model_response"]
            for batch in opened.iter_batches(ROWS_AT_ONCE, columns=["doc", "metric", *response]):
                yield checked_rows(batch.to_pylist(), file)
    except (OSError, pyarrow.ArrowException) as error:
        raise CulturevalError(f"{file} cannot be read as details of LightEval: {error}") from error


def rows_with_judgements(task: SavedTask) -> list[Row]:
    """The rows of a task, each with the metrics that later judgements add to it.

    Raises:
        CulturevalError: As of `rows_of`.
    """
    rows, added = rows_of(task.file), judged_metrics(task)
    for row in rows:
        row["metric"] = row["metric"] | added.get(key_of(row), {})
    return rows


def judged_metrics(task: SavedTask) -> dict[tuple[str, str], Row]:
    """What judges made of a task's rows, by `key_of`: the metrics that later judgements add or replace.

    Of several judgements by one judge and template that counts which asked about most rows, of these the newest: a
    sample never stands for all.

    Raises:
        CulturevalError: As of `rows_of`.
    """
    later = derived_from(task)
    chosen: dict[str, tuple[int, dict[tuple[str, str], Row]]] = {}
    found: dict[tuple[str, str], Row] = {}
    for file in [task.file, *(one.file for one in later)] if later else ():
        metrics = {key_of(row): row["metric"] for part in rows_in_parts(file) for row in part}
        asked = _verdicts(metrics.values())
        owners = {name: owner_of(name, asked) for row in metrics.values() for name in row}
        for prefix, count in asked.items():
            if count >= chosen.get(prefix, (0, {}))[0]:
                own = {key: {n: v for n, v in row.items() if owners[n] == prefix} for key, row in metrics.items()}
                chosen[prefix] = count, own
        for key, row in metrics.items() if file != task.file else ():
            found.setdefault(key, {}).update({name: value for name, value in row.items() if not owners[name]})
    for _, own in chosen.values():
        for key, row in own.items():
            found.setdefault(key, {}).update(row)
    return found


def owner_of(name: str, prefixes: Iterable[str]) -> str:
    """The judge's prefix, of some, that a metric belongs to; "" for none."""
    fitting = (prefix for prefix in prefixes if name == prefix or name.startswith(f"{prefix}_"))
    return max(fitting, key=len, default="")


def _verdicts(rows: Iterable[Row]) -> dict[str, int]:
    """The names of verdicts in the metrics of rows -> how many rows the judge was asked about."""
    counts: dict[str, int] = {}
    for row in rows:
        for name, value in row.items():
            if is_verdict(value):
                counts[name] = counts.get(name, 0) + (value["outcome"] != NOT_ASKED)
    return counts


def is_verdict(value: Any) -> bool:
    """Whether an entry of an item's metrics is a judge's verdict instead of a score."""
    return isinstance(value, Mapping) and "outcome" in value


def key_of(row: Row) -> tuple[str, str]:
    """What a row of details and the row of its judgement have in common."""
    return str(row["doc"].get("id")), row["doc"]["query"]


def row_names(specifics: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names that tell the rows of a task apart, the same in every run of the same data and in every command.

    Args:
        specifics: `doc.specific` of each row, or those of its fields that are in `NAMES`, and `direction`.

    Returns:
        The id of the data, behind the direction of retrieval where there is one, and with a count where it is not the
        first of its name; `#N`, the Nth row from 0, where the data have none.
    """
    fields = (*NAMES, "direction")
    return names_in_columns({name: [one.get(name) for one in specifics] for name in fields}, len(specifics))


def names_in_columns(columns: Mapping[str, Sequence[Any] | None], count: int) -> list[str]:
    """`row_names` of columns of details, which are many.

    Args:
        columns: The fields of `doc.specific` that are in `NAMES`, and `direction`; None where there is none.
        count: Of rows.
    """
    known = {name: count - found.count(None) for name in NAMES if (found := columns.get(name))}
    field = max(known, key=lambda name: known[name], default="")  # of several that all rows have, the first
    values, sides = columns.get(field) or [None] * count, columns.get("direction") or [None] * count
    names = [f"#{place}" if value is None else str(value) for place, value in enumerate(values)]
    names = [f"{side} {name}" if side else name for side, name in zip(sides, names, strict=True)]
    if len(set(names)) == count:
        return names
    seen: dict[str, int] = {}
    for place, name in enumerate(names):
        seen[name] = seen.get(name, 0) + 1
        names[place] = f"{name} ({seen[name]})" if seen[name] > 1 else name
    return names


def address_names(names: Iterable[str]) -> list[str]:
    """Names of rows that are safe in an address and in a zip file, each another, as the viewer has them."""
    found: dict[str, None] = {}
    for name in names:
        safe = address = re.sub(r"[^\w.-]+", "-", name[:64]).strip("-.") or "item"
        number = 2
        while address in found:
            address, number = f"{safe}-{number}", number + 1
        found[address] = None
    return list(found)


def places_of(item: str, rows: Sequence[Row], task: str) -> list[int]:
    """The rows of an item of a task, one or (the statements of one image, both directions of a query) several.

    Args:
        item: As any command names it; `#N` is the Nth row from 0, as is N alone where rows have no names.
        rows: All rows of the task.
        task: Its name, for the message.

    Raises:
        CulturevalError: There is no such item.
    """
    specifics = [specific_of(row["doc"]) for row in rows]
    names = row_names(specifics)
    for name in (item, f"#{item}"):
        if name in names:
            return [names.index(name)]
    if re.fullmatch(r"#\d+", item) and int(item[1:]) < len(rows):
        return [int(item[1:])]
    for field in OTHER_NAMES:
        if found := [place for place, one in enumerate(specifics) if str(one.get(field)) == item]:
            return found
    if item in (addresses := address_names(names)):
        return [addresses.index(item)]
    told = f"{task} has no item {item!r} among its {len(rows)}: {shown_names(names)}"
    raise CulturevalError(f"{told}. '#0' (in quotes) is the first.")


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
    known = all_tasks().get(task.partition("|")[0])
    return known.metrics[0] if known and known.metrics else ""


def option_scores(row: Row, metric: str) -> list[float]:
    """What a metric orders the options of a row by, the larger the better.

    Args:
        row: A row with log-probabilities.
        metric: Such as `acc_norm`, which divides by code points.

    Raises:
        CulturevalError: The row has another number of options than of log-probabilities.
    """
    from cultureval.metrics.likelihood import scores_of_options

    response, choices = row["model_response"], row["doc"]["choices"]
    tokens = response.get("output_tokens") or None
    try:
        return scores_of_options(metric, response["logprobs"], choices, tokens and list(map(len, tokens)))
    except ValueError as error:
        raise CulturevalError(f"An item of these details has unusable log-probabilities: {error}.") from error


def chosen_options(row: Row, metric: str) -> list[str]:
    """The options that a metric takes as the model's answer: the best, or as many as there are correct ones.

    Raises:
        CulturevalError: As of `option_scores`.
    """
    scores = option_scores(row, metric)
    best = sorted(range(len(scores)), key=lambda place: -scores[place])[: max(len(golds_of(row)), 1)]
    return [row["doc"]["choices"][place].strip() for place in best]


def answer_of(row: Row, metric: str) -> str:
    """The model's reply, or the options that a metric chose, separated by " | "."""
    return " | ".join(chosen_options(row, metric)) if is_choice(row) else saved_reply(row["model_response"])


def saved_reply(response: Mapping[str, Any]) -> str:
    """The reply of a saved model response that was scored, without reasoning; "" where it has none.

    Args:
        response: `model_response` of a row of the details.
    """
    return next(iter(saved_texts(response)), "")


def saved_texts(response: Mapping[str, Any]) -> list[str]:
    """All replies of a saved model response, as of `saved_reply`: several where a doc was answered several times."""
    text = response.get("text")
    if isinstance(text, str):  # of LightEval's vision backend, which post-processing takes for a list of characters
        return [text]
    return [str(one or "") for one in response.get("text_post_processed") or text or []]


def saved_image(entry: Any) -> Path | bytes:
    """An image in the details: the file's bytes, or the path of a stored image.

    A path is read only if the file is named by the hash of its content, in this machine's store or at that path:
    details from someone else cannot make us send other files to a server.

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
