"""A saved answer as a sample of an Inspect log."""

import base64
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.code.report import verdict_lines
from cultureval.runs.frame import DEN, SUMS
from cultureval.runs.rows import (
    Row,
    answer_of,
    gold_of,
    golds_of,
    is_choice,
    is_verdict,
    option_scores,
    saved_image,
    saved_texts,
)
from cultureval.runtime.data.image_store import MAX_BYTES, pillow, upright
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError, escaped
from cultureval.runtime.extras import require_extra
from cultureval.runtime.printing import isolated

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ChatMessage
    from inspect_ai.scorer import Score

# Fields of `doc.specific` that are not in the metadata: settings of the prompt, and facts shown elsewhere.
NOT_SHOWN = {
    *("judge", "prefixed_stops", "answer_prefix", "plain_query", "chat_query", "stop_in_chat", "thinking", "parity"),
    *("end_logprob", "verdict", "problem", "rows_of_task", "image", "id", "prompt", "templates"),
}
DIGITS = 6  # decimals of a score
MOST_FIELD = 4000  # letters of a field of the metadata
LONGEST = 100_000  # letters of a text; the whole is in the details
LINE = 200  # of a text in a table
_MARKUP = re.compile(r"[\\`*_{}\[\]()#+\-.!|~$:=^]")  # the viewer itself writes & < > and quotes as entities
LONGEST_SIDE = 1024  # pixels of an image


@dataclass(frozen=True)
class Maker:
    """Makes the samples of one task.

    Attributes:
        model: Of the run.
        headline: The first metric, which shows the answer; "": the item's first metric.
        pictures: Whether the log shows images, and therefore Markdown.
    """

    model: str
    headline: str
    pictures: bool

    def text(self, text: str) -> str:
        """A text for the viewer: escaped as Markdown if the log shows images."""
        return markdown_text(text) if self.pictures else plain_text(text)

    def sample(self, place: int, name: str, address: str, row: Row) -> "EvalSample":
        """The sample of a row of the details.

        Args:
            place: Index of the row, from 0.
            name: The item's name in every command.
            address: Its name in the viewer's addresses.
        """
        from inspect_ai.log import EvalSample
        from inspect_ai.model import ModelOutput

        images, missing = images_of(row) if self.pictures else ([], [])
        answer = answer_of(row, self.headline)
        return EvalSample(
            id=address,
            epoch=1,
            input=self.text(str(row["doc"]["query"])),
            target=self.text(gold_of(row)),
            messages=self._messages(row, images, answer),
            output=ModelOutput(model=plain_text(self.model)),
            scores=self._scores(row, answer),
            metadata=_metadata(place, name, row, missing),
        )

    def _messages(self, row: Row, images: Sequence[str], answer: str) -> "list[ChatMessage]":
        from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ContentImage, ContentReasoning, ContentText

        asked = [ContentText(text=self.text(str(row["doc"]["query"]))), *(ContentImage(image=url) for url in images)]
        reasonings = [reasoning for reasoning in (row["model_response"].get("reasonings") or [])[:1] if reasoning]
        replied: list[Any] = [ContentReasoning(reasoning=self.text(str(reasoning))) for reasoning in reasonings]
        replied.append(ContentText(text=self.text(answer) or "(no text)"))
        further = [] if is_choice(row) else saved_texts(row["model_response"])[1:]
        return [
            ChatMessageUser(id="asked", content=asked),
            ChatMessageAssistant(id="answer", content=replied),
            *(ChatMessageAssistant(id=f"answer-{n}", content=self.text(text)) for n, text in enumerate(further, 2)),
        ]

    def _scores(self, row: Row, answer: str) -> "dict[str, Score]":
        """The item's scores, the headline first."""
        from inspect_ai.scorer import Score

        scores = {}
        metrics = {name: value for name, value in row["metric"].items() if not name.endswith((DEN, SUMS))}
        for name in sorted(metrics, key=lambda name: name != self.headline):
            value, shown = metrics[name], plain_text(name, LINE)
            if is_verdict(value):
                explanation = self.text(
                    "\n\n".join(str(value[part]) for part in ("reply", "reason") if value.get(part))
                )
                scores[shown] = Score(value=plain_text(str(value["outcome"])), explanation=explanation)
            elif isinstance(value, str):
                scores[shown] = Score(value=plain_text(value, LINE))
            elif isinstance(value, int | float) and math.isfinite(value):
                scores[shown] = Score(value=round(value, DIGITS))
        for first in list(scores.values())[:1]:
            beside = choice_lines(row, self.headline) if is_choice(row) else verdict_lines(specific_of(row["doc"]))
            first.answer = self.text(" ".join(answer[: 2 * LINE].split())[:LINE])
            first.explanation = self.text("\n".join(beside)) or first.explanation
        return scores


def choice_lines(row: Row, metric: str) -> list[str]:
    """The choices of a scored item in a metric's order: `p 0.912  ordered by -0.09  gold  text`.

    p is the softmax over the choices of the sums of their tokens' log-probabilities.
    """
    from scipy.special import softmax

    try:
        scores = option_scores(row, metric)
    except CulturevalError:  # a row of another package, or of an older backend
        return []
    texts, golds = [choice.strip() for choice in row["doc"]["choices"]], golds_of(row)
    found = sorted(
        zip(scores, softmax(row["model_response"]["logprobs"]), texts, strict=True), key=lambda choice: -choice[0]
    )
    return [
        f"p {share:.3f}  ordered by {score:.3f}  {'gold  ' if text in golds else ''}{text}"
        for score, share, text in found
    ]


def _metadata(place: int, name: str, row: Row, missing: Sequence[str]) -> dict[str, Any]:
    """Facts about the item: numbers unchanged, other values as texts of bounded length."""
    doc, specific = row["doc"], specific_of(row["doc"])
    facts: dict[str, Any] = {"row": place + 1, "name in the data": name}
    facts |= {field: value for field, value in specific.items() if field not in NOT_SHOWN}
    sent = row["model_response"].get("input")
    facts |= {"prompt as sent": sent if sent != doc["query"] else None, "images": "\n".join(missing)}
    return {
        plain_text(field, LINE): value if isinstance(value, bool | int) else plain_text(str(value), MOST_FIELD)
        for field, value in facts.items()
        if value not in (None, "", [])
    }


def plain_text(text: str, longest: int = LONGEST) -> str:
    """A text for any JSON reader: broken letters and control characters escaped, cut to `longest` letters."""
    cut = text[:longest].encode("utf-8", "backslashreplace").decode("utf-8")
    shown = escaped(cut, keep="\n\t\u200c\u200d")  # joiners belong to words, and to emoji
    return shown if len(text) <= longest else f"{shown}\n… {len(text) - longest:,} more letters: cultureval show"


def markdown_text(text: str) -> str:
    """A `plain_text` as Markdown that shows the same text, with indentation, right-to-left lines isolated."""
    return "\n".join(_line(line) for line in plain_text(text).split("\n"))


def _line(line: str) -> str:
    rest = line.lstrip(" \t")
    indent = line[: len(line) - len(rest)].replace("\t", "    ").replace(" ", "\u00a0")
    # A no-break space prevents that a > at the beginning becomes a quotation.
    quoted = "\u00a0" if rest.startswith(">") and not indent else ""
    text = indent + quoted + _MARKUP.sub(r"\\\g<0>", rest)
    return isolated(text)


def images_of(row: Row) -> tuple[list[str], list[str]]:
    """The images of an item: data URLs, and a sentence for each image that cannot be shown."""
    urls, missing = [], []
    entries = row["doc"].get("images") or []
    if entries:
        require_extra("vision")
    for entry in entries:
        try:
            urls.append(_data_url(saved_image(entry)))
        except (CulturevalError, OSError, ValueError, SyntaxError) as error:  # what Pillow raises of broken files
            missing.append(f"an image cannot be shown: {str(error) or type(error).__name__}")
    return urls, missing


@lru_cache(maxsize=64)  # items that share an image follow each other
def _data_url(image: Path | bytes) -> str:
    """An image as JPEG of at most 1024 pixels."""
    if isinstance(image, Path):
        if not image.is_file():
            raise CulturevalError(f"{image.name} is not on this machine")
        if image.stat().st_size > MAX_BYTES:
            raise CulturevalError(f"{image.name} is larger than {MAX_BYTES >> 20} MiB")
        image = image.read_bytes()
    opened = pillow().open(io.BytesIO(image), formats=("PNG", "JPEG", "MPO", "WEBP", "GIF", "BMP", "TIFF"))
    shown, out = upright(opened), io.BytesIO()
    shown.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    shown.convert("RGB").save(out, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode('ascii')}"
