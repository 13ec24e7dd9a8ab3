"""Whether the hub can be reached (checked once, before its client library is loaded), and what its cache holds."""

import os
from pathlib import Path

HUB = "https://huggingface.co"
TIMEOUT_S = 5.0


def is_offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids requests to the hub."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def hub_problem() -> str | None:
    """Why the hub (or the server named by HF_ENDPOINT) does not answer, in a word; None if it does."""
    import httpx

    try:
        httpx.head(os.environ.get("HF_ENDPOINT", HUB), timeout=TIMEOUT_S)
    except httpx.HTTPError as error:
        return type(error).__name__
    return None


def go_offline_if_unreachable() -> str | None:
    """Sets HF_HUB_OFFLINE where the hub does not answer; its client would retry for half a minute for every file.

    Returns:
        Why the hub does not answer; None if it does, or if HF_HUB_OFFLINE is already set.
    """
    problem = None if is_offline() else hub_problem()
    if problem:
        go_offline()
    return problem


def go_offline() -> None:
    """Sets HF_HUB_OFFLINE, which the hub's client library reads once, when it is imported."""
    os.environ["HF_HUB_OFFLINE"] = "1"


def cached_file(repo: str, file: str, revision: str = "main") -> Path | None:
    """The file of a model's repository in the hub's cache, at a branch, tag or commit; None where it holds none."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        path = try_to_load_from_cache(repo, file, revision=revision)
    except HFValidationError:  # no name that the hub allows
        return None
    return Path(path) if isinstance(path, str) else None


def cached_commit(repo: str, file: str, revision: str = "main") -> str | None:
    """The commit of the file that the hub's cache holds; None where it holds none. Arguments as in `cached_file`."""
    path = cached_file(repo, file, revision)
    return path.parents[file.count("/")].name if path else None
