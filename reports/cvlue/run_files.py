"""What `cultureval score` gives, for a run of CVLUE's Chinese tasks, from its details.

Submission files in the official format, scores by field and category with intervals, plots, the macro-average of eleven
numbers. The gold files are read again, since details hold no ids of answers.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cultureval.metrics.cvlue.grounding import predicted_boxes
from cultureval.metrics.cvlue.submissions import means, read_json
from cultureval.reports.cvlue.official_scores import GOLD_FILES, PRED_FILES, items_of, macro_text, write_tables
from cultureval.runs.files import details_of_run, model_folder, output_folder
from cultureval.runs.record import Run
from cultureval.runs.rows import option_scores, saved_reply
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.options import read_data_options
from cultureval.tasks.reading import find_subset

Record = dict[str, Any]
HEADLINE = "R@1"  # its score orders candidates
SUBMITTED = 10  # length of ranked lists


class SavedAnswers(NamedTuple):
    """A task's answers in the official format.

    Attributes:
        gold: The gold records that were answered.
        scored: Content of each submission file, in the order of `PRED_FILES`, with the answered records alone.
        files: The same as it is submitted: questions and expressions without an answer have an empty one.
        unanswered: Gold records without an answer.
    """

    gold: list[Record]
    scored: list[Any]
    files: list[Any]
    unanswered: int


def write_run_files(run: Run) -> list[str]:
    """Writes the files of a run into `cvlue/<model>/<date>` of its output folder.

    Returns:
        Sentences that say where they are and what is missing; none for a run without Chinese tasks or details.

    Raises:
        CulturevalError: The gold files cannot be read again, or do not fit the run.
    """
    folder = _folder(run)
    if folder is None:
        return []
    lines: list[str] = []
    totals: dict[str, dict[str, float]] = {}
    for name in GOLD_FILES:
        records = [record for record in run.tasks_of("cvlue") if record.group == f"cvlue_{name}"]
        rows = details_of_run(run, records[0].task) if records else []
        if not rows:
            continue
        found = answers_of(name, rows, _gold_of(name))
        for path, content in zip(PRED_FILES[name], found.files, strict=True):
            file = folder / "submissions" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        items = items_of(name, found.gold, found.scored)
        write_tables(name, items, folder)
        totals[name] = means(items)
        if found.unanswered:
            how = "are left out of the submission file" if name in ("vd", "itr") else "are empty in the submission file"
            lines.append(f"cvlue_{name}: {found.unanswered} gold records have no answer in this run and {how}.")
    if len(totals) == len(GOLD_FILES):
        macro_text(totals, folder)
    if totals:
        lines.append(f"CVLUE by field and category, plots, submission files: {folder}")
    return lines


def answers_of(name: str, rows: Sequence[Mapping[str, Any]], gold: Sequence[Record]) -> SavedAnswers:
    """A task's answers in the official format, in the gold's order.

    Args:
        name: "itr", "vqa", "vg" or "vd".
        gold: All records of its gold file.

    Raises:
        CulturevalError: The details are of other data.
    """
    by_id = {str(specific_of(row["doc"])["id"]): row for row in rows}
    known = {_id_of(name, record): record for record in gold}
    if strange := [number for number in by_id if number not in known]:
        raise CulturevalError(f"cvlue_{name}: item {strange[0]} of the details is not in the gold file.")
    answered = [record for number, record in known.items() if number in by_id]
    unanswered = len(known) - len(answered)
    if name == "itr":
        ranked = list(gallery_rankings(rows, answered))
        return SavedAnswers(answered, ranked, ranked, unanswered)
    if name == "vd":
        rounds = [_ranking(record, by_id[_id_of(name, record)]) for record in answered]
        return SavedAnswers(answered, [rounds], [rounds], unanswered)
    full = [_answered(name, record, by_id.get(number)) for number, record in known.items()]
    mine = [record for number, record in zip(known, full, strict=True) if number in by_id]
    return SavedAnswers(answered, [mine], [full], unanswered)


def gallery_rankings(
    rows: Sequence[Mapping[str, Any]], gold: Sequence[Record]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
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


def _folder(run: Run) -> Path | None:
    """Beside the run's results; None where they are not laid out as LightEval's."""
    root, model = output_folder(run.file), model_folder(run.file)
    return root / "cvlue" / model / run.date if root and model else None


def _gold_of(name: str) -> list[Record]:
    """The records of the gold file that the run has read."""
    content = read_json(find_subset(all_tasks()[f"cvlue_{name}"], read_data_options()).files[0])
    return content["data"] if isinstance(content, dict) else content


def _id_of(name: str, record: Record) -> str:
    """An item's id, as in the details."""
    if name == "vd":
        return f"{record['image_id']}/{record['dialog_id']}"
    return str(record[{"itr": "image", "vqa": "question_id", "vg": "ref_id"}[name]])


def _answered(name: str, record: Record, row: Mapping[str, Any] | None) -> Record:
    """A gold record with the model's answer in place of the gold one; an empty answer without a row."""
    reply = "" if row is None else saved_reply(row["model_response"])
    if name == "vqa":
        return record | {"answer": reply}
    boxes = [] if row is None else predicted_boxes(reply, specific_of(row["doc"]))
    return record | {"bbox": boxes[0] if boxes else []}


def _ranking(record: Record, row: Mapping[str, Any]) -> Record:
    options = record["answer_options"]
    order = np.argsort(-np.array(option_scores(row, HEADLINE)), kind="stable")
    kept = {name: record[name] for name in ("image_id", "image", "dialog_id", "question")}
    return kept | {"answer_sort": [options[place] for place in order]}
