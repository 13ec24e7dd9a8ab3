"""The images of prepared rows: one file for each distinct image, below the user cache, named by its content.

Images of data sets are bytes, paths or parquet cells, and several rows may share one. Prepared rows hold the stored
file's name and Docs its path, so that images take neither memory nor open files.
"""

import io
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from cultureval.runtime.data.content_store import ContentStore
from cultureval.runtime.extras import require_extra

if TYPE_CHECKING:
    from PIL.Image import Image

# Formats that are stored as they are; MPO (of phones) is a JPEG file with further images.
SUFFIXES = {"PNG": ".png", "JPEG": ".jpg", "MPO": ".jpg", "WEBP": ".webp", "GIF": ".gif", "BMP": ".bmp"}
NOT_OPENED = {"EPS"}  # Pillow would run it as a program, by Ghostscript
MAX_BYTES = 64 * 2**20
PREPARED = "upright"  # the preparation of images for models, servers and judges, for signatures
IMAGES = ContentStore("images", "image", tuple(dict.fromkeys(SUFFIXES.values())), sharded=True)
_BYTE_MODES = {"1", "L", "LA", "P", "RGB", "RGBA"}  # of a PNG file


def pillow() -> ModuleType:
    """`PIL.Image`; raises MissingExtra where it is not installed."""
    require_extra("vision")
    from PIL import Image

    return Image


def store_image(content: bytes) -> str:
    """Stores an image file as it is, or as PNG where other programs would show it otherwise.

    Args:
        content: A file that Pillow opens (not EPS), at most 64 MiB and about 179 million pixels (Pillow's limit), of 8
            bits a channel; else a ValueError. An image with an EXIF orientation is turned.

    Returns:
        The name for `stored_image`: the SHA-256 of the stored content and its suffix.
    """
    if name := IMAGES.find(content):
        return name
    picture = decoded(content)
    if picture.format in SUFFIXES and not is_turned(picture):
        return IMAGES.put(content, SUFFIXES[picture.format])
    return IMAGES.put(png_bytes(upright(picture)), ".png")


def stored_image(name: str) -> Path:
    """The file of a stored image; raises CulturevalError where it is missing, or the name is invalid."""
    return IMAGES.path(name)


def is_turned(image: "Image") -> bool:
    """Whether an open image has an EXIF orientation, which some readers ignore."""
    from PIL import ExifTags

    return image.getexif().get(ExifTags.Base.Orientation, 1) != 1


def upright(image: "Image | Path | str") -> "Image":
    """A copy of an image (or file) with its EXIF orientation applied; raises OSError where it does not decode."""
    from PIL import ImageOps

    picture = pillow().open(image) if isinstance(image, str | Path) else image
    try:
        picture.getexif()  # reads the orientation; Pillow fails to write damaged tags again
        for name in ("exif", "Raw profile type exif"):
            picture.info.pop(name, None)
        return ImageOps.exif_transpose(picture)
    except Exception as error:  # Pillow's decoders raise errors of many kinds on damaged files
        raise OSError(f"the image cannot be decoded ({type(error).__name__}: {error})") from error


def png_bytes(image: "Image") -> bytes:
    """An image as a PNG file; modes that PNG does not hold become RGB."""
    stream = io.BytesIO()
    (image if image.mode in _BYTE_MODES else image.convert("RGB")).save(stream, "PNG")
    return stream.getvalue()


def image_size(image: "Image | Path | str") -> tuple[int, int]:
    """Width and height of an image in pixels, without decoding a file; raises OSError where that is no image."""
    if not isinstance(image, str | Path):
        return image.size
    with pillow().open(image) as picture:
        return picture.size


def decoded(content: bytes) -> "Image":
    """The image of a file's bytes; formats and ValueError as of `store_image`."""
    images = pillow()
    if len(content) > MAX_BYTES:
        raise ValueError(f"is an image file of {len(content) >> 20} MiB; the limit is {MAX_BYTES >> 20} MiB")
    images.init()
    try:
        picture = images.open(io.BytesIO(content), formats=[name for name in images.ID if name not in NOT_OPENED])
        picture.load()
        picture.getexif()
    except Exception as error:  # Pillow's decoders raise errors of many kinds on damaged files
        raise ValueError(f"is not an image that can be decoded ({type(error).__name__}: {error})") from error
    if picture.mode.startswith(("I", "F")):  # Pillow would cut values at 255: grey becomes white
        raise ValueError("is an image of more than 8 bits a channel: save it with 8")
    return picture
