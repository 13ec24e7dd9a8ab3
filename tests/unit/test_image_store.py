"""Images of rows: kept once under the hash of their bytes, whatever form the cell has; hostile cells are refused."""

import base64
import hashlib
import io

import numpy as np
import pytest
from PIL import Image
from PIL.ExifTags import Base

from cultureval.prompts.cells import image_cell
from cultureval.runtime.data.image_store import image_size, store_image, stored_image, upright
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


COLOURS = Image.linear_gradient("L").resize((16, 16)).convert("RGB").rotate(90)


@pytest.mark.parametrize(
    ("content", "suffix"),
    [
        (file_of(COLOURS, "MPO", save_all=True, append_images=[COLOURS]), ".jpg"),
        (file_of(COLOURS, "TIFF"), ".png"),
        (file_of(COLOURS.convert("CMYK"), "TIFF"), ".png"),
        (file_of(COLOURS.convert("LA"), "PNG"), ".png"),
    ],
)
def test_every_kind_of_image_is_shown_as_it_is(content, suffix):
    """As readers see it: transformers and encoders (`upright`), stock LightEval (the file), servers (`data_url`)."""
    stored = stored_image(store_image(content))
    sent = Image.open(io.BytesIO(base64.b64decode(data_url(stored).partition(",")[2])))
    assert stored.suffix == suffix
    for image in (upright(stored), Image.open(stored), sent):
        difference = np.asarray(image.convert("RGB")).astype(int) - COLOURS
        assert np.abs(difference).max() <= (24 if suffix == ".jpg" else 3), "CMYK and JPEG are not exact"


@pytest.mark.parametrize("turned", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_no_image_is_kept_or_sent_with_an_orientation_that_a_reader_could_pass_over(turned, kind):
    photo = Image.fromarray(np.random.default_rng(0).integers(0, 255, (2, 3, 3), dtype=np.uint8)).resize((96, 64), 0)
    exif = photo.getexif()
    exif[Base.Orientation] = turned
    content = file_of(photo, kind, exif=exif)
    path = stored_image(store_image(content))
    held = upright(Image.open(io.BytesIO(content)))
    assert image_size(path) == held.size == ((96, 64) if turned < 5 else (64, 96))
    for image in (path, content):
        sent = Image.open(io.BytesIO(base64.b64decode(data_url(image).partition(",")[2])))
        assert (sent.size, sent.getexif().get(Base.Orientation, 1)) == (held.size, 1)
        assert np.array_equal(np.asarray(sent.convert("RGB")), np.asarray(held.convert("RGB")))
    assert image_hash(path) == hashlib.sha256(path.read_bytes()).hexdigest()


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


def test_missing_column_and_foreign_names():
    with pytest.raises(MissingColumn):
        image_cell({"picture": png()}, "image", ".")
    for name in ("../../etc/passwd", "0" * 64 + ".svg", ""):
        with pytest.raises(CulturevalError, match="does not name"):
            stored_image(name)
    with pytest.raises(CulturevalError, match="is missing"):
        stored_image("0" * 64 + ".png")
