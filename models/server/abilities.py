"""What a server can do, found by short questions before data are prepared; and the plan of the run that follows."""

import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from cultureval.models.server.first_token import NOT_RETURNED, label_scores, top_of, why_none
from cultureval.models.server.settings import ServerModelConfig
from cultureval.runtime.coroutines import run_coroutine
from cultureval.runtime.data.image_store import pillow
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.progress import working
from cultureval.runtime.servers.answers import usage_of
from cultureval.runtime.servers.costs import read_usage
from cultureval.runtime.servers.data_urls import data_url
from cultureval.runtime.servers.errors import ContentFilter, ServerError, reading_a_reply
from cultureval.runtime.servers.identity import PROBE
from cultureval.runtime.servers.openai_client import OpenAIClient

RETRIES = 3  # of a question, before another one shows whether the server fails at this one alone
LONGEST_WAIT_S = 120.0
REFUSING_STATUS = (404, 405, 501)  # with those of `refuses_content`: what a server does not have
IMAGE_SIDE = 64  # pixels; some models refuse smaller ones
LARGEST = "أي هذه الأعداد أكبر؟ أجب بحرف الإجابة الصحيحة فقط."  # the replies to which begin as those of a run
PASSED_OVER = "it passes over them: with one, it counts as many tokens as without"


@dataclass(frozen=True)
class Abilities:
    """What a server can do: "" where it can, why not (a clause) where it cannot, None where it was not asked.

    Attributes:
        chat: Chat messages.
        prompt_logprobs: Log-probabilities of prompts.
        first_token: Those of the likeliest first tokens of a chat reply.
        labels: What is missing there of replies to a question with the labels of a task's options, clauses.
        images: Images in chat messages.
        system: A system prompt.
        several: As many answers to one question as it is to be asked for.
        longest: Tokens that it says it reads; None where it does not say.
        counts_tokens: Whether it counts the tokens of a prompt (`/tokenize`, as vLLM does).
    """

    chat: str | None = None
    prompt_logprobs: str | None = None
    first_token: str | None = None
    labels: tuple[str, ...] = ()
    images: str | None = None
    system: str | None = None
    several: str | None = None
    longest: int | None = None
    counts_tokens: bool = False

    @property
    def scoring(self) -> str | None:
        """The first of `full` and `first_token` that it can be asked for; None where it can neither."""
        return "full" if self.prompt_logprobs == "" else "first_token" if self.first_token == "" else None

    def plan(self, scoring: str | None) -> str:
        """How a run goes about it, in one line.

        Args:
            scoring: How choices are scored; None without choices.
        """
        since = ", since the server gives none of prompts" if self.prompt_logprobs else ""
        words = {"full": "by log-probabilities of prompts", "first_token": f"by first-token log-probabilities{since}"}
        parts = [f"choices {words[scoring]}"] if scoring in words else []
        if scoring == "first_token" and self.labels:
            parts += [*self.labels, "rows that are so have no score: pass --on-refused unscored, or take qimma_gen"]
        parts += ["images as data URLs"] if self.images == "" else []
        parts += ["plain prompts only"] if self.chat else []
        parts += [f"{self.longest:,} tokens of context"] if self.longest else ["the context's length is not told"]
        shortened = "shortened by its own count" if self.counts_tokens else "sent whole, since it does not count tokens"
        return "; ".join([*parts, f"prompts that are too long are {shortened}"])


def choice_question(labels: Sequence[str]) -> str:
    """A short question with options, as tasks ask it."""
    return "\n".join([LARGEST, *(f"{label}. {number}" for number, label in enumerate(labels, start=1))])


def abilities(
    config: ServerModelConfig,
    images: bool,
    likelihoods: bool,
    labels: Collection[Sequence[str]] = (),
    answers: int = 1,
) -> Abilities:
    """Asks a model's servers what they can do that a run needs; each question generates one token.

    Args:
        config: Of a model that is not a provider's, whose abilities are in its table.
        images: Whether tasks have images.
        likelihoods: Whether tasks need log-probabilities.
        labels: Labels of options that these score, each set once: some servers have no log-probabilities of a first
            token that is a part of a character, such as of an Arabic letter, or none of a label's token. What holds of
            one question need not hold of others, so that this is told and decides nothing.
        answers: How many answers to one question tasks need; as many are asked for as a request may (`n`).

    Raises:
        ServerError: The servers do not answer, although they are asked as patiently as in the run.
    """
    with working(f"{config.model}: asking the server what it can do"):
        return run_coroutine(_ask(config, images, likelihoods, labels, min(answers, config.n)))


async def _ask(
    config: ServerModelConfig, images: bool, likelihoods: bool, labels: Collection[Sequence[str]], answers: int
) -> Abilities:
    settings, user = config.servers(), {"role": "user", "content": PROBE}
    short = replace(
        settings,
        max_retries=min(settings.max_retries, RETRIES),
        timeout_s=min(settings.timeout_s, LONGEST_WAIT_S),
    )
    async with (
        OpenAIClient(settings, aside=config.model) as patient,
        OpenAIClient(short, aside=config.model) as client,
    ):
        questions = _Questions(client, patient, config)
        refused, off = await questions.make_sure(), config.chat_template == "off"
        prompt_logprobs = await questions.prompt_logprobs() if likelihoods else None
        by_tokens = likelihoods and (prompt_logprobs != "" or config.scoring == "first_token")
        first_token, lacks = await questions.first_tokens(labels) if by_tokens else (None, ())
        return Abilities(
            chat=await questions.chat([user]) if off else refused,
            prompt_logprobs=prompt_logprobs,
            first_token=first_token,
            labels=lacks,
            images=await questions.image() if images else None,
            system=await questions.chat([{"role": "system", "content": config.system_prompt}, user])
            if config.system_prompt
            else None,
            several=await questions.several(answers) if answers > 1 else None,
            longest=await questions.longest(),
            counts_tokens=await client.token_count(model=config.model, messages=[user]) is not None,
        )


class _Questions:
    """Short questions to a server; the answers are clauses as those of `Abilities`."""

    def __init__(self, client: OpenAIClient, patient: OpenAIClient, config: ServerModelConfig) -> None:
        self._client, self._patient, self._config = client, patient, config
        self._gives_tokens = False
        self._request = {"model": config.model, "extra_body": config.extra_body}
        self._request |= {} if "temperature" in config.left_out else {"temperature": 0}

    async def make_sure(self) -> str:
        """Why the form in which the run asks is refused, a clause; asked as patiently as the run does.

        Raises:
            ServerError: The server neither answers nor refuses it: it is not there, busy or failing, or refuses all.
        """
        with suppress(ContentFilter):
            try:
                await self._patient.send(self._short_question(self._request))
            except ServerError as error:
                if not _refuses(error):
                    raise
                return error.cause.rstrip(".")
        return ""

    def _short_question(self, request: Mapping[str, Any]) -> Callable[[Any], Awaitable[Any]]:
        """Sends the short question in the form in which the run asks, with these fields."""
        if self._config.chat_template == "off":
            return lambda one: one.completions.create(**request, max_tokens=1, prompt=PROBE)
        chat = {**request, self._config.max_tokens_name: 1, "messages": [{"role": "user", "content": PROBE}]}
        return lambda one: one.chat.completions.create(**chat)

    async def chat(self, messages: list[dict[str, Any]], found: Callable[[Any], str] = lambda response: "") -> str:
        asked = self._request | {self._config.max_tokens_name: 1, "messages": messages}
        return await self._why_not(lambda one: one.chat.completions.create(**asked), found)

    async def several(self, answers: int) -> str:
        """Asks for several answers at the temperature of the run, since some servers refuse several greedy ones."""
        asked = {"model": self._config.model, "extra_body": self._config.extra_body, "n": answers}
        temperature = self._config.generation_parameters.temperature
        asked |= {} if temperature is None or "temperature" in self._config.left_out else {"temperature": temperature}
        return await self._why_not(self._short_question(asked), lambda response: "", answers)

    async def image(self) -> str:
        """Asks with an image; some servers answer without having looked at it, and count the tokens of the text."""
        counts: list[int | None] = []

        def counted(response: Any) -> str:
            used = read_usage(usage_of(response))
            counts.append(used.input if used else None)
            return PASSED_OVER if len(counts) == 2 and None not in counts and counts[0] == counts[1] else ""

        refused = ""
        for content in (PROBE, _with_image()):
            refused = refused or await self.chat([{"role": "user", "content": content}], counted)
        return refused

    async def first_tokens(self, labels: Collection[Sequence[str]]) -> tuple[str, tuple[str, ...]]:
        """Why it gives none to any question; and what is missing of labels whose letters may be parts of tokens."""
        why = await self._first_token(PROBE)
        lacks = {
            " ".join(own): await self._first_token(choice_question(own), own)
            for own in labels
            if not all(map(str.isascii, own))
        }
        told = tuple(f"to a question with the options {own}: {lack}" for own, lack in lacks.items() if lack)
        return ("" if self._gives_tokens else why), told

    async def _first_token(self, question: str, labels: Sequence[str] = ()) -> str:
        def found(response: Any) -> str:
            why, top = why_none(response), top_of(response)
            self._gives_tokens = self._gives_tokens or not why
            absent = labels and not why and max(label_scores(labels, top)) == -math.inf
            return f"none of them is among the {len(top)} likeliest first tokens" if absent else why

        asked = self._request | {self._config.max_tokens_name: 1, "logprobs": True}
        asked |= {"top_logprobs": self._config.top_logprobs, "messages": [{"role": "user", "content": question}]}
        return await self._why_not(lambda one: one.chat.completions.create(**asked), found)

    async def prompt_logprobs(self) -> str:
        body = {**self._config.extra_body, "prompt_logprobs": 0}
        asked = self._request | {"prompt": PROBE, "max_tokens": 1, "extra_body": body}

        def found(response: Any) -> str:
            return "" if (response.choices[0].model_extra or {}).get("prompt_logprobs") else NOT_RETURNED

        return await self._why_not(lambda one: one.completions.create(**asked), found)

    async def longest(self) -> int | None:
        entry, _ = await self._client.model_entry(self._config.model)
        meta = entry.get("meta")
        told = entry.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, dict) else None)
        return told if type(told) is int and told > 1 else None

    async def _why_not(
        self, ask: Callable[[Any], Awaitable[Any]], found: Callable[[Any], str], choices: int = 1
    ) -> str:
        """Why a question is not answered as it is meant, a clause: as `found` says of the reply; "" where it is.

        Raises:
            ServerError: No question would be: the server is not there, busy or failing, or refuses all.
        """
        for client in (self._client, self._patient):
            try:
                response = await client.send(ask, choices)
                with reading_a_reply():
                    return found(response)
            except ContentFilter:
                return ""
            except ServerError as error:
                if _refuses(error):
                    return error.cause.rstrip(".")
                failed = error
                await self.make_sure()
                if error.in_vain or error.may_refuse_all:
                    return error.cause.rstrip(".")
        raise failed


def _refuses(error: ServerError) -> bool:
    """Whether a server says that it does not have what a question asks for."""
    return error.refuses_content or error.status in REFUSING_STATUS


def _with_image() -> list[dict[str, Any]]:
    url = data_url(pillow().new("RGB", (IMAGE_SIDE, IMAGE_SIDE), "grey"))
    return [{"type": "text", "text": PROBE}, {"type": "image_url", "image_url": {"url": url}}]


def why_no_likelihoods(config: ServerModelConfig, able: Abilities) -> str | None:
    """Why choices cannot be scored as the settings want it, as a sentence with what works; None where they can."""
    wanted = able.scoring if config.scoring == "auto" else config.scoring
    prompts = f"log-probabilities of prompts ({able.prompt_logprobs})"
    tokens = f"top_logprobs of first tokens ({able.first_token})"
    if wanted is None:
        return (
            f"{config.model} at {config.base_url[0]} gives neither {prompts} nor {tokens}: QIMMA's choices have a "
            "generated form, qimma_gen; for others, serve the model with vLLM or run it with transformers."
        )
    if wanted == "full" and able.prompt_logprobs:
        works = "`scoring: first_token` scores labels" if able.first_token == "" else "qimma_gen generates answers"
        return f"{config.model} at {config.base_url[0]} gives no {prompts}, which `scoring: full` needs: {works}."
    if wanted == "first_token" and able.first_token:
        works = "`scoring: full` scores choices" if able.prompt_logprobs == "" else "qimma_gen generates answers"
        return f"{config.model} at {config.base_url[0]} gives no {tokens}, which `scoring: first_token` needs: {works}."
    return None


def scoring_of(config: ServerModelConfig, labels: Sequence[str]) -> str:
    """How a model's choices are scored: as the settings say, or as its servers can be asked with some labels.

    Raises:
        CulturevalError: They can do neither.
    """
    if config.scoring != "auto" or config.provided_by is not None:
        return "first_token" if config.scoring == "first_token" else "full"
    able = abilities(config, False, True, [labels])
    if why := why_no_likelihoods(config, able):
        raise CulturevalError(why)
    return able.scoring or "full"
