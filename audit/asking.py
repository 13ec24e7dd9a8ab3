"""Questions to models that write or answer (not judges): concurrent, journalled, resumable, their cost known before.

The servers, prices and budgets are those of a judge's YAML file (`metrics.judges.settings`), and so are the client, the
journal and the identity of a model. A reply that cannot be read is asked again, at most twice; then the question has
no reply, with the reason. What a model that stops answering leaves open is "not asked".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from cultureval.metrics.judges.calls import Call, CostEstimate, PaidCalls
from cultureval.metrics.judges.identity import holds_to_form, judge_journal
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.runtime.journal import answer_key
from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.servers.costs import Budget, price
from cultureval.runtime.servers.data_urls import image_hash
from cultureval.runtime.servers.identity import ServerIdentity
from cultureval.runtime.servers.replies import Answer, why_refused

T = TypeVar("T")


class ReplyRefused(Exception):
    """A reply that has not the requested form; its message says why, as a clause."""


@dataclass(frozen=True)
class ModelQuestion:
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
class ModelReply(Generic[T]):
    """What became of a question.

    Attributes:
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


class Asker:
    """A model that is asked many questions; without `identity`, its servers were not asked who they are."""

    def __init__(self, settings: JudgeSettings, identity: ServerIdentity | None) -> None:
        self.settings, self.identity, self.journal = settings, identity, judge_journal(settings, identity)
        self.budget = Budget(settings)
        self._calls = PaidCalls(settings, self.journal, self.budget)

    @property
    def stopped(self) -> str | None:
        """Why the model stopped answering, as a clause; None while it answers."""
        return self._calls.stopped

    def ask(
        self, questions: Sequence[ModelQuestion], read: Callable[[ModelQuestion, str], T], description: str
    ) -> dict[str, ModelReply[T]]:
        """Asks all questions, which have distinct ids, and again where a reply cannot be read.

        Args:
            read: From a question and its reply to a value; raises `ReplyRefused` for a reply without the form.

        Returns:
            Id -> its reply, in the order of the questions.
        """
        replies: dict[str, ModelReply[T]] = {}
        waiting = list(questions)
        for attempt in range(1 + self.settings.re_asks):
            again = f", asked again ({attempt})" if attempt else ""
            keys = [self._key(one, attempt) for one in waiting]
            calls = dict(zip(keys, map(self._call, waiting), strict=True))
            answers = self._calls.answers(calls, f"{description} by {self.settings.name}{again}")
            for question, key in zip(waiting, keys, strict=True):
                replies[question.id] = self._read(question, key, answers.get(key), attempt, read)
            waiting = [one for one in waiting if replies[one.id].outcome == "malformed"]
            if not waiting:
                break
        return {question.id: replies[question.id] for question in questions}

    def estimate(self, questions: Sequence[ModelQuestion], reply_tokens: int) -> CostEstimate:
        """What asking them would cost with replies of about so many tokens; no call is made."""
        new = [one for one in questions if self.identity is None or self._key(one, 0) not in self.journal]
        inputs = [self._calls.tokens(self._call(one)) for one in new]
        cost = sum(price(self.settings, tokens, reply_tokens) for tokens in inputs)
        most = sum(price(self.settings, tokens, self.settings.max_tokens) for tokens in inputs)
        return CostEstimate(len(new), len(questions) - len(new), cost, most * (1 + self.settings.re_asks))

    def _call(self, question: ModelQuestion) -> Call:
        images = (question.image,) if question.image else ()
        record = {"model_name": self.settings.name, "item": question.id}
        return Call(question.text, question.system, images, self._form(question), record)

    def _read(
        self,
        question: ModelQuestion,
        key: str,
        answer: Answer | None,
        attempt: int,
        read: Callable[[ModelQuestion, str], T],
    ) -> ModelReply[T]:
        if answer is None:
            if key in self._calls.failures:
                reason = f"no answer ({self._calls.failures[key]})"
                return ModelReply(question.id, None, reason, "no_answer", asked=attempt + 1)
            return ModelReply(question.id, None, f"not asked: {self.stopped}", "not_asked", asked=attempt)
        completion = answer["completions"][0]
        text = completion["text"]
        if why_refused(answer):
            return ModelReply(question.id, None, "the model refused", "refused", text, attempt + 1)
        try:
            return ModelReply(question.id, read(question, split_reasoning(text)[0]), text=text, asked=attempt + 1)
        except ReplyRefused as error:
            cut = f" (cut off at {self.settings.max_tokens} tokens)" if completion["finish_reason"] == "length" else ""
            return ModelReply(question.id, None, f"{error}{cut}", "malformed", text, attempt + 1)

    def _key(self, question: ModelQuestion, attempt: int) -> str:
        shown = (question.image, self.settings.image_format, self.settings.image_max_side)
        return answer_key(
            kind="question",
            model={name: getattr(self.settings, name) for name in ("name", "model", "revision", "extra_body")},
            server=self.identity.known if self.identity else None,
            request=self._calls.limits() | self._form(question),
            system=question.system,
            text=question.text,
            image=[image_hash(question.image), *shown[1:]] if question.image else None,
            attempt=attempt,
        )

    def _form(self, question: ModelQuestion) -> dict[str, Any]:
        if question.schema is None or self.identity is None or not holds_to_form(self.settings):
            return {}
        held = {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": dict(question.schema)},
        }
        forms = {"vllm": {"structured_outputs": {"json": dict(question.schema)}}, "sglang": {"response_format": held}}
        return forms.get(self.identity.owner or "", {})
