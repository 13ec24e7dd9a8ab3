"""Who answers: what servers list of a model in `/v1/models`. An id and an address do not tell two checkpoints apart.

An address is no part of a model's identity, nor is a date: the same checkpoint on another node is the same model.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import openai

from cultureval.runtime.coroutines import run_coroutine
from cultureval.runtime.errors import CulturevalError, did_you_mean, shown_names
from cultureval.runtime.servers.client import OpenAIClient
from cultureval.runtime.servers.providers import provider_at
from cultureval.runtime.servers.replies import UNREADABLE, name_of
from cultureval.runtime.servers.settings import ServedModel, ServerSettings

logger = logging.getLogger(__name__)

NO_LIST = (403, 404, 405, 500, 501)  # of servers that have none; 500 of transformers' without a hub cache
RETRIES = 2  # before the run, where a server that is not there is refused soon
_ASKED: dict[tuple[Any, ...], "ServerIdentity"] = {}  # what was listed in this process, by addresses, id and revision
SIZES = ("n_params", "n_vocab", "n_embd", "size")  # what llama.cpp lists of a model's weights


@dataclass(frozen=True)
class ServerIdentity:
    """A model as its servers list it."""

    id: str  # in requests
    root: str | None = None  # its checkpoint, as vLLM and SGLang name it; of a provider, the provider
    max_model_len: int | None = None  # longest sequence that is served, in tokens
    sizes: str | None = None  # what llama.cpp lists of the weights: numbers of parameters, tokens, dimensions, bytes
    owner: str | None = None  # `owned_by`: the serving software, or a company; not part of the identity

    @property
    def known(self) -> dict[str, str | int]:
        """What identifies the model, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "owner"}
        return {name: value for name, value in values.items() if value is not None}

    def __str__(self) -> str:
        """`id=m;root=/models/m`, for signatures."""
        return ";".join(f"{name}={value}" for name, value in self.known.items())


def known_identity(served: ServedModel) -> ServerIdentity | None:
    """Who a model's servers are, if they were asked in this process."""
    return _ASKED.get(_key(served))


def identity_in_run(whom: str, served: ServedModel) -> ServerIdentity:
    """Who a model's servers are, asked once; raises as `identify`."""
    return known_identity(served) or identify(whom, served)


def identity_of_loaded(whom: str, served: ServedModel) -> ServerIdentity:
    """Who the servers of a model just loaded are: as the check before it learned, else asked. Raises as `identify`.

    A check counts for one load: later the servers may have other weights.
    """
    return _ASKED.pop(_key(served), None) or _identify(whom, served)


def identify(whom: str, served: ServedModel) -> ServerIdentity:
    """Asks a model's servers for their lists of models; those that do not answer are left out, as long as one does.

    A provider is not asked: its model is known by its id. Raises a CulturevalError where no server answers, none lists
    the model, or two list different ones.

    Args:
        whom: The model in messages, such as "The judge jais".
        served: The model, its id and its servers.
    """
    _ASKED.pop(_key(served), None)
    _ASKED[_key(served)] = _identify(whom, served)
    return _ASKED[_key(served)]


def _key(served: ServedModel) -> tuple[Any, ...]:
    return served.base_url, served.model, served.revision


def _identify(whom: str, served: ServedModel) -> ServerIdentity:
    servers, model = served.servers(), served.model
    if (provider := provider_at(servers.base_urls)) is not None:
        return ServerIdentity(model, root=provider.id)
    found: dict[str, ServerIdentity] = {}
    failed: list[CulturevalError] = []
    for url, content in run_coroutine(_lists(servers)).items():
        if isinstance(content, CulturevalError):
            cause = content.__cause__
            if isinstance(cause, openai.APIStatusError) and cause.status_code in NO_LIST:
                found[url] = ServerIdentity(model)
                continue
            failed.append(content)
        else:
            found[url] = _listed(whom, url, content, model)
    if not found:
        raise CulturevalError(f"{whom}: {failed[0]}")
    for error in failed:
        logger.warning("%s: %s", whom, error)
    first = next(iter(found.values()))
    if other := next((url for url, one in found.items() if one.known != first.known), None):
        raise CulturevalError(
            f"{whom}: the servers serve different models ({next(iter(found))}: {first}; {other}: {found[other]}). "
            "Name servers of one model."
        )
    if served.revision is None and first.root is None and first.sizes is None:
        logger.warning("%s: its server says nothing of the weights. Set `revision` to your name for them.", whom)
    return first


async def _lists(servers: ServerSettings) -> Mapping[str, bytes | CulturevalError]:
    async with OpenAIClient(replace(servers, max_retries=min(RETRIES, servers.max_retries))) as client:
        return await client.models()


def _listed(whom: str, url: str, content: bytes, model: str) -> ServerIdentity:
    """What a list of models, an object with `data` or a bare list, says of one; of a list of another form, nothing."""
    try:
        body = json.loads(content)
        entries = body["data"] if isinstance(body, dict) else body
        ids = [str(entry["id"]) for entry in entries]
    except UNREADABLE:
        ids = []
    if not ids:
        return ServerIdentity(model)
    if model not in ids:
        has = shown_names([name_of(one) or "?" for one in ids])
        raise CulturevalError(f"{whom}: {url} does not serve {model!r}; it has {has}.{did_you_mean(model, ids)}")
    return _of_entry(model, entries[ids.index(model)])


def _of_entry(model: str, entry: Mapping[str, Any]) -> ServerIdentity:
    meta = entry.get("meta")
    meta = meta if isinstance(meta, Mapping) else {}
    longest = entry.get("max_model_len") or meta.get("n_ctx")
    sizes = [f"{name}={meta[name]}" for name in SIZES if isinstance(meta.get(name), int)]
    return ServerIdentity(
        model,
        root=name_of(entry.get("root")),
        max_model_len=longest if isinstance(longest, int) and longest > 1 else None,
        sizes=",".join(sizes) or None,
        owner=name_of(entry.get("owned_by")),
    )
