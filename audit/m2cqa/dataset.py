"""Step 8: the data set, in the layout in which the tasks of M2CQA read QCRI/M2CQA below a data root."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from cultureval.audit.m2cqa.items import REPO, Item
from cultureval.audit.m2cqa.people import Decided
from cultureval.runtime.data.image_store import stored_image
from cultureval.runtime.data.user_cache import write_atomically, write_json_lines
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.manifest import ManifestRow, row_hash

OURS = "`cultureval curate m2cqa`"
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
