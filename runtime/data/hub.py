"""Where a source's files are: under the data root, in the hub's cache, or downloaded from the hub.

Whether the hub can be reached is checked once, before its client library is loaded.
"""

import logging
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from cultureval.runtime.errors import SourceUnavailable

HUB = "https://huggingface.co"
TIMEOUT_S = 5.0

logger = logging.getLogger(__name__)


def is_offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids requests to the hub."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def go_offline_if_unreachable() -> str | None:
    """Sets HF_HUB_OFFLINE where the hub does not answer, and returns why; its client would retry 30 s a file."""
    if is_offline():
        return None
    import httpx

    try:
        httpx.head(os.environ.get("HF_ENDPOINT", HUB), timeout=TIMEOUT_S)
    except httpx.HTTPError as error:
        go_offline()
        return type(error).__name__
    return None


def go_offline() -> None:
    """Sets HF_HUB_OFFLINE; call it before the hub's client library is imported, which reads it once."""
    os.environ["HF_HUB_OFFLINE"] = "1"


def cached_file(repo: str, file: str, revision: str = "main") -> Path | None:
    """The file of a model's repository in the hub's cache, at a branch, tag or commit; None where it holds none."""
    from huggingface_hub import try_to_load_from_cache

    path = None
    with suppress(ValueError):  # the hub allows no such name
        path = try_to_load_from_cache(repo, file, revision=revision)
    return Path(path) if isinstance(path, str) else None


def cached_commit(repo: str, file: str, revision: str = "main") -> str | None:
    """The commit of a file in the hub's cache; None where it holds none. Arguments as of `cached_file`."""
    path = cached_file(repo, file, revision)
    return path.parents[file.count("/")].name if path else None


def find_source(
    repo: str, revision: str | None, root: Path | None, on_hub: bool = True, suite: str = "qimma"
) -> tuple[Path, str] | None:
    """The folder that holds a source, and its commit ("local" where a data root does not record it), or None.

    Args:
        repo: `org/name`, below the data root and, where `on_hub`, on the hub (a data set repository).
        revision: Branch, tag or commit on the hub; None is the default branch.
        root: The data root; None: the hub, with a SourceUnavailable where neither it nor its cache has the source.
        on_hub: False for sources that people must download themselves.
        suite: Arguments of `cultureval fetch` in the error message.
    """
    if root is not None:
        folder = root.joinpath(*repo.split("/"))
        return (folder, recorded_revision(folder)) if folder.is_dir() else None
    return snapshot(repo, revision, suite) if on_hub else None


def recorded_revision(folder: Path) -> str:
    """The commit that `cultureval fetch` recorded in a folder, or "local"."""
    record = folder / ".cultureval-revision"
    return record.read_text(encoding="utf-8").strip() if record.is_file() else "local"


@cache
def snapshot(repo: str, revision: str | None, suite: str) -> tuple[Path, str] | None:
    """A data set's files in the hub's cache, downloaded if needed; None without access; raises as `find_source`."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        folder = Path(snapshot_download(repo, repo_type="dataset", revision=revision))
    except RepositoryNotFoundError:  # gated repositories without access are a subclass
        logger.warning("The hub has no data set %s that you can read (private, gated or not published).", repo)
        return None
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise SourceUnavailable(
            f"The data set {repo} is not in the hub's cache and the hub cannot be reached ({type(error).__name__}). "
            f"Run `cultureval fetch {suite} --output-dir DIR` on a connected machine, copy DIR here and pass --data "
            "DIR; `--data samples` uses the shipped samples."
        ) from error
    return folder, folder.name
