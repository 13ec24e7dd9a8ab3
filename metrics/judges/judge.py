"""The LLM judge: verdicts on texts, with or without images, from any OpenAI-compatible server.

A reply of the requested form is a verdict; after another one the judge is asked once more, and then the item is
*unscored*, with the reason. Also unscored are items that cannot be shown to the judge (an image that does not decode,
an empty text), that the server does not answer, or that were not asked for because the judge stopped or its budget was
spent. The judge is its name, its model and what its servers say of that: no other judge's verdicts are reused.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from cultureval.judge_prompts.replies import PARSER_VERSION, JudgeReplyError, ReplyReading
from cultureval.judge_prompts.templates import ASKED_AGAIN, NOTICE, JudgeTemplate, judge_template
from cultureval.metrics.judges.asking import Asker, CostEstimate, ModelQuestion, ModelReply
from cultureval.metrics.judges.items import JudgeItem, JudgeVerdict
from cultureval.metrics.judges.settings import JudgeSettings, configured_judges
from cultureval.runtime.data.image_store import PREPARED, decoded
from cultureval.runtime.servers.data_urls import image_hash
from cultureval.runtime.servers.identity import ServerIdentity, known_identity
from cultureval.runtime.signatures import signature
from cultureval.runtime.text_templates import short_hash

Verdicts = dict[tuple[str, str], list[JudgeVerdict]]  # (judge, template) -> a verdict an item


def judge_items(judge: Asker, template: str, items: Sequence[JudgeItem]) -> list[JudgeVerdict]:
    """A verdict of one judge, by a template's name, on each item, in their order; items have distinct ids."""
    row = judge_template(template)
    prepared = [_prepared(judge.settings, row, item) for item in items]

    def read(question: ModelQuestion, reply: str) -> ReplyReading:
        if "</think>" in question.text and "</think>" in reply:
            raise JudgeReplyError("the prompt holds </think>, and so does the reply: it may quote the prompt")
        return row.read(reply)

    questions = [one for one in prepared if isinstance(one, ModelQuestion)]
    replies = judge.ask(questions, read, f"judge {judge.settings.name} ({row.short})")
    return [_verdict(replies[one.id]) if isinstance(one, ModelQuestion) else one for one in prepared]


def judge_with_all(judges: Mapping[str, Asker], questions: Mapping[str, Sequence[JudgeItem]]) -> Verdicts:
    """Judge items with several judges in parallel, each one template at a time.

    Args:
        judges: By name (`open_askers`).
        questions: Name of a template -> its items.

    Returns:
        The verdicts, without templates with images for a judge that takes none.
    """

    def ask(name: str) -> Verdicts:
        judge = judges[name]
        wanted = [template for template in questions if takes(judge.settings, judge_template(template))]
        return {(name, template): judge_items(judge, template, questions[template]) for template in wanted}

    with ThreadPoolExecutor(max(1, len(judges))) as pool:
        try:
            return {key: verdicts for found in pool.map(ask, judges) for key, verdicts in found.items()}
        except BaseException:
            for judge in judges.values():
                judge.budget.halted = "it was interrupted"  # the pool waits for its threads, which would ask on
            raise


def takes(settings: JudgeSettings, template: JudgeTemplate) -> bool:
    """Whether a judge can use a template: a judge without image input cannot use templates with images."""
    return settings.images or not template.images


def estimate(judge: Asker, template: str, items: Sequence[JudgeItem]) -> CostEstimate:
    """Count the calls that `judge_items` would make, and estimate their cost; no call is made."""
    row = judge_template(template)
    prepared = [_prepared(judge.settings, row, item) for item in items]
    questions = [one for one in prepared if isinstance(one, ModelQuestion)]
    return replace(judge.estimate(questions, row.reply_tokens), unusable=len(items) - len(questions))


def _prepared(settings: JudgeSettings, template: JudgeTemplate, item: JudgeItem) -> ModelQuestion | JudgeVerdict:
    """The question about an item, or an `unusable` verdict."""
    images = tuple(item.images) if template.images else ()
    empty = [name for name in template.slots if not (item.slots.get(name) or "").strip()]
    problem = ""
    if empty:
        problem = f"{'the text to judge' if template.judged in empty else f'the {empty[0]}'} is empty or missing"
    elif template.images and not images:
        problem = "there is no image"
    elif images and not settings.images:
        problem = f"the judge {settings.name} takes no images"
    try:
        for image in images:
            if isinstance(image, bytes | str | Path):
                decoded(image if isinstance(image, bytes) else Path(image).read_bytes())
            else:
                image_hash(image)
    except (ValueError, OSError) as error:
        problem = problem or f"an image cannot be shown ({error})"
    if problem:
        return JudgeVerdict(item.id, outcome="unusable", reason=problem)
    return ModelQuestion(item.id, template.prompt(item.slots, settings.delimit), images=images)


def _verdict(reply: ModelReply[ReplyReading]) -> JudgeVerdict:
    found, reason = reply.value or ReplyReading(), reply.problem
    if reply.outcome == "malformed":
        reason = f"malformed reply, asked {reply.asked} times: {reason}"
    outcome = "scored" if reply.outcome == "read" else reply.outcome
    about = (outcome, reason, reply.text or None, reply.asked, reply.reused)
    return JudgeVerdict(reply.id, found.scores, found.label, found.notes, *about)


def judge_signature(settings: JudgeSettings, template: JudgeTemplate, identity: ServerIdentity | None) -> str:
    """One line with everything that a verdict depends on.

    Args:
        settings: Of the judge.
        template: The judge template.
        identity: What its servers say of the model; None: they were not asked.
    """
    extra = json.dumps(settings.extra_body, sort_keys=True, ensure_ascii=False)
    return signature(
        judge=settings.name,
        model=settings.model,
        revision=settings.revision,
        server=identity or "not asked",
        template=f"{template.name}#{template.hash}",
        parser=f"{template.form}/{PARSER_VERSION}",
        temperature="none" if settings.temperature is None else f"{settings.temperature:g}",
        max_tokens=settings.max_tokens,
        extra_body="+".join(sorted(settings.extra_body)) + f"#{short_hash(extra)}" if settings.extra_body else None,
        asked_again=f"#{ASKED_AGAIN.hash}",
        delimit=f"#{NOTICE.hash}" if settings.delimit else None,
        images=f"{PREPARED}/{settings.image_format}/{settings.image_max_side or 'full'}" if template.images else None,
    )


def signatures_of_judges(*templates: str) -> str | None:
    """Everything that the judges' scores depend on, for the signature of a task group; None without a judge."""
    rows = [judge_template(name) for name in templates]
    pairs = [(judge, row) for judge in configured_judges() for row in rows if takes(judge, row)]
    lines = [judge_signature(judge, row, known_identity(judge)).replace("|", ",") for judge, row in pairs]
    return " + ".join(f"judge({line})" for line in lines) or None
