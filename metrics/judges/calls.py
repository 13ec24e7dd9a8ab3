"""Chat calls to the model of a judge's YAML file: paid from its budget, journalled, stopped when its servers fail.

Judges (`session.py`) and models that write or answer (`audit.asking`) are both asked by it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from cultureval.metrics.judges.identity import judge_question, judge_watch
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.metrics.judges.verdicts import ItemImage
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import Journal
from cultureval.runtime.servers.answers import Answer
from cultureval.runtime.servers.costs import Budget, BudgetSpent, RequestSize, Usage, price, text_tokens
from cultureval.runtime.servers.data_urls import data_url
from cultureval.runtime.servers.errors import ServerError
from cultureval.runtime.servers.identity import ServerIdentity
from cultureval.runtime.servers.journalled_answers import Question, answer_all, ask_unconfirmed_anew
from cultureval.runtime.servers.openai_client import OpenAIClient


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
        """`164 calls, cost about 0.31, at most 2.4` (without prices: the calls alone)."""
        cost = f", cost about {self.cost:.4g}, at most {self.most:.4g}" if self.most else ""
        return f"{self.calls:,} calls ({self.known:,} more are in the journal){cost}"

    def __add__(self, other: "CostEstimate") -> "CostEstimate":
        return CostEstimate(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))


class PaidCalls:
    """The calls of one run to one model.

    Attributes:
        failures: Key of a call that failed alone -> the cause.
        stopped: Why no more is asked, as a clause; None while calls go on.
        server_failed: Whether that is the servers' failure (rather than the budget being spent).
    """

    def __init__(
        self, settings: JudgeSettings, journal: Journal, budget: Budget, identity: ServerIdentity | None
    ) -> None:
        self.settings, self.journal, self.budget = settings, journal, budget
        self._watch = judge_watch(settings, identity)
        self.failures: dict[str, str] = {}
        self.stopped: str | None = None
        self.server_failed = False
        self._failed_in_a_row = 0

    def limits(self) -> dict[str, Any]:
        """Fields of every request: temperature and length of the reply, where the settings have them."""
        limits = {"temperature": self.settings.temperature, self.settings.max_tokens_name: self.settings.max_tokens}
        return {name: value for name, value in limits.items() if value is not None}

    def tokens(self, call: Call) -> int:
        """Estimated tokens of a call's prompt."""
        return self._size(call).input(self.settings.image_tokens)

    def _size(self, call: Call) -> RequestSize:
        text = f"{call.system}\n{call.text}" if call.system else call.text
        return RequestSize(text_tokens(text), len(call.images), self.settings.max_tokens, reasons=True)

    def _most(self, call: Call) -> float:
        return price(self.settings, self.tokens(call), self.settings.max_tokens)

    def pay(self, key: str, call: Call, answer: Answer | None) -> Usage:
        """Counts the cost of an answer, and of earlier ones that were withdrawn or are asked for anew, each once."""
        return self.budget.pay(self.journal.paid(key, answer), self._size(call))

    def answers(self, calls: Mapping[str, Call], description: str, processes: int = 1) -> dict[str, Answer]:
        """The answers to calls, from the journal or the servers; those that have none are left out.

        Args:
            calls: Key of the answer -> its call.
            description: Of the calls, for the progress bar.
            processes: How many share the servers' concurrency.
        """
        awaited = ask_unconfirmed_anew(self.journal, calls)
        taken = {key for key in calls if key not in awaited and key in self.journal}
        for key, call in calls.items():
            self.pay(key, call, self.journal.get(key))

        def pay(key: str, answer: Answer | None) -> Usage:
            if answer is not None:
                taken.add(key)
            return self.pay(key, calls[key], answer)

        if self.stopped is None:
            servers = self.settings.servers()
            try:
                answer_all(
                    replace(servers, concurrency=max(1, servers.concurrency // processes)),
                    {key: self._question(call) for key, call in calls.items()},
                    self.journal,
                    pay,
                    description,
                    on_failure=self._continue_after,
                    note=lambda: str(self.budget),
                    watch=self._watch,
                    again=lambda key: self.budget.again(self._most(calls[key])),
                )
            except (ServerError, BudgetSpent) as error:
                self.stopped, self.server_failed = _cause(error), isinstance(error, ServerError)
        found = {key: answer for key in calls if key in taken and (answer := self.journal.get(key)) is not None}
        if self._watch is None:
            return found
        unplaced = sum(key in self._watch.others for key in found)
        if unplaced and self.stopped is None:
            self.stopped = f"nobody knows whether {unplaced:,} of its answers are its own, which are not used"
            self.server_failed = True
        others = self._watch.others
        return {key: answer for key, answer in found.items() if self._watch.is_own(answer) and key not in others}

    def _question(self, call: Call) -> Question:
        most = self._most(call)
        fields = dict(call.form) | self.settings.extra_body
        extra = {"extra_body": fields} if fields else {}

        async def ask(client: OpenAIClient) -> Answer:
            before = client.answered
            try:
                async with self.budget.reserved(most):
                    # Messages are made here, so that only the images of requests in flight are in memory.
                    answer = await client.chat(
                        model=self.settings.model, messages=self._messages(call), **self.limits(), **extra
                    )
            except ServerError as error:
                if error.may_refuse_all:
                    answers = client.answered > before or await judge_question(self.settings).is_answered()
                    error.refuses_all = not answers
                raise
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

    def _continue_after(self, key: str, error: CulturevalError) -> bool:
        """Whether to continue with other calls after one was not answered."""
        if isinstance(error, BudgetSpent):
            return False
        refuses_all = isinstance(error, ServerError) and error.refuses_all
        if not refuses_all:
            self.failures[key] = _cause(error)
        self._failed_in_a_row += 1
        return not refuses_all and self._failed_in_a_row < max(8, 2 * self.settings.concurrency)


def _cause(error: CulturevalError) -> str:
    return error.cause if isinstance(error, ServerError) else str(error)
