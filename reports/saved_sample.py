"""One sample of a finished run: found by its id or index, and described as text."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from cultureval.reports.saved_results import find_saved_tasks, has_details, place_of_last, read_details, saved_reply
from cultureval.runtime.doc_specific import specific_of
from cultureval.runtime.errors import CulturevalError, did_you_mean, escaped, shorten
from cultureval.tasks.catalogue import all_suites, all_tasks

TOP = 5  # choices to show of a scored sample
RIGHT_TO_LEFT = ("R", "AL")  # bidirectional classes of letters
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


def find_rows(results: Path, task: str) -> list[Row]:
    """The rows of the newest details of a task; arguments as in `find_details`.

    Raises:
        CulturevalError: As `find_details`, or the file is cut short or of another kind.
    """
    return rows_of(find_details(results, task))


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


def find_details(results: Path, task: str) -> Path:
    """The newest details of a task.

    Args:
        results: The output folder of runs, a folder in it such as a model's, or a results file.
        task: With `|k`, or without it for any number of few-shot examples.

    Raises:
        CulturevalError: There are no such details; the message names the tasks that have some.
    """
    if not results.exists():
        raise CulturevalError(f"{results} does not exist.")
    found = _details_files(results)
    files = [file for name, file in found if task in (name, name.partition("|")[0])]
    if not files:
        names = sorted({name for name, _ in found})
        there = f"it has {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}" if names else "it has none at all"
        hint = did_you_mean(task, list(dict.fromkeys(name.partition("|")[0] for name in names)))
        raise CulturevalError(f"{results} has no details of {task}; {there}.{hint}")
    return max(files, key=lambda path: (path.parent.name, path.name))  # by the run's date; a copy has other times


def run_of_details(file: Path) -> str:
    """Model and date of a details file (details/<model>/<date>/details_<task>_<date>.parquet)."""
    parts = file.absolute().parts
    place = place_of_last(parts, "details") if "details" in parts else len(parts) - 3
    return f"{'/'.join(parts[place + 1 : -2])}, {parts[-2]}"


def find_item(results: Path, task: str, item: str) -> tuple[int, Row]:
    """The place of a sample in the newest details of a task, and its row.

    Args:
        results: As in `find_rows`; likewise `task`.
        task: A task.
        item: Its id in the data, or #N for the Nth row from 0; N alone does where that row has no id.

    Raises:
        CulturevalError: No such details or sample.
    """
    rows = find_rows(results, task)
    place = place_of(item, rows, task)
    return place, rows[place]


def place_of(item: str, rows: Sequence[Row], task: str) -> int:
    """The place of an item among the rows of its task; arguments and errors as in `find_item`."""
    if re.fullmatch(r"#\d+", item) and int(item[1:]) < len(rows):
        return int(item[1:])
    names = [item_name(place, row) for place, row in enumerate(rows)]
    for name in (item, f"#{item}"):
        if name in names:
            return names.index(name)
    some = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    raise CulturevalError(f"{task} has no item {item!r} among its {len(rows)}: {some}. '#0' (in quotes) is the first.")


def item_name(place: int, row: Row) -> str:
    """The id of a row in its data; #N, its place from 0, where the data have none."""
    identity = specific_of(row["doc"]).get("id")
    return f"#{place}" if identity is None else str(identity)


def output_folder_of(results: Path) -> Path:
    """The output folder of a results file; a folder itself."""
    parts = results.absolute().parts
    return Path(*parts[: place_of_last(parts, "results")]) if results.is_file() and "results" in parts else results


def _details_files(results: Path) -> list[tuple[str, Path]]:
    """Tasks with their details files."""
    if results.is_file():
        return [(saved.task, saved.file) for saved in find_saved_tasks([results])]
    files = list(results.glob("details/**/details_*.parquet"))
    if not files and (runs := sorted(results.rglob("results_*.json"))):  # a folder in the output folder, or above it
        return [(saved.task, saved.file) for run in runs if has_details(run) for saved in find_saved_tasks([run])]
    return [(file.name.removeprefix("details_").rpartition("_")[0], file) for file in files]


def describe(row: Row, isolate: bool = False) -> str:
    """Prompt, gold, reply and scores as text, with control characters as escapes.

    Args:
        row: A row of the details.
        isolate: Whether right-to-left text is isolated for a terminal (`shown_text`).
    """
    doc, response = row["doc"], row["model_response"]
    image = specific_of(row["doc"]).get("image_path") or doc.get("images")
    lines = ["prompt:", doc["query"], *([f"image: {image}"] if image else []), f"gold: {gold_of(row)}"]
    if response.get("logprobs"):
        lines.append("choices by mean log-probability per token:")
        lines += [f"  {mean:8.3f}  {choice}" for mean, choice in best_choices(row)[:TOP]]
    elif response.get("text"):
        lines.append(f"reply: {saved_reply(response)}")
    verdicts = {name: value for name, value in row["metric"].items() if is_verdict(value)}
    lines += [f"{name}: {_verdict_text(verdict)}" for name, verdict in verdicts.items()]
    shown = {name: value for name, value in row["metric"].items() if name not in verdicts and value is not None}
    words = [f"{name} {score_text(value)}" for name, value in shown.items()]
    lines.append("scores: " + ", ".join(words))
    return "\n".join(shown_text(line, isolate) for part in lines for line in part.split("\n"))


def is_verdict(value: Any) -> bool:
    """Whether an entry of an item's metrics is a judge's verdict instead of a score."""
    return isinstance(value, Mapping) and "outcome" in value


def score_text(value: Any) -> str:
    """A score in short; other things that metrics leave in details (M2CQA's verdicts, inputs of corpus metrics)."""
    if isinstance(value, int | float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else shorten(value, 60)


def _verdict_text(verdict: Mapping[str, Any]) -> str:
    """A judge's verdict: its outcome, why it is no score, and the judge's reply in one line."""
    parts = [verdict.get("outcome"), verdict.get("reason"), " / ".join((verdict.get("reply") or "").splitlines())]
    return "; ".join(str(part) for part in parts if part)


def gold_of(row: Row) -> str:
    """The correct answers, separated by " | "."""
    doc = row["doc"]
    gold = doc["gold_index"] if isinstance(doc["gold_index"], list) else [doc["gold_index"]]
    return " | ".join(doc["choices"][place].strip() for place in gold if 0 <= place < len(doc["choices"]))


def best_choices(row: Row) -> list[tuple[float, str]]:
    """The choices of a scored sample with their mean log-probability per token, the most probable first."""
    response = row["model_response"]
    tokens = response.get("output_tokens") or []
    if not len(tokens) == len(response["logprobs"]) == len(row["doc"]["choices"]):
        raise CulturevalError("An item of these details has other numbers of choices than of their log-probabilities.")
    means = [total / max(len(each), 1) for total, each in zip(response["logprobs"], tokens, strict=True)]
    order = sorted(range(len(means)), key=lambda place: -means[place])
    return [(means[place], row["doc"]["choices"][place].strip()) for place in order]


def shown_text(line: str, isolate: bool = False) -> str:
    """A line as a terminal may show it: control characters as escapes.

    Args:
        line: One line of a prompt or an answer.
        isolate: Whether a line with right-to-left letters stands between isolates (U+2068, U+2069), so that it does
            not reorder what stands beside it.
    """
    text = escaped(line, keep="\t")
    right_to_left = any(unicodedata.bidirectional(letter) in RIGHT_TO_LEFT for letter in text)
    return f"\u2068{text}\u2069" if isolate and right_to_left else text


def save_picture(row: Row, task: str, path: Path) -> str | None:
    """Draws a sample as the suite of its task does.

    Args:
        row: A row of the details.
        task: Its task; `|k` may follow.
        path: The file to write.

    Returns:
        What the colours mean; None where the suite draws no pictures, or none of this sample.
    """
    known = all_tasks().get(task.partition("|")[0])
    draw = all_suites()[known.suite].part("picture") if known else None
    return draw(row, path) if draw else None


def printable(text: str) -> str:
    """The text without control characters, which neither a terminal nor XML should get."""
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")
