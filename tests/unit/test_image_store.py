"""Images of rows: kept once under the hash of their bytes, whatever form the cell has; hostile cells are refused."""

import base64
import hashlib
import io
import struct
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps
from PIL.ExifTags import Base

from cultureval.prompts.cells import image_cell
from cultureval.runtime.data.image_store import image_size, is_turned, store_image, stored_image, upright
from cultureval.runtime.errors import BadRow, CulturevalError, MissingColumn
from cultureval.runtime.servers.data_urls import data_url, image_hash

pytestmark = pytest.mark.usefixtures("own_cache")


def png(colour="red", size=(5, 4)):
    stream = io.BytesIO()
    Image.new("RGB", size, colour).save(stream, "PNG")
    return stream.getvalue()


def test_every_form_of_a_cell_gives_the_same_stored_bytes(tmp_path):
    content = png()
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "صورة.png").write_bytes(content)
    picture = Image.open(io.BytesIO(content))
    cells = [content, {"bytes": content, "path": None}, "images/صورة.png", {"bytes": None, "path": "images/صورة.png"}]
    names = {image_cell({"image": cell}, "image", tmp_path) for cell in cells}
    assert len(names) == 1
    stored = stored_image(names.pop())
    assert stored.read_bytes() == content
    again = Image.open(stored_image(image_cell({"image": picture}, "image", tmp_path)))
    assert again.tobytes() == picture.tobytes() and again.size == picture.size


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (None, "no image"),
        (b"", "no image"),
        ({"bytes": None, "path": None}, "no image"),
        (b"<svg onload=alert(1)>", "cannot|can be decoded"),
        (png()[:40], "can be decoded"),
        ("../secret.png", "outside the"),
        ("/etc/hostname", "outside the"),
        ("link.png", "outside the"),
        ("nowhere.png", "names no file"),
        ("folder", "names no file"),
    ],
)
def test_what_is_no_image_of_the_source_is_a_broken_row(tmp_path, cell, reason):
    source = tmp_path / "source"
    (source / "folder").mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(png())
    (source / "link.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(BadRow, match=reason):
        image_cell({"image": cell}, "image", source)


def file_of(image, kind, **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


RAMP = Image.fromarray(np.arange(0, 65536, 257, dtype=np.uint16).reshape(16, 16))  # 16-bit grey, black to white
COLOURS = Image.linear_gradient("L").resize((16, 16)).convert("RGB").rotate(90)


@pytest.mark.parametrize(
    ("content", "suffix", "grey"),
    [
        (file_of(COLOURS, "MPO", save_all=True, append_images=[COLOURS]), ".jpg", False),
        (file_of(COLOURS, "TIFF"), ".png", False),
        (file_of(COLOURS, "JPEG2000"), ".png", False),
        (file_of(COLOURS.convert("CMYK"), "TIFF"), ".png", False),
        (file_of(COLOURS, "PPM"), ".png", False),
        (file_of(COLOURS, "TGA"), ".png", False),
        (file_of(COLOURS.convert("LA"), "PNG"), ".png", False),
        (file_of(RAMP, "PNG"), ".png", True),
        (file_of(RAMP, "TIFF"), ".png", True),
        (file_of(Image.fromarray(np.asarray(RAMP).astype(np.int32)), "TIFF"), ".png", True),
        (file_of(Image.fromarray((np.asarray(RAMP) / 65535).astype(np.float32)), "TIFF"), ".png", True),
    ],
)
def test_every_kind_of_image_is_shown_as_it_is(content, suffix, grey):
    """As readers see it: transformers and encoders (`upright`), servers (`data_url`), stock LightEval (the file)."""
    stored = stored_image(store_image(content))
    wanted = np.asarray(Image.fromarray((np.asarray(RAMP) // 257).astype(np.uint8)) if grey else COLOURS)
    sent = [data_url(image) for image in (stored, content, Image.open(io.BytesIO(content)))]
    seen = [upright(stored), Image.open(stored), *(Image.open(io.BytesIO(base64.b64decode(u[22:]))) for u in sent[1:2])]
    assert stored.suffix == suffix and all(url.startswith(("data:image/png", "data:image/jpeg")) for url in sent)
    for image in seen:
        difference = np.asarray(image.convert("L" if grey else "RGB")).astype(int) - wanted
        assert np.abs(difference).max() <= (24 if suffix == ".jpg" else 3), "CMYK and JPEG are not exact"


@pytest.mark.parametrize("turned", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "MPO"])
def test_no_image_leaves_with_an_orientation_that_a_reader_could_pass_over(turned, kind):
    """Servers see what models see: the colours of the four corners, read without EXIF."""
    photo = Image.fromarray(np.random.default_rng(0).integers(0, 255, (2, 3, 3), dtype=np.uint8)).resize((96, 64), 0)
    exif, stream = photo.getexif(), io.BytesIO()
    exif[Base.Orientation] = turned
    photo.save(stream, kind, exif=exif, **({"quality": 95} if kind in ("JPEG", "MPO") else {}))
    path = stored_image(store_image(stream.getvalue()))
    held = upright(path).convert("RGB")
    assert held.size == ((96, 64) if turned < 5 else (64, 96))
    for image in (path, stream.getvalue()):
        sent = Image.open(io.BytesIO(base64.b64decode(data_url(image).partition(",")[2])))
        assert (sent.size, sent.getexif().get(Base.Orientation, 1)) == (held.size, 1)
        assert np.abs(np.asarray(sent.convert("RGB")).astype(int) - np.asarray(held)).mean() < 4
    assert (image_hash(path) == hashlib.sha256(path.read_bytes()).hexdigest()) == (turned == 1 or kind == "TIFF")


@pytest.mark.parametrize("turned", range(1, 9))
def test_an_open_image_is_known_by_what_is_sent_of_it(turned):
    """Its pixels alone were hashed, so that an answer to a picture that lies on its side was one to the turned one."""
    photo = Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 64, 3), dtype=np.uint8))
    photo.getexif()[Base.Orientation] = turned
    sent = Image.open(io.BytesIO(base64.b64decode(data_url(photo).partition(",")[2])))
    assert image_hash(photo) == image_hash(sent) == image_hash(upright(photo))
    assert (image_hash(photo) == image_hash(Image.fromarray(np.asarray(photo)))) == (turned == 1)


def test_a_file_that_would_be_run_is_no_image():
    with pytest.raises(ValueError, match="not an image that can be decoded"):
        store_image(file_of(COLOURS, "EPS"))


def test_a_decompression_bomb_is_not_decoded(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 9)
    with pytest.raises(ValueError, match="DecompressionBomb"):
        store_image(png())
    with pytest.raises(CulturevalError, match="pixels"):
        data_url(png())


def test_a_cache_that_cannot_be_written_is_no_broken_row(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "file"))
    with pytest.raises(CulturevalError, match="CULTUREVAL_CACHE") as stopped:
        image_cell({"image": png()}, "image", tmp_path)
    assert not isinstance(stopped.value, BadRow)


def test_images_that_differ_in_their_palette_only_are_told_apart():
    pictures = [Image.new("P", (4, 4)) for _ in range(3)]
    for picture, colours in zip(pictures, ([255, 0, 0], [0, 255, 0], [255, 0, 0]), strict=True):
        picture.putpalette(colours)
    one, other, same = map(image_hash, pictures)
    assert one == same != other


@pytest.mark.parametrize("mode", ["I", "I;16", "P", "PA", "LA", "F", "CMYK"])
@pytest.mark.parametrize("side", [None, 4])
def test_images_of_every_mode_can_be_sent(mode, side):
    content = base64.b64decode(data_url(Image.new(mode, (32, 24)), max_side=side).partition(",")[2])
    assert Image.open(io.BytesIO(content)).size == ((4, 3) if side else (32, 24))


def test_missing_column_and_foreign_names():
    with pytest.raises(MissingColumn):
        image_cell({"picture": png()}, "image", ".")
    for name in ("../../etc/passwd", "0" * 64 + ".svg", ""):
        with pytest.raises(CulturevalError, match="does not name"):
            stored_image(name)
    with pytest.raises(CulturevalError, match="is missing"):
        stored_image("0" * 64 + ".png")


@pytest.mark.parametrize("orientation", [None, *range(1, 9)])
def test_the_size_of_a_photograph_is_that_of_the_image_as_it_was_held(tmp_path, orientation):
    path, photo = tmp_path / "photo.jpg", Image.new("RGB", (40, 20))
    exif = photo.getexif()
    if orientation:
        exif[Base.Orientation] = orientation
    photo.save(path, exif=exif)
    assert image_size(path) == upright(path).size == ((20, 40) if (orientation or 1) > 4 else (40, 20))


def exif_of(tags):
    exif = Image.Exif()
    exif.update(tags)
    return exif.tobytes()


def one_tag(number, kind, count, value):
    return b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<HHHI4s", 1, number, kind, count, value) + bytes(4)


WHOLE = exif_of({Base.Orientation: 6, Base.ImageDescription: "hello", Base.XResolution: 72.0})
# Of the orientation 6, with a rational under a tag of short numbers, which Pillow reads and cannot write.
UNWRITABLE = bytes.fromhex(
    "4578696600004d4d002a000000080003010e0002000000060000003201120003000000010006000001440005000000010000003800000000"
    "68656c6c6f00000000004800000001"
)
DAMAGED = st.one_of(
    st.binary(max_size=40).map(b"Exif\0\0MM\0*".__add__),
    st.binary(max_size=60).map(b"Exif\0\0II*\0\x08\0\0\0".__add__),
    st.integers(6, len(WHOLE)).map(lambda end: WHOLE[:end]),
    st.dictionaries(st.integers(6, len(WHOLE) - 1), st.integers(0, 255), max_size=6).map(
        lambda changed: bytes(changed.get(place, byte) for place, byte in enumerate(WHOLE))
    ),
    st.builds(
        one_tag,
        st.sampled_from([Base.Orientation, 0x144, 0x8769]),
        st.integers(0, 16),
        st.sampled_from([0, 1, 2, 9]),
        st.binary(min_size=4, max_size=4),
    ),
)


@settings(max_examples=150, deadline=None)
@given(DAMAGED, st.sampled_from(["JPEG", "MPO", "PNG", "WEBP", "TIFF"]))
@example(b"Exif\0\0MM\x95*\0\0\0\x08\0\0", "PNG")
@example(b"Exif\0\0MM\x95*\0\0\0\x08\0\0", "WEBP")
@example(b"Exif\0\0MM\0*\xb1", "PNG")
@example(b"Exif\0\0MM\0*\xb1", "WEBP")
@example(UNWRITABLE, "JPEG")
@example(UNWRITABLE, "PNG")
def test_no_exif_stops_whoever_shows_an_image(blob, kind):
    """Pillow's SyntaxError and struct.error ended runs and judges; what is sent has no EXIF that a reader fails on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's own, of corrupt EXIF
        try:
            content = file_of(COLOURS.resize((40, 30)), kind, exif=blob)
        except Exception:  # Pillow writes no such file
            return
        try:
            path = stored_image(store_image(content))
        except ValueError:
            return
        held = upright(path)
        assert image_size(path) == held.size in ((40, 30), (30, 40))
        assert image_size(held) == held.size == upright(held).size, "an image that is upright is not turned again"
        assert len(image_hash(path)) == 64 and is_turned(path.read_bytes()) in (True, False)
        sent = Image.open(io.BytesIO(base64.b64decode(data_url(path).partition(",")[2])))
        assert sent.size == ImageOps.exif_transpose(sent).size == held.size, "servers turn by that function, or not"


def test_exif_that_pillow_cannot_write_anew_does_not_hide_its_orientation():
    path = stored_image(store_image(file_of(COLOURS.resize((40, 30)), "JPEG", exif=UNWRITABLE)))
    assert image_size(path) == upright(path).size == (30, 40)
    assert "exif" not in upright(path).info


@pytest.mark.parametrize("show", [upright, image_hash, data_url])
def test_an_open_image_that_is_damaged_is_an_error_that_is_documented(show):
    content = file_of(COLOURS.resize((400, 300)), "PNG")
    at = content.index(b"IDAT")
    wrong_length = content[: at - 4] + b"\0\0\0\5" + content[at:]  # Pillow's SyntaxError
    for damaged in (wrong_length, content[: len(content) // 2]):
        with pytest.raises((OSError, CulturevalError)):
            show(Image.open(io.BytesIO(damaged)))
