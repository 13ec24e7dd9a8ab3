"""Images of saved answers as data URLs, of a size for looking at them."""

import base64
import io
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from cultureval.reports.item_view import save_picture
from cultureval.runs.rows import Row, saved_image
from cultureval.runtime.data.image_store import MAX_BYTES, pillow, upright
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.extras import require_extra

MOST_BYTES = 150_000  # larger files are shown smaller
LONGEST_SIDE = 1024  # pixels
MOST_IMAGES = 8  # of an item
KEPT = 64  # pictures in memory, since items that share one follow each other


def images_of(row: Row) -> tuple[list[str], list[str]]:
    """The images of an item.

    Args:
        row: A row of the details.

    Returns:
        Data URLs, and a sentence for each image that cannot be shown.
    """
    urls, missing = [], []
    entries = row["doc"].get("images") or []
    if entries:
        require_extra("vision")
    for entry in entries[:MOST_IMAGES]:
        try:
            found = saved_image(entry)
            urls.append(_of_bytes(found) if isinstance(found, bytes) else _of_file(str(found)))
        except (CulturevalError, OSError, ValueError, SyntaxError) as error:  # what Pillow raises of broken files
            missing.append(f"an image cannot be shown: {str(error) or type(error).__name__}")
    if len(entries) > MOST_IMAGES:
        missing.append(f"{len(entries) - MOST_IMAGES} more images are not shown")
    return urls, missing


def drawing_of(row: Row, task: str) -> str | None:
    """The picture that the task's suite draws of an item (boxes on its image) as a data URL, or None."""
    if "box" not in (row["doc"].get("specific") or {}):
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "picture.png")
        try:
            drawn = save_picture(row, task, file)
        except (CulturevalError, OSError, ValueError, TypeError, KeyError):
            return None
        return _of_bytes(file.read_bytes()) if drawn else None


@lru_cache(maxsize=KEPT)
def _of_file(path: str) -> str:
    file = Path(path)
    if not file.is_file():
        raise CulturevalError(f"{file.name} is not on this machine")
    if file.stat().st_size > MAX_BYTES:
        raise CulturevalError(f"{file.name} is larger than {MAX_BYTES >> 20} MiB")
    return _of_bytes(file.read_bytes())


def _of_bytes(content: bytes) -> str:
    """A JPEG, PNG or WebP file as it is where it is small; anything else as JPEG or PNG of at most 1024 pixels."""
    picture: Any = pillow().open(io.BytesIO(content), formats=("PNG", "JPEG", "MPO", "WEBP", "GIF", "BMP", "TIFF"))
    if picture.format in ("PNG", "JPEG", "WEBP") and len(content) <= MOST_BYTES:
        picture.verify()
        return _url(f"image/{picture.format.lower()}", content)
    shown = upright(picture)
    shown.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    out = io.BytesIO()
    shown.convert("RGB").save(out, "JPEG", quality=85)
    return _url("image/jpeg", out.getvalue())


def _url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
