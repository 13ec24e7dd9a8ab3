"""Images as data URLs for OpenAI-compatible servers."""

import base64
import hashlib
import io
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.runtime.data.image_store import is_turned, pillow, png_bytes, upright
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.settings import ImageFormat

if TYPE_CHECKING:
    from PIL.Image import Image

_SENT_AS_THEY_ARE = {"PNG": "png", "JPEG": "jpeg", "MPO": "jpeg", "WEBP": "webp", "GIF": "gif"}  # their MIME types
_WITH_PALETTE = {"P", "PA"}
_SMALLEST_SIDE = 32
_JPEG_QUALITY = 95


def image_hash(image: "Image | Path | str | bytes") -> str:
    """SHA-256 of a file's bytes, or of an upright PIL image's mode, size and pixels (with the palette's colours).

    Raises an OSError where a file cannot be opened, or a PIL image does not decode.
    """
    if isinstance(image, (str, Path, bytes)):
        return hashlib.sha256(_file_bytes(image)).hexdigest()
    image = upright(image)
    if image.mode in _WITH_PALETTE:
        image = image.convert("RGBA")
    digest = hashlib.sha256(f"{image.mode} {image.size}".encode())
    digest.update(image.tobytes())
    return digest.hexdigest()


def data_url(
    image: "Image | Path | str | bytes",
    image_format: ImageFormat = "as_given",
    max_side: int | None = None,
    max_bytes: int | None = None,
) -> str:
    """The data URL of an image for a request; raises a CulturevalError where it cannot be read.

    Args:
        image: A PIL image, or a file (its path or its bytes).
        image_format: "as_given" sends a file's own bytes; PNG replaces a PIL image, a file with an EXIF orientation and
            a format that servers do not read. "png" and "jpeg" (quality 95) re-encode.
        max_side: Larger images are scaled down until the longer side has this many pixels.
        max_bytes: Images with a longer URL are sent as JPEG, scaled down until they fit.
    """
    images = pillow()
    try:
        content = _file_bytes(image) if isinstance(image, (str, Path, bytes)) else b""
        picture = images.open(io.BytesIO(content)) if content else image
        kind = _SENT_AS_THEY_ARE.get(picture.format or "") if content and image_format == "as_given" else None
        too_large = max_side is not None and max(picture.size) > max_side
        kept = kind and not too_large and not is_turned(picture)
        picture = picture if kept else upright(picture)  # re-encoding drops the EXIF orientation
        if too_large:
            # Pillow scales a palette's indices instead of its colours.
            picture = picture.convert("RGB") if picture.mode in _WITH_PALETTE else picture.copy()
            picture.thumbnail((max_side, max_side))
        url = _url(content, kind) if kept else _url(*_encode(picture, image_format))
        return url if max_bytes is None or len(url) <= max_bytes else _within(picture, max_bytes)
    except Exception as error:  # Pillow's decoders raise errors of many kinds on damaged files
        raise CulturevalError(f"An image cannot be read: {error or type(error).__name__}") from error


def _encode(picture: "Image", image_format: ImageFormat) -> tuple[bytes, str]:
    if image_format != "jpeg":
        return png_bytes(picture), "png"
    stream = io.BytesIO()
    picture.convert("RGB").save(stream, "JPEG", quality=_JPEG_QUALITY)
    return stream.getvalue(), "jpeg"


def _within(picture: "Image", most: int) -> str:
    """A data URL of at most `most` bytes: the picture as JPEG, scaled down by quarters."""
    picture = picture.convert("RGB")
    while len(url := _url(*_encode(picture, "jpeg"))) > most:
        side = max(picture.size) * 3 // 4
        if side < _SMALLEST_SIDE:
            raise ValueError(f"it cannot be made to fit into {most:,} bytes")
        picture.thumbnail((side, side))
    return url


def _url(content: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _file_bytes(image: Path | str | bytes) -> bytes:
    return image if isinstance(image, bytes) else Path(image).read_bytes()
