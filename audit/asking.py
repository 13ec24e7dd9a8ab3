"""Questions to models that write or answer (not judges): concurrent, journalled, resumable, their cost known before.

The servers, prices and budgets are those of a judge's YAML file (`metrics.judges.settings`), and so are the client, the
journal and the identity of a model. A reply that cannot be read is asked again, at most twice; then the question has
no reply, with the reason. What a model that stops answering leaves open is "not asked".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from cultureval.metrics.judges.costs import Budget, BudgetSpent, estimate_tokens, price, prompt_tokens
from cultureval.metrics.judges.identity import holds_to_form
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import Journal, answer_key
from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.servers.answers import Answer
from cultureval.runtime.servers.data_urls import data_url, image_hash
from cultureval.runtime.servers.errors import ServerError
from cultureval.runtime.servers.identity import ServerIdentity, held_to
from cultureval.runtime.servers.journalled_answers import answer_all
from cultureval.runtime.servers.openai_client import OpenAIClient

T = TypeVar("T")


class ReplyRefused(Exception):
    """A reply that has not the requested form; its message says why, as a clause."""


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        id: Names it in replies.
        text: The user's message.
        system: The system's message; "" sends none.
        image: A file that is shown before the text; None shows none.
        schema: JSON schema of the reply, for servers that hold replies to one; None leaves the form free.
    """

    id: str
    text: str
    system: str = ""
    image: Path | None = None
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Reply(Generic[T]):
    """What became of a question.

    Attributes:
        id: Of the question.
        value: What was read; None where nothing was.
        problem: Why not, as a clause; "" where something was read.
        outcome: "read", "malformed", "refused", "no_answer" or "not_asked".
        text: The last reply as it stands; "" without one.
        asked: Number of calls.
    """

    id: str
    value: T | None
    problem: str = ""
    outcome: str = "read"
    text: str = ""
    asked: int = 1


@dataclass(frozen=True)
class CallEstimate:
    """Calls that would be made, and their cost.

    Attributes:
        calls: First calls without an answer in the journal.
        known: Answers in the journal.
        cost: If each reply is readable; in the currency of the settings' prices.
        most: With replies of maximal length, and every question asked again.
    """

    calls: int
    known: int
    cost: float
    most: float

    def __str__(self) -> str:
        """`164 calls, cost about 0.31, at most 2.4` (without prices: the calls alone)."""
        cost = f", cost about {self.cost:.4g}, at most {self.most:.4g}" if self.most else ""
        return f"{self.calls:,} calls ({self.known:,} more are in the journal){cost}"

    def __add__(self, other: "CallEstimate") -> "CallEstimate":
        return CallEstimate(
            self.calls + other.calls, self.known + other.known, self.cost + other.cost, self.most + other.most
        )


@dataclass
class Asker:
    """A model that is asked many questions.

    Attributes:
        settings: Of the model and its servers.
        identity: What its servers say of it.
        journal: Read and written.
        budget: What was spent.
        stopped: Why it stopped answering; None while it answers.
    """

    settings: JudgeSettings
    identity: ServerIdentity | None
    journal: Journal
    budget: Budget = field(init=False)
    stopped: str | None = field(default=None, init=False)
    _failures: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _failed_in_a_row: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        self.budget = Budget(self.settings)

    def ask(
        self, questions: Sequence[Question], read: Callable[[Question, str], T], description: str
    ) -> dict[str, Reply[T]]:
        """Ask all questions, and again where a reply cannot be read.

        Args:
            questions: With distinct ids.
            read: From a question and its reply to a value; raises `ReplyRefused` for a reply without the form.
            description: Of the questions, for the progress bar.

        Returns:
            Id -> its reply, in the order of the questions.
        """
        replies: dict[str, Reply[T]] = {}
        waiting = list(questions)
        for attempt in range(1 + self.settings.re_asks):
            again = f", asked again ({attempt})" if attempt else ""
            answers = self._answers(waiting, attempt, f"{description} by {self.settings.name}{again}")
            for question in waiting:
                key = self._key(question, attempt)
                replies[question.id] = self._read(question, key, answers.get(key), attempt, read)
            waiting = [one for one in waiting if replies[one.id].outcome == "malformed"]
            if not waiting:
                break
        return {question.id: replies[question.id] for question in questions}

    def estimate(self, questions: Sequence[Question], reply_tokens: int) -> CallEstimate:
        """What asking them would cost; no call is made.

        Args:
            questions: Any number.
            reply_tokens: Approximate number of tokens of a reply.
        """
        new = [one for one in questions if self.identity is None or self._key(one, 0) not in self.journal]
        inputs = [self._tokens(one) for one in new]
        cost = sum(price(self.settings, tokens, reply_tokens) for tokens in inputs)
        most = sum(price(self.settings, tokens, self.settings.max_tokens) for tokens in inputs)
        return CallEstimate(len(new), len(questions) - len(new), cost, most * (1 + self.settings.re_asks))

    def _answers(self, questions: Sequence[Question], attempt: int, description: str) -> dict[str, Answer]:
        keyed = {self._key(one, attempt): one for one in questions}
        for key, question in keyed.items():
            if (known := self.journal.get(key)) is not None:
                self._pay(key, question, known)
        if self.stopped is None:
            try:
                answer_all(
                    self.settings.servers(),
                    {key: self._call(key, question) for key, question in keyed.items()},
                    self.journal,
                    description,
                    on_failure=self._continue_after,
                    note=lambda: str(self.budget),
                )
            except (ServerError, BudgetSpent) as error:
                self.stopped = error.cause if isinstance(error, ServerError) else str(error)
        return {key: answer for key in keyed if (answer := self.journal.get(key)) is not None}

    def _call(self, key: str, question: Question) -> Callable[[OpenAIClient], Any]:
        most = price(self.settings, self._tokens(question), self.settings.max_tokens)
        fields = self._form(question) | self.settings.extra_body
        extra = {"extra_body": fields} if fields else {}

        async def call(client: OpenAIClient) -> Answer:
            await self.budget.reserve(most)
            try:
                answer = await client.chat(
                    model=self.settings.model, messages=self._messages(question), **self._request(), **extra
                )
            finally:
                self.budget.release(most)
            self._failed_in_a_row = 0
            self._pay(key, question, answer)
            return answer | {"model_name": self.settings.name, "item": question.id}

        return call

    def _read(
        self, question: Question, key: str, answer: Answer | None, attempt: int, read: Callable[[Question, str], T]
    ) -> Reply[T]:
        if answer is None:
            if key in self._failures:
                return Reply(question.id, None, self._failures[key], "no_answer", asked=attempt + 1)
            return Reply(question.id, None, f"not asked: {self.stopped}", "not_asked", asked=attempt)
        completion = answer["completions"][0]
        text = completion["text"]
        if completion["refusal"] or completion["finish_reason"] == "content_filter":
            return Reply(question.id, None, "the model refused", "refused", text, attempt + 1)
        try:
            return Reply(question.id, read(question, split_reasoning(text)[0]), text=text, asked=attempt + 1)
        except ReplyRefused as error:
            cut = f" (cut off at {self.settings.max_tokens} tokens)" if completion["finish_reason"] == "length" else ""
            return Reply(question.id, None, f"{error}{cut}", "malformed", text, attempt + 1)

    def _key(self, question: Question, attempt: int) -> str:
        shown = (question.image, self.settings.image_format, self.settings.image_max_side)
        return answer_key(
            kind="question",
            model={name: getattr(self.settings, name) for name in ("name", "model", "revision", "extra_body")},
            server=self.identity.known if self.identity else None,
            request=self._request() | self._form(question),
            system=question.system,
            text=question.text,
            image=[image_hash(question.image), *shown[1:]] if question.image else None,
            attempt=attempt,
        )

    def _request(self) -> dict[str, Any]:
        limits = {"temperature": self.settings.temperature, self.settings.max_tokens_name: self.settings.max_tokens}
        return {name: value for name, value in limits.items() if value is not None}

    def _form(self, question: Question) -> dict[str, Any]:
        if question.schema is None or self.identity is None or not holds_to_form(self.settings):
            return {}
        if self.identity.holds_schema or self.identity.owner == "sglang":
            return {"response_format": held_to(question.schema)}
        return {"structured_outputs": {"json": dict(question.schema)}} if self.identity.owner == "vllm" else {}

    def _messages(self, question: Question) -> list[dict[str, Any]]:
        system = [{"role": "system", "content": question.system}] if question.system else []
        if question.image is None:
            return [*system, {"role": "user", "content": question.text}]
        # Encoded here, so that only the images of requests in flight are in memory.
        url = data_url(question.image, self.settings.image_format, self.settings.image_max_side)
        parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": question.text}]
        return [*system, {"role": "user", "content": parts}]

    def _tokens(self, question: Question) -> int:
        return prompt_tokens(self.settings, f"{question.system}\n{question.text}", int(question.image is not None))

    def _pay(self, key: str, question: Question, answer: Answer) -> None:
        written = sum(estimate_tokens(completion["text"]) for completion in answer["completions"])
        self.budget.pay(key, answer["usage"], (self._tokens(question), written))

    def _continue_after(self, key: str, error: CulturevalError) -> bool:
        """Whether to continue with other questions after one was not answered."""
        if isinstance(error, BudgetSpent):
            return False
        refuses_all = isinstance(error, ServerError) and error.refuses_all
        if not refuses_all:
            self._failures[key] = f"no answer ({error.cause if isinstance(error, ServerError) else error})"
        self._failed_in_a_row += 1
        return not refuses_all and self._failed_in_a_row < max(8, 2 * self.settings.concurrency)
