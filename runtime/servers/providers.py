"""Providers of models: their differences (`providers.yaml`), and the MODEL arguments that name them.

`PROVIDER:NAME` is a model of a provider, and `hf:NAME` a model on the hub. `PROVIDER/NAME`, Inspect's form, is a
provider's model too, with two exceptions: an existing folder, and names under `openai/` and `google/` that are not the
provider's own models, such as the hub id `google/gemma-2-2b-it`. `http://HOST/v1#NAME` is any server.
"""

import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from cultureval.runtime.errors import CulturevalError, did_you_mean
from cultureval.runtime.settings import current_settings, variable_of

HUB = "hf"
_PRICED = 1000  # tokens for a look-up of a price


class _ProviderRecord(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ImageLimits(_ProviderRecord):
    """How many and how large images a provider takes; None: no limit is known."""

    count: int | None = None  # images of one request
    side: int | None = None  # pixels of an image's longer side
    image_mib: float | None = None  # one image in base64, in MiB
    request_mib: float | None = None  # all images of a request together, in MiB


class ModelFamily(_ProviderRecord):
    """Differences of some models of a provider: whether they reason, and refused parameters."""

    reasons: bool = False
    without: tuple[str, ...] = ()


class Provider(_ProviderRecord):
    """One provider; the fields are explained in `providers.yaml`."""

    id: str
    title: str
    base_url: str
    hosts: str | None = None
    key: str
    address: str
    own_names: str | None = None
    token_limit: Literal["max_tokens", "max_completion_tokens"]
    top_logprobs: int | None = None
    without: tuple[str, ...] = ()
    images: ImageLimits = ImageLimits()
    batch_price: float = Field(1.0, gt=0, le=1)
    models: dict[str, ModelFamily] = {}

    def left_out(self, model: str) -> tuple[str, ...]:
        """The request parameters that a model refuses or ignores."""
        families = (family for names, family in self.models.items() if re.fullmatch(names, model))
        logprobs = () if self.top_logprobs else ("top_logprobs",)
        return tuple(dict.fromkeys([*self.without, *logprobs, *next(families, ModelFamily()).without]))

    def token_prices(self, model: str) -> dict[str, float]:
        """Prices of a token in US dollars from `genai-prices`, by setting; {} for an unknown model."""
        from genai_prices import Usage, calc_price

        def each(**usage: int) -> float:
            found = calc_price(Usage(**usage), model_ref=model, provider_id=self.id)
            return float(found.total_price) / _PRICED

        try:
            return {
                "input_token_price": each(input_tokens=_PRICED),
                "cached_token_price": each(input_tokens=_PRICED, cache_read_tokens=_PRICED),
                "output_token_price": each(output_tokens=_PRICED),
            }
        except LookupError:
            return {}

    def url(self) -> str:
        """Its address: from the environment variable `address`, else `base_url`."""
        return os.environ.get(self.address) or self.base_url

    def is_at(self, url: str) -> bool:
        """Whether an address is the provider's own."""
        try:
            host = urlsplit(url).hostname or ""
        except ValueError:  # reported where the address is used
            return False
        return host == urlsplit(self.base_url).hostname or bool(self.hosts and re.fullmatch(self.hosts, host))


class Filters(_ProviderRecord):
    """The signs by which servers report that a filter stopped a prompt or an answer."""

    codes: frozenset[str]  # of errors
    messages: tuple[str, ...]  # words of errors' messages
    finish_reasons: frozenset[str]  # in small letters

    def in_finish_reason(self, reason: object) -> bool:
        """Whether a filter ended an answer; Gemini writes `content_filter: SAFETY`, or `SAFETY`."""
        return isinstance(reason, str) and reason.lower().partition(":")[0].strip() in self.finish_reasons


@cache
def _table() -> Mapping[str, Any]:
    import yaml

    text = Path(__file__).with_name("providers.yaml").read_text(encoding="utf-8")
    table: Mapping[str, Any] = yaml.safe_load(text)
    return table


@cache
def providers() -> dict[str, Provider]:
    """All providers by the name before `/` or `:`."""
    return {name: Provider(id=name, **fields) for name, fields in _table()["providers"].items()}


@cache
def filters() -> Filters:
    """The signs of a filter in servers' replies."""
    return Filters(**_table()["filters"])


def provider_at(urls: Sequence[str]) -> Provider | None:
    """The provider that has all these addresses; None for other servers."""
    return next(
        (provider for provider in providers().values() if urls and all(provider.is_at(url) for url in urls)), None
    )


def server_settings_of(model: str) -> dict[str, Any]:
    """The settings that a MODEL argument implies; {} unless it names a server or provider.

    They are `model`, `base_url`, and `api_key_env` and `provider` where there is one. Raises a CulturevalError on an
    unknown provider, or an address without the name of a model.
    """
    if model.startswith(("http://", "https://")):
        return _at_address(model)
    written = re.fullmatch(r"([a-z]+)([:/])(.+)", model)
    if not written:
        return {}
    prefix, mark, name = written.groups()
    if mark == ":" and prefix not in providers() and prefix != HUB:
        known = [*providers(), HUB]
        raise CulturevalError(f"{model!r}: no provider is called {prefix!r}.{did_you_mean(prefix, known)}")
    provider = providers().get(prefix)
    if provider is None:
        return {}
    of_names = not provider.own_names or bool(re.fullmatch(provider.own_names, name))
    if mark == "/" and (not of_names or Path(model).expanduser().is_dir()):  # a hub id or a folder
        return {}
    return {"model": name, "base_url": provider.url(), "api_key_env": provider.key, "provider": provider.id}


def _at_address(model: str) -> dict[str, Any]:
    address, _, name = model.partition("#")
    if not name:
        raise CulturevalError(
            f"{address!r} is an address without a model: write {address}#NAME with the name under which the server "
            "serves it, or a YAML file with `base_url` and `model`."
        )
    provider = provider_at([address])
    key = provider.key if provider else variable_of("api_key") if current_settings().api_key else None
    implied = {"model": name, "base_url": address}
    return implied | ({"api_key_env": key} if key else {}) | ({"provider": provider.id} if provider else {})
