"""Settings of OpenAI-compatible servers: addresses, limits, prices, and the API key from the environment."""

import os
import re
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, Field, field_validator

from cultureval.runtime.errors import SECRET, CulturevalError

ImageFormat = Literal["as_given", "png", "jpeg"]


@dataclass(frozen=True)
class ServerSettings:
    """Addresses and limits of requests.

    Raises a CulturevalError without a server, on a URL that is not http(s) or has a password, and where the key's
    variable is not set or its value cannot be sent.
    """

    base_urls: tuple[str, ...]  # one or more servers of the same model, each up to and including `/v1`
    api_key_env: str | None = None  # the environment variable that holds the key; None sends no key
    concurrency: int = 16  # requests in flight at once, over all servers
    timeout_s: float = 600.0  # of one request
    max_retries: int = 8  # of a request by the `openai` package (429, 5xx, timeouts, lost connections)
    key: str | None = field(default=None, repr=False)  # the key of a server that we started; never shown

    def __post_init__(self) -> None:
        if not self.base_urls:
            raise CulturevalError("No server: give base_url, such as http://localhost:8000/v1.")
        for url in self.base_urls:
            _check_url(url)
        if self.api_key_env and not os.environ.get(self.api_key_env):
            raise CulturevalError(f"The environment variable {self.api_key_env} (api_key_env) is not set.")
        key = self.api_key() or ""
        # An HTTP header takes no other characters, and the client library's error would log the key.
        if not (key.isascii() and key.isprintable() and key == key.strip()):
            raise CulturevalError(
                f"The key in {self.api_key_env} (api_key_env) has white space around it, or is not ASCII: set it anew."
            )

    def api_key(self) -> str | None:
        """The key, given or from the environment; None where there is none."""
        if self.key is not None:
            return self.key
        return os.environ[self.api_key_env] if self.api_key_env else None


class ServedModel(BaseModel):
    """Settings of judges and evaluated models on servers.

    Prices are per token, in the currency of the budget.
    """

    model: str = Field(min_length=1)  # id under which the servers serve the model
    # Your name for the weights; answers are reused only for the same model, revision and entry in `/v1/models`.
    revision: str | None = None
    base_url: tuple[str, ...]  # one or more servers of the model
    api_key_env: str | None = None  # name of the environment variable that holds the key
    concurrency: int = Field(16, ge=1)  # requests in flight at once
    timeout_s: float = Field(600.0, gt=0)  # of one request
    max_retries: int = Field(8, ge=0)  # of a request after 429, 5xx, a timeout or a lost connection
    # The server's name for the limit of generated tokens; the longer one for OpenAI's newer models.
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    extra_body: dict[str, Any] = {}  # of each request, such as {"chat_template_kwargs": {"enable_thinking": false}}
    image_format: ImageFormat = "as_given"  # a file's bytes unchanged, and PNG if there is no file
    image_max_side: int | None = Field(None, ge=1)  # larger images are scaled down to this many pixels
    image_tokens: int = Field(1105, ge=0)  # per image in estimates of costs (GPT-4o: 1,105 for 2:1, high detail)
    input_token_price: float = Field(0.0, ge=0, allow_inf_nan=False)
    cached_token_price: float | None = Field(None, ge=0, allow_inf_nan=False)  # None: as the others
    output_token_price: float = Field(0.0, ge=0, allow_inf_nan=False)  # reasoning included
    budget: float | None = Field(None, ge=0, allow_inf_nan=False)  # of all answers, also those of earlier runs

    @field_validator("base_url", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("api_key_env")
    @classmethod
    def _names_a_variable(cls, name: str | None) -> str | None:
        if name is not None and not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError("give the name of an environment variable that holds the key")
        return name

    @property
    def has_prices(self) -> bool:
        """Whether any price is known."""
        return bool(self.input_token_price or self.output_token_price)

    def servers(self, **changed: Any) -> ServerSettings:
        """The settings of the client, with `changed` in place of these. Raises as `ServerSettings`."""
        shared = ("api_key_env", "concurrency", "timeout_s", "max_retries")
        return ServerSettings(self.base_url, **{name: getattr(self, name) for name in shared} | changed)


def openai_base_url() -> str:
    """The default server: OPENAI_BASE_URL, else OpenAI's own."""
    return os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"


def _check_url(url: str) -> None:
    if "@" in url:
        raise CulturevalError("A base_url contains a password (an @): put keys into an environment variable only.")
    if named := next((name for name, _ in parse_qsl(url.partition("?")[2]) if SECRET.search(name)), None):
        raise CulturevalError(f"A base_url contains a secret ({named}=): put keys into an environment variable only.")
    shown = f"base_url {url!r}"
    try:
        parts = urlsplit(url)
        in_form = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0 and url.isprintable()
    except ValueError:  # an invalid port (a misplaced key?) or IPv6 address
        in_form, shown = False, "A base_url"
    if not in_form:
        raise CulturevalError(f"{shown} is not of the form http(s)://host[:port]/v1.")
