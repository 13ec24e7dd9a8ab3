"""The LLM judge: verdicts on texts, with or without images, from any OpenAI-compatible server.

A reply in the requested form is a verdict. After another reply the judge is asked once more; then the item is
*unscored*, with the reason. Other reasons are: the item cannot be shown (a broken image, an empty text), the server
does not answer, the judge stopped, or its budget is spent. Verdicts are reused only for the same judge: name,
model, and model identity on its servers.
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

Verdicts = dict[tuple[str, str], list[JudgeVerdict]]  # (judge, template) -> a verdict for each item


def judge_items(judge: Asker, template: str, items: Sequence[JudgeItem]) -> list[JudgeVerdict]:
    """The judge's verdicts on items with distinct ids, in their order, by the template with this name."""
    row = judge_template(template)
    prepared = [_prepared(judge.settings, row, item) for item in items]

    def read(question: ModelQuestion, reply: str) -> ReplyReading:
        if "</think>" in question.text and "</think>" in reply:
            raise JudgeReplyError("the prompt holds </think>, and so does the reply: it may quote the prompt")
        return row.read(reply)

    questions = [entry for entry in prepared if isinstance(entry, ModelQuestion)]
    replies = judge.ask(questions, read, f"judge {judge.settings.name} ({row.short})")
    return [_verdict(replies[entry.id]) if isinstance(entry, ModelQuestion) else entry for entry in prepared]


def judge_with_all(judges: Mapping[str, Asker], questions: Mapping[str, Sequence[JudgeItem]]) -> Verdicts:
    """Judge items with several judges in parallel, each one template at a time.

    Args:
        judges: By name (`open_askers`).
        questions: Name of a template -> its items.

    Returns:
        The verdicts; a judge without image input skips templates with images.
    """

    def ask(name: str) -> Verdicts:
        judge = judges[name]
        usable = [template for template in questions if takes(judge.settings, judge_template(template))]
        return {(name, template): judge_items(judge, template, questions[template]) for template in usable}

    with ThreadPoolExecutor(max(1, len(judges))) as pool:
        try:
            return {key: verdicts for found in pool.map(ask, judges) for key, verdicts in found.items()}
        except BaseException:
            for judge in judges.values():
                judge.budget.halted = "it was interrupted"  # the pool waits for its threads, which would ask on
            raise


def takes(settings: JudgeSettings, template: JudgeTemplate) -> bool:
    """Whether a judge can use a template; one without image input cannot use templates with images."""
    return settings.images or not template.images


def estimate(judge: Asker, template: str, items: Sequence[JudgeItem]) -> CostEstimate:
    """Count the calls that `judge_items` would make, and estimate their cost; no call is made."""
    row = judge_template(template)
    prepared = [_prepared(judge.settings, row, item) for item in items]
    questions = [entry for entry in prepared if isinstance(entry, ModelQuestion)]
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
        return JudgeVerdict(item=item.id, outcome="unusable", reason=problem)
    return ModelQuestion(item.id, template.prompt(item.slots, settings.delimit), images=images)


def _verdict(reply: ModelReply[ReplyReading]) -> JudgeVerdict:
    found, reason = reply.value or ReplyReading(), reply.problem
    if reply.outcome == "malformed":
        reason = f"malformed reply, asked {reply.asked} times: {reason}"
    outcome = "scored" if reply.outcome == "read" else reply.outcome
    fields = (reply.id, outcome, reason, reply.text or None, reply.asked, reply.reused)
    return JudgeVerdict(found.scores, found.label, found.notes, *fields)


def judge_signature(settings: JudgeSettings, template: JudgeTemplate, identity: ServerIdentity | None) -> str:
    """One line with all settings that a verdict depends on.

    Args:
        settings: Of the judge.
        template: The judge template.
        identity: The model identity on its servers; None: unknown.
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
    """The judges' part of a task group's signature; None without a judge."""
    rows = [judge_template(name) for name in templates]
    pairs = [(judge, row) for judge in configured_judges() for row in rows if takes(judge, row)]
    lines = [judge_signature(judge, row, known_identity(judge)).replace("|", ",") for judge, row in pairs]
    return " + ".join(f"judge({line})" for line in lines) or None
