"""A saved answer as a sample of an Inspect log: prompt, images, answer, choices, gold, verdicts."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cultureval.metrics.code.report import verdict_lines
from cultureval.reports.item_view import score_text
from cultureval.reports.viewer.pictures import drawing_of, images_of
from cultureval.reports.viewer.texts import markdown_text, one_line, plain_text
from cultureval.runs.rows import (
    Row,
    answer_of,
    gold_of,
    golds_of,
    is_choice,
    is_verdict,
    option_scores,
    saved_reply,
    saved_texts,
)
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError

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
CODE = ("plus_pass@1", "base_pass@1", "not_judged")


@dataclass
class Maker:
    """Makes the samples of one task.

    Attributes:
        task: Its name with `|k`.
        model: Of the run.
        headline: The metric that stands first, and holds the answer in short; "": the item's first.
        pictures: Whether the log shows images, and so Markdown.
        ids: The names of the samples so far.
    """

    task: str
    model: str
    headline: str
    pictures: bool
    ids: set[str | int] = field(default_factory=set)

    @property
    def text(self) -> Callable[[str], str]:
        """How texts are written that the viewer draws as Markdown, where it does."""
        return markdown_text if self.pictures else plain_text

    def sample(self, place: int, name: str, row: Row, judged: Mapping[str, Any]) -> "EvalSample":
        """The sample of an item.

        Args:
            place: Of the row in the details, from 0.
            name: Of the row, as every command names it.
            row: The row.
            judged: Metrics that later judgements add.
        """
        from inspect_ai.log import EvalSample
        from inspect_ai.model import ModelOutput

        doc = row["doc"]
        metrics = {**row["metric"], **judged}
        images, missing = images_of(row) if self.pictures else ([], [])
        answer = answer_of(row, self.headline)
        gold = gold_of(row)
        return EvalSample(
            id=self._id(name),
            epoch=1,
            input=self.text(str(doc["query"])),
            target=self.text(gold),
            messages=self._messages(row, images, answer),
            output=ModelOutput(model=plain_text(self.model)),
            scores=self._scores(row, metrics, answer),
            metadata=_metadata(place, name, row, metrics, missing),
        )

    def _id(self, name: str) -> str | int:
        """A name that is safe in an address and in a zip file, and that no other sample of the log has."""
        safe = re.sub(r"[^\w.-]+", "-", plain_text(name, 64)).strip("-.") or "item"
        found: str | int = int(safe) if re.fullmatch(r"0|[1-9][0-9]{0,14}", safe) else safe
        number = 2
        while found in self.ids:
            found, number = f"{safe}-{number}", number + 1
        self.ids.add(found)
        return found

    def _messages(self, row: Row, images: Sequence[str], answer: str) -> "list[ChatMessage]":
        from inspect_ai.model import (
            ChatMessageAssistant,
            ChatMessageUser,
            ContentImage,
            ContentReasoning,
            ContentText,
        )

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
            value = metrics[name]
            if is_verdict(value):
                reasons = [str(part) for part in (value.get("reply"), value.get("reason")) if part]
                outcome = plain_text(str(value["outcome"]))
                scores[name] = Score(value=outcome, explanation=self.text("\n\n".join(reasons)))
            elif isinstance(value, str):
                scores[name] = Score(value=plain_text(value, 200))
            elif isinstance(value, int | float) and math.isfinite(value):
                scores[name] = Score(value=round(value, DIGITS))
        for first in list(scores)[:1]:
            scores[first].answer = self.text(one_line(answer))
            scores[first].explanation = self.text("\n".join(_reasons(row, self.headline))) or scores[first].explanation
        return {plain_text(name, 200): score for name, score in scores.items()}


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
    highest = max(totals)
    weights = [math.exp(total - highest) for total in totals]
    golds = golds_of(row)
    lines = []
    for place in sorted(range(len(totals)), key=lambda place: -scores[place]):
        text = row["doc"]["choices"][place].strip()
        marked = "gold  " if text in golds else ""
        lines.append(f"p {weights[place] / sum(weights):.3f}  ordered by {scores[place]:.3f}  {marked}{text}")
    return lines


def _reasons(row: Row, metric: str) -> list[str]:
    """What stands beside the headline score: the choices with their probabilities, or why a program failed."""
    if is_choice(row):
        return choice_lines(row, metric)
    return verdict_lines(specific_of(row["doc"]))


def _metadata(place: int, name: str, row: Row, metrics: Mapping[str, Any], missing: Sequence[str]) -> dict[str, Any]:
    """Facts about the item, and what its metrics left beside scores."""
    doc, response = row["doc"], row["model_response"]
    specific = specific_of(doc)
    facts: dict[str, Any] = {"place": place, "name in the data": plain_text(name, 200)}
    facts |= {name: value for name, value in specific.items() if name not in NOT_SHOWN and value not in (None, "", [])}
    sent, raw = response.get("input"), response.get("text")
    if sent and sent != doc["query"]:
        facts["prompt as sent"] = sent.replace(doc["query"], "[the prompt]") if isinstance(sent, str) else sent
    first = raw[0] if isinstance(raw, list) and raw else None
    if isinstance(first, str) and first != saved_reply(response):
        facts["answer before cleaning"] = first
    facts |= {f"{name} (details)": value for name, value in metrics.items() if not _is_score(value)}
    if missing:
        facts["images"] = list(missing)
    return {plain_text(name, 200): _short(value) for name, value in facts.items()}


def _is_score(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float) or is_verdict(value)


def _short(value: Any) -> Any:
    """A value of the metadata: numbers as they are, all else as a text of bounded length."""
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if not isinstance(value, str):
        value = _listed(value) if isinstance(value, list | Mapping) else score_text(value)
    return plain_text(value, MOST_FIELD)


def _listed(value: Any) -> str:
    """A list or a mapping, an entry a line."""
    if isinstance(value, Mapping):
        return "\n".join(f"{name}: {entry}" for name, entry in value.items() if entry is not None)
    return "\n".join(str(entry) for entry in value)
