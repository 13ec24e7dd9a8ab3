"""The audited item: a row of a source with its question, options, gold, passage and image."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cultureval.runtime.data.image_store import stored_image


@dataclass(frozen=True)
class AuditItem:
    """One row of a source.

    Attributes:
        source: `org/name` of the data set, or the name of the file or folder that was audited by its path.
        revision: Commit on the hub, or "local".
        subset: The subset's name in the paper, or the file's path below the folder.
        row: Path of the file below the source's folder, a colon, and the row's number in it from 0.
        hash: SHA-256 of the row's cells (`tasks.manifest.row_hash`).
        split: "test", or "few_shot" for the examples.
        form: "mcq" (options) or "qa" (free answers).
        question: The question's text, without options; "" where it is empty.
        options: The options' texts; () in "qa".
        gold: Positions of the right options, from 0; () where they cannot be read.
        answers: Reference answers in "qa"; () in "mcq".
        context: The passage that the question is about; "" without one.
        task: The task that reads it; "" for data by path.
        benchmark: The benchmark's name in the paper; the source for data by path.
        images: Whether the question is about an image.
        image: Its name for `stored_image`; as it stands in the row where it cannot be stored.
        image_problem: Why it cannot be stored, as a clause; "" where it is.
        gold_problem: Why the gold cannot be read, as a clause; "" where it can.
        refused: Why the task's reader refuses the row; "" where it takes it.
        shuffled: Whether the benchmark shuffles the options before they are shown.
    """

    source: str
    revision: str
    subset: str
    row: str
    hash: str
    split: Literal["test", "few_shot"]
    form: Literal["mcq", "qa"]
    question: str
    options: tuple[str, ...] = ()
    gold: tuple[int, ...] = ()
    answers: tuple[str, ...] = ()
    context: str = ""
    task: str = ""
    benchmark: str = ""
    images: bool = False
    image: str = ""
    image_problem: str = ""
    gold_problem: str = ""
    refused: str = ""
    shuffled: bool = False

    @property
    def id(self) -> str:
        """Source and row: what names the item in verdicts and manifests."""
        return f"{self.source}/{self.row}"

    @property
    def image_file(self) -> Path | None:
        """The image's file in this machine's store of images, never a path that data name; None without one."""
        return stored_image(self.image) if self.image and not self.image_problem else None

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts of the item that a reader sees."""
        return tuple(text for text in (self.context, self.question, *self.options, *self.answers) if text)
