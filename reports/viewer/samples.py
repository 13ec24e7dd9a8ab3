"""A saved answer as a sample of an Inspect log: prompt, images, answer, choices, gold, verdicts."""

import base64
import io
import math
import re
import tempfile
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.code.report import verdict_lines
from cultureval.reports.item_view import save_picture, score_text
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
    saved_reply,
    saved_texts,
)
from cultureval.runtime.data.image_store import MAX_BYTES, pillow, upright
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError, escaped
from cultureval.runtime.extras import require_extra

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ChatMessage
    from inspect_ai.scorer import Score

# Fields of `doc.specific` that are no facts about an item: how it was asked, and what is shown elsewhere.
NOT_SHOWN = {
    *("judge", "prefixed_stops", "answer_prefix", "plain_query", "chat_query", "stop_in_chat", "thinking", "parity"),
    *("end_logprob", "verdict", "problem", "rows_of_task", "image", "id", "prompt", "templates"),
}
DIGITS = 6  # decimals of a score
MOST_FIELD = 4000  # letters of a field of the metadata
LONGEST = 100_000  # letters of a text; the whole is in the details
LINE = 200  # of a text in a table
_MARKUP = re.compile(r"[\\`*_{}\[\]()#+\-.!|~$:=^]")  # the viewer itself writes & < > and quotes as entities
_ISOLATE, _END = "\u2067", "\u2069"
LONGEST_SIDE = 1024  # pixels of an image
MOST_IMAGES = 8  # of an item


@dataclass
class Maker:
    """Makes the samples of one task.

    Attributes:
        task: Its name with `|k`.
        model: Of the run.
        headline: The metric that stands first, and holds the answer in short; "": the item's first.
        pictures: Whether the log shows images, and so Markdown.
    """

    task: str
    model: str
    headline: str
    pictures: bool

    @property
    def text(self) -> Callable[[str], str]:
        """How texts are written that the viewer draws as Markdown, where it does."""
        return markdown_text if self.pictures else plain_text

    def sample(self, place: int, names: tuple[str, str], row: Row, judged: Mapping[str, Any]) -> "EvalSample":
        """The sample of an item.

        Args:
            place: Of the row in the details, from 0.
            names: Of the row, as every command names it, and for addresses.
            row: Of the details.
            judged: Metrics that later judgements add.
        """
        from inspect_ai.log import EvalSample
        from inspect_ai.model import ModelOutput

        metrics = {name: value for name, value in {**row["metric"], **judged}.items() if not name.endswith((DEN, SUMS))}
        images, missing = images_of(row) if self.pictures else ([], [])
        answer = answer_of(row, self.headline)
        return EvalSample(
            id=int(names[1]) if re.fullmatch(r"0|[1-9][0-9]{0,14}", names[1]) else names[1],
            epoch=1,
            input=self.text(str(row["doc"]["query"])),
            target=self.text(gold_of(row)),
            messages=self._messages(row, images, answer),
            output=ModelOutput(model=plain_text(self.model)),
            scores=self._scores(row, metrics, answer),
            metadata=_metadata(place, names[0], row, metrics, missing),
        )

    def _messages(self, row: Row, images: Sequence[str], answer: str) -> "list[ChatMessage]":
        from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ContentImage, ContentReasoning, ContentText

        asked = [ContentText(text=self.text(str(row["doc"]["query"]))), *(ContentImage(image=url) for url in images)]
        replied: list[Any] = []
        if reasoning := next(iter(row["model_response"].get("reasonings") or []), None):
            replied.append(ContentReasoning(reasoning=self.text(str(reasoning))))
        replied.append(ContentText(text=self.text(answer) or "(no text)"))
        if self.pictures and (drawn := drawing_of(row, self.task)):
            replied.append(ContentImage(image=drawn))
        others = [] if is_choice(row) else saved_texts(row["model_response"])[1:]
        return [
            ChatMessageUser(id="asked", content=asked),
            ChatMessageAssistant(id="answer", content=replied),
            *(ChatMessageAssistant(id=f"answer-{n}", content=self.text(text)) for n, text in enumerate(others, 2)),
        ]

    def _scores(self, row: Row, metrics: Mapping[str, Any], answer: str) -> "dict[str, Score]":
        """A score for each metric that the item has a value of, the headline first."""
        from inspect_ai.scorer import Score

        scores = {}
        for name in sorted(metrics, key=lambda name: name != self.headline):
            value, shown = metrics[name], plain_text(name, LINE)
            if is_verdict(value):
                reasons = [str(part) for part in (value.get("reply"), value.get("reason")) if part]
                scores[shown] = Score(
                    value=plain_text(str(value["outcome"])), explanation=self.text("\n\n".join(reasons))
                )
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
    """The choices of a scored item as a metric orders them: `p 0.912  ordered by -0.09  gold  text`.

    p is the probability among the choices: the softmax of the sums of their tokens' log-probabilities; the other is
    what the metric orders them by.
    """
    totals = [float(each) for each in row["model_response"]["logprobs"]]
    try:
        scores = option_scores(row, metric)
    except CulturevalError:  # a row of another package, or of an older backend
        return []
    weights = [math.exp(total - max(totals)) for total in totals]
    golds = golds_of(row)
    lines = []
    for place in sorted(range(len(totals)), key=lambda place: -scores[place]):
        text = row["doc"]["choices"][place].strip()
        marked = "gold  " if text in golds else ""
        lines.append(f"p {weights[place] / sum(weights):.3f}  ordered by {scores[place]:.3f}  {marked}{text}")
    return lines


def _metadata(place: int, name: str, row: Row, metrics: Mapping[str, Any], missing: Sequence[str]) -> dict[str, Any]:
    """Facts about the item, and what its metrics left beside scores."""
    doc, response = row["doc"], row["model_response"]
    specific, sent, raw = specific_of(doc), response.get("input"), response.get("text")
    facts: dict[str, Any] = {"row": place + 1, "name in the data": name}
    facts |= {name: value for name, value in specific.items() if name not in NOT_SHOWN and value not in (None, "", [])}
    if sent and sent != doc["query"]:
        facts["prompt as sent"] = sent.replace(doc["query"], "[the prompt]") if isinstance(sent, str) else sent
    if isinstance(raw, list) and raw and isinstance(raw[0], str) and raw[0] != saved_reply(response):
        facts["answer before cleaning"] = raw[0]
    facts |= {
        f"{name} (details)": value
        for name, value in metrics.items()
        if value is not None and not isinstance(value, str | int | float) and not is_verdict(value)
    }
    if missing:
        facts["images"] = list(missing)
    return {plain_text(name, LINE): _short(value) for name, value in facts.items()}


def _short(value: Any) -> Any:
    """A value of the metadata: numbers as they are, all else as a text of bounded length, an entry a line."""
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, Mapping):
        value = "\n".join(f"{name}: {entry}" for name, entry in value.items() if entry is not None)
    elif isinstance(value, list):
        value = "\n".join(map(str, value))
    return plain_text(value if isinstance(value, str) else score_text(value), MOST_FIELD)


def plain_text(text: str, longest: int = LONGEST) -> str:
    """A text that any JSON reader takes: broken letters and control characters as escapes, cut where it is too long."""
    cut = text[:longest].encode("utf-8", "backslashreplace").decode("utf-8")
    shown = escaped(cut, keep="\n\t\u200c\u200d")  # joiners belong to words, and to emoji
    return shown if len(text) <= longest else f"{shown}\n… {len(text) - longest:,} more letters: cultureval show"


def markdown_text(text: str) -> str:
    """A `plain_text` as Markdown that shows it as it is, with indentation, right-to-left lines between isolates."""
    return "\n".join(_line(line) for line in plain_text(text).split("\n"))


def _line(line: str) -> str:
    rest = line.lstrip(" \t")
    indent = line[: len(line) - len(rest)].replace("\t", "    ").replace(" ", "\u00a0")
    # A > at the beginning is a quotation, which a no-break space in front prevents.
    quoted = "\u00a0" if rest.startswith(">") and not indent else ""
    text = indent + quoted + _MARKUP.sub(r"\\\g<0>", rest)
    return f"{_ISOLATE}{text}{_END}" if is_right_to_left(line) else text


def is_right_to_left(line: str) -> bool:
    """Whether the first letter of a line with a direction is written from right to left."""
    kinds = (unicodedata.bidirectional(letter) for letter in line)
    return next((kind in ("R", "AL") for kind in kinds if kind in ("L", "R", "AL")), False)


def images_of(row: Row) -> tuple[list[str], list[str]]:
    """The images of an item: data URLs, and a sentence for each image that cannot be shown."""
    urls, missing = [], []
    entries = row["doc"].get("images") or []
    if entries:
        require_extra("vision")
    for entry in entries[:MOST_IMAGES]:
        try:
            urls.append(_data_url(saved_image(entry)))
        except (CulturevalError, OSError, ValueError, SyntaxError) as error:  # what Pillow raises of broken files
            missing.append(f"an image cannot be shown: {str(error) or type(error).__name__}")
    if len(entries) > MOST_IMAGES:
        missing.append(f"{len(entries) - MOST_IMAGES} more images are not shown")
    return urls, missing


def drawing_of(row: Row, task: str) -> str | None:
    """The picture that the task's suite draws of an item (boxes on its image) as a data URL, or None."""
    if "box" not in specific_of(row["doc"]):
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "picture.png")
        try:
            return _data_url(file.read_bytes()) if save_picture(row, task, file) else None
        except (CulturevalError, OSError, ValueError, TypeError, KeyError):
            return None


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
