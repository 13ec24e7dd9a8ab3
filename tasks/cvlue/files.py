"""CVLUE's released folder, and the JSON files of its English counterparts: found, joined by id, checked.

The data come on request from the authors. The folder is `cvlue` below the data root; it holds `IC`, `VQA`, `VG`, `VD`
with a `gold.json` each, as the released example does, `VD/test_VD.json`, and the images at the paths that the files
state.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from cultureval.prompts.preparation import PreparedRow
from cultureval.runtime.data.row_files import PlacedRow
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.suite import Task

Record = Mapping[str, Any]
Reader = Callable[[Sequence[Path], Task], Iterator[PlacedRow]]
GALLERY_IMAGES = 20
PARTS = {"itr": "IC", "vqa": "VQA", "vg": "VG", "vd": "VD"}
SPLIT_NAMES = ("training", "validation", "test")

# Images by split: the paper's Table 2, and the release of 2025, which divides the paper's training and validation
# images anew (second-hand: the shared task's site).
SPLITS = {
    "itr": {"the paper": (25_761, 4_248, 11_655), "the 2025 release": (17_920, 3_116, 8_973)},
    "vqa": {"the paper": (20_697, 3_405, 6_046), "the 2025 release": (14_362, 2_571, 7_169)},
    "vg": {"the paper": (15_571, 2_548, 5_885), "the 2025 release": (10_769, 1_965, 5_385)},
    "vd": {"the paper": (5_748, 914, 3_093), "the 2025 release": (3_975, 651, 2_036)},
}


def _of_released_form(read: Reader) -> Reader:
    """A reader whose malformed records are reported as one CulturevalError."""

    @wraps(read)
    def reading(files: Sequence[Path], task: Task) -> Iterator[PlacedRow]:
        try:
            yield from read(files, task)
        except (KeyError, IndexError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise CulturevalError(
                f"{', '.join(map(str, files))}: a record is not of the released form ({type(error).__name__}: {error})."
            ) from error

    return reading


def _content(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _by_id(records: Iterable[Record], key: Callable[[Record], Any], path: Path) -> dict[Any, Record]:
    found: dict[Any, Record] = {}
    for record in records:
        if found.setdefault(key(record), record) is not record:
            raise CulturevalError(f"{path}: the id {key(record)!r} is duplicated.")
    return found


def _at(entries: Sequence[Any], number: int) -> Any:
    if number < 0:
        raise IndexError(f"{number} is no position")
    return entries[number]


def find_released(part: str) -> Callable[[Path, Task], tuple[list[Path], list[Path]]]:
    """A `Source.find` for one of CVLUE's four parts: its gold file and, of dialogues, the test input."""
    names = ["gold.json", "test_VD.json"] if part == "vd" else ["gold.json"]

    def find(folder: Path, task: Task) -> tuple[list[Path], list[Path]]:
        files = [folder / PARTS[part] / name for name in names]
        if files[0].is_file() and not files[-1].is_file():
            raise CulturevalError(f"{files[-1]} is not there: it holds the texts of the ids in {files[0].name}.")
        return files if files[0].is_file() else [], []

    return find


@_of_released_form
def read_items(files: Sequence[Path], task: Task) -> Iterator[PlacedRow]:
    """VQA and VG: gold records by `question_id` or `ref_id`."""
    (file,) = files
    records = _by_id(_content(file), lambda one: one["question_id"] if "question_id" in one else one["ref_id"], file)
    for place, record in enumerate(records.values()):
        yield PlacedRow(file.name, place, {**record, **_image(file, record["image"])})


@_of_released_form
def read_rounds(files: Sequence[Path], task: Task) -> Iterator[PlacedRow]:
    """VD: one row a round; rounds of one image are adjacent, in the order of the dialogue.

    A row has `image_id`, `round` (from 0), `caption`, `question`, `options` and `gold` as text and position; `history`
    holds the earlier rounds: from the gold file where it has all of them, else from the test input (`given_history`).
    """
    gold_file, test_file = files
    rounds, test = _content(gold_file)["data"], _content(test_file)
    given = _by_id(test["dialogs"], lambda one: _round_key(one["image_id"], one["dialog"][-1]), test_file)
    gold = _by_id(rounds, lambda one: _round_key(one["image_id"], one), gold_file)
    by_number = _by_id(rounds, lambda one: (one["image_id"], one["dialog_id"]), gold_file)
    if lost := [key[:2] for key in gold.keys() ^ given.keys()]:
        raise CulturevalError(
            f"{len(lost)} rounds are not in both {gold_file} and {test_file.name}, such as {lost[0]}."
        )
    order = {image: place for place, image in enumerate(dict.fromkeys(one["image_id"] for one in rounds))}
    ordered = sorted(gold.items(), key=lambda item: (order[item[1]["image_id"]], item[1]["dialog_id"]))
    for place, (key, record) in enumerate(ordered):
        known = [by_number.get((record["image_id"], number)) for number in range(record["dialog_id"])]
        turns = given[key]["dialog"][:-1]
        row = _round_row(record, turns if None in known else known, turns, test)
        yield PlacedRow(gold_file.name, place, row | _image(gold_file, record["image"]))


def _round_row(
    record: Record, history: Sequence[Any], given: Sequence[Any], texts: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    def spoken(turns: Sequence[Any]) -> list[tuple[str, str]]:
        return [(asked[str(turn["question"])], answered[str(turn["answer"])]) for turn in turns]

    asked, answered, options = texts["id2question"], texts["id2answer"], record["answer_options"]
    if len(set(options)) < len(options) or record["answer"] not in options:
        where = f"image_id {record['image_id']}, round {record['dialog_id']}"
        raise CulturevalError(f"CVLUE VD, {where}: the options repeat an id or lack the answer.")
    return {
        "image_id": record["image_id"],
        "round": record["dialog_id"],
        "caption": record["caption"],
        "question": asked[str(record["question"])],
        "options": [answered[str(option)] for option in options],
        "gold": options.index(record["answer"]),
        "history": spoken(history),
        "given_history": spoken(given),
    }


def _round_key(image: int, turn: Record) -> tuple[int, int, str]:
    """The key of a round that gold file and test input share: image, question and a hash of the options."""
    options = json.dumps(turn.get("answer_options"))
    return image, turn["question"], hashlib.sha256(options.encode("utf-8")).hexdigest()[:8]


@_of_released_form
def read_captions(files: Sequence[Path], task: Task) -> Iterator[PlacedRow]:
    """ITR: one row an image, with the captions of its gallery."""
    captions = {
        image: one["caption"] for image, one in _by_id(_content(files[0]), lambda one: one["image"], files[0]).items()
    }
    if wrong := [image for image, own in captions.items() if not own or not isinstance(own, list)]:
        raise CulturevalError(f"{files[0]}: the caption of {wrong[0]!r} is not a non-empty list of texts.")
    for place, row in enumerate(gallery_rows(captions)):
        yield PlacedRow(files[0].name, place, row | _image(files[0], row["image"]))


def _image(gold_file: Path, image: str) -> dict[str, Any]:
    """The image's released path and its file; `image_cell` refuses paths outside the folder."""
    return {"image_path": image, "image_file": str(gold_file.parents[1] / image)}


def gallery_rows(captions: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Any]]:
    """Images in galleries of 20 and their captions, ordered by hash, so that adjacent images are unrelated.

    A generative model scores every caption after every image of its gallery; with one gallery of all images these would
    be half a billion. The galleries depend only on the images' paths.
    """
    order = sorted(captions, key=lambda image: hashlib.sha256(image.encode("utf-8")).hexdigest())
    for start in range(0, len(order), GALLERY_IMAGES):
        images = order[start : start + GALLERY_IMAGES]
        texts = list(dict.fromkeys(text for image in images for text in captions[image]))
        for image in images:
            correct = [place for place, text in enumerate(texts) if text in captions[image]]
            yield {"image": image, "captions": texts, "correct": correct, "gallery": start // GALLERY_IMAGES}


def released_notes(part: str) -> Callable[[Sequence[PreparedRow]], list[str]]:
    """A `Source.notes` for one of CVLUE's parts: the split and release, and incomplete histories."""
    return lambda rows: [_split_of(part, rows)[0], *history_notes(rows), *box_notes(rows)]


def other_split(part: str) -> Callable[[Sequence[PreparedRow]], str]:
    """A `Source.other_data` for one of CVLUE's parts: that its images are, by their number, of no test split."""

    def told(rows: Sequence[PreparedRow]) -> str:
        sentence, of_test = _split_of(part, rows)
        return "" if of_test else f"Not a test split, of which scores are published: {sentence}"

    return told


def _split_of(part: str, rows: Sequence[PreparedRow]) -> tuple[str, bool]:
    """Of which split and release the images are, by their number, as a sentence; and whether it is a test split."""
    images = len({row["image_path"] for row in rows})
    for release, sizes in SPLITS[part].items():
        if images in sizes:
            name = SPLIT_NAMES[sizes.index(images)]
            return f"{images} images, as in the {name} split of {release}.", name == "test"
    known = "; ".join(f"{release}: {'/'.join(map(str, sizes))}" for release, sizes in SPLITS[part].items())
    return f"{images} images, which is the size of no known split ({'/'.join(SPLIT_NAMES)} of {known}).", False


def history_notes(rows: Sequence[PreparedRow]) -> list[str]:
    """A `Source.notes`: how many dialogue rounds have an incomplete history."""
    short = sum(bool(row.get("history_missing")) for row in rows)
    return [f"{short} of {len(rows)} rounds lack some earlier rounds in their history."] if short else []


def box_notes(rows: Sequence[PreparedRow]) -> list[str]:
    """A `Source.notes`: how boxes are asked for and read."""
    formats = sorted({row["box_format"] for row in rows if "box_format" in row})
    return [f"boxes are asked for and read as {' and '.join(formats)} writes them (box_format)."] if formats else []


def find_visdial(folder: Path, task: Task) -> tuple[list[Path], list[Path]]:
    """VisDial 1.0 validation as published: `visdial_1.0_val.json` and, for NDCG, its dense annotations."""
    names = ("visdial_1.0_val.json", "visdial_1.0_val_dense_annotations.json")
    files = [folder / name for name in names if (folder / name).is_file()]
    return (files if files and files[0].name == names[0] else []), []


@_of_released_form
def read_visdial(files: Sequence[Path], task: Task) -> Iterator[PlacedRow]:
    """VisDial: one row a round; one round of an image may have relevance scores of its options.

    The release stores questions without their question marks.
    """
    data = _content(files[0])["data"]
    relevance = _content(files[1]) if len(files) > 1 else []
    dense = {(one["image_id"], one["round_id"] - 1): one["gt_relevance"] for one in relevance}
    dialogs = _by_id(data["dialogs"], lambda one: one["image_id"], files[0])
    if unknown := [image for image, _ in dense if image not in dialogs]:
        raise CulturevalError(f"{files[1]}: image_id {unknown[0]} is not in {files[0].name}.")
    place = 0
    for image, record in dialogs.items():
        shared = {"image_id": image, "caption": record["caption"], "given_history": None, "image": str(image)}
        shared["image_file"] = _visdial_image(files[0].parent, image)
        history: list[tuple[str, str]] = []
        for number, turn in enumerate(record["dialog"]):
            asked, options = f"{_at(data['questions'], turn['question'])}?", turn["answer_options"]
            row = shared | {"round": number, "question": asked, "history": list(history)}
            row |= {"options": [_at(data["answers"], option) for option in options]}
            _at(options, turn["gt_index"])
            row |= {"gold": turn["gt_index"]}
            yield PlacedRow(files[0].name, place, row | {"relevance": dense.get((image, number))})
            history.append((asked, _at(data["answers"], turn["answer"])))
            place += 1


def _visdial_image(folder: Path, image_id: int) -> str:
    """The path of VisDial's image of an id, in the naming of its release, or of the samples."""
    names = (f"VisualDialog_val2018/VisualDialog_val2018_{image_id:012d}.jpg", f"images/{image_id:012d}.png")
    return str(next((folder / name for name in names if (folder / name).is_file()), folder / names[0]))


def find_karpathy(folder: Path, task: Task) -> tuple[list[Path], list[Path]]:
    """COCO with Karpathy's splits as published: `dataset_coco.json` and the images below `val2014`."""
    path = folder / "dataset_coco.json"
    return ([path] if path.is_file() else []), []


@_of_released_form
def read_karpathy(files: Sequence[Path], task: Task) -> Iterator[PlacedRow]:
    """COCO 5K: the images of the split `test`, with the first five captions of each (a few have more)."""
    records = [one for one in _content(files[0])["images"] if one["split"] == "test"]
    images = _by_id(records, lambda one: one["filename"], files[0])
    captions = {name: [one["raw"].strip() for one in image["sentences"][:5]] for name, image in images.items()}
    for place, row in enumerate(gallery_rows(captions)):
        path = files[0].parent / images[row["image"]]["filepath"] / row["image"]
        yield PlacedRow(files[0].name, place, row | {"image_file": str(path)})
