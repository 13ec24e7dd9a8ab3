"""What `cultureval score` gives, for a run of CVLUE's Chinese tasks: submission files, scores by field and category.

The gold files are read again, since details hold no ids of answers.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cultureval.metrics.cvlue.grounding import predicted_boxes
from cultureval.metrics.cvlue.submissions import read_json
from cultureval.reports.cvlue.official_scores import (
    GOLD_FILES,
    PRED_FILES,
    id_of,
    macro_text,
    means,
    rows_of,
    write_tables,
)
from cultureval.runs.files import model_folder, output_folder, read_details
from cultureval.runs.loading import Run
from cultureval.runs.rows import option_scores, saved_reply
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.options import read_data_options
from cultureval.tasks.reading import find_subset

Record = dict[str, Any]
Row = dict[str, Any]
HEADLINE = "R@1"  # its score orders candidates
SUBMITTED = 10  # length of ranked lists


class SavedAnswers(NamedTuple):
    """A task's answers in the official format.

    Attributes:
        gold: The gold records that were answered.
        scored: Content of each submission file, in the order of `PRED_FILES`, with the answered records alone.
        files: The same as it is submitted: questions and expressions without an answer have an empty one.
    """

    gold: list[Record]
    scored: list[Any]
    files: list[Any]


def write_run_files(run: Run) -> list[str]:
    """Writes the files of a run into `cvlue/<model>/<date>` of its output folder.

    Returns:
        Sentences that say where they are and what is missing; none for a run without Chinese tasks or details.

    Raises:
        CulturevalError: The gold files cannot be read again, or do not fit the run.
    """
    root, model = output_folder(run.file), model_folder(run.file)
    if not root or not model:
        return []
    folder, lines = root / "cvlue" / model / run.date, []
    totals: dict[str, dict[str, float]] = {}
    for name in GOLD_FILES:
        if not (details := run.details.get(f"cvlue_{name}|0")):
            continue
        gold = _gold_of(name)
        found = answers_of(name, read_details(details).to_pylist(), gold)
        for path, content in zip(PRED_FILES[name], found.files, strict=True):
            file = folder / "submissions" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        rows = rows_of(name, found.gold, found.scored)
        write_tables(name, rows, folder)
        totals[name] = means(name, rows)
        if unanswered := len(gold) - len(found.gold):
            how = "left out of" if name in ("vd", "itr") else "empty in"
            lines.append(
                f"cvlue_{name}: {unanswered} gold records have no answer in this run and are {how} the submission file."
            )
    if len(totals) == len(GOLD_FILES):
        macro_text(totals, folder)
    return [*lines, f"CVLUE by field and category, submission files: {folder}"] if totals else []


def answers_of(name: str, rows: Sequence[Row], gold: Sequence[Record]) -> SavedAnswers:
    """A task's answers in the official format, in the gold's order.

    Args:
        name: "itr", "vqa", "vg" or "vd".
        rows: Of the details; those without an answer (`unscored`) are none.
        gold: All records of its gold file.

    Raises:
        CulturevalError: The details are of other data.
    """
    rows = [row for row in rows if not specific_of(row["doc"]).get("unscored")]
    by_id = {str(specific_of(row["doc"])["id"]): row for row in rows}
    known = {id_of(name, record): record for record in gold}
    if strange := [number for number in by_id if number not in known]:
        raise CulturevalError(f"cvlue_{name}: item {strange[0]} of the details is not in the gold file.")
    answered = {number: record for number, record in known.items() if number in by_id}
    golds = list(answered.values())
    if name == "itr":
        ranked = list(gallery_rankings(rows, golds))
        return SavedAnswers(golds, ranked, ranked)
    if name == "vd":
        rounds = [_ranking(record, by_id[number]) for number, record in answered.items()]
        return SavedAnswers(golds, [rounds], [rounds])
    full = {number: _answered(name, record, by_id.get(number)) for number, record in known.items()}
    return SavedAnswers(golds, [[full[number] for number in answered]], [list(full.values())])


def gallery_rankings(rows: Sequence[Row], gold: Sequence[Record]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """(captions of each image, images of each caption), the best ten by mean log-probability a token.

    Each image was asked about the captions of its own gallery of 20 images, so that others are in no list.

    Args:
        rows: Rows of the details of `cvlue_itr`.
        gold: The gold records that were answered.
    """
    of_caption: dict[str, list[tuple[float, str]]] = {text: [] for record in gold for text in record["caption"]}
    of_image = {}
    for row in rows:
        image, captions = str(specific_of(row["doc"])["id"]), [text.strip() for text in row["doc"]["choices"]]
        scores = np.array(option_scores(row, HEADLINE))
        of_image[image] = [captions[place] for place in np.argsort(-scores, kind="stable")[:SUBMITTED]]
        for text, score in zip(captions, scores.tolist(), strict=True):
            if text in of_caption:
                of_caption[text].append((-score, image))
    ranked = {text: [image for _, image in sorted(found)[:SUBMITTED]] for text, found in of_caption.items()}
    return of_image, ranked


def _gold_of(name: str) -> list[Record]:
    """The records of the gold file that the run has read."""
    content = read_json(find_subset(all_tasks()[f"cvlue_{name}"], read_data_options()).files[0])
    return content["data"] if isinstance(content, dict) else content


def _answered(name: str, record: Record, row: Row | None) -> Record:
    """A gold record with the model's answer in place of the gold one; an empty answer without a row."""
    reply = "" if row is None else saved_reply(row["model_response"])
    if name == "vqa":
        return record | {"answer": reply}
    boxes = [] if row is None else predicted_boxes(reply, specific_of(row["doc"]))
    return record | {"bbox": boxes[0] if boxes else []}


def _ranking(record: Record, row: Row) -> Record:
    options = record["answer_options"]
    order = np.argsort(-np.array(option_scores(row, HEADLINE)), kind="stable")
    kept = {name: record[name] for name in ("image_id", "image", "dialog_id", "question")}
    return kept | {"answer_sort": [options[place] for place in order]}
