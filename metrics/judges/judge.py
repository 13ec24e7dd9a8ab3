"""The LLM judge: verdicts on texts, with or without images, from any OpenAI-compatible server.

Three outcomes are kept apart. A reply that can be read is a verdict. A reply that cannot is asked for again, twice at
most, and then the item is *unscored* with its reason, as is an item that cannot be shown to the judge (its image does
not decode, its text is empty), that the server does not answer, or that was not asked because the judge stopped or the
budget was spent. An unscored item has no score: it is in no mean, and the means with all unscored items as 1 and as
5 stand beside the mean. Every reply is in the journal before the next question is asked, under a key of model,
settings, prompt and images, so that nothing is paid for twice.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from cultureval.judge_prompts.replies import PARSER_VERSION
from cultureval.judge_prompts.templates import JudgeTemplate, judge_template
from cultureval.metrics.judges.costs import Budget, price, prompt_tokens
from cultureval.metrics.judges.session import JudgeSession, ReadyItem
from cultureval.metrics.judges.settings import JudgeSettings, configured_judges, find_judges
from cultureval.metrics.judges.verdicts import JudgeItem, Judgement, Verdict, metric_part, summarize
from cultureval.runtime.journal import Journal, open_journal
from cultureval.runtime.signatures import signature

__all__ = [
    "Estimate",
    "JudgeItem",
    "JudgeSettings",
    "Judgement",
    "Budget",
    "Verdict",
    "configured_judges",
    "estimate",
    "find_judges",
    "judge_items",
    "judge_signature",
    "judge_with_all",
    "metric_part",
    "summarize",
    "takes",
]


def judge_items(
    settings: JudgeSettings,
    template: JudgeTemplate | str,
    items: Sequence[JudgeItem],
    journal: Journal | None = None,
    budget: Budget | None = None,
) -> Judgement:
    """Have a judge judge items.

    Args:
        settings: The judge.
        template: How it is asked, or the name of the template.
        items: With distinct ids.
        journal: Where replies are kept; the machine's own by default.
        budget: Counts the cost over several calls of this function; a fresh one by default.

    Returns:
        A verdict on each item. A server that stops answering or refuses every request ends the asking, not the
        function: the rest is unscored as "not_asked", and `stopped` says why.

    Raises:
        CulturevalError: The settings of the server are wrong (the key's variable is not set).
    """
    row = judge_template(template) if isinstance(template, str) else template
    kept = open_journal() if journal is None else journal
    return JudgeSession(settings, row, kept, budget or Budget(settings)).run(items)


def judge_with_all(
    judges: Sequence[JudgeSettings],
    questions: Mapping[str, Sequence[JudgeItem]],
    journal: Journal | None = None,
    budgets: Mapping[str, Budget] | None = None,
) -> dict[tuple[str, str], Judgement]:
    """Have several judges judge at once, each template by template.

    Args:
        judges: With distinct names.
        questions: Name of a template -> its items.
        journal: As `judge_items`.
        budgets: Name of a judge -> its budget.

    Returns:
        (name of the judge, name of the template) -> what became of the items; without those templates that show
        images to a judge that takes none.
    """
    shared = open_journal() if journal is None else journal
    held = {judge.name: (budgets or {}).get(judge.name) or Budget(judge) for judge in judges}

    def ask(judge: JudgeSettings) -> dict[tuple[str, str], Judgement]:
        budget = held[judge.name]
        return {
            (judge.name, template): judge_items(judge, template, items, shared, budget)
            for template, items in questions.items()
            if takes(judge, judge_template(template))
        }

    if len(judges) == 1:
        return ask(judges[0])
    with ThreadPoolExecutor(max(1, len(judges))) as pool:
        try:
            return {key: judgement for found in pool.map(ask, judges) for key, judgement in found.items()}
        except BaseException:
            for budget in held.values():
                budget.halted = "it was interrupted"  # the pool waits for its threads, which else would ask to the end
            raise


def takes(settings: JudgeSettings, template: JudgeTemplate) -> bool:
    """Whether a judge can be asked with a template: one that takes no images cannot judge what shows them."""
    return settings.images or not template.images


@dataclass(frozen=True)
class Estimate:
    """What judging would take.

    Attributes:
        calls: First calls that the journal has no answer to.
        known: Replies that the journal has already.
        unusable: Items that cannot be judged.
        input_tokens: Estimated tokens of these calls' prompts.
        cost: Estimated cost of the calls, each with a reply in order.
        most: The same with every reply as long as allowed and every item asked for again.
    """

    calls: int
    known: int
    unusable: int
    input_tokens: int
    cost: float
    most: float


def estimate(
    settings: JudgeSettings, template: JudgeTemplate | str, items: Sequence[JudgeItem], journal: Journal | None = None
) -> Estimate:
    """Count the calls that `judge_items` would make, and what they would cost; asks nothing."""
    row = judge_template(template) if isinstance(template, str) else template
    session = JudgeSession(settings, row, open_journal() if journal is None else journal, Budget(settings))
    ready = [entry for entry in map(session.prepare, items) if isinstance(entry, ReadyItem)]
    keys = {session.key(entry, 0): entry for entry in ready}
    new = [entry for key, entry in keys.items() if key not in session.journal]
    inputs = [prompt_tokens(settings, entry.prompt.text, len(entry.images)) for entry in new]
    return Estimate(
        calls=len(new),
        known=len(keys) - len(new),
        unusable=len(items) - len(ready),
        input_tokens=sum(inputs),
        cost=sum(price(settings, tokens, row.reply_tokens) for tokens in inputs),
        most=sum(price(settings, tokens, settings.max_tokens) for tokens in inputs) * (1 + settings.re_asks),
    )


def judge_signature(settings: JudgeSettings, template: JudgeTemplate) -> str:
    """One line of all that a verdict depends on."""
    return signature(
        judge=settings.model,
        revision=settings.revision,
        template=f"{template.name}#{template.hash}",
        parser=f"{template.form}/{PARSER_VERSION}",
        temperature="none" if settings.temperature is None else f"{settings.temperature:g}",
        re_asks=settings.re_asks,
        delimit=settings.delimit,
        images=settings.image_max_side if template.images else None,
    )
