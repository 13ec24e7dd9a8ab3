"""Which judge it is that gives verdicts: its configured name, and what its servers say of the model."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from cultureval.judge_prompts.templates import JudgeTemplate
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.runtime.errors import CulturevalError, all_of
from cultureval.runtime.servers.errors import ServerError
from cultureval.runtime.servers.identity import (
    PROBE_TOKENS,
    IdentityQuestion,
    ServerIdentity,
    held_to,
    identify,
    is_form,
    schema_format,
)
from cultureval.runtime.servers.identity_watch import OF_JUDGES, IdentityWatch
from cultureval.runtime.servers.providers import provider_at


def judge_identity(settings: JudgeSettings) -> ServerIdentity:
    """Ask a judge's servers who they are: one list of models and one answer of at most 16 tokens each.

    Where replies shall be held to a form, other servers than vLLM and SGLang also get a question with a JSON schema.

    Raises:
        CulturevalError: None of the servers answers, or they serve different models.
    """
    question = _question(settings)
    try:
        return identify(question.settings, question.request, question.by_answer, holds_to_form(settings))
    except ServerError as error:
        urls = " / ".join(settings.base_url)
        raise CulturevalError(
            f"The judge {settings.name} at {urls} does not answer ({error.cause}). Nothing was judged, and no earlier "
            "verdict was reused, since nobody can say whose it is: start the server, or leave the judge out."
        ) from None


def _question(settings: JudgeSettings) -> IdentityQuestion:
    extra = {name: value for name, value in settings.extra_body.items() if not is_form(name)}
    request: dict[str, Any] = {"model": settings.model, settings.max_tokens_name: PROBE_TOKENS}
    request |= {"temperature": settings.temperature} if settings.temperature is not None else {}
    request |= {"extra_body": extra} if extra else {}
    return IdentityQuestion(settings.servers(), request, settings.identify == "all")


def judge_watch(settings: JudgeSettings, identity: ServerIdentity | None) -> IdentityWatch | None:
    """Compares every reply with who the judge is; None where nobody knows that.

    Servers are asked again who they are where their answers can be compared: greedy ones, not a provider's.
    """
    if identity is None:
        return None
    compared = settings.identify == "model" or settings.temperature == 0
    question = _question(settings) if compared and provider_at(settings.base_url) is None else None
    return IdentityWatch(identity, question, advice=OF_JUDGES)


def identities_of(judges: Sequence[JudgeSettings]) -> dict[str, ServerIdentity]:
    """Name of a judge -> its identity.

    Raises:
        CulturevalError: Names all judges that do not answer.
    """
    found: dict[str, ServerIdentity] = {}

    def ask(judge: JudgeSettings) -> None:
        found[judge.name] = judge_identity(judge)

    all_of([partial(ask, judge) for judge in judges])
    return found


def anonymity(settings: JudgeSettings, identity: ServerIdentity) -> str | None:
    """A sentence where another checkpoint under the same name could pass for this judge; None where it could not."""
    return identity.anonymity(f"the judge {settings.name}", settings.revision)


def form_fields(settings: JudgeSettings, template: JudgeTemplate, identity: ServerIdentity | None) -> dict[str, Any]:
    """Fields of a request by which its server holds the reply to the template's form; {} where it cannot, or shall not.

    Args:
        settings: The judge.
        template: The judge template.
        identity: What the servers say: their software is `owner`, and by trial some hold replies to a schema.
    """
    pattern, scores, schema = template.reply_pattern, template.reply_properties, template.reply_schema
    if identity is None or not holds_to_form(settings):
        return {}
    if identity.holds_schema and schema is not None:
        return {"response_format": held_to(schema)}
    if identity.holds_schema and scores:
        return {"response_format": schema_format("scores", scores)}
    expressions = {"vllm": {"structured_outputs": {"regex": pattern}}, "sglang": {"regex": pattern}}
    return expressions.get(identity.owner or "", {}) if pattern else {}


def holds_to_form(settings: JudgeSettings) -> bool:
    """Whether we ask for a form; not where the judge's own fields of requests do."""
    return settings.hold_to_form and not any(map(is_form, settings.extra_body))
