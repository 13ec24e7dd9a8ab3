"""Scores of labels by the log-probabilities of a reply's first token, for chat servers without others.

The score of a label is the summed probability of the tokens that begin it, with or without whitespace. So a label of
several tokens is scored by its first token; the log-probability of the whole label is lower. A token that begins
several labels counts for none. `top_logprobs` has only the likeliest tokens (20 for OpenAI and vLLM). A missing label
is less likely than all of them and gets a common lower score (`BELOW`). If missing or shared tokens could decide the
score of a doc, it is unscored.
"""

import math
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse
from cultureval.runtime.servers.client import OpenAIClient
from cultureval.runtime.servers.replies import Answer, answer_of, reading_a_reply, useless, why_refused
from cultureval.runtime.zero_width import INVISIBLE

LONGEST_LABEL = 4  # characters; longer choices are texts
BELOW = 1.0  # score of a missing label, below the least returned log-probability
SMALL_MASS = 1e-3  # largest share of missing labels in all labels, if several options are right
LARGEST_SUM = 1.01  # of probabilities of different tokens, each rounded to 16 bits
_AROUND = re.compile(f"^[\\s▁{INVISIBLE}]+|[\\s▁{INVISIBLE}]+$")  # ▁ is SentencePiece's space


def require_labels(doc: Doc) -> None:
    """Checks that the choices of a doc are labels.

    Raises:
        CulturevalError: They are texts, a choice is blank, or there are none.
    """
    if not doc.choices or not all(0 < len(choice.strip()) <= LONGEST_LABEL for choice in doc.choices):
        raise CulturevalError(
            f"{doc.task_name} scores texts, not labels, and `scoring: first_token` needs labels: leave the task out, "
            "or use a server with prompt_logprobs (vLLM)."
        )


async def ask_first_token(client: OpenAIClient, request: Mapping[str, Any]) -> Answer:
    """A reply as of `OpenAIClient.chat`, with its likeliest first tokens: `"top": [[bytes in hex, log-probability]]`.

    Args:
        client: Of a chat server.
        request: Messages, model, temperature, and the number of `top_logprobs`.

    Raises:
        ServerError: As of `OpenAIClient.chat`.
        RowError: Likewise; or the reply has no usable log-probabilities.
    """
    body = await client.chat_body(logprobs=True, **request)
    answer = answer_of(body)
    with reading_a_reply():
        top = [[_bytes_of(entry).hex(), float(entry["logprob"])] for entry in _top(body)]
        total = sum(math.exp(logprob) for _, logprob in top)
    if not top and why_refused(answer) is None:
        raise useless("it gives no top_logprobs of its first token; the generated form, such as qimma_gen, needs none")
    if not total <= LARGEST_SUM:  # also for NaN
        raise useless(f"the probabilities of its likeliest first tokens sum to {total:.3g}")
    return answer | {"top": top}


def _top(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = (body["choices"][0].get("logprobs") or {}).get("content")
    return (content[0].get("top_logprobs") if content else None) or []


def _bytes_of(entry: Mapping[str, Any]) -> bytes:
    data = entry.get("bytes")
    return bytes(data) if data else str(entry["token"]).encode("utf-8", "replace")


def label_scores(choices: Sequence[str], top: Sequence[tuple[str, float]]) -> list[float]:
    """The log-probability that a reply begins with each label: the sum over tokens that begin only this label.

    Args:
        choices: The labels.
        top: Bytes in hex, and log-probability.

    Returns:
        One for each label; minus infinity for a missing label.
    """
    return [min(_sum(logprobs), 0.0) for logprobs, _ in _by_label(choices, top)]


def _by_label(choices: Sequence[str], top: Sequence[tuple[str, float]]) -> list[tuple[list[float], list[float]]]:
    """For each label the log-probabilities of tokens that begin only it, and of tokens that also begin others."""
    found: list[tuple[list[float], list[float]]] = [([], []) for _ in choices]
    for token, logprob in top:
        places = _begun(choices, token)
        for place in places:
            found[place][len(places) > 1].append(logprob)
    return found


def _begun(choices: Sequence[str], token: str) -> list[int]:
    """The places of the labels that a token begins, whitespace apart; whitespace alone begins all."""
    text = bytes.fromhex(token).decode("utf-8", "surrogateescape")  # a token may be a part of a character
    start = _AROUND.sub("", text).encode("utf-8", "surrogateescape")
    return [place for place, choice in enumerate(choices) if text and choice.strip().encode().startswith(start)]


def _sum(logprobs: Sequence[float]) -> float:
    return float(np.logaddexp.reduce(logprobs))  # minus infinity for []


def undecided(doc: Doc, scores: Sequence[float], top: Sequence[tuple[str, float]]) -> str:
    """A clause on why a doc has no score; "" if shared and missing tokens cannot change the score.

    Shared tokens begin several labels; each label may have one missing token, which was not returned.
    """
    if max(scores) == -math.inf:
        return f"none of the labels is among the {len(top)} likeliest first tokens"
    floor = min(logprob for _, logprob in top)
    shared = [more for _, more in _by_label(doc.choices, top)]
    lengths = [len(choice) for choice in doc.choices]  # in code points: some metrics divide by them
    if any(_depends(doc, scores, shared, floor, sizes) for sizes in (lengths, [1] * len(lengths))):
        return f"tokens that begin several labels or are not among the {len(top)} likeliest could decide the score"
    return ""


def _depends(
    doc: Doc, scores: Sequence[float], shared: Sequence[Sequence[float]], floor: float, sizes: Sequence[int]
) -> bool:
    """Whether shared or missing tokens could change the likeliest labels, or the share of several right ones.

    Args:
        scores: Of each label.
        shared: For each label the log-probabilities of shared tokens.
        floor: Upper limit of the log-probability of a missing token.
        sizes: Divisors of the log-probabilities.
    """
    rows = list(zip(scores, shared, sizes, strict=True))
    each = [score / size for score, _, size in rows]
    most = [_sum([score, floor, *more]) / size for score, more, size in rows]
    order = sorted(range(len(each)), key=each.__getitem__, reverse=True)
    several = isinstance(doc.gold_index, list)
    count = len(doc.gold_index) if several else 1
    if any(most[place] >= each[order[count - 1]] for place in order[count:]):
        return True
    known = [_sum([max(score, floor), *more]) / size for score, more, size in rows]  # a present label has little more
    return several and 1 - sum(map(math.exp, each)) / sum(map(math.exp, known)) > SMALL_MASS


def first_token_response(doc: Doc, messages: Sequence[dict[str, Any]], answer: Answer) -> ModelResponse:
    """The response to a doc; a `RefusedResponse` if its score is undecided.

    All log-probabilities are finite: a missing label gets the least returned one minus `BELOW`.
    """
    top = [(token, logprob) for token, logprob in answer["top"] if logprob > -math.inf]
    scores = label_scores(doc.choices, top)
    if why := undecided(doc, scores, top):
        return RefusedResponse(reason=why, kind="undecided")
    least = min(logprob for _, logprob in top) - BELOW
    first = _begun(doc.choices, max(top, key=operator.itemgetter(1))[0])
    return ModelResponse(
        input=list(messages),
        logprobs=[max(score, least) for score in scores],
        argmax_logits_eq_gold=[first == [place] for place in range(len(scores))],
    )
