"""Answers that are none: the model refused, or a provider's filter stopped prompt or answer. They are refused rows."""

from collections import Counter
from collections.abc import Mapping, Sequence

from lighteval.tasks.requests import Doc

from cultureval.runtime.errors import CulturevalError, shorten
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse, name_of
from cultureval.runtime.servers.answers import Answer
from cultureval.runtime.servers.providers import filters
from cultureval.runtime.settings import current_settings

NAMED = 3  # rows in one message
OF_KIND = {"filter": "stopped by the provider's filter", "refusal": "refused by the model"}


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
        if (why := next((one for key in keys if key in answers and (one := _why(answers[key]))), None))
    }
    if found and current_settings().on_refused != "unscored":
        kinds = Counter(why.kind for why in found.values())
        rows = [f"{name_of(docs[place])}: {why.reason}" for place, why in list(found.items())[:NAMED]]
        more = f"; and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
        counts = ", ".join(f"{count:,} {OF_KIND[kind]}" for kind, count in kinds.items())
        raise AnswersRefused(
            f"{len(found):,} of {len(docs):,} answers are none ({counts}): {'; '.join(rows)}{more}. All answers are "
            "kept and not paid again: pass --on-refused unscored (CULTUREVAL_ON_REFUSED=unscored) to leave such rows "
            "unscored, count them, and bound the scores."
        )
    return found


def _why(answer: Answer) -> RefusedResponse | None:
    for completion in answer.get("completions", ()):
        reason, refusal = completion["finish_reason"], completion["refusal"]
        if filters().in_finish_reason(reason):
            told = f", {reason}" if reason != "content_filter" else ""
            said = f": {shorten(refusal)}" if refusal else ""
            return RefusedResponse(reason=f"the provider's filter stopped it{told}{said}", kind="filter")
        if refusal:
            return RefusedResponse(reason=f"the model refused: {shorten(refusal)}", kind="refusal")
    return None
