"""The images of prepared rows: one file for each distinct image, below the user cache, named by its content.

A data set's images come as bytes, as paths and inside parquet cells, and one image may serve many rows. Prepared rows
name the stored file, Docs hold its path: thousands of images cost neither memory nor open files.
"""

import io
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from cultureval.runtime.data.content_store import ContentStore
from cultureval.runtime.extras import require_extra

if TYPE_CHECKING:
    from PIL.Image import Image

# Formats of files that are kept as they are; a phone's MPO is a JPEG file with more images after the first.
SUFFIXES = {"PNG": ".png", "JPEG": ".jpg", "MPO": ".jpg", "WEBP": ".webp", "GIF": ".gif", "BMP": ".bmp"}
NOT_OPENED = {"EPS"}  # Pillow gives it to Ghostscript, which runs it as a program
MAX_BYTES = 64 * 2**20
JPEG_QUALITY = 95
PREPARED = "upright"  # how models, servers and judges are shown images (`upright`, `read_alike`), for signatures
IMAGES = ContentStore("images", "image", tuple(dict.fromkeys(SUFFIXES.values())), sharded=True)
_BYTE_MODES = {"1", "L", "LA", "P", "RGB", "RGBA"}  # of a PNG file
_PILLOW_SCALES = {"PA", "La", "RGBa", "RGBX", "CMYK", "YCbCr", "LAB", "HSV"}  # to bytes, by itself
_MOST_OF_16_BITS = 65_535
# How Pillow turns an image of each EXIF orientation upright, and where an open image keeps its EXIF.
_TURNS = dict(
    zip(
        range(2, 9),
        ("FLIP_LEFT_RIGHT", "ROTATE_180", "FLIP_TOP_BOTTOM", "TRANSPOSE", "ROTATE_270", "TRANSVERSE", "ROTATE_90"),
        strict=True,
    )
)
_EXIF_PARTS = ("exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp")


def pillow() -> ModuleType:
    """`PIL.Image`.

    Raises:
        MissingExtra: What reads images is not installed.
    """
    require_extra("vision")
    from PIL import Image

    return Image


def store_image(content: bytes) -> str:
    """Keep an image file: its bytes, unchanged, or a PNG of it, where other programs would not read the file alike.

    Args:
        content: A file of any format that Pillow opens (but EPS), at most 64 MiB and about 179 million pixels (Pillow's
            limit). PNG, JPEG, WebP, GIF and BMP are kept unless their pixels have more than 8 bits (`eight_bits`).
            A photograph keeps its EXIF orientation: `upright` and `read_alike` turn it where it is shown.

    Returns:
        The name for `stored_image`: the SHA-256 of what is kept and its suffix.

    Raises:
        ValueError: The bytes are no image, do not decode, or are too large; says which.
        CulturevalError: The file cannot be written.
    """
    if name := IMAGES.find(content):
        return name
    picture = decoded(content)
    if picture.format in SUFFIXES and eight_bits(picture) is picture:
        return IMAGES.put(content, SUFFIXES[picture.format])
    return IMAGES.put(png_bytes(upright(picture)), ".png")


def stored_image(name: str) -> Path:
    """The file of a stored image; raises CulturevalError where it is missing, or no name of `store_image`."""
    return IMAGES.path(name)


def upright(image: "Image | Path | str") -> "Image":
    """An image with its EXIF orientation applied and 8 bits a channel (`eight_bits`); paths are opened.

    Use it wherever an image is shown, measured or drawn on, as datasets, transformers and vLLM do. The image is turned
    itself and its EXIF left out: Pillow's `exif_transpose` writes the other tags anew, and fails where one is damaged.

    Raises:
        OSError: The file cannot be opened, or the image does not decode.
    """
    images = pillow()
    picture = images.open(image) if isinstance(image, str | Path) else image
    try:
        picture.load()  # which turns a TIFF file itself
        turn = orientation(picture)
        shown = picture.transpose(images.Transpose[_TURNS[turn]]) if turn in _TURNS else picture.copy()
    except Exception as error:  # Pillow's decoders raise errors of many kinds on damaged files
        raise OSError(f"the image cannot be decoded ({type(error).__name__}: {error})") from error
    for name in _EXIF_PARTS:
        shown.info.pop(name, None)
    return eight_bits(shown)


def read_alike(image: "Image") -> tuple[bytes, str] | None:
    """What is sent in place of an image's file, and its kind: upright, as JPEG of a JPEG (quality 95), else as PNG.

    Some readers pass over an EXIF orientation, some fail on EXIF that is damaged, and some cut more than 8 bits off; a
    photograph as PNG would have many times its bytes. None where every reader shows the file itself alike.
    """
    if eight_bits(image) is image and _orientation(image) == 1:
        return None
    picture = upright(image)
    if image.format not in ("JPEG", "MPO"):
        return png_bytes(picture), "png"
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=JPEG_QUALITY, subsampling=0, icc_profile=image.info.get("icc_profile"))
    return stream.getvalue(), "jpeg"


def is_turned(content: bytes) -> bool:
    """Whether readers may turn an image file differently: it has an EXIF orientation, or EXIF that cannot be read.

    False where it is no image, which whoever shows it says.
    """
    images = pillow()
    try:
        with images.open(io.BytesIO(content)) as picture:
            return _orientation(picture) != 1
    except (OSError, ValueError, SyntaxError, images.DecompressionBombError):
        return False


def eight_bits(image: "Image") -> "Image":
    """An image whose channels have 8 bits; itself where they have.

    Pillow's `convert` cuts larger values off, so that a 16-bit grey image becomes white. Here 16 bits are scaled to 8.
    32-bit values (modes I and F) have no agreed range: numbers up to 255 are 8 bits (fractions up to 1 the share of
    white), those up to 65,535 are 16 bits, and where one is larger, the largest is white.
    """
    if image.mode in _BYTE_MODES or image.mode in _PILLOW_SCALES:
        return image
    import numpy as np

    values = np.nan_to_num(np.asarray(image, dtype=np.float64), posinf=0, neginf=0)
    most = _MOST_OF_16_BITS if image.mode.startswith("I;16") else _most_of_32_bits(float(values.max()), image.mode)
    return pillow().fromarray((np.clip(values / most, 0, 1) * 255).round().astype(np.uint8))


def _most_of_32_bits(largest: float, mode: str) -> float:
    steps = (1.0,) * (mode == "F") + (255.0, float(_MOST_OF_16_BITS))
    return next((step for step in steps if largest <= step), largest)


def png_bytes(image: "Image") -> bytes:
    """An image as a PNG file of 8 bits a channel; modes that PNG does not hold become RGB."""
    image = eight_bits(image)
    stream = io.BytesIO()
    (image if image.mode in _BYTE_MODES else image.convert("RGB")).save(stream, "PNG")
    return stream.getvalue()


def image_size(image: "Image | Path | str") -> tuple[int, int]:
    """Width and height of the image that `upright` gives, in pixels, without decoding a file.

    Raises:
        OSError: The file cannot be opened, or is no image.
    """
    if isinstance(image, str | Path):
        with pillow().open(image) as picture:
            return image_size(picture)
    return (image.height, image.width) if orientation(image) in (5, 6, 7, 8) else image.size


def orientation(image: "Image") -> int:
    """The EXIF orientation of an image, 1 to 8; 1, which is upright, where it has none or none that can be read."""
    return _orientation(image) or 1


def _orientation(image: "Image") -> int | None:
    """The EXIF orientation of an image; None where its EXIF is too damaged to be read."""
    from PIL import ExifTags

    try:
        found = image.getexif().get(ExifTags.Base.Orientation)
        return int(found) if found in range(2, 9) else 1
    except Exception:  # Pillow raises errors of many kinds on damaged EXIF: SyntaxError, struct.error, ...
        image.getexif().load(b"")  # it would give the part that it has read when it is asked again
        return None


def decoded(content: bytes) -> "Image":
    """The image of a file's bytes, of the formats that `store_image` takes.

    Raises:
        ValueError: As `store_image`.
    """
    images = pillow()
    if len(content) > MAX_BYTES:
        raise ValueError(f"is an image file of {len(content) >> 20} MiB; the limit is {MAX_BYTES >> 20} MiB")
    images.init()
    try:
        picture = images.open(io.BytesIO(content), formats=[name for name in images.ID if name not in NOT_OPENED])
        picture.load()
    except Exception as error:  # Pillow's decoders raise errors of many kinds on damaged files
        raise ValueError(f"is not an image that can be decoded ({type(error).__name__}: {error})") from error
    return picture
