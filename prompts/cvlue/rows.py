"""CVLUE and its English counterparts: from rows of their sources to prepared rows, and to Docs with one image.

`cultureval.tasks.cvlue.files` gives the rows of CVLUE itself; it joins the released files by id. Prompts are those
of the paper's appendix A.2, verbatim; prompts for box formats other than Qwen-VL's are ours.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cultureval.prompts.cells import image_cell, text_cell, text_list
from cultureval.prompts.preparation import Preparation, PreparedRow, Row, make_doc
from cultureval.prompts.templates import load_template, render
from cultureval.runtime.data.image_store import image_size, stored_image
from cultureval.runtime.doc_fields import DocSpecific, fields_of
from cultureval.runtime.errors import BadRow

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc


LARGEST = 1e9  # pixels


class ImageSpecific(DocSpecific):
    """Fields of every item, with the path of its image in the source."""

    id: str
    image_path: str


class BoxSpecific(ImageSpecific):
    """A referring expression.

    Attributes:
        box: The gold box: left, top, right, bottom in pixels of the original image.
        size: The original image's width and height in pixels.
        box_format: The box format of the model's family.
        box_pixels: Least and most pixels to which the model's processor resizes images, as "3136-12845056".
    """

    box: list[float]
    size: list[int]
    box_format: str
    box_pixels: str


class DialogueSpecific(ImageSpecific):
    """A round of a dialogue with ranked candidate answers.

    Attributes:
        round: The round's number, from 0.
        relevance: Relevance of each candidate, for NDCG; may be empty.
    """

    round: int
    relevance: list[float]


class GallerySpecific(ImageSpecific):
    """An image with the ranked captions of its gallery."""

    gallery: int


def question(row: Row, preparation: Preparation) -> PreparedRow:
    """CVLUE VQA: one gold answer."""
    prompt = render(preparation.template, question=text_cell(row, "question"))
    return _common(row, preparation, text_cell(row, "question_id")) | {
        "prompt": prompt,
        "answers": [text_cell(row, "answer")],
    }


def question_with_ten_answers(row: Row, preparation: Preparation) -> PreparedRow:
    """VQA v2 (hub copy lmms-lab-encoder/VQAv2): `question`, `question_id`, `image_id` and `answers`, ten structs."""
    answers = row.get("answers")
    if not isinstance(answers, list) or not all(isinstance(answer, Mapping) for answer in answers):
        raise BadRow("answers", answers, "is not a list of structs with `answer`")
    prompt = render(preparation.template, question=text_cell(row, "question"))
    with_path = {**row, "image_path": str(row.get("image_id", ""))}
    return _common(with_path, preparation, text_cell(row, "question_id")) | {
        "prompt": prompt,
        "answers": text_list([answer.get("answer") for answer in answers], "answers"),
    }


def expression(row: Row, preparation: Preparation) -> PreparedRow:
    """CVLUE VG: a referring expression and its box in pixels of the original image, (x, y) the top left corner."""
    prepared = _box_row(row, preparation, text_cell(row, "text"), text_cell(row, "ref_id"))
    stated = [row.get("width"), row.get("height")]
    if stated != prepared["size"]:
        raise BadRow("width, height", stated, f"is not the size of the image, {prepared['size']}")
    return prepared


def expressions_of_one_box(row: Row, preparation: Preparation) -> list[PreparedRow]:
    """RefCOCOg (hub copy lmms-lab-encoder/RefCOCOg): one box, several expressions in `answer`, each an item."""
    with_path = {**row, "image_path": str(row.get("file_name", ""))}
    number = text_cell(row, "question_id")
    texts = text_list(row.get("answer"), "answer")
    return [_box_row(with_path, preparation, text, f"{number}/{place}") for place, text in enumerate(texts)]


def dialogue_round(row: Row, preparation: Preparation) -> PreparedRow:
    """One round of a visual dialogue: caption, history with gold answers, question and options to rank.

    The row's `history` has all known earlier rounds, `given_history` those in the record; the option `dialogue_history`
    selects one of them.
    """
    as_given = preparation.options.suite.get("dialogue_history") == "as_given" and row["given_history"] is not None
    history: Sequence[Sequence[str]] = row["given_history"] if as_given else row["history"]
    template = load_template(preparation.template)
    rounds = [template.also("round").render(question=asked, answer=answer) for asked, answer in history]
    joined = "\n".join(rounds)
    if preparation.options.suite.get("dialogue_layout") == "one_line":
        joined = joined.replace("\n", " ")
    prompt = template.render(
        caption=text_cell(row, "caption"),
        history=joined,
        question=text_cell(row, "question"),
    )
    options = text_list(row["options"], "answer_options")
    return _common(row, preparation, f"{row['image_id']}/{row['round']}") | {
        "prompt": prompt,
        # An answer follows `答案:` without a space, `Answer:` with one, as in Qwen-VL's own ranking.
        "choices": [option if preparation.language == "zh" else f" {option}" for option in options],
        "gold": row["gold"],
        "round": row["round"],
        "history_missing": row["round"] - len(history),
        "relevance": row.get("relevance") or [],
    }


def caption_gallery(row: Row, preparation: Preparation) -> PreparedRow:
    """An image and the captions of its gallery; those at `correct` are its own."""
    texts = text_list(row["captions"], "caption")
    return _common(row, preparation, row["image"]) | {
        "prompt": render(preparation.template),
        "choices": [text if preparation.language == "zh" else f" {text}" for text in texts],
        "correct": row["correct"],
        "gallery": row["gallery"],
    }


def _common(row: Row, preparation: Preparation, number: str) -> PreparedRow:
    """Fields of every prepared row: id, stored image, and the image's released path (also the cluster)."""
    path = str(row.get("image_path") or row["image"])
    try:
        image = image_cell(row, "image_file" if "image_file" in row else "image", preparation.folder)
    except BadRow as error:
        raise BadRow("image", path, f"of item {number} {error.reason}") from error
    return {"id": number, "image": image, "image_path": path, "cluster": path}


def _box_row(row: Row, preparation: Preparation, text: str, number: str) -> PreparedRow:
    common = _common(row, preparation, number)
    return common | {
        "prompt": render(preparation.template, expression=text),
        "box": _box(row.get("bbox")),
        "size": list(image_size(stored_image(common["image"]))),
        "box_format": preparation.options.suite["box_format"],
        "box_pixels": preparation.options.suite["box_pixels"],
    }


def _box(value: Any) -> list[float]:
    numbers = list(value) if isinstance(value, list | tuple) else []
    valid = all(isinstance(number, int | float) and abs(number) < LARGEST for number in numbers)
    if len(numbers) != 4 or not valid or min(numbers[2:]) <= 0:
        raise BadRow("bbox", value, "is not a box x, y, width, height")
    return [float(number) for number in numbers]


def answer_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a question; its choices are the gold answers. The stop string applies to plain prompts only."""
    specific = ImageSpecific(**fields_of(row, ImageSpecific), stop_in_chat=False)
    return make_doc(row, task_name, list(row["answers"]), list(range(len(row["answers"]))), specific)


def box_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a referring expression; the gold box, the image's size and the box format are in `specific`."""
    specific = BoxSpecific(**fields_of(row, BoxSpecific), thinking=False)
    return make_doc(row, task_name, [str([round(number, 2) for number in row["box"]])], 0, specific)


def dialogue_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a dialogue round: its options are scored, and the end-of-text token after each of them."""
    specific = DialogueSpecific(**fields_of(row, DialogueSpecific), end_logprob=True)
    return make_doc(row, task_name, list(row["choices"]), row["gold"], specific)


def gallery_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of an image; the captions of its gallery are scored, its own captions are the gold."""
    specific = GallerySpecific(**fields_of(row, GallerySpecific))
    return make_doc(row, task_name, list(row["choices"]), list(row["correct"]), specific)
