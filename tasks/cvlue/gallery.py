"""CVLUE's retrieval as one gallery for dual encoders: all images and distinct captions of a task."""

import json
from dataclasses import dataclass

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.rows_report import RowsReport

TASKS = ("cvlue_itr", "cvlue_en_itr")


@dataclass
class Gallery:
    """All images and captions of a task.

    Attributes:
        images: Paths of the stored images.
        names: The images' released paths.
        texts: The distinct captions.
        of_images: For each image the positions of its captions.
        of_texts: For each caption the positions of its images.
        report: Provenance and counts of the rows (`prepare_subset`).
    """

    images: list[str]
    names: list[str]
    texts: list[str]
    of_images: list[list[int]]
    of_texts: list[list[int]]
    report: RowsReport


def read_gallery(name: str) -> Gallery:
    """The images and captions of a task, checked by its source's own conversion.

    Raises:
        CulturevalError: There is no such retrieval task, or its data are missing or broken.
    """
    from cultureval.metrics.cvlue.retrieval import correct_items
    from cultureval.runtime.data.image_store import stored_image
    from cultureval.tasks.catalogue import all_tasks
    from cultureval.tasks.options import read_data_options
    from cultureval.tasks.reading import prepare_subset

    if name not in TASKS:
        raise CulturevalError(f"There is no retrieval task {name!r}; there are {', '.join(TASKS)}.")
    subset = prepare_subset(all_tasks()[name], read_data_options())
    with (subset.folder / "test.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    captions = [[row["choices"][place].strip() for place in row["correct"]] for row in rows]  # English begins with " "
    texts, of_images, of_texts = correct_items(captions)
    images = [str(stored_image(row["image"])) for row in rows]
    names = [row["image_path"] for row in rows]
    return Gallery(images, names, texts, of_images, of_texts, subset.report)
