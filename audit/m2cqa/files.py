"""Files of a curation: the images with their metadata (step 1), and the data set in the layout of QCRI/M2CQA."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cultureval.audit.m2cqa.items import REPO, Item, Outcome, Rejected
from cultureval.prompts.cells import image_cell, optional_text
from cultureval.runtime.data.image_store import pillow, stored_image, upright
from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.data.user_cache import write_atomically, write_json_lines
from cultureval.runtime.errors import BadRow, CulturevalError, MissingColumn
from cultureval.tasks.manifest import Decision, ManifestRow, row_hash

METADATA = ("metadata.jsonl", "metadata.csv")
IMAGE = ("image", "file_name")  # the column with an image's path below the folder
ABOUT = ("country", "category", "subcategory", "description", "url", "licence")
NEAR = 5  # of the 64 bits of two difference hashes that may differ


def read_images(folder: Path) -> Outcome:
    """The items of a folder's images, in the order of its metadata.

    The paper removes images with the same address and near duplicates, and does not say how it finds them. Ours is
    the difference hash: 64 signs of neighbouring pixels' differences, of which 5 may differ.

    Raises:
        CulturevalError: There is no metadata.
    """
    file = next((folder / name for name in METADATA if (folder / name).is_file()), None)
    if file is None:
        raise CulturevalError(
            f"{folder} holds no {' or '.join(METADATA)}: one row an image, with `image` (its path below the folder), "
            "`country`, `category`, `subcategory`, `description` and, where known, `id`, `url`, `licence`."
        )
    kept: dict[str, Item] = {}
    rejected: list[Rejected] = []
    hashes: dict[str, np.ndarray] = {}
    for number, row in enumerate(read_rows(file)):
        item = _item(row, number, folder)
        if isinstance(item, Item):
            hashed = difference_hash(stored_image(item.image))
            if problem := _duplicate(item, hashed, kept, hashes):
                item = Rejected(item.id, *problem)
            else:
                kept[item.id], hashes[item.id] = item, hashed
                continue
        rejected.append(item)
    return Outcome(tuple(kept.values()), tuple(rejected))


def _item(row: Mapping[str, Any], number: int, folder: Path) -> Item | Rejected:
    column = next((column for column in IMAGE if column in row), IMAGE[0])
    name = f"row {number}"
    try:
        name = optional_text(row, "id") or Path(str(row.get(column) or "")).stem or name
        about = {key: optional_text(row, key) or "" for key in ABOUT}
        return Item(name, image_cell(row, column, folder), about)
    except (BadRow, MissingColumn) as error:
        return Rejected(name, "bad_image" if column in row else "no_image", str(error))


def _duplicate(
    item: Item, hashed: np.ndarray, kept: Mapping[str, Item], hashes: Mapping[str, np.ndarray]
) -> tuple[str, str] | None:
    """The reason and the detail if an item repeats an earlier one."""
    if item.id in kept:
        return "same_id", "an earlier row has this id"
    for earlier in kept.values():
        if item.about["url"] and item.about["url"] == earlier.about["url"]:
            return "same_url", f"as {earlier.id}"
        if item.image == earlier.image:
            return "same_image", f"as {earlier.id}"
        if np.count_nonzero(hashed != hashes[earlier.id]) <= NEAR:
            return "near_duplicate", f"of {earlier.id}"
    return None


def difference_hash(path: Path) -> np.ndarray:
    """Whether each pixel of the image at 9 by 8 grey pixels is brighter than its right neighbour: [8, 8] of bool."""
    grey = upright(path).convert("RGB").convert("L").resize((9, 8), pillow().Resampling.LANCZOS)
    pixels = np.asarray(grey)
    return pixels[:, :-1] > pixels[:, 1:]


OURS = "`cultureval audit curate`"


def write_dataset(items: Sequence[Item], varieties: Sequence[str], root: Path) -> Path:
    """Writes the items as a source of the m2cqa tasks: `cultureval eval MODEL m2cqa --data ROOT`.

    Each variety, in which all items have statements, becomes a configuration with the split `test`.

    Returns:
        The source's folder; one of an earlier run is replaced.

    Raises:
        CulturevalError: The folder holds data that no curation wrote.
    """
    folder = root / REPO
    if folder.exists():
        readme = folder / "README.md"
        if not readme.is_file() or OURS not in readme.read_text(encoding="utf-8", errors="replace"):
            raise CulturevalError(f"{folder} holds other data: give another --output-dir.")
        shutil.rmtree(folder)
    (folder / "images").mkdir(parents=True)
    for item in items:
        shutil.copyfile(stored_image(item.image), folder / "images" / item.image)
    for variety in varieties:
        write_json_lines(folder / variety / "test.jsonl", (_row(item, variety) for item in items))
    configs = "".join(
        f"- config_name: {name}\n  data_files:\n  - split: test\n    path: {name}/test.jsonl\n" for name in varieties
    )
    text = (
        f"---\nconfigs:\n{configs}---\n\n# Counterfactual statements on images\n\n{len(items):,} items, made by {OURS} "
        "in the way of M2CQA (arXiv 2602.05437); they are not M2CQA's. The rows name the images' "
        "addresses and licences where their metadata do.\n"
    )
    write_atomically(folder / "README.md", text.encode("utf-8"))
    return folder


def manifest_rows(
    items: Sequence[Item], varieties: Sequence[str], decisions: Mapping[str, tuple[Decision, str]], people: list[str]
) -> list[ManifestRow]:
    """The lines of a manifest on the rows of `write_dataset`; a decision on an item is one on all its varieties.

    Args:
        decisions: Item -> the decision and its reason (`people.decisions`).
        people: The annotators.
    """
    return [
        ManifestRow(
            source=REPO,
            revision="local",
            subset=variety,
            row=f"{variety}/test.jsonl:{number}",
            hash=row_hash(_row(item, variety)),
            decision=decisions[item.id][0],
            reasons=[decisions[item.id][1]],
            by=[f"person:{name}" for name in people],
        )
        for variety in varieties
        for number, item in enumerate(items)
        if item.id in decisions
    ]


def _row(item: Item, variety: str) -> dict[str, object]:
    statements = item.statements[variety]
    row: dict[str, object] = {"id": item.id, "image": f"images/{item.image}"}
    row |= {name: item.about[name] for name in ABOUT if name != "description"}
    return row | {"q_plus": statements.q_plus, "q_minus": list(statements.q_minus)}
