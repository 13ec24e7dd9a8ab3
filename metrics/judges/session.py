"""One judge with one template: from items to prompts, calls and verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cultureval.judge_prompts.replies import DoubtfulReply, JudgeReplyError, ReplyReading
from cultureval.judge_prompts.slots import FilledPrompt, share_of_arabic
from cultureval.judge_prompts.templates import JudgeTemplate
from cultureval.metrics.judges.calls import Call, PaidCalls
from cultureval.metrics.judges.identity import form_fields
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.metrics.judges.verdicts import ItemImage, JudgeItem, Judgement, JudgeVerdict, Outcome
from cultureval.runtime.data.image_store import decoded
from cultureval.runtime.journal import Journal, answer_key
from cultureval.runtime.servers.costs import Budget
from cultureval.runtime.servers.data_urls import image_hash
from cultureval.runtime.servers.identity import ServerIdentity
from cultureval.runtime.servers.replies import Answer, why_refused


@dataclass(frozen=True)
class ReadyItem:
    """An item that is ready for the judge: its filled prompt, the images that are sent and their hashes.

    Attributes:
        flags: Of the text and the prompt.
    """

    item: JudgeItem
    prompt: FilledPrompt
    images: tuple[ItemImage, ...]
    hashes: tuple[str, ...]
    flags: tuple[str, ...]


class JudgeSession:
    """Judges items with one judge and one template."""

    def __init__(
        self,
        settings: JudgeSettings,
        template: JudgeTemplate,
        journal: Journal,
        budget: Budget,
        identity: ServerIdentity | None,
    ) -> None:
        self.settings, self.template, self.journal, self.budget = settings, template, journal, budget
        self.identity = identity
        self.form = form_fields(settings, template, identity)
        self._calls = PaidCalls(settings, journal, budget)

    def run(self, items: Sequence[JudgeItem]) -> Judgement:
        """Ask about all items, read the replies, and ask again, in a fixed form, after malformed and doubtful ones."""
        verdicts: dict[int, JudgeVerdict] = {}
        waiting: dict[int, ReadyItem] = {}
        for index, item in enumerate(items):
            entry = self.prepare(item)
            if isinstance(entry, ReadyItem):
                waiting[index] = entry
            else:
                verdicts[index] = entry
        before = self.budget.spent
        for attempt in range(1 + self.settings.re_asks):
            keys = {index: self.key(entry, attempt) for index, entry in waiting.items()}
            answers = self._ask({key: self._call(waiting[index], attempt) for index, key in keys.items()}, attempt)
            for index, key in keys.items():
                verdict = self._read(waiting[index], key, answers.get(key), attempt)
                if verdict.outcome not in ("malformed", "doubtful") or attempt == self.settings.re_asks:
                    verdicts[index] = verdict
                    del waiting[index]
        ordered = [verdicts[index] for index in range(len(items))]
        spent, names = self.budget.spent - before, tuple(filter(None, [self._calls.served]))
        return Judgement(ordered, spent, self._why_stopped(), self._calls.server_failed, names, self.identity)

    def prepare(self, item: JudgeItem) -> ReadyItem | JudgeVerdict:
        """The item's prompt and images, or an `unusable` verdict."""
        empty = [name for name in self.template.slots if not (item.slots.get(name) or "").strip()]
        if empty:
            what = "the text to judge" if self.template.judged in empty else f"the {empty[0]}"
            return self._unusable(item, f"{what} is empty or missing")
        wanted = tuple(item.images) if self.template.images else ()
        if self.template.images and not wanted:
            return self._unusable(item, "there is no image")
        if wanted and not self.settings.images:
            return self._unusable(item, f"the judge {self.settings.name} takes no images")
        try:
            hashes = tuple(map(_checked_hash, wanted))
        except (ValueError, OSError) as error:
            return self._unusable(item, f"an image cannot be shown: it {error}")
        prompt = self.template.prompt(item.slots, self.settings.delimit == "always")
        flags = prompt.flags
        if share_of_arabic(item.slots[self.template.judged]) < 0.5:
            flags += ("wrong_script",)
        return ReadyItem(item, prompt, wanted, hashes, flags)

    def _unusable(self, item: JudgeItem, reason: str) -> JudgeVerdict:
        return JudgeVerdict(item.id, outcome="unusable", reason=reason, cluster=item.cluster)

    def key(self, entry: ReadyItem, attempt: int) -> str:
        """The journal key of a reply."""
        return answer_key(
            kind="judgement",
            judge={name: getattr(self.settings, name) for name in ("name", "model", "revision", "extra_body")},
            server=self.identity.known if self.identity else None,
            request=self._calls.limits() | self.form,
            prompt=self._text(entry, attempt),
            images=[*entry.hashes, self.settings.image_format, self.settings.image_max_side] if entry.images else None,
            attempt=attempt,
        )

    def _ask(self, calls: Mapping[str, Call], attempt: int) -> dict[str, Answer]:
        """The replies by key."""
        again = f", asked again ({attempt})" if attempt else ""
        description = f"judge {self.settings.name} ({self.template.short}{again})"
        answers = self._calls.answers(calls, description)
        if self._calls.server_failed:
            self.budget.halted = self._why_stopped()
        return answers

    def _call(self, entry: ReadyItem, attempt: int) -> Call:
        record = {
            "judge": self.settings.name,
            "server": str(self.identity),
            "template": f"{self.template.name}#{self.template.hash}",
            "item": entry.item.id,
            "attempt": attempt,
        }
        return Call(self._text(entry, attempt), images=entry.images, form=self.form, record=record)

    def _text(self, entry: ReadyItem, attempt: int) -> str:
        """The prompt; asked again, with the form of the reply at its end."""
        return entry.prompt.text + (self.template.asked_again(entry.prompt.code) if attempt else "")

    def _why_stopped(self) -> str | None:
        if not self._calls.server_failed:
            return self._calls.stopped
        urls = " / ".join(self.settings.base_url)
        return f"the judge {self.settings.name} at {urls} is asked no more ({self._calls.stopped})"

    def _not_answered(self, entry: ReadyItem, key: str, attempt: int) -> JudgeVerdict:
        outcome: Outcome = "not_asked"
        reason = f"not asked{' again' if attempt else ''}: {self._why_stopped()}"
        if cause := self._calls.failures.get(key):
            outcome, reason = "no_answer", f"the judge did not answer ({cause})"
        return JudgeVerdict(entry.item.id, {}, None, outcome, reason, entry.flags, None, attempt, entry.item.cluster)

    def _read(self, entry: ReadyItem, key: str, answer: Answer | None, attempt: int) -> JudgeVerdict:
        if answer is None:
            return self._not_answered(entry, key, attempt)
        completion = answer["completions"][0]
        earlier = self.journal.earlier(key)
        outcome: Outcome = "scored"
        reading, reason = ReplyReading(), ""
        if refused := why_refused(answer):
            outcome, reason = "refused", refused.reason
        else:
            try:
                reading = self.template.read(completion["text"], entry.flags, entry.prompt.code if attempt else "")
            except JudgeReplyError as error:
                cut = (
                    f" (cut off at {self.settings.max_tokens} tokens)"
                    if completion["finish_reason"] == "length"
                    else ""
                )
                outcome = "doubtful" if isinstance(error, DoubtfulReply) else "malformed"
                reason = f"{outcome} reply, asked {attempt + 1} times: {error}{cut}"
        return JudgeVerdict(
            item=entry.item.id,
            scores=reading.scores,
            label=reading.label,
            outcome=outcome,
            reason=reason,
            flags=entry.flags + reading.flags,
            reply=completion["text"],
            asked=attempt + 1,
            cluster=entry.item.cluster,
            reused=earlier / 1e9 if earlier else None,
        )


def _checked_hash(image: ItemImage) -> str:
    """The hash of an image that decodes and is not too large, else a `ValueError` or `OSError`."""
    if isinstance(image, (str, Path)):
        path = Path(image)
        if not path.is_file():
            raise ValueError(f"is missing: {path}")
        image = path.read_bytes()
    if isinstance(image, bytes):
        decoded(image)
    return image_hash(image)
