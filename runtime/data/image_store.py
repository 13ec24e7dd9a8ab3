"""The images of prepared rows: one file for each distinct image, below the user cache, named by its content.

A data set's images come as bytes, as paths and inside parquet cells, and one image may serve many rows. Prepared rows
name the stored file, Docs hold its path: thousands of images cost neither memory nor open files.
"""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.runtime.data.content_store import ContentStore

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = {"PNG": ".png", "JPEG": ".jpg", "WEBP": ".webp", "GIF": ".gif", "BMP": ".bmp"}
MAX_BYTES = 64 * 2**20
IMAGES = ContentStore("images", "image", tuple(SUFFIXES.values()), sharded=True)


def store_image(content: bytes) -> str:
    """Keep an image file's bytes, unchanged.

    Args:
        content: A PNG, JPEG, WebP, GIF or BMP file, at most 64 MiB and about 179 million pixels (Pillow's limit).

    Returns:
        The name for `stored_image`: the SHA-256 of the bytes and the format's suffix.

    Raises:
        ValueError: The bytes are no image, do not decode, or are too large; says which.
        CulturevalError: The file cannot be written.
    """
    return IMAGES.find(content) or IMAGES.put(content, SUFFIXES[image_format(content)])


def stored_image(name: str) -> Path:
    """The file of a stored image.

    Raises:
        CulturevalError: The name is not one that `store_image` returns, or its file is missing.
    """
    return IMAGES.path(name)


def upright(image: "Image | Path | str") -> "Image":
    """An image with its EXIF orientation applied; paths are opened.

    Use it wherever an image is shown, measured or drawn on, as datasets, transformers and vLLM do.
    """
    from PIL import Image as images
    from PIL import ImageOps

    return ImageOps.exif_transpose(images.open(image) if isinstance(image, str | Path) else image)


def upright_size(path: Path) -> tuple[int, int]:
    """Width and height of the image that `upright` gives, in pixels, without decoding it."""
    from PIL import ExifTags
    from PIL import Image as images

    with images.open(path) as image:
        width, height = image.size
        on_its_side = image.getexif().get(ExifTags.Base.Orientation) in (5, 6, 7, 8)
    return (height, width) if on_its_side else (width, height)


def image_format(content: bytes) -> str:
    """Decode an image file's bytes and return its format: PNG, JPEG, WEBP, GIF or BMP.

    Raises:
        ValueError: As `store_image`.
    """
    from PIL import Image

    if len(content) > MAX_BYTES:
        raise ValueError(f"is an image file of {len(content) >> 20} MiB; the limit is {MAX_BYTES >> 20} MiB")
    try:
        with Image.open(io.BytesIO(content), formats=list(SUFFIXES)) as picture:
            picture.load()
            return picture.format or ""
    except Exception as error:  # Pillow's decoders raise errors of many kinds on damaged files
        raise ValueError(f"is not an image that can be decoded ({type(error).__name__}: {error})") from error
