"""Files of a curation. Step 1: images with metadata; damaged ones, duplicates and near duplicates are left out.

Step 8: the data set, in the layout in which the tasks of M2CQA read QCRI/M2CQA below a data root.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cultureval.audit.m2cqa.items import REPO, Item, Outcome, Rejected
from cultureval.audit.m2cqa.people import Decided
from cultureval.prompts.cells import image_cell, optional_text
from cultureval.runtime.data.image_store import SUFFIXES, pillow, stored_image, upright
from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.data.user_cache import write_atomically, write_json_lines
from cultureval.runtime.errors import BadRow, CulturevalError, MissingColumn
from cultureval.tasks.manifest import ManifestRow, row_hash

METADATA = ("metadata.jsonl", "metadata.csv", "metadata.json", "metadata.parquet")
IMAGE = ("image", "file_name", "image_path", "file")
ABOUT = ("country", "category", "subcategory", "description", "url", "licence")
NEAR = 5  # of the 64 bits of two difference hashes that may differ
SIDE = 8


def metadata_file(folder: Path) -> Path:
    """The table of the images in a folder; raises CulturevalError where there is none."""
    for name in METADATA:
        if (folder / name).is_file():
            return folder / name
    raise CulturevalError(
        f"{folder} holds no {METADATA[0]} (or .csv, .json, .parquet): one row an image, with `image` (its path below "
        "the folder), `country`, `category`, `subcategory`, `description` and, where known, `id`, `url`, `licence`."
    )


def read_images(folder: Path) -> Outcome:
    """The items of a folder's images, in the order of its metadata.

    The paper removes images with the same address and near duplicates, and does not say how those are found: ours is
    the difference hash, 64 signs of neighbouring pixels' differences, of which 5 may differ.

    Raises:
        CulturevalError: There is no metadata, or it names no image.
    """
    kept: list[Item] = []
    rejected: list[Rejected] = []
    seen: dict[str, str] = {}
    hashes: dict[str, int] = {}
    named: set[str] = set()
    rows = read_rows(metadata_file(folder))
    for number, row in enumerate(rows):
        item = _item(row, number, folder)
        if isinstance(item, Item):
            named.add(item.about["file"])
            problem = _duplicate(item, seen, hashes)
            if problem is None:
                kept.append(item)
                continue
            item = Rejected(item.id, *problem)
        rejected.append(item)
    unnamed = sorted(set(_image_files(folder)) - named - {str(row.get(name)) for row in rows for name in IMAGE})
    rejected += [Rejected(file, "no_metadata", "no row of the metadata names this image") for file in unnamed]
    if not kept:
        raise CulturevalError(f"{metadata_file(folder)}: none of its {len(rows)} rows names an image that can be read.")
    return Outcome(tuple(kept), tuple(rejected))


def _item(row: Mapping[str, Any], number: int, folder: Path) -> Item | Rejected:
    name, column = f"row {number}", next((column for column in IMAGE if column in row), IMAGE[0])
    try:
        file = row[column] if isinstance(row.get(column), str) else ""
        name = optional_text(row, "id") or Path(file).stem or name
        about = {key: optional_text(row, key) or "" for key in ABOUT} | {"file": file}
        return Item(name, image_cell(row, column, folder), about)
    except (BadRow, MissingColumn) as error:
        return Rejected(name, "bad_image" if column in row else "no_image", str(error))


def _duplicate(item: Item, seen: dict[str, str], hashes: dict[str, int]) -> tuple[str, str] | None:
    """Why an item doubles an earlier one; None where it does not, which is then among the seen."""
    if f"id {item.id}" in seen:
        return "same_id", "an earlier row has this id"
    for kind, value in (("url", item.about["url"]), ("image", item.image)):
        if value and f"{kind} {value}" in seen:
            return f"same_{kind}", f"as {seen[f'{kind} {value}']}"
    own = difference_hash(stored_image(item.image))
    for other, hash_of_other in hashes.items():
        if (own ^ hash_of_other).bit_count() <= NEAR:
            return "near_duplicate", f"of {other}"
    hashes[item.id] = own
    seen |= {f"id {item.id}": item.id, f"url {item.about['url']}": item.id, f"image {item.image}": item.id}
    return None


def difference_hash(path: Path) -> int:
    """64 bits: whether each pixel of the image at 9 by 8 grey pixels is brighter than its right neighbour."""
    size = (SIDE + 1, SIDE)
    small = upright(path).convert("RGB").convert("L").resize(size, pillow().Resampling.LANCZOS)
    pixels = list(small.tobytes())
    bits = 0
    for row in range(SIDE):
        for column in range(SIDE):
            place = row * (SIDE + 1) + column
            bits = bits << 1 | (pixels[place] > pixels[place + 1])
    return bits


def _image_files(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in (*SUFFIXES.values(), ".jpeg") and path.is_file():
            yield path.relative_to(folder).as_posix()


OURS = "`cultureval audit curate m2cqa`"
SHOWN = ("country", "category", "subcategory", "url", "licence")


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


def manifest_rows(items: Sequence[Item], varieties: Sequence[str], decided: Mapping[str, Decided]) -> list[ManifestRow]:
    """The lines of a manifest on the rows of `write_dataset`; a decision on an item is one on all its varieties."""
    return [
        ManifestRow(
            source=REPO,
            revision="local",
            subset=variety,
            row=f"{variety}/test.jsonl:{number}",
            hash=row_hash(_row(item, variety)),
            decision=decided[item.id].decision,
            reasons=list(decided[item.id].reasons),
            by=[f"person:{name}" for name in decided[item.id].by],
        )
        for variety in varieties
        for number, item in enumerate(items)
        if item.id in decided
    ]


def _row(item: Item, variety: str) -> dict[str, object]:
    statements = item.statements[variety]
    row: dict[str, object] = {"id": item.id, "image": f"images/{item.image}"}
    row |= {name: item.about[name] for name in SHOWN}
    return row | {"q_plus": statements.q_plus, "q_minus": list(statements.q_minus)}
