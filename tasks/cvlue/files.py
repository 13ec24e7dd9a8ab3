"""CVLUE's released folder, and the JSON files of its English counterparts: found, joined by id, checked.

The data come on request from the authors. The folder is `cvlue` below the data root; it holds `IC`, `VQA`, `VG`, `VD`
with a `gold.json` each, as the released example does, `VD/test_VD.json`, and the images at the paths that the files
state.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from cultureval.prompts.preparation import PreparedRow
from cultureval.runtime.data.row_files import PlacedRow
from cultureval.runtime.errors import CulturevalError, shorten
from cultureval.tasks.suite import Task

Record = Mapping[str, Any]
Key = Callable[[Record], Any]
Reader = Callable[[Sequence[Path], Task], Iterator[PlacedRow]]
GALLERY_IMAGES = 20
PARTS = {"itr": "IC", "vqa": "VQA", "vg": "VG", "vd": "VD"}

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
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise CulturevalError(
                f"{', '.join(map(str, files))}: a record is not of the released form ({type(error).__name__}: {error})."
            ) from error

    return reading


def find_released(part: str) -> Callable[[Path, Task], tuple[list[Path], list[Path]]]:
    """A `Source.find` for one of CVLUE's four parts: its gold file and, of dialogues, the test input."""
    names = ["gold.json", "test_VD.json"] if part == "vd" else ["gold.json"]

    def find(folder: Path, task: Task) -> tuple[list[Path], list[Path]]:
        files = [folder / PARTS[part] / name for name in names]
        if not files[0].is_file():
            return [], []
        if lacking := [file for file in files if not file.is_file()]:
            raise CulturevalError(f"{lacking[0]} is not there: it holds the texts of the ids in {files[0].name}.")
        return files, []

    return find


def read_questions(files: Sequence[Path], task: Task) -> Iterator[PlacedRow]:
    """VQA: gold records by `question_id`."""
    return _records_by_id(files[0], "question_id", "answer")


def read_expressions(files: Sequence[Path], task: Task) -> Iterator[PlacedRow]:
    """VG: gold records by `ref_id`."""
    return _records_by_id(files[0], "ref_id", "bbox")


@_of_released_form
def read_rounds(files: Sequence[Path], task: Task) -> Iterator[PlacedRow]:
    """VD: one row a round; rounds of one image are adjacent, in the order of the dialogue.

    A row has `image_id`, `round` (from 0), `caption`, `question`, `options` and `gold` as text and position; `history`
    holds the earlier rounds: from the gold file where it has all of them, else from the test input (`given_history`).
    """
    gold_file, test_file = files
    gold = _by_id(_list_of(load_json(gold_file)["data"], gold_file), _round_key, gold_file)
    test = load_json(test_file)
    given = _by_id(
        _list_of(test["dialogs"], test_file), lambda one: _round_key({**one, **one["dialog"][-1]}), test_file
    )
    if lost := [key[:2] for key in gold.keys() ^ given.keys()]:
        raise CulturevalError(
            f"{len(lost)} rounds are not in both {gold_file} and {test_file.name}, such as {lost[0]}."
        )
    rounds: dict[Any, dict[int, tuple[Any, Any]]] = {}
    for record in gold.values():
        own = rounds.setdefault(record["image_id"], {})
        number = _integer(record, "dialog_id", gold_file)
        if number in own:
            raise CulturevalError(f"{gold_file}: image_id {record['image_id']} has a duplicated round {number}.")
        own[number] = (record["question"], record["answer"])
    order = {image: place for place, image in enumerate(rounds)}
    ordered = sorted(gold.items(), key=lambda item: (order[item[1]["image_id"]], item[1]["dialog_id"]))
    for place, (key, record) in enumerate(ordered):
        turns = [(turn["question"], turn["answer"]) for turn in given[key]["dialog"][:-1]]
        row = _round_row(record, rounds[record["image_id"]], turns, test, gold_file)
        yield PlacedRow(gold_file.name, place, row | _image(gold_file, record))


def _round_row(
    record: Record,
    rounds: Mapping[int, tuple[Any, Any]],
    turns: Sequence[tuple[Any, Any]],
    texts: Mapping[str, Mapping[str, str]],
    path: Path,
) -> dict[str, Any]:
    def text(kind: str, number: Any) -> str:
        if str(number) not in texts[kind]:
            raise CulturevalError(f"{path}: {kind} of test_VD.json has no entry {number!r}.")
        return texts[kind][str(number)]

    def spoken(turns: Sequence[tuple[Any, Any]]) -> list[tuple[str, str]]:
        return [(text("id2question", asked), text("id2answer", answer)) for asked, answer in turns]

    number, options, given = record["dialog_id"], record["answer_options"], spoken(turns)
    known = [rounds[before] for before in range(number) if before in rounds]
    if len(set(map(repr, options))) < len(options) or record["answer"] not in options:
        raise CulturevalError(
            f"{path}: image_id {record['image_id']}, round {number}: the options repeat an id or lack the answer."
        )
    return {
        "image_id": record["image_id"],
        "round": number,
        "caption": record["caption"],
        "question": text("id2question", record["question"]),
        "options": [text("id2answer", option) for option in options],
        "gold": options.index(record["answer"]),
        "history": spoken(known) if len(known) == number else given,
        "given_history": given,
    }


def _round_key(record: Record) -> tuple[Any, Any, str]:
    """The key of a round that gold file and test input share: image, question and a hash of the options."""
    options = json.dumps(record["answer_options"])
    return record["image_id"], record["question"], hashlib.sha256(options.encode("utf-8")).hexdigest()[:8]


@_of_released_form
def read_captions(files: Sequence[Path], task: Task) -> Iterator[PlacedRow]:
    """ITR: one row an image, with the captions of its gallery."""
    records = _list_of(load_json(files[0]), files[0])
    captions = {image: own["caption"] for image, own in _by_id(records, lambda r: r.get("image"), files[0]).items()}
    for image, own in captions.items():
        if not isinstance(own, list) or not own or not all(isinstance(text, str) for text in own):
            raise CulturevalError(f"{files[0]}: the caption of {image!r} is not a non-empty list of texts.")
    for place, row in enumerate(gallery_rows(captions)):
        yield PlacedRow(files[0].name, place, row | _image(files[0], row))


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

    def notes(rows: Sequence[PreparedRow]) -> list[str]:
        return [_split_of(part, rows)[0], *history_notes(rows), *box_notes(rows)]

    return notes


def other_split(part: str) -> Callable[[Sequence[PreparedRow]], str]:
    """A `Source.other_data` for one of CVLUE's parts: that its images are, by their number, of no test split."""

    def told(rows: Sequence[PreparedRow]) -> str:
        sentence, of_test = _split_of(part, rows)
        return "" if of_test else f"Not a test split, of which scores are published: {sentence}"

    return told


def _split_of(part: str, rows: Sequence[PreparedRow]) -> tuple[str, bool]:
    """Of which split and release the images are, by their number, as a sentence; and whether it is a test split."""
    images = len({row["image_path"] for row in rows})
    names = ("training", "validation", "test")
    known = [
        (name, f"as in the {name} split of {release}")
        for release, sizes in SPLITS[part].items()
        for name, size in zip(names, sizes, strict=True)
        if size == images
    ]
    sizes = "; ".join(f"{release}: {'/'.join(map(str, sizes))}" for release, sizes in SPLITS[part].items())
    unknown = "", f"which is the size of no known split (training/validation/test of {sizes})"
    name, which = known[0] if known else unknown
    return f"{images} images, {which}.", name == "test"


def history_notes(rows: Sequence[PreparedRow]) -> list[str]:
    """A `Source.notes`: how many dialogue rounds have an incomplete history."""
    short = sum(bool(row.get("history_missing")) for row in rows)
    return [f"{short} of {len(rows)} rounds lack some earlier rounds in their history."] if short else []


def box_notes(rows: Sequence[PreparedRow]) -> list[str]:
    """A `Source.notes`: how boxes are asked for and read."""
    formats = sorted({row["box_format"] for row in rows if "box_format" in row})
    return [f"boxes are asked for and read as {' and '.join(formats)} writes them (--box-format)."] if formats else []


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
    content = load_json(files[0])
    data = content.get("data") if isinstance(content, Mapping) else None
    if not isinstance(data, Mapping) or not {"questions", "answers", "dialogs"} <= set(data):
        raise CulturevalError(f"{files[0]} has no data.questions, data.answers and data.dialogs.")
    dense = _relevance(files[1]) if len(files) > 1 else {}
    dialogs = _by_id(_list_of(data["dialogs"], files[0]), lambda record: record.get("image_id"), files[0])
    if unknown := [image for image, _ in dense if image not in dialogs]:
        raise CulturevalError(f"{files[1]}: image_id {unknown[0]} is not in {files[0].name}.")
    place = 0
    for image, record in dialogs.items():
        image_file = _coco_image(files[0].parent, image)
        history: list[tuple[str, str]] = []
        for number, turn in enumerate(record["dialog"]):
            asked = f"{_entry(data['questions'], turn, 'question', files[0])}?"
            options = turn.get("answer_options") or []
            row = {"image_id": image, "round": number, "caption": record["caption"], "question": asked}
            row |= {"history": list(history), "given_history": None, "image": str(image), "image_file": image_file}
            row |= {"options": [_at(data["answers"], option, files[0]) for option in options]}
            row |= {"gold": _position(turn.get("gt_index"), options, files[0])}
            yield PlacedRow(files[0].name, place, row | {"relevance": dense.get((image, number))})
            history.append((asked, _entry(data["answers"], turn, "answer", files[0])))
            place += 1


def find_karpathy(folder: Path, task: Task) -> tuple[list[Path], list[Path]]:
    """COCO with Karpathy's splits as published: `dataset_coco.json` and the images below `val2014`."""
    path = folder / "dataset_coco.json"
    return ([path] if path.is_file() else []), []


@_of_released_form
def read_karpathy(files: Sequence[Path], task: Task) -> Iterator[PlacedRow]:
    """COCO 5K: the images of the split `test`, with the first five captions of each (a few have more)."""
    content = load_json(files[0])
    records = _list_of(content.get("images") if isinstance(content, Mapping) else None, files[0])
    test = [record for record in records if record.get("split") == "test"]
    captions, paths = {}, {}
    for image, record in _by_id(test, lambda record: record.get("filename"), files[0]).items():
        captions[image] = [sentence["raw"].strip() for sentence in record["sentences"][:5]]
        paths[image] = str(files[0].parent / record.get("filepath", "") / image)
    for place, row in enumerate(gallery_rows(captions)):
        yield PlacedRow(files[0].name, place, row | {"image_file": paths[row["image"]]})


def load_json(path: Path) -> Any:
    """A file's content as JSON; raises CulturevalError where it cannot be read as such."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise CulturevalError(f"{path} cannot be read as JSON: {error}") from error


def _records_by_id(gold_file: Path, name: str, answer: str) -> Iterator[PlacedRow]:
    gold = _by_id(_list_of(load_json(gold_file), gold_file), lambda record: record.get(name), gold_file)
    for place, record in enumerate(gold.values()):
        if record.get(answer) in ("", [], None):
            raise CulturevalError(
                f"{gold_file}: {name} {record[name]} has no {answer}, so that nothing can be scored: "
                "is this the authors' test input instead of their gold file?"
            )
        yield PlacedRow(gold_file.name, place, {**record, **_image(gold_file, record)})


def _image(gold_file: Path, record: Record) -> dict[str, Any]:
    """The image's released path and its file; `image_cell` refuses paths outside the folder."""
    image = record.get("image")
    if not isinstance(image, str) or not image:
        raise CulturevalError(f"{gold_file}: a record names no image: {shorten(dict(record))}.")
    return {"image_path": image, "image_file": str(gold_file.parents[1] / image)}


def _list_of(content: Any, path: Path) -> list[Record]:
    if not isinstance(content, list) or not content or not all(isinstance(record, Mapping) for record in content):
        raise CulturevalError(f"{path} does not hold a non-empty list of objects.")
    return list(content)


def _by_id(records: Sequence[Record], key: Key, path: Path) -> dict[Any, Record]:
    found: dict[Any, Record] = {}
    for record in records:
        number = key(record)
        if number is None or (isinstance(number, tuple) and None in number) or isinstance(number, list | dict):
            raise CulturevalError(f"{path}: a record has no id: {shorten(dict(record))}.")
        if number in found:
            raise CulturevalError(f"{path}: the id {number!r} is duplicated.")
        found[number] = record
    return found


def _integer(record: Record, name: str, path: Path) -> int:
    value = record.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise CulturevalError(f"{path}: {name} must be a whole number, not {shorten(value)}.")
    return value


def _relevance(path: Path) -> dict[tuple[Any, int], list[float]]:
    """Dense annotations by (image_id, round from 0)."""
    records = _list_of(load_json(path), path)
    found = _by_id(records, lambda record: (record.get("image_id"), record.get("round_id")), path)
    return {
        (image, number - 1): [float(value) for value in record.get("gt_relevance") or record["relevance"]]
        for (image, number), record in found.items()
    }


def _entry(texts: Sequence[str], turn: Record, name: str, path: Path) -> str:
    return _at(texts, turn.get(name), path)


def _at(texts: Sequence[str], number: Any, path: Path) -> str:
    if not isinstance(number, int) or not 0 <= number < len(texts):
        raise CulturevalError(f"{path}: there is no entry {number!r} among its {len(texts)} texts.")
    return texts[number]


def _position(number: Any, options: Sequence[Any], path: Path) -> int:
    if not isinstance(number, int) or not 0 <= number < len(options):
        raise CulturevalError(f"{path}: gt_index {number!r} is outside its {len(options)} options.")
    return number


def _coco_image(folder: Path, image_id: Any) -> str:
    """The path of VisDial's image of an id, in the naming of its release."""
    if not isinstance(image_id, int):
        raise CulturevalError(f"{folder}: the image_id {image_id!r} is not a whole number.")
    names = (f"VisualDialog_val2018/VisualDialog_val2018_{image_id:012d}.jpg", f"images/{image_id:012d}.png")
    return str(next((folder / name for name in names if (folder / name).is_file()), folder / names[0]))
