"""Which judge it is that gives verdicts: its configured name, and what its servers say of the model.

Before a run the judges are checked and asked who they are, once.
"""

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cultureval.judge_prompts.templates import JudgeTemplate
from cultureval.metrics.judges.settings import JudgeSettings, configured_judges, find_judges
from cultureval.runtime.errors import CulturevalError, all_of
from cultureval.runtime.servers.identity import (
    IdentityQuestion,
    ServerIdentity,
    held_to,
    identify,
    is_form,
    require_answer,
    schema_format,
)
from cultureval.runtime.servers.identity_watch import OF_JUDGES, OF_JUDGES_AT_SEVERAL, IdentityWatch
from cultureval.runtime.servers.providers import provider_at
from cultureval.runtime.settings import current_settings

logger = logging.getLogger(__name__)

_IDENTITIES: dict[str, ServerIdentity] = {}


def judge_identity(settings: JudgeSettings) -> ServerIdentity:
    """Ask a judge's servers who they are: their lists of models and one answer of at most 16 tokens each.

    Where replies shall be held to a form, other servers than vLLM and SGLang also get a question with a JSON schema.

    Raises:
        CulturevalError: None of the servers answers, or they serve different models.
    """
    whom, question, provider = f"The judge {settings.name}", judge_question(settings), provider_at(settings.base_url)
    if provider is None or provider.lists_models:
        require_answer(whom, question.settings, settings.model)
    return identify(question, whom, holds_to_form(settings))


def judge_question(settings: JudgeSettings) -> IdentityQuestion:
    """A question of at most 16 tokens to a judge's servers."""
    limit, by_answer = settings.max_tokens_name, settings.identify == "all"
    return IdentityQuestion.of(
        settings.servers(), settings.model, limit, settings.temperature, settings.extra_body, by_answer
    )


def judge_watch(settings: JudgeSettings, identity: ServerIdentity | None) -> IdentityWatch | None:
    """Compares every reply with who the judge is; None where nobody knows that.

    Servers are asked again who they are where their answers can be compared: greedy ones, not a provider's.
    """
    if identity is None:
        return None
    compared = settings.identify == "model" or settings.temperature == 0
    question = judge_question(settings) if compared and provider_at(settings.base_url) is None else None
    return IdentityWatch(identity, question, advice=OF_JUDGES_AT_SEVERAL if len(settings.base_url) > 1 else OF_JUDGES)


def identities_of(judges: Sequence[JudgeSettings]) -> dict[str, ServerIdentity]:
    """Name of a judge -> its identity; the error names all judges that do not answer."""
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


def check_judges() -> None:
    """Check the configured judges: settings, keys, and whether the servers answer, as whom, and have the models."""
    all_of([partial(_check_judge, judge) for judge in configured_judges()])


def usable_judges() -> tuple[tuple[str, ...], dict[str, str]]:
    """The entries of CULTUREVAL_JUDGE whose judges can all be asked; and why not, by the name of each other judge."""
    usable, reasons = [], {}
    for entry in current_settings().judges:
        names = [Path(entry).stem]
        try:
            judges = find_judges([entry])
            names = [judge.name for judge in judges]
            all_of([partial(_check_judge, judge) for judge in judges])
            usable.append(entry)
        except CulturevalError as error:
            reasons |= dict.fromkeys(names, str(error))
    return tuple(usable), reasons


def _check_judge(judge: JudgeSettings) -> None:
    _IDENTITIES.pop(_key(judge), None)
    try:
        identity_in_run(judge)
    except CulturevalError as error:
        raise CulturevalError(f"{error} --skip-unscorable leaves the judge's scores out.") from None


def identity_in_run(judge: JudgeSettings) -> ServerIdentity:
    """Who a judge is, asked once in a run; says so where its servers tell nothing."""
    if _key(judge) not in _IDENTITIES:
        _IDENTITIES[_key(judge)] = judge_identity(judge)
        if told := anonymity(judge, _IDENTITIES[_key(judge)]):
            logger.warning("%s", told)
    return _IDENTITIES[_key(judge)]


def known_identity(judge: JudgeSettings) -> ServerIdentity | None:
    """Who a judge is, if it was asked in this run."""
    return _IDENTITIES.get(_key(judge))


def _key(judge: JudgeSettings) -> str:
    return judge.model_dump_json()
