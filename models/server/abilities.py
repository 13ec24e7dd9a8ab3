"""What a server can do, found by short questions before data are prepared; and the plan of the run that follows."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cultureval.models.server.first_token import possible_top_of
from cultureval.models.server.settings import ServerModelConfig
from cultureval.runtime.coroutines import run_coroutine
from cultureval.runtime.data.image_store import pillow
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.costs import read_usage
from cultureval.runtime.servers.data_urls import data_url
from cultureval.runtime.servers.errors import ContentFilter, ServerError
from cultureval.runtime.servers.identity import PROBE
from cultureval.runtime.servers.openai_client import OpenAIClient
from cultureval.runtime.settings import current_settings

RETRIES = 3  # one that goes on failing at such a question cannot do what it asks for; a fault on the way is no sign
LONGEST_WAIT_S = 120.0
IMAGE_SIDE = 64  # pixels; some models refuse smaller ones
LARGEST = "أي هذه الأعداد أكبر؟ أجب بحرف الإجابة الصحيحة فقط."  # the replies to which begin as those of a run
PASSED_OVER = "it passes over them: with one, it counts as many tokens as without"
NOT_RETURNED = "it passes over the request for them"


@dataclass(frozen=True)
class Abilities:
    """What a server can do: "" where it can, why not (a clause) where it cannot, None where it was not asked.

    Attributes:
        chat: Chat messages.
        prompt_logprobs: Log-probabilities of prompts.
        first_token: Those of the likeliest first tokens of a chat reply.
        images: Images in chat messages.
        system: A system prompt.
        longest: Tokens that it says it reads; None where it does not say.
        counts_tokens: Whether it counts the tokens of a prompt (`/tokenize`, as vLLM does).
    """

    chat: str | None = None
    prompt_logprobs: str | None = None
    first_token: str | None = None
    images: str | None = None
    system: str | None = None
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
        parts += ["images as data URLs"] if self.images == "" else []
        parts += ["plain prompts only"] if self.chat else []
        parts += [f"{self.longest:,} tokens of context"] if self.longest else ["the context's length is not told"]
        shortened = (
            "shortened by its own count" if self.counts_tokens else "refused by it, since it does not count tokens"
        )
        return "; ".join([*parts, f"prompts that are too long are {shortened}"])


def choice_question(labels: Sequence[str]) -> str:
    """A short question with options, as tasks ask it."""
    return "\n".join([LARGEST, *(f"{label}. {number}" for number, label in enumerate(labels, start=1))])


def abilities(
    config: ServerModelConfig, images: bool, likelihoods: bool, labels: Collection[Sequence[str]] = ()
) -> Abilities:
    """Asks a model's servers what they can do that a run needs; each question generates one token.

    Args:
        config: Of a model that is not a provider's, whose abilities are in its table.
        images: Whether tasks have images.
        likelihoods: Whether tasks need log-probabilities.
        labels: Labels of options that these score, each set once: some servers have no log-probabilities of a first
            token that is a part of a character, such as of an Arabic letter.

    Raises:
        CulturevalError: The servers do not answer.
    """
    return run_coroutine(_ask(config, images, likelihoods, labels))


async def _ask(
    config: ServerModelConfig, images: bool, likelihoods: bool, labels: Collection[Sequence[str]]
) -> Abilities:
    settings = config.servers()
    patient = replace(settings, max_retries=RETRIES, timeout_s=min(settings.timeout_s, LONGEST_WAIT_S))
    user = {"role": "user", "content": PROBE}
    async with OpenAIClient(patient) as client:
        questions = _Questions(client, config)
        return Abilities(
            chat=await questions.chat([user]),
            prompt_logprobs=await questions.prompt_logprobs() if likelihoods else None,
            first_token=await questions.first_tokens(labels) if likelihoods else None,
            images=await questions.image() if images else None,
            system=await questions.chat([{"role": "system", "content": config.system_prompt}, user])
            if config.system_prompt
            else None,
            longest=await questions.longest(),
            counts_tokens=await client.token_count(model=config.model, messages=[user]) is not None,
        )


class _Questions:
    """Short questions to a server; the answers are clauses as those of `Abilities`."""

    def __init__(self, client: OpenAIClient, config: ServerModelConfig) -> None:
        self._client, self._config = client, config
        self._request = {"model": config.model, "extra_body": config.extra_body}
        self._request |= {} if "temperature" in config.left_out else {"temperature": 0}

    async def chat(self, messages: list[dict[str, Any]], found: Callable[[Any], object] = lambda response: True) -> str:
        asked = self._request | {self._config.max_tokens_name: 1, "messages": messages}
        return await _why_not(lambda: self._client.send(lambda one: one.chat.completions.create(**asked)), found)

    async def image(self) -> str:
        """Asks with an image; some servers answer without having looked at it, and count the tokens of the text."""
        counts: list[int | None] = []

        def counted(response: Any) -> bool:
            used = read_usage(response.usage.model_dump()) if response.usage else None
            counts.append(used.input if used else None)
            return len(counts) < 2 or None in counts or counts[0] != counts[1]

        refused = ""
        for content in (PROBE, _with_image()):
            refused = refused or await self.chat([{"role": "user", "content": content}], counted)
        return PASSED_OVER if refused == NOT_RETURNED else refused

    async def first_tokens(self, labels: Collection[Sequence[str]]) -> str:
        """With words, and with labels whose letters may be parts of tokens, unless rows without are left unscored."""
        refused, skips = "", current_settings().on_refused == "unscored"
        for own in [one for one in labels if not skips and not all(map(str.isascii, one))]:
            refused = refused or await self._first_token([{"role": "user", "content": choice_question(own)}])
            if refused == NOT_RETURNED:
                refused = f"it gives none of a reply to a question whose options are {' '.join(own)}"
        return refused or await self._first_token([{"role": "user", "content": PROBE}])

    async def _first_token(self, messages: list[dict[str, Any]]) -> str:
        asked = self._request | {self._config.max_tokens_name: 1, "messages": messages, "logprobs": True}
        asked["top_logprobs"] = self._config.top_logprobs
        return await _why_not(
            lambda: self._client.send(lambda one: one.chat.completions.create(**asked)), possible_top_of
        )

    async def prompt_logprobs(self) -> str:
        body = {**self._config.extra_body, "prompt_logprobs": 0}
        asked = self._request | {"prompt": PROBE, "max_tokens": 1, "extra_body": body}

        def found(response: Any) -> object:
            return (response.choices[0].model_extra or {}).get("prompt_logprobs")

        return await _why_not(lambda: self._client.send(lambda one: one.completions.create(**asked)), found)

    async def longest(self) -> int | None:
        entry = await self._client.model_entry(self._config.model)
        meta = entry.get("meta")
        told = entry.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, dict) else None)
        return told if type(told) is int and told > 1 else None


async def _why_not(ask: Callable[[], Awaitable[Any]], found: Callable[[Any], object]) -> str:
    """Why a question is not answered as it is meant, a clause; "" where it is.

    Raises:
        ServerError: No question would be: the server is not there, or refuses all.
    """
    try:
        return "" if found(await ask()) else NOT_RETURNED
    except ContentFilter:
        return ""
    except ServerError as error:
        if error.unreachable or (error.refuses_all and error.status != 404):  # an address that it does not have
            raise
        return error.cause.rstrip(".")


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
