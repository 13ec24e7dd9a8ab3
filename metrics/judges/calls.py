"""Chat calls to the model of a judge's YAML file: paid from its budget, journalled, stopped when its servers fail.

Judges (`session.py`) and models that write or answer (`audit.asking`) are both asked by it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import Any

from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.metrics.judges.verdicts import ItemImage
from cultureval.runtime.journal import Journal
from cultureval.runtime.servers.ask import Asking, Question, Respondent, ask_all
from cultureval.runtime.servers.client import OpenAIClient
from cultureval.runtime.servers.costs import Budget, BudgetSpent, RequestSize, text_tokens
from cultureval.runtime.servers.data_urls import data_url
from cultureval.runtime.servers.errors import RowError, ServerError
from cultureval.runtime.servers.replies import Answer


@dataclass(frozen=True)
class Call:
    """One call.

    Attributes:
        text: The user's message.
        system: The system's message; "" sends none.
        images: Shown before the text.
        form: Fields of the request by which the server holds its reply to a form.
        record: Fields that the answer has in the journal besides its own.
    """

    text: str
    system: str = ""
    images: Sequence[ItemImage] = ()
    form: Mapping[str, Any] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CostEstimate:
    """The expected number of calls and their cost.

    Attributes:
        calls: First calls without an answer in the journal.
        known: Answers in the journal.
        cost: Of the calls, if each reply is readable; in the currency of the settings' prices.
        most: The same with replies of maximal length and every question asked again.
        input_tokens: Estimated tokens of these calls' prompts.
        unusable: Items that cannot be judged.
    """

    calls: int
    known: int
    cost: float
    most: float
    input_tokens: int = 0
    unusable: int = 0

    def __str__(self) -> str:
        """`164 calls, about 9,000 tokens of prompts, cost about 0.31, at most 2.4` (without prices: no cost)."""
        cost = f", cost about {self.cost:.4g}, at most {self.most:.4g}" if self.most else ""
        unusable = f"; {self.unusable:,} items cannot be judged" if self.unusable else ""
        tokens = f", about {self.input_tokens:,} tokens of prompts" if self.input_tokens else ""
        return f"{self.calls:,} calls ({self.known:,} more are in the journal){tokens}{cost}{unusable}"

    def __add__(self, other: "CostEstimate") -> "CostEstimate":
        return CostEstimate(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))


class PaidCalls:
    """The calls of one run to one model.

    Attributes:
        failures: Key of a call that has no answer -> the cause.
        stopped: Why no more is asked, as a clause; None while calls go on.
        server_failed: Whether that is the servers' failure (rather than the budget being spent).
    """

    def __init__(self, settings: JudgeSettings, journal: Journal, budget: Budget) -> None:
        """Prepares calls; nothing is sent.

        Args:
            settings: Of the model.
            journal: Its journal.
            budget: Its budget.
        """
        self.settings, self.journal, self._budget = settings, journal, budget
        self.failures: dict[str, str] = {}
        self.stopped: str | None = None
        self.server_failed = False
        self._failed_in_a_row = 0

    @cached_property
    def _asking(self) -> Asking:
        return Asking(self.settings.servers(), self.journal, self._budget, Respondent(self.settings.model))

    @property
    def served(self) -> str | None:
        """The model's name in its replies; None before the first."""
        return self._asking.respondent.served

    def limits(self) -> dict[str, Any]:
        """Fields of every request: temperature and length of the reply, where the settings have them."""
        limits = {"temperature": self.settings.temperature, self.settings.max_tokens_name: self.settings.max_tokens}
        return {name: value for name, value in limits.items() if value is not None}

    def tokens(self, call: Call) -> int:
        """Estimated tokens of a call's prompt."""
        return self._size(call).input(self.settings.image_tokens)

    def _size(self, call: Call) -> RequestSize:
        text = f"{call.system}\n{call.text}" if call.system else call.text
        return RequestSize(text_tokens(text), len(call.images), self.settings.max_tokens)

    def answers(self, calls: Mapping[str, Call], description: str) -> dict[str, Answer]:
        """The answers to calls, from the journal or the servers; those that have none are left out.

        Args:
            calls: Key of the answer -> its call.
            description: Of the calls, for the progress bar.
        """
        self._asking.sizes |= {key: self._size(call) for key, call in calls.items()}
        questions = {key: self._question(call) for key, call in calls.items()}
        try:
            if self.stopped is None:
                return ask_all(self._asking, questions, description, self._continue_after)
            return self._asking.known(calls)
        except (ServerError, BudgetSpent) as error:
            self.stopped, self.server_failed = str(error).rstrip("."), isinstance(error, ServerError)
        return {key: answer for key in calls if (answer := self.journal.get(key)) is not None and self._is_own(answer)}

    def _is_own(self, answer: Answer) -> bool:
        return answer.get("model") in (None, self.served)

    def _question(self, call: Call) -> Question:
        fields = dict(call.form) | self.settings.extra_body
        extra = {"extra_body": fields} if fields else {}

        async def ask(client: OpenAIClient) -> Answer:
            # Messages are made here, so that only the images of requests in flight are in memory.
            messages = self._messages(call)
            answer = await client.chat(model=self.settings.model, messages=messages, **self.limits(), **extra)
            self._failed_in_a_row = 0
            return answer | call.record

        return ask

    def _messages(self, call: Call) -> list[dict[str, Any]]:
        system = [{"role": "system", "content": call.system}] if call.system else []
        if not call.images:
            return [*system, {"role": "user", "content": call.text}]
        urls = [data_url(image, self.settings.image_format, self.settings.image_max_side) for image in call.images]
        parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        return [*system, {"role": "user", "content": [*parts, {"type": "text", "text": call.text}]}]

    def _continue_after(self, key: str, error: RowError) -> None:
        """Goes on with other calls after one without an answer, unless many in a row have none."""
        self.failures[key] = error.reason
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= max(8, 2 * self.settings.concurrency):
            raise ServerError(f"{self._failed_in_a_row} calls in a row had no answer, the last since {error.reason}.")
