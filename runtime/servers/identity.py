"""What servers say of the model that they serve: an id and an address do not tell two checkpoints apart.

An identity is made of what `/v1/models` says of the model (id, root, max_model_len, sizes), the name and the
`system_fingerprint` in an answer, and the answer to one short greedy question. An address is no part of it, nor is a
date: the same checkpoint on another node or port is the same model.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from cultureval.runtime.coroutines import run_coroutine
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import CulturevalError, shorten
from cultureval.runtime.journal import journal_folder
from cultureval.runtime.progress import working
from cultureval.runtime.servers.answers import completion_of, name_of
from cultureval.runtime.servers.errors import ServerError
from cultureval.runtime.servers.openai_client import LISTED, OpenAIClient, health_check
from cultureval.runtime.servers.settings import ServerSettings
from cultureval.runtime.text_templates import short_hash

logger = logging.getLogger(__name__)

PROBE = "Continue this sentence in your own words: Early this morning, at the old market,"
PROBE_TOKENS = 16
_LONGEST_WAIT_S = 60.0  # to find out whether a server that answers one question in vain answers another
# Asked with a schema that admits one reply, which the question does not suggest: who gives it holds replies to schemas.
SCHEMA_QUESTION = "Greet me in one word."
SCHEMA_REPLY = {"tally": "k7"}
SCHEMA_TOKENS = 32
KNOWN = "servers.json"  # in the folder of the journal: model -> who it was in the last run
_REGULAR_EXPRESSIONS = ("vllm", "sglang")  # owners that hold replies to these, and need not be asked
# Owner -> fields of the short question. What llama.cpp computed in a batch with other questions is rounded differently,
# stays in its cache of prompts, and would answer for it from then on.
_COMPUTED_ANEW = {"llamacpp": {"cache_prompt": False}}


# Fields of a request that force the form of a reply, which the short question does not have.
_FORMS = {"structured_outputs", "response_format", "regex", "json_schema", "grammar"}


def is_form(name: str) -> bool:
    """Whether a field of a request forces the form of a reply."""
    return name in _FORMS or name.startswith("guided_")


def schema_format(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """The `response_format` by which OpenAI's servers, and others like them, hold a reply to a JSON object.

    `properties` are keys with the schemas of their values; all of them are required.
    """
    schema = {"type": "object", "properties": dict(properties), "required": [*properties]}
    schema |= {"additionalProperties": False}
    return held_to(schema, name)


def held_to(schema: Mapping[str, Any], name: str = "reply") -> dict[str, Any]:
    """The `response_format` of a whole JSON schema."""
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": dict(schema)}}


_NOT_COMPARED = ("owner", "holds_schema", "unlisted", "answered", "learned")
OF_THE_LIST = {"root", "max_model_len", "sizes"}
_OF_THE_ANSWER = {"probe", "fingerprint", "served"}
_SIZES = ("n_params", "n_vocab", "n_embd", "size")  # what llama.cpp lists of a model's weights


@dataclass(frozen=True)
class ServerIdentity:
    """A model as its servers describe it.

    Attributes:
        id: The model's id in requests.
        root: Its checkpoint, as vLLM and SGLang name it.
        max_model_len: Longest sequence that is served, in tokens.
        fingerprint: `system_fingerprint` of an answer: a build or a configuration, not weights.
        served: What the servers call the model in their answers, where that is not the id.
        sizes: What llama.cpp lists of the weights: numbers of parameters, of tokens, of dimensions, of bytes.
        probe: First eight hexadecimal digits of the SHA-256 of the answer to `PROBE`; None: no part of the identity.
        owner: `owned_by`: the serving software, such as "vllm", or a company. Not compared.
        holds_schema: Whether the servers hold a reply to a JSON schema, by trial. Not compared.
        unlisted: Why their list of models failed, as that of a busy server does; "" where it did not. Not compared.
        answered: Whether they answered `PROBE`, which some refuse for what it is. Not compared.
        learned: The same with what a list said later that was `unlisted` first, for all who watch this model; or none.
    """

    id: str
    root: str | None = None
    max_model_len: int | None = None
    fingerprint: str | None = None
    served: str | None = None
    sizes: str | None = None
    probe: str | None = None
    owner: str | None = None
    holds_schema: bool = False
    unlisted: str = ""
    answered: bool = True
    learned: list["ServerIdentity"] = field(default_factory=list, compare=False, repr=False)

    @property
    def described(self) -> bool:
        """Whether the servers say anything of the weights that the id does not."""
        return self.root is not None or self.sizes is not None

    def anonymity(self, whom: str, revision: str | None) -> str | None:
        """A sentence where another checkpoint under the same id could pass for this one; None where it could not.

        `whom` is such as "the judge jais"; `revision`, what the user calls the weights.
        """
        if self.described or revision:
            return None
        told = "only its answer to a short question tells it apart" if self.probe else "nothing tells it apart"
        build = f"; the fingerprint {self.fingerprint} names a build" if self.fingerprint else ""
        return (
            f"The servers of {whom} say nothing of its weights (no root{build}): {told} from another model "
            f"under the id {self.id}. Set `revision` to a name of your own for the weights."
        )

    @property
    def known(self) -> dict[str, str | int]:
        """What identifies the model, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _NOT_COMPARED}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def whole(self) -> "ServerIdentity":
        """With what its list said later, where that had failed."""
        return self.learned[0] if self.learned else self

    def learn(self, found: "ServerIdentity") -> None:
        """Takes what the list of the same model says, where it had failed."""
        if self.unlisted and not self.learned and not found.unlisted and not self.differing(found):
            of_list = {name: getattr(found, name) for name in (*OF_THE_LIST, "owner")}
            self.learned.append(replace(self, unlisted="", **of_list))

    @property
    def of_a_list(self) -> bool:
        """Whether the servers' list of models says anything of it but its id."""
        return any(getattr(self, name) is not None for name in (*OF_THE_LIST, "owner"))

    def differing(self, other: "ServerIdentity") -> set[str]:
        """In what another one differs; a list that fails and a question that is refused say nothing."""
        names = {name for name, _ in self.known.items() ^ other.known.items()}
        names -= OF_THE_LIST if bool(self.unlisted) != bool(other.unlisted) else set()
        return names - _OF_THE_ANSWER if self.answered != other.answered else names

    def says_less_than(self, other: "ServerIdentity") -> bool:
        """Whether a list that fails, or a question that is refused, leaves open what another one says."""
        return (other.of_a_list and bool(self.unlisted)) or (other.answered and not self.answered)

    def __str__(self) -> str:
        """`id=m;root=/models/m;probe=1a2b3c4d`, for signatures."""
        return ";".join(f"{name}={value}" for name, value in self.known.items())


@dataclass(frozen=True)
class IdentityQuestion:
    """How the servers of a model are asked who they are, more than once.

    Attributes:
        settings: The servers of one model.
        request: Fields of the short question besides its message: the model, temperature, limit.
        by_answer: Whether the answer and its fingerprint are part of the identity.
    """

    settings: ServerSettings
    request: Mapping[str, Any]
    by_answer: bool

    @classmethod
    def of(
        cls,
        servers: ServerSettings,
        model: str,
        limit: str = "max_tokens",
        temperature: float | None = 0,
        extra_body: Mapping[str, Any] = MappingProxyType({}),
        by_answer: bool = True,
    ) -> "IdentityQuestion":
        """A question like a model's other requests, but for the form of the reply.

        Args:
            servers: Of the model.
            model: Its id.
            limit: Name of the field that limits a reply.
            temperature: None sends none.
            extra_body: Further fields of its requests.
            by_answer: As the attribute.
        """
        extra = {name: value for name, value in extra_body.items() if not is_form(name)}
        request: dict[str, Any] = {"model": model, limit: PROBE_TOKENS}
        request |= {} if temperature is None else {"temperature": temperature}
        return cls(servers, request | ({"extra_body": extra} if extra else {}), by_answer)

    async def ask(self, url: str, patient: bool = True, listed: bool = False) -> ServerIdentity:
        """What one server says, which had a list of models if `listed`.

        Raises:
            ServerError: It does not answer, also to another try if `patient`.
        """
        settings = replace(self.settings, base_urls=(url,), max_retries=self.settings.max_retries if patient else 0)
        return await _of_server(settings, self.request, self.by_answer, False, True, listed)

    async def is_answered(self) -> bool:
        """Whether the servers answer it, so that their key, model and address are right."""
        settings = replace(self.settings, give_up_s=min(self.settings.give_up_s, _LONGEST_WAIT_S))
        async with OpenAIClient(settings, aside=self.request["model"]) as client:
            with suppress(ServerError):
                await _continued(client, self.request, plain=True)
                return True
        return False


def identify(question: IdentityQuestion, whom: str, try_schema: bool = False, plain: bool = False) -> ServerIdentity:
    """Ask the servers who they are; those that do not answer are left out, as long as one does.

    Args:
        question: To the servers.
        whom: The model in an error, such as "The judge jais".
        try_schema: Whether to find out, by a second short question, if replies are held to a schema; vLLM and SGLang
            are not asked.
        plain: Whether a model without a chat, such as a base model, is asked to continue the bare text; one that
            refuses that as well is known by the other things.

    Raises:
        CulturevalError: No server answers, or two of them say different things.
    """
    try:
        with working(f"{whom}: asking the server who it is"):
            found = run_coroutine(_identify(question, try_schema, plain))
    except ServerError as error:
        raise cannot_be_asked(whom, question.settings, error) from None
    if found.unlisted:
        logger.warning(
            "%s: its server's list of models fails (%s). Its answers are kept as those of a model of which only "
            "the rest is known: once the list answers, they are asked anew, as are now those of runs that read it.",
            *(whom, found.unlisted.rstrip(".")),
        )
    _tell_of_change(whom, found)
    return found


def _tell_of_change(whom: str, found: ServerIdentity) -> None:
    """Says where a model is not who it was in the last run with this journal, whose answers it then does not take."""
    file, known, now = journal_folder() / KNOWN, dict[str, str](), str(found)
    # A note alone, which may be lost: keys of answers have what it is about.
    with suppress(OSError, ValueError, TypeError, RecursionError):
        known = dict(json.loads(file.read_bytes()))
    before = known.get(whom, now)
    if before != now:
        logger.warning(
            "%s does not say of itself what it said in the last run with this journal (%s then, %s now): no answer of "
            "that one is taken for its own.",
            *(whom, shorten(str(before)), shorten(now)),
        )
    if known.get(whom) != now:
        with suppress(OSError):
            write_atomically(file, json.dumps(known | {whom: now}).encode())


def cannot_be_asked(whom: str, settings: ServerSettings, error: ServerError) -> CulturevalError:
    """The error that ends a command before anything is asked: what a model's servers said, and what to do."""
    return CulturevalError(
        f"{whom} at {' / '.join(settings.base_urls)} cannot be asked "
        f"({error.cause.rstrip('.')}): {error.advice(settings.api_key_env)}. Nothing was asked, and no earlier answer "
        "is reused, since nobody can say whose it is."
    )


def require_answer(whom: str, settings: ServerSettings, model: str) -> None:
    """Checks that a server lists the model, by a request that costs nothing; says which others do not.

    Raises:
        CulturevalError: None does.
    """
    failed = health_check(settings, model)
    if len(failed) == len(settings.base_urls):
        raise cannot_be_asked(whom, settings, next(iter(failed.values())))
    for url, error in failed.items():
        logger.warning(
            "%s at %s cannot be asked (%s); the other servers are used until it answers.", whom, url, error.cause
        )


def evaluated_model_identity(question: IdentityQuestion, revision: str | None) -> ServerIdentity:
    """Asks the servers of a model who they are, before any answer is looked up; says so where they tell nothing.

    Raises:
        CulturevalError: None of the servers answers, or they serve different models.
    """
    model = question.request["model"]
    found = identify(question, model, plain=True)
    if told := found.anonymity(model, revision):
        logger.warning("%s", told)
    return found


async def _identify(question: IdentityQuestion, try_schema: bool, plain: bool) -> ServerIdentity:
    settings = question.settings
    single = [replace(settings, base_urls=(url,)) for url in settings.base_urls]
    asked = (_of_server(one, question.request, question.by_answer, try_schema, plain) for one in single)
    found = await asyncio.gather(*asked, return_exceptions=True)
    found = [_unless_lost(url, one) for url, one in zip(settings.base_urls, found, strict=True)]
    errors = [one for one in found if isinstance(one, BaseException)]
    answered = {url: one for url, one in zip(settings.base_urls, found, strict=True) if isinstance(one, ServerIdentity)}
    if wrong := next((one for one in errors if not answered or not isinstance(one, CulturevalError)), None):
        raise wrong
    (url, first), *others = sorted(answered.items(), key=lambda one: bool(one[1].unlisted))
    for other_url, other in others:
        if other.unlisted and not first.unlisted:
            raise CulturevalError(
                f"The list of models of {other_url} fails ({other.unlisted.rstrip('.')}), so that nobody can say if "
                f"it serves what {url} does ({first}): mend it, or leave that address out of base_url."
            )
        if other.differing(first):
            raise CulturevalError(
                f"{url} and {other_url} do not serve the same model, or do not answer alike: {first} and {other}. "
                "List servers of one checkpoint under one base_url only."
            )
    return replace(first, holds_schema=all(one.holds_schema for one in answered.values()))


def _unless_lost(url: str, found: ServerIdentity | BaseException) -> ServerIdentity | BaseException:
    """The error of a server whose list of models this process has read, and which now fails: its root is lost."""
    if not isinstance(found, ServerIdentity) or not found.unlisted or url not in LISTED:
        return found
    return ServerError(cause := f"its list of models fails, which it had just before: {found.unlisted}", cause)


async def _of_server(
    settings: ServerSettings,
    request: Mapping[str, Any],
    by_answer: bool,
    try_schema: bool,
    plain: bool,
    known: bool = False,  # to have a list of models
) -> ServerIdentity:
    async with OpenAIClient(settings, aside=request["model"]) as client:
        entry, failed = await client.model_entry(request["model"], known or settings.base_urls[0] in LISTED)
        extra = {**request.get("extra_body", {}), **_COMPUTED_ANEW.get(str(entry.get("owned_by")), {})}
        response = await _continued(client, {**request, "extra_body": extra} if extra else request, plain)
        ask = try_schema and entry.get("owned_by") not in _REGULAR_EXPRESSIONS
        holds_schema = ask and await _holds_schema(client, request)
    length = entry.get("max_model_len")
    fingerprint, served = (name_of(getattr(response, name, None)) for name in ("system_fingerprint", "model"))
    return ServerIdentity(
        id=request["model"],
        root=name_of(entry.get("root")),
        max_model_len=length if isinstance(length, int) and length > 1 else None,
        fingerprint=fingerprint if by_answer else None,
        served=served if served != request["model"] else None,
        sizes=_sizes(entry.get("meta")),
        probe=_digest(response) if by_answer and response is not None else None,
        owner=name_of(entry.get("owned_by")),
        holds_schema=holds_schema,
        unlisted=failed.cause if failed else "",
        answered=response is not None,
    )


async def _continued(client: OpenAIClient, request: Mapping[str, Any], plain: bool) -> Any:
    """The response to `PROBE`; None where a server refuses it in both forms."""
    messages = [{"role": "user", "content": PROBE}]
    try:
        return await client.send(lambda one: one.chat.completions.create(messages=messages, **request))
    except ServerError as error:
        if not (plain and (error.refuses_content or error.refuses_all or error.may_refuse_all)):
            raise
        first = error
    limit = request.get("max_completion_tokens", PROBE_TOKENS)
    bare = {name: value for name, value in request.items() if name != "max_completion_tokens"}
    try:
        return await client.send(lambda one: one.completions.create(prompt=PROBE, **{"max_tokens": limit} | bare))
    except ServerError:
        if first.refuses_content:
            return None
        raise first from None


def _sizes(meta: Any) -> str | None:
    known = [f"{name}:{meta[name]}" for name in _SIZES if isinstance(meta.get(name), int)] if type(meta) is dict else []
    return ",".join(known) or None


def _digest(response: Any) -> str:
    answer = completion_of(response.choices[0])
    return short_hash(f"{answer['reasoning'] or ''}\n{answer['text']}")


async def _holds_schema(client: OpenAIClient, request: Mapping[str, Any]) -> bool:
    """Whether a server gives the one reply that a schema admits; not if it refuses, or passes over, the schema."""
    limit = next(name for name in ("max_tokens", "max_completion_tokens") if name in request)
    values = {key: {"type": "string", "enum": [value]} for key, value in SCHEMA_REPLY.items()}
    asked = dict(request) | {limit: SCHEMA_TOKENS, "messages": [{"role": "user", "content": SCHEMA_QUESTION}]}
    asked["extra_body"] = {**asked.get("extra_body", {}), "response_format": schema_format("greeting", values)}
    try:
        answer = await client.chat(**asked)
        return json.loads(answer["completions"][0]["text"]) == SCHEMA_REPLY
    except (ServerError, ValueError):
        return False
