"""How long a server asks to be left alone: Retry-After, x-ratelimit-*, and what Google writes into an error's body.

OpenAI and those like it send `x-ratelimit-remaining-requests` and `x-ratelimit-reset-requests` (`1s`, `6m0s`, `20ms`),
also for tokens; Anthropic `anthropic-ratelimit-requests-remaining` and `-reset` (a date); OpenRouter and Mistral one
`x-ratelimit-remaining` with `x-ratelimit-reset` (seconds, or milliseconds since 1970).
"""

import email.utils
import math
import re
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

LONGEST_PAUSE_S = 60.0  # what is spent while requests succeed; of longer ones the next refusal tells
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))+")
_SINCE_1970 = 1e9  # a larger number of seconds is a date


def wait_after_refusal(headers: Mapping[str, str], body: Any) -> float | None:
    """Seconds to wait after a refusal for the rate, by its headers and its error's body; None where it does not say."""
    given = _number(headers.get("retry-after-ms"))
    if given is not None:
        return given / 1000
    if (text := headers.get("retry-after")) is not None:
        return _seconds_or_date(text)
    spent = list(_spent(headers))
    return max(spent) if spent else _delay_in_body(body)


def pause_after_answer(headers: Mapping[str, str]) -> float:
    """Seconds to wait after an answer that used up a limit; 0 where something is left, or nothing is said."""
    limited = {name: value for name, value in headers.items() if not value.startswith("-")}  # -1 of an answer: no limit
    return max((wait for wait in _spent(limited) if wait <= LONGEST_PAUSE_S), default=0.0)


def _spent(headers: Mapping[str, str]) -> Iterator[float]:
    """The waits for limits of which nothing is left."""
    for name, value in headers.items():
        found = re.fullmatch(r"(x-ratelimit|anthropic-ratelimit)-(.*)", name.lower())
        if not found or "remaining" not in found[2].split("-") or _number(value) != 0:
            continue
        reset = f"{found[1]}-{'-'.join('reset' if part == 'remaining' else part for part in found[2].split('-'))}"
        wait = _until(headers.get(reset))
        if wait is not None:
            yield wait


def _until(text: str | None) -> float | None:
    """Seconds until a limit is full again: of `6m0s`, a number of seconds, milliseconds since 1970, or a date."""
    if text is None:
        return None
    number = _number(text)
    if number is not None:
        if number > 1000 * _SINCE_1970:
            number /= 1000
        return max(0.0, number - time.time()) if number > _SINCE_1970 else number
    text = text.strip()
    if _DURATION.fullmatch(text):
        return sum(float(value) * _UNITS[unit] for value, unit in re.findall(r"([\d.]+)(ms|[smhd])", text))
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return None


def _seconds_or_date(text: str) -> float | None:
    number = _number(text)
    if number is not None:
        return number
    date = email.utils.parsedate_tz(text)
    try:
        return max(0.0, email.utils.mktime_tz(date) - time.time()) if date else None
    except (ValueError, OverflowError):  # an impossible date
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _delay_in_body(body: Any) -> float | None:
    """Google's `{"error": {"details": [{"@type": "...RetryInfo", "retryDelay": "39s"}]}}`, which may be in a list."""
    one = body[0] if isinstance(body, list) and body else body
    error = one.get("error", one) if isinstance(one, Mapping) else None
    details = error.get("details") if isinstance(error, Mapping) else None
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, Mapping) and isinstance(delay := detail.get("retryDelay"), str):
            return _until(delay)
    return None
