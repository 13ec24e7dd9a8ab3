"""Questions to a model on servers, for judges and audits.

Questions are asked concurrently within a budget. Every reply is written to the journal at once, so that no reply is
paid twice. After a reply in another form the question is asked once more with a sentence about the form; then it
has no value, with the reason. Questions that remain when a model stops answering are "not_asked".
"""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from cultureval.judge_prompts.replies import JudgeReplyError
from cultureval.judge_prompts.templates import ASKED_AGAIN
from cultureval.metrics.judges.items import ItemImage, Unanswered
from cultureval.metrics.judges.settings import JudgeSettings, judge_identity
from cultureval.runtime.errors import all_of
from cultureval.runtime.journal import Journal, answer_key, open_journal
from cultureval.runtime.servers.ask import Asking, Question, Respondent, ask_all
from cultureval.runtime.servers.client import OpenAIClient
from cultureval.runtime.servers.costs import Budget, BudgetSpent, RequestSize, price, text_tokens
from cultureval.runtime.servers.data_urls import data_url, image_hash
from cultureval.runtime.servers.errors import RowError, ServerError
from cultureval.runtime.servers.identity import ServerIdentity
from cultureval.runtime.servers.replies import Answer, why_refused

T = TypeVar("T")


@dataclass(frozen=True)
class ModelQuestion:
    """One question: its id, the user's message, the system's ("" sends none), and images shown before the text."""

    id: str
    text: str
    system: str = ""
    images: Sequence[ItemImage] = ()


@dataclass(frozen=True)
class ModelReply(Generic[T]):
    """The outcome of a question.

    Attributes:
        value: The value that was read; None without one.
        problem: Why there is no value, as a clause; "" with a value.
        outcome: "read", or the kind of the problem.
        text: The last reply, unchanged, with its reasoning; "" without a reply.
        asked: How often it was asked, in this run or an earlier one.
        reused: Whether the last reply is of an earlier run.
    """

    id: str
    value: T | None
    problem: str = ""
    outcome: Literal["read"] | Unanswered = "read"
    text: str = ""
    asked: int = 1
    reused: bool = False


Read = Callable[[ModelQuestion, str], T]  # from a question and its reply to a value; raises JudgeReplyError


@dataclass(frozen=True)
class CostEstimate:
    """An estimate: calls without an answer in the journal, answers in it, cost, and items that cannot be judged.

    The cost is in the currency of the settings' prices, without repeated calls.
    """

    calls: int = 0
    known: int = 0
    cost: float = 0.0
    unusable: int = 0

    def __str__(self) -> str:
        """`164 calls (0 more are in the journal), cost about 0.31` (without prices: no cost)."""
        cost = f", cost about {self.cost:.4g}" if self.cost else ""
        unusable = f"; {self.unusable:,} items cannot be judged" if self.unusable else ""
        return f"{self.calls:,} calls ({self.known:,} more are in the journal){cost}{unusable}"

    def __add__(self, other: "CostEstimate") -> "CostEstimate":
        return CostEstimate(*map(sum, zip(astuple(self), astuple(other), strict=True)))


class Asker:
    """A model that answers many questions.

    Attributes:
        stopped: Why no more questions are asked, as a clause; None: not stopped.
        failed: Whether the servers failed; False if the budget is spent.
    """

    def __init__(
        self,
        settings: JudgeSettings,
        identity: ServerIdentity,
        journal: Journal | None = None,
        budget: Budget | None = None,
    ) -> None:
        """Prepares a model; nothing is sent.

        Args:
            settings: Of the model.
            identity: The model identity (`judge_identity`); the journal's answers of other identities are not used.
            journal: Default: the model's own.
            budget: A shared budget; default: a new one.
        """
        self.settings, self.identity = settings, identity
        fields = {name: getattr(settings, name) for name in ("model", "revision", "extra_body")}
        self.journal = journal or open_journal(f"judge-{settings.name}", **fields, server=identity.known)
        self.budget = budget or Budget(settings)
        self.stopped: str | None = None
        self.failed = False
        self._failures: dict[str, str] = {}  # key of a missing answer -> the cause
        self._respondent = Respondent(settings.model)

    @property
    def served(self) -> str | None:
        """The model's name in its replies; None before the first reply."""
        return self._respondent.served

    def ask(self, questions: Sequence[ModelQuestion], read: Read[T], description: str) -> dict[str, ModelReply[T]]:
        """Asks all questions, with distinct ids; asks once more after a reply in another form.

        Args:
            questions: In the order of the replies.
            read: Reads a reply, which may have reasoning before it.
            description: Of the questions, for the progress bar.

        Returns:
            Id -> its reply.
        """
        replies = self._ask_once(questions, read, description)
        form = f"\n{ASKED_AGAIN.file_text}"
        malformed = [
            replace(question, text=question.text + form)
            for question in questions
            if replies[question.id].outcome == "malformed"
        ]
        for name, reply in self._ask_once(malformed, read, f"{description}, asked again").items():
            replies[name] = replace(reply, asked=1 + reply.asked)
        return replies

    def _ask_once(
        self, questions: Sequence[ModelQuestion], read: Read[T], description: str
    ) -> dict[str, ModelReply[T]]:
        keys = [self._key(question) for question in questions]
        by_key = dict(zip(keys, questions, strict=True))
        sizes = {key: self._size(question) for key, question in by_key.items()}
        asking = Asking(self.settings.servers(), self.journal, self.budget, self._respondent, sizes)
        try:
            if self.stopped is None:
                ask_all(
                    asking, {key: self._request(question) for key, question in by_key.items()}, description, self._note
                )
        except (ServerError, BudgetSpent) as error:
            self.stopped, self.failed = str(error).rstrip("."), isinstance(error, ServerError)
        return {question.id: self._reply(question, key, read) for question, key in zip(questions, keys, strict=True)}

    def _note(self, key: str, error: RowError) -> None:
        """Records the failure of a question; others continue."""
        self._failures[key] = error.reason

    def _reply(self, question: ModelQuestion, key: str, read: Read[T]) -> ModelReply[T]:
        answer = self.journal.get(key)
        if answer is None or (self.served and answer.get("model") not in (None, self.served)):
            if key in self._failures:
                return ModelReply(question.id, None, f"no answer ({self._failures[key]})", "no_answer")
            return ModelReply(question.id, None, f"not asked: {self.stopped}", "not_asked", asked=0)
        completion, reused = answer["completions"][0], self.journal.earlier(key) is not None
        found: ModelReply[T] = ModelReply(question.id, None, text=completion["text"], reused=reused)
        if refused := why_refused(answer):
            return replace(found, problem=refused.reason, outcome="refused")
        try:
            return replace(found, value=read(question, completion["text"]))
        except JudgeReplyError as error:
            cut = f" (cut off at {self.settings.max_tokens} tokens)" if completion["finish_reason"] == "length" else ""
            return replace(found, problem=f"{error}{cut}", outcome="malformed")

    def estimate(self, questions: Sequence[ModelQuestion], reply_tokens: int) -> CostEstimate:
        """The estimated cost of the questions with replies of `reply_tokens` tokens; makes no call."""
        new = [self._size(question) for question in questions if self._key(question) not in self.journal]
        cost = sum(price(self.settings, size.input(self.settings.image_tokens), reply_tokens) for size in new)
        return CostEstimate(len(new), len(questions) - len(new), cost)

    def _size(self, question: ModelQuestion) -> RequestSize:
        text = f"{question.system}\n{question.text}" if question.system else question.text
        return RequestSize(text_tokens(text), len(question.images), self.settings.max_tokens)

    def _fields(self) -> dict[str, Any]:
        """The fields of a request besides messages and model."""
        limits = {"temperature": self.settings.temperature, self.settings.max_tokens_name: self.settings.max_tokens}
        fields = {name: value for name, value in limits.items() if value is not None}
        return fields | {"extra_body": self.settings.extra_body}

    def _key(self, question: ModelQuestion) -> str:
        sent = (self.settings.image_format, self.settings.image_max_side)
        return answer_key(
            kind="question",
            model={name: getattr(self.settings, name) for name in ("name", "model", "revision")},
            server=self.identity.known,
            request=self._fields(),
            system=question.system,
            text=question.text,
            images=[*map(image_hash, question.images), *sent] if question.images else None,
        )

    def _request(self, question: ModelQuestion) -> Question:
        async def ask(client: OpenAIClient) -> Answer:
            # Images are encoded here, so that only those of requests in flight are in memory.
            form, side = self.settings.image_format, self.settings.image_max_side
            urls = [data_url(image, form, side) for image in question.images]
            parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
            content = [*parts, {"type": "text", "text": question.text}] if parts else question.text
            system = [{"role": "system", "content": question.system}] if question.system else []
            messages = [*system, {"role": "user", "content": content}]
            answer = await client.chat(model=self.settings.model, messages=messages, **self._fields())
            return answer | {"item": question.id}

        return ask


def open_askers(judges: Sequence[JudgeSettings]) -> dict[str, Asker]:
    """Name of a judge -> its `Asker`, with its identity; the error lists all judges that do not answer."""
    found: dict[str, Asker] = {}

    def ask(judge: JudgeSettings) -> None:
        found[judge.name] = Asker(judge, judge_identity(judge))

    all_of([partial(ask, judge) for judge in judges])
    return found
