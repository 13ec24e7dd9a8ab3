"""Model identity: the entry of a model in its servers' `/v1/models`, since one id may serve several checkpoints.

Addresses and dates are not part of it: the same checkpoint on another node is the same model.
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

NO_LIST = (403, 404, 405, 500, 501)  # servers without a list; 500: transformers' without a hub cache
RETRIES = 2  # few, so that a missing server is reported soon
_ASKED: dict[tuple[Any, ...], "ServerIdentity"] = {}  # answers in this process, by addresses, id and revision
SIZES = ("n_params", "n_vocab", "n_embd", "size")  # fields of llama.cpp about a model's weights


@dataclass(frozen=True)
class ServerIdentity:
    """A model as its servers list it."""

    id: str  # in requests
    root: str | None = None  # the checkpoint by vLLM and SGLang; for a provider its id
    max_model_len: int | None = None  # longest sequence, in tokens
    sizes: str | None = None  # by llama.cpp: numbers of parameters, tokens, dimensions, bytes
    owner: str | None = None  # `owned_by`: the serving software, or a company; not part of the identity

    @property
    def known(self) -> dict[str, str | int]:
        """The fields that identify the model."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "owner"}
        return {name: value for name, value in values.items() if value is not None}

    def __str__(self) -> str:
        """`id=m;root=/models/m`, for signatures."""
        return ";".join(f"{name}={value}" for name, value in self.known.items())


def known_identity(served: ServedModel) -> ServerIdentity | None:
    """The identity of a served model, if this process has asked for it."""
    return _ASKED.get(_key(served))


def identity_in_run(whom: str, served: ServedModel) -> ServerIdentity:
    """The identity of a served model, asked once in a process; raises as `identify`."""
    return known_identity(served) or identify(whom, served)


def identity_of_loaded(whom: str, served: ServedModel) -> ServerIdentity:
    """The identity of a model at its load: as the check before the load found it, else asked. Raises as `identify`.

    A check counts for one load, since servers may change their weights later.
    """
    return _ASKED.pop(_key(served), None) or _identify(whom, served)


def identify(whom: str, served: ServedModel) -> ServerIdentity:
    """Asks a model's servers for their lists of models; one answer is enough.

    A provider is not asked: the id identifies its model. Raises a CulturevalError where no server answers, none lists
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
    if other := next((url for url, identity in found.items() if identity.known != first.known), None):
        raise CulturevalError(
            f"{whom}: the servers serve different models ({next(iter(found))}: {first}; {other}: {found[other]}). "
            "Name servers of one model."
        )
    if served.revision is None and first.root is None and first.sizes is None:
        logger.warning("%s: its server does not identify the weights. Set `revision` to your own name for them.", whom)
    return first


async def _lists(servers: ServerSettings) -> Mapping[str, bytes | CulturevalError]:
    async with OpenAIClient(replace(servers, max_retries=min(RETRIES, servers.max_retries))) as client:
        return await client.models()


def _listed(whom: str, url: str, content: bytes, model: str) -> ServerIdentity:
    """The identity of a model in a list of models (an object with `data`, or a bare list); bare for other content."""
    try:
        body = json.loads(content)
        entries = body["data"] if isinstance(body, dict) else body
        ids = [str(entry["id"]) for entry in entries]
    except UNREADABLE:
        ids = []
    if not ids:
        return ServerIdentity(model)
    if model not in ids:
        has = shown_names([name_of(listed) or "?" for listed in ids])
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
