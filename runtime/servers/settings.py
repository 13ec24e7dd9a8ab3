"""Settings of OpenAI-compatible servers: addresses, limits, and the API key, which comes from the environment."""

import os
import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from cultureval.runtime.errors import CulturevalError

# Names of query parameters whose values are not for results files.
_SECRET = re.compile(r"key|token|secret|passw|signature|^(auth|sig|pwd)$", re.IGNORECASE)


@dataclass(frozen=True)
class ServerSettings:
    """Addresses and limits of requests.

    Attributes:
        base_urls: One or more servers of the same model, each up to and including `/v1`.
        api_key_env: Name of the environment variable that holds the key; None sends no key.
        concurrency: Requests in flight at once, over all servers.
        timeout_s: Limit of one request.
        max_retries: Further tries of one request after the first; waiting for Retry-After does not count.
        give_up_s: Limit of one request with all its retries and waits.
        backoff_s: First wait before a retry; it doubles, with jitter, up to 60 s.
        blocks_without_choices: Whether an answer with token counts and without choices says that a filter blocked the
            prompt, as Gemini's does.
        key: The key itself, of a server that was started here; never shown.

    Raises:
        CulturevalError: No server, a URL that is not http(s) or carries a password, or the key's variable is not set or
            cannot be sent.
    """

    base_urls: tuple[str, ...]
    api_key_env: str | None = None
    concurrency: int = 16
    timeout_s: float = 600.0
    max_retries: int = 8
    give_up_s: float = 3600.0
    backoff_s: float = 0.5
    blocks_without_choices: bool = False
    key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.base_urls:
            raise CulturevalError("No server: give base_url, such as http://localhost:8000/v1.")
        for url in self.base_urls:
            _check_url(url)
        if self.api_key_env and not os.environ.get(self.api_key_env):
            raise CulturevalError(f"The environment variable {self.api_key_env} (api_key_env) is not set.")
        key = self.api_key() or ""
        # An HTTP header takes nothing else, and the client libraries would log the key in their error.
        if not (key.isascii() and key.isprintable() and key == key.strip()):
            raise CulturevalError(
                f"The key in {self.api_key_env} (api_key_env) has white space or a line end around it, or characters "
                "that are not ASCII: set the variable to the key alone."
            )

    def api_key(self) -> str | None:
        """The key: that of a server of ours, or from the environment."""
        if self.key is not None:
            return self.key
        return os.environ[self.api_key_env] if self.api_key_env else None


def openai_base_url() -> str:
    """The server that is asked where none is named: that of OPENAI_BASE_URL, or OpenAI's own."""
    return os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"


def _check_url(url: str) -> None:
    if "@" in url:
        raise CulturevalError("A base_url carries a password (an @): put keys into an environment variable only.")
    if named := next((name for name, _ in parse_qsl(url.partition("?")[2]) if _SECRET.search(name)), None):
        raise CulturevalError(f"A base_url carries a secret ({named}=): put keys into an environment variable only.")
    shown = f"base_url {url!r}"
    try:
        parts = urlsplit(url)
        in_form = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0 and url.isprintable()
    except ValueError:  # an invalid port (a misplaced key?) or IPv6 address
        in_form, shown = False, "A base_url"
    if not in_form:
        raise CulturevalError(f"{shown} is not of the form http(s)://host[:port]/v1.")
