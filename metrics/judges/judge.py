"""The LLM judge: verdicts on texts, with or without images, from any OpenAI-compatible server.

A readable reply gives a verdict. After an unreadable reply, or one whose scores may be another's (`replies.py`), the
judge is asked again, at most twice and with the form of the reply alone at the end of the prompt; then the item is
*unscored*, with the reason. Also unscored are items that cannot be shown to the judge (an image that does not decode,
an empty text), that the server does not answer, or that were not asked because the judge stopped or the budget was
spent. Unscored items are excluded from the mean; the means with all of them as 1 and as 5 are reported next to it.
Every reply is written to the journal at once, under a key of judge, settings, prompt and images, so that no call is
paid twice. The judge is its name, its model and what its servers say of that (`judge_identity`): they are asked first,
and a judge that does not answer is an error before anything is reused.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from cultureval.judge_prompts.replies import PARSER_VERSION
from cultureval.judge_prompts.slots import CODE_DIGITS, NOTICE
from cultureval.judge_prompts.templates import JudgeTemplate, judge_template
from cultureval.metrics.judges.calls import CostEstimate
from cultureval.metrics.judges.identity import form_fields, identities_of, judge_identity, judge_journal
from cultureval.metrics.judges.session import JudgeSession, ReadyItem
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.metrics.judges.verdicts import JudgeItem, Judgement, JudgeVerdict
from cultureval.runtime.data.image_store import PREPARED
from cultureval.runtime.journal import Journal
from cultureval.runtime.servers.costs import Budget, RequestSize, price, text_tokens
from cultureval.runtime.servers.identity import ServerIdentity
from cultureval.runtime.signatures import signature
from cultureval.runtime.text_templates import short_hash


def judge_items(
    settings: JudgeSettings,
    template: JudgeTemplate | str,
    items: Sequence[JudgeItem],
    journal: Journal | None = None,
    budget: Budget | None = None,
    identity: ServerIdentity | None = None,
) -> Judgement:
    """Judge items with one judge.

    Args:
        template: The judge template, or its name.
        items: With distinct ids.
        journal: Where replies are stored; default: the judge's own.
        budget: Shared by several calls of this function; default: a new one.
        identity: Who the judge is, shared likewise; default: its servers are asked.

    Returns:
        A verdict on each item. If the server stops answering or rejects every request, the remaining items are unscored
        as "not_asked", and `stopped` has the reason.

    Raises:
        CulturevalError: The settings of the server are wrong (the key's variable is not set), or its list of models
            cannot be read.
    """
    row = judge_template(template) if isinstance(template, str) else template
    known = budget or Budget(settings)  # before the question, so that no answer of this run counts as an earlier one's
    who = identity or judge_identity(settings)
    replies = judge_journal(settings, who) if journal is None else journal
    return JudgeSession(settings, row, replies, known, who).run(items)


def judge_with_all(
    judges: Sequence[JudgeSettings],
    questions: Mapping[str, Sequence[JudgeItem]],
    journal: Journal | None = None,
    budgets: Mapping[str, Budget] | None = None,
    identities: Mapping[str, ServerIdentity] | None = None,
) -> dict[tuple[str, str], Judgement]:
    """Judge items with several judges in parallel, each one template at a time.

    Args:
        judges: With distinct names.
        questions: Name of a template -> its items.
        journal: As in `judge_items`.
        budgets: Name of a judge -> its budget.
        identities: Name of a judge -> who it is; default: the servers of all judges are asked, before anything else.

    Returns:
        (name of the judge, name of the template) -> the judgement of the items; without templates with images
        for a judge that takes none.
    """
    who = identities_of(judges) if identities is None else identities
    budget_of = {judge.name: (budgets or {}).get(judge.name) or Budget(judge) for judge in judges}

    def ask(judge: JudgeSettings) -> dict[tuple[str, str], Judgement]:
        budget = budget_of[judge.name]
        return {
            (judge.name, template): judge_items(judge, template, items, journal, budget, who[judge.name])
            for template, items in questions.items()
            if takes(judge, judge_template(template))
        }

    if len(judges) == 1:
        return ask(judges[0])
    with ThreadPoolExecutor(max(1, len(judges))) as pool:
        try:
            return {key: judgement for found in pool.map(ask, judges) for key, judgement in found.items()}
        except BaseException:
            for budget in budget_of.values():
                budget.halted = "it was interrupted"  # the pool waits for its threads, which would otherwise ask on
            raise


def not_judged(items: Sequence[JudgeItem], reason: str) -> Judgement:
    """The judgement of a judge that could not be asked."""
    verdicts = [JudgeVerdict(item.id, outcome="not_asked", reason=reason, cluster=item.cluster) for item in items]
    return Judgement(verdicts, stopped=reason.rstrip("."), failed=True)


def takes(settings: JudgeSettings, template: JudgeTemplate) -> bool:
    """Whether a judge can use a template: a judge without image input cannot use templates with images."""
    return settings.images or not template.images


def estimate(
    settings: JudgeSettings,
    template: JudgeTemplate | str,
    items: Sequence[JudgeItem],
    journal: Journal | None,
    identity: ServerIdentity | None,
) -> CostEstimate:
    """Count the calls that `judge_items` would make, and estimate their cost; no call is made.

    Args:
        template: The judge template, or its name.
        items: With distinct ids.
        journal: As in `judge_items`.
        identity: Who the judge is; None: unknown, so that no reply in the journal is its.
    """
    row = judge_template(template) if isinstance(template, str) else template
    replies = judge_journal(settings, identity) if journal is None else journal
    session = JudgeSession(settings, row, replies, Budget(settings), identity)
    ready = [entry for entry in map(session.prepare, items) if isinstance(entry, ReadyItem)]
    keys = {session.key(entry, 0): entry for entry in ready}
    new = [entry for key, entry in keys.items() if identity is None or key not in session.journal]
    sizes = [RequestSize(text_tokens(entry.prompt.text), len(entry.images)) for entry in new]
    inputs = [size.input(settings.image_tokens) for size in sizes]
    return CostEstimate(
        calls=len(new),
        known=len(keys) - len(new),
        unusable=len(items) - len(ready),
        input_tokens=sum(inputs),
        cost=sum(price(settings, tokens, row.reply_tokens) for tokens in inputs),
        most=sum(price(settings, tokens, settings.max_tokens) for tokens in inputs) * (1 + settings.re_asks),
    )


def judge_signature(settings: JudgeSettings, template: JudgeTemplate, identity: ServerIdentity | None) -> str:
    """One line with everything that a verdict depends on.

    Args:
        identity: What its servers say of the model; None: they were not asked.
    """
    again = template.asked_again("")
    extra = json.dumps(settings.extra_body, sort_keys=True, ensure_ascii=False)
    return signature(
        judge=settings.name,
        model=settings.model,
        revision=settings.revision,
        server=identity or "not asked",
        template=f"{template.name}#{template.hash}",
        parser=f"{template.form}/{PARSER_VERSION}",
        held_to_form="+".join(form_fields(settings, template, identity)) or None,
        temperature="none" if settings.temperature is None else f"{settings.temperature:g}",
        max_tokens=settings.max_tokens,
        extra_body="+".join(sorted(settings.extra_body)) + f"#{short_hash(extra)}" if settings.extra_body else None,
        re_asks=f"{settings.re_asks}#{short_hash(again)}" if again else settings.re_asks,
        delimit=f"always#{NOTICE.hash}/{CODE_DIGITS}" if settings.delimit == "always" else settings.delimit,
        images=f"{PREPARED}/{settings.image_format}/{settings.image_max_side or 'full'}" if template.images else None,
    )
