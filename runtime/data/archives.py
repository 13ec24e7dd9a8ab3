"""Files out of a .tar.gz on the web."""

import fnmatch
import hashlib
import os
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

LARGEST_FILE = 200 * 2**20  # bytes; far larger than any file that we unpack


def unpack(url: str, patterns: Sequence[str], folder: Path) -> tuple[int, str]:
    """Downloads an archive and unpacks the files that match, without the top folder.

    Links, devices and paths that lead out of the folder are not unpacked. Files are written atomically.

    Args:
        url: Address of a .tar.gz.
        patterns: `fnmatch` patterns of paths below the top folder; `*` matches a slash as well.
        folder: Created if need be.

    Returns:
        The number of files, and the SHA-256 of the archive.

    Raises:
        httpx.HTTPError: The server does not answer, or answers with an error.
        tarfile.TarError: The file is no archive.
        OSError: A file cannot be written, or nothing in the archive matches.
    """
    import httpx

    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with tempfile.TemporaryFile(dir=folder) as stream:
        with httpx.stream("GET", url, follow_redirects=True, timeout=60) as response:
            response.raise_for_status()
            for part in response.iter_bytes():
                stream.write(part)
                digest.update(part)
        stream.seek(0)
        with tarfile.open(fileobj=stream, mode="r:gz") as archive:
            count = sum(_unpack_member(archive, member, patterns, folder) for member in archive)
    if not count:
        raise OSError(f"nothing in the archive matches {', '.join(patterns)}")
    return count, digest.hexdigest()


def _unpack_member(archive: tarfile.TarFile, member: tarfile.TarInfo, patterns: Sequence[str], folder: Path) -> bool:
    _, _, name = member.name.removeprefix("./").partition("/")
    wanted = any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    target = (folder / name).resolve()
    inside = target.is_relative_to(folder.resolve()) and ".." not in Path(name).parts
    content = archive.extractfile(member) if member.isreg() and wanted and inside else None
    if not name or content is None or member.size > LARGEST_FILE:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(target.name + ".part")
    scratch.write_bytes(content.read())
    os.replace(scratch, target)
    return True
