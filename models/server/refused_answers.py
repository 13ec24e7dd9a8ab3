"""Refused rows: prompts to which a server gives no usable answer, and answers that refuse or that a filter stopped."""

from collections import Counter
from collections.abc import Mapping, Sequence

from lighteval.tasks.requests import Doc

from cultureval.models.generation.rendering import all_images
from cultureval.models.refused_images import ImagesRefused, skips_refused
from cultureval.runtime.errors import CulturevalError, counted, shorten
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse, name_of
from cultureval.runtime.servers.answers import Answer
from cultureval.runtime.servers.errors import (
    ASKING_TO_WAIT,
    AskedToWait,
    ContentFilter,
    ServerError,
    reading_a_reply,
)
from cultureval.runtime.servers.identity import IdentityQuestion
from cultureval.runtime.servers.identity_watch import IdentityWatch
from cultureval.runtime.servers.journalled_answers import OnFailure, Question
from cultureval.runtime.servers.openai_client import OpenAIClient
from cultureval.runtime.servers.providers import filters
from cultureval.runtime.settings import current_settings, goes_on

NAMED = 3  # rows in one message
_OTHERS = 2  # rows with which a server may ask to wait before it has answered any
OF_KIND = {"filter": "stopped by the provider's filter", "refusal": "refused by the model"}
REASONS = {
    "server": "the server refuses its prompt",
    "filter": "the provider's filter refuses its prompt",
    "no_answer": "the server gives no usable answer to it",
}
ADVICE = {
    "server": "Correct the settings that it names (max_new_tokens, chat_template, extra_body, leave_out, or the "
    "server's --max-model-len), or pass",
    "no_answer": "If the server is yours, look into its log; or pass",
}
BUSY = "It asks to wait with this row alone: repeat the command later, or pass"
UNSCORED = "--on-refused unscored (CULTUREVAL_ON_REFUSED=unscored)"
UNSCORED += " to leave such rows unscored, count them, and bound the scores"


class PromptRefused(ServerError):
    """A server refuses a prompt, for what it holds or for its length, or gives no usable answer to it.

    Args:
        doc: Of which the prompt is.
        cause: What the server said, in one line.
        kind: As of `RefusedResponse`.
        usage, status: As of `ServerError`.
    """

    def __init__(
        self,
        doc: Doc,
        cause: str,
        kind: str = "server",
        usage: Mapping[str, object] | None = None,
        status: int | None = None,
    ) -> None:
        self.kind, self.reason = kind, f"{REASONS[kind]}: {cause.rstrip('.')}"
        super().__init__(
            f"{name_of(doc)}: {self.reason}. {goes_on()} {_advice(kind, status)} {UNSCORED}.",
            cause,
            refuses_content=True,
            usage=usage,
        )


def _advice(kind: str, status: int | None) -> str:
    return BUSY if kind == "no_answer" and status in ASKING_TO_WAIT else ADVICE.get(kind, "Pass")


class AnswersRefused(CulturevalError):
    """Some answers are refusals, and the settings do not say what to do with them; all answers are kept."""


def refused_answers(
    docs: Sequence[Doc], asked: Sequence[Mapping[str, object]], answers: Mapping[str, Answer]
) -> dict[int, RefusedResponse]:
    """What stands for docs whose answers are refusals, by place.

    Args:
        docs: The docs.
        asked: The keys of each doc's answers.
        answers: Key -> answer; those of docs that are refused already are missing.

    Raises:
        AnswersRefused: There are some, and the settings do not say that they are unscored.
    """
    found = {
        place: why
        for place, keys in enumerate(asked)
        if (why := next((one for key in keys if key in answers and (one := why_refused(answers[key]))), None))
    }
    if found and current_settings().on_refused != "unscored":
        kinds = Counter(why.kind for why in found.values())
        rows = [f"{name_of(docs[place])}: {why.reason}" for place, why in list(found.items())[:NAMED]]
        more = f"; and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
        counts = ", ".join(f"{count:,} {OF_KIND[kind]}" for kind, count in kinds.items())
        raise AnswersRefused(
            f"Of {counted(len(docs), 'answer')}, {len(found):,} cannot be used ({counts}): {'; '.join(rows)}{more}. "
            f"All answers are kept and not paid again: pass {UNSCORED}."
        )
    return found


def skipping(reasons: dict[str, RefusedResponse]) -> OnFailure:
    """Goes on after a refused prompt or image where the settings say so; `reasons` then has why, by key."""

    def skip(key: str, error: CulturevalError) -> bool:
        prompt = isinstance(error, PromptRefused) and current_settings().on_refused == "unscored"
        if not (prompt or isinstance(error, ImagesRefused) and skips_refused()):
            return False
        reasons[key] = RefusedResponse(reason=error.reason, kind=error.kind)
        return True

    return skip


def why_refused(answer: Answer) -> RefusedResponse | None:
    """What stands for an answer that a filter stopped, or that refuses; None for others."""
    for completion in answer.get("completions", ()):
        reason, refusal = completion["finish_reason"], completion["refusal"]
        if filters().in_finish_reason(reason):
            told = f", {reason}" if reason != "content_filter" else ""
            said = f": {shorten(refusal)}" if refusal else ""
            return RefusedResponse(reason=f"the provider's filter stopped it{told}{said}", kind="filter")
        if refusal:
            return RefusedResponse(reason=f"the model refused: {shorten(refusal)}", kind="refusal")
    return None


def naming(
    doc: Doc, question: Question, watch: IdentityWatch | None, short: IdentityQuestion, waiting: list[Doc] | None
) -> Question:
    """A question whose error names the doc, where the server answers others.

    Args:
        doc: The doc.
        question: Of it.
        watch: Who is asked; a provider, which is not asked who it is, is not asked in vain whether it is there.
        short: A short question, which shows whether the key, the model and the address are right.
        waiting: Shared by all docs of a run: those with which a server has asked to wait; None where it has answered
            some already, in an earlier run.
    """
    asks = watch is not None and watch.question is not None

    async def ask(client: OpenAIClient) -> Answer:
        before = client.answered
        try:
            with reading_a_reply():
                return await question(client)
        except ServerError as error:
            if error.refuses_content and all_images(doc):
                raise ImagesRefused([doc], f"the server refuses it: {error.cause.rstrip('.')}") from error
            if error.refuses_content or isinstance(error, ContentFilter):
                kind = "filter" if isinstance(error, ContentFilter) else "server"
                raise PromptRefused(doc, error.cause, kind, error.usage) from error
            meanwhile = client.answered > before
            if error.in_vain and (error.incomplete or (await short.is_answered() if asks else meanwhile)):
                raise PromptRefused(doc, error.cause, "no_answer", error.usage, error.status) from error
            if error.may_refuse_all:
                if meanwhile or await short.is_answered():
                    raise PromptRefused(doc, error.cause, "server", error.usage) from error
                advice = error.advice(short.settings.api_key_env)
                error.args = (f"{error} It refuses a short question too: {advice}.",)
            raise

    return _asked_once_more(doc, ask, short, waiting)


def _asked_once_more(doc: Doc, question: Question, short: IdentityQuestion, waiting: list[Doc] | None) -> Question:
    """A question that is asked again after the others where a server asks to wait with it, perhaps with it alone."""
    first: int | None = None  # how many requests were answered when it asked so

    async def ask(client: OpenAIClient) -> Answer:
        nonlocal first
        try:
            return await question(client)
        except ServerError as error:
            if error.status not in ASKING_TO_WAIT or error.refuses_all:
                raise
            answers = waiting is None or client.answered > 0  # else all rows may have to wait, if not a short question
            if first is None and (answers or len(waiting or ()) < _OTHERS):
                first = client.answered
                if waiting is not None:
                    waiting.append(doc)
                raise AskedToWait(str(error), error.cause, usage=error.usage, status=error.status) from error
            if first is not None and (client.answered > first or (answers and await short.is_answered())):
                raise PromptRefused(doc, error.cause, "no_answer", error.usage, error.status) from error
            raise

    return ask
