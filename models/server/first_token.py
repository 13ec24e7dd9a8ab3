"""Labels scored by the log-probabilities of a reply's first token, where a chat server gives no others.

`top_logprobs` has the likeliest tokens alone (20 of OpenAI's and of vLLM's), so that a label may be missing: it is then
less likely than all of them, and its score is a number below theirs (`BELOW`), which all missing labels share. A doc
whose score could depend on how much less is unscored. A label of several tokens is scored by its first, if no other
label begins with it: the log-probability of the whole label is lower.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse
from cultureval.runtime.servers.answers import Answer, name_of, usage_of
from cultureval.runtime.servers.errors import reading_a_reply, unusable
from cultureval.runtime.servers.openai_client import OpenAIClient

LONGEST_LABEL = 4  # characters; what is longer is a text
BELOW = 1.0  # how far the score of a missing label is below the least log-probability that was returned
SMALL_MASS = 1e-3  # of the probability of all labels: what missing ones may have where several options are right
LARGEST_LOGPROB = 1e-3  # of rounding in 16 bits; a log-probability is 0 at most
LARGEST_SUM = 1.01  # of probabilities of different tokens, each rounded to 16 bits
NOT_RETURNED = "it passes over the request for them"
PART = "the first token of its reply is a part of a character, of which it gives none"


def require_labels(doc: Doc) -> None:
    """Checks that the choices of a doc are labels.

    Raises:
        CulturevalError: They are texts, one is blank, or there are none.
    """
    if not doc.choices or not all(0 < len(choice.strip()) <= LONGEST_LABEL for choice in doc.choices):
        raise CulturevalError(
            f"{doc.task_name} scores texts, not labels, which the log-probability of one token cannot do "
            "(scoring: first_token): leave the task out, or use a server with prompt_logprobs (vLLM)."
        )


async def ask_first_token(client: OpenAIClient, request: Mapping[str, Any]) -> Answer:
    """The likeliest first tokens of a reply as `{"top": [[bytes in hex, log-probability], ...], "model", "usage"}`.

    Args:
        client: Of a chat server.
        request: Messages, model, temperature, and the number of `top_logprobs`.

    Raises:
        ServerError: The server gives no log-probabilities, or does not answer.
    """
    response = await client.send(lambda one: one.chat.completions.create(logprobs=True, **request))
    usage = usage_of(response)
    with reading_a_reply(usage):
        found = top_of(response)
        why = why_none(response)
    if why:
        told = f"no log-probabilities of its first token that can be scored ({why})"
        raise unusable(f"The server gives {told}: the generated form, such as qimma_gen, needs none.", usage)
    return {"top": found, "model": name_of(getattr(response, "model", None)), "usage": usage}


def top_of(response: Any) -> list[list[Any]]:
    """The likeliest first tokens of a chat reply, `[bytes in hex, log-probability]`; [] where it has none."""
    content = getattr(getattr(response.choices[0], "logprobs", None), "content", None)
    top = getattr(content[0], "top_logprobs", None) if isinstance(content, list) and content else None
    return [[_bytes_of(one).hex(), float(one.logprob)] for one in top or [] if isinstance(one.logprob, int | float)]


def why_none(response: Any) -> str:
    """Why a chat reply has no log-probabilities of likely first tokens, or none that can be; "" where it has."""
    logprobs = [logprob for _, logprob in top_of(response)]
    if wrong := [one for one in logprobs if not one <= LARGEST_LOGPROB]:  # NaN is neither
        return f"it gives {wrong[0]:.6g} as the log-probability of a likely first token"
    if (total := sum(map(math.exp, logprobs))) > LARGEST_SUM:
        return f"the probabilities of its likeliest first tokens sum to {total:.3g}"
    if logprobs:
        return ""
    text = getattr(getattr(response.choices[0], "message", None), "content", None)
    return PART if isinstance(text, str) and set(text) == {"\ufffd"} else NOT_RETURNED  # which stands for half a letter


def _bytes_of(entry: Any) -> bytes:
    given = getattr(entry, "bytes", None)
    whole = isinstance(given, list) and given and all(isinstance(one, int) and 0 <= one < 256 for one in given)
    return bytes(given) if whole else str(entry.token).encode("utf-8", "replace")


def label_scores(choices: Sequence[str], top: Sequence[tuple[str, float]]) -> list[float]:
    """The log-probability of each label; minus infinity for one that is not among the tokens.

    A token is that of a label if it is the choice, or its text with another space before, or the beginning of this
    label alone.

    Args:
        choices: The labels as they are scored.
        top: Bytes in hex, and log-probability.
    """
    labels = [choice.strip().encode() for choice in choices]
    tokens = [(bytes.fromhex(token), logprob) for token, logprob in top]
    scores = []
    for choice, label in zip(choices, labels, strict=True):
        others = [one for one in labels if one != label]
        ranked = (
            [logprob for token, logprob in tokens if token == choice.encode()],
            [logprob for token, logprob in tokens if token.strip() == label],
            [
                logprob
                for token, logprob in tokens
                if (bare := token.strip()) and label.startswith(bare) and not any(o.startswith(bare) for o in others)
            ],
        )
        scores.append(next((max(found) for found in ranked if found), -math.inf))
    return scores


def undecided(doc: Doc, scores: Sequence[float], top: Sequence[tuple[str, float]]) -> str:
    """Why a doc has no score, a clause; "" where it has one whatever the missing labels' probabilities are."""
    present = [score for score in scores if score > -math.inf]
    if not present:
        return f"none of the labels is among the {len(top)} likeliest first tokens"
    floor = min(logprob for _, logprob in top)
    lengths = [len(choice) for choice in doc.choices]  # in code points, as the metrics divide by them
    each = [score / size for score, size in zip(scores, lengths, strict=True)]
    bounds = [floor / size for score, size in zip(scores, lengths, strict=True) if score == -math.inf]
    several = isinstance(doc.gold_index, list)
    last = sorted(each, reverse=True)[len(doc.gold_index) - 1 if several else 0]  # of as many as there are right ones
    share = sum(map(math.exp, bounds)) / (sum(map(math.exp, each)) + sum(map(math.exp, bounds)))
    if any(bound >= last for bound in bounds) or (several and share > SMALL_MASS):
        return f"a label that is not among the {len(top)} likeliest first tokens could decide the score"
    return ""


def first_token_response(doc: Doc, messages: Sequence[dict[str, Any]], answer: Answer) -> ModelResponse:
    """The response to a doc; a `RefusedResponse` where its score cannot be known.

    Its log-probabilities are finite: a label that is not among the tokens, or has minus infinity there, has one that is
    `BELOW` all of theirs.
    """
    top = [(token, logprob) for token, logprob in answer["top"] if logprob > -math.inf]
    scores = label_scores(doc.choices, top)
    if why := undecided(doc, scores, top):
        return RefusedResponse(reason=why, kind="undecided")
    returned = [logprob for _, logprob in top]
    least, best = min(returned) - BELOW, max(returned)
    return ModelResponse(
        input=list(messages),
        logprobs=[max(score, least) for score in scores],
        argmax_logits_eq_gold=[score == best for score in scores],
    )
