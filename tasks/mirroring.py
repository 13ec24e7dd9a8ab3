"""Copies the data and the scoring models of suites into a folder, laid out as a data root."""

import fnmatch
import hashlib
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from cultureval.runtime.data.scorers import is_address, is_hub_id, scorer_place
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.tasks.catalogue import all_tasks, require_suites, suites
from cultureval.tasks.suite import Source, Task

REVISION = ".cultureval-revision"  # file with the fetched commit
TEXT_FILES = ("*.json", "*.txt", "*.model")  # configurations and tokenizers


def mirror_suites(names: list[str] | None, root: Path) -> tuple[list[str], bool]:
    """Downloads the data and the scoring models of suites (none: all) into a data root.

    Existing files are not downloaded again.

    Returns:
        (lines, complete): a line for each source; and whether no download failed.
    """
    chosen = names or suites()
    require_suites(chosen)
    tasks = [task for task in all_tasks().values() if task.suite in chosen]
    # Several sources may share a folder: a repository, and corpora that users add to its files.
    sources = {(source.repo, source.how_to_get): (source, task) for task in tasks for source in task.sources}
    instruments = filter(None, dict.fromkeys(task.kind.instrument for task in tasks))
    scorers = dict.fromkeys(name for instrument in instruments for name in instrument.sources())
    outcomes = [fetch(source, root, task) for source, task in sources.values()]
    outcomes += [fetch_scorer(name, root) for name in scorers if is_address(name) or is_hub_id(name)]
    return outcomes, not any(outcome.startswith("failed") for outcome in outcomes)


def fetch(source: Source, root: Path, task: Task) -> str:
    """Downloads one source into a data root, if possible; returns a line on the outcome."""
    from huggingface_hub import HfApi, snapshot_download

    folder = root.joinpath(*source.repo.split("/"))
    record = folder / REVISION
    if source.archive:
        if record.is_file() and (not source.revision or record.read_text(encoding="utf-8").strip() == source.revision):
            return f"{'there':10} {source.repo}: {source.archive}"
    elif not source.on_hub:
        present = folder.is_dir() and (not source.find or any(source.find(folder, task)[0]))
        state = "there" if present else "to be fetched by hand"
        return f"{state:10} {source.repo}: not on the hub; {source.how_to_get}; put it into {folder}"

    def download() -> str:
        if source.archive:
            digest = unpack(source.archive, source.archive_files, folder)
            return _recorded(record, source.revision or digest)
        commit = HfApi().dataset_info(source.repo, revision=source.revision).sha
        snapshot_download(source.repo, repo_type="dataset", revision=commit, local_dir=folder)
        return _recorded(record, str(commit))

    return _tried(source.repo, download, source.how_to_get)


def _recorded(record: Path, revision: str) -> str:
    record.write_text(f"{revision}\n", encoding="utf-8")
    return f"at {revision}"


def _tried(name: str, download: Callable[[], str], how_to_get: str = "") -> str:
    """Runs a download; returns a line on the outcome."""
    import httpx
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        return f"{'fetched':10} {name} {download()}"
    except RepositoryNotFoundError:
        reason = how_to_get or "private, gated (ask for access on its page) or not published"
        return f"{'not shown':10} {name}: {reason}"
    except (httpx.HTTPError, tarfile.TarError, OSError) as error:  # the hub's errors are subclasses of the first
        return f"{'failed':10} {name}: {type(error).__name__}: {error}".splitlines()[0]


def fetch_scorer(source: str, root: Path) -> str:
    """Downloads a scoring model (hub id, or address of a file) into a data root; returns a line on the outcome."""
    import httpx
    from huggingface_hub import HfApi, snapshot_download

    place = scorer_place(root, source)

    def download() -> str:
        if is_address(source):
            if not place.is_file():
                answer = httpx.get(source, follow_redirects=True, timeout=60.0).raise_for_status()
                write_atomically(place, answer.content)
            return ""
        info = HfApi().model_info(source)
        names = [file.rfilename for file in info.siblings or [] if "/" not in file.rfilename]
        weights = [name for name in names if name.endswith(".safetensors")]
        weights = weights or [name for name in names if name.endswith(".bin")]
        snapshot_download(source, revision=info.sha, local_dir=place, allow_patterns=[*TEXT_FILES, *weights])
        return _recorded(place / REVISION, str(info.sha))

    return _tried(f"{source} (scores answers)", download)


def unpack(url: str, patterns: Sequence[str], folder: Path) -> str:
    """Downloads an archive and unpacks its matching files without the top folder.

    Links, devices and paths outside the folder are not unpacked.

    Args:
        patterns: `fnmatch` patterns of paths below the top folder; `*` matches a slash as well.

    Returns:
        The SHA-256 of the archive.

    Raises:
        httpx.HTTPError: The server does not answer, or answers with an error.
        tarfile.TarError: The file is no archive.
        OSError: A file cannot be written, or nothing in the archive matches.
    """
    import httpx

    folder.mkdir(parents=True, exist_ok=True)
    digest, count = hashlib.sha256(), 0
    with tempfile.TemporaryFile(dir=folder) as stream:
        with httpx.stream("GET", url, follow_redirects=True, timeout=60) as response:
            response.raise_for_status()
            for part in response.iter_bytes():
                stream.write(part)
                digest.update(part)
        stream.seek(0)
        with tarfile.open(fileobj=stream, mode="r:gz") as archive:
            for member in filter(tarfile.TarInfo.isreg, archive):
                name = member.name.removeprefix("./").partition("/")[2]
                inside = name and ".." not in Path(name).parts and not Path(name).is_absolute()
                content = archive.extractfile(member)
                if content and inside and any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                    write_atomically(folder / name, content.read())
                    count += 1
    if not count:
        raise OSError(f"nothing in the archive matches {', '.join(patterns)}")
    return digest.hexdigest()
