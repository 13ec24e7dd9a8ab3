"""120 images of 12 kinds and 10 odd sizes through a server that finds what is drawn on them."""

import base64
import io
import json
from itertools import product

import numpy as np
import pytest
import yaml
from forked_commands import own_variables, run_forked
from loopback import Handler, LoopbackServer
from PIL import Image
from PIL.ExifTags import Base
from result_files import details_of, results_of

from cultureval.metrics.cvlue.grounding import (
    BOX_FORMATS,
    FAMILIES,
    image_refused,
    iou,
    predicted_boxes,
    qwen_resized,
)

SIZES = [(640, 3), (3, 640), (1, 1), (2, 2), (27, 29), (64, 64), (57, 211), (333, 777), (1000, 1000), (1280, 720)]
GREEN, BLUE = (40, 200, 40), (40, 40, 200)


def turned(orientation):
    """How a camera that was held so keeps a picture."""
    back = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_90, 8: Image.Transpose.ROTATE_270}[orientation]

    def keep(picture):
        kept = picture.transpose(back)
        kept.getexif()[Base.Orientation] = orientation
        return kept

    return keep


# Name -> how the picture is changed, its format and how it is saved.
KINDS = {
    "plain.png": (None, "PNG", {}),
    "glass.png": (lambda picture: picture.convert("RGBA"), "PNG", {}),
    "palette.png": (lambda picture: picture.quantize(8), "PNG", {}),
    "grey.png": (lambda picture: picture.convert("L"), "PNG", {}),
    "photo.jpg": (None, "JPEG", {"quality": 95, "subsampling": 0}),
    "upside_down.jpg": (turned(3), "JPEG", {"quality": 95, "subsampling": 0}),
    "on_its_side.jpg": (turned(6), "JPEG", {"quality": 95, "subsampling": 0}),
    "on_the_other.webp": (turned(8), "WEBP", {"lossless": True}),
    "phone.jpg": (None, "MPO", {"save_all": True, "quality": 95, "subsampling": 0}),
    "moving.gif": (lambda picture: picture.quantize(8), "GIF", {}),
    "bits.bmp": (None, "BMP", {}),
    "print.tif": (lambda picture: picture.convert("CMYK"), "TIFF", {}),
}


def drawn(size, number):
    """A picture of some width and height, and its box in pixels: at least half of each side where it has two."""
    box = [max(0, side // 4 - number % 3) for side in size]
    box += [max(1, side * 5 // 8) for side in size]
    picture = Image.new("RGB", size, BLUE)
    picture.paste(GREEN, (box[0], box[1], box[0] + box[2], box[1] + box[3]))
    return picture, box


def file_of(picture, kind):
    change, form, options = KINDS[kind]
    stream = io.BytesIO()
    changed = change(picture) if change else picture
    changed.save(stream, form, exif=changed.getexif(), **options)
    return stream.getvalue()


def found(content):
    """The box of a picture as it lies, without EXIF: where it is not as its last corner, in shares of the sides."""
    grey = np.asarray(Image.open(io.BytesIO(content)).convert("L")).astype(int)
    there = grey > (np.asarray([GREEN, BLUE]) @ [0.299, 0.587, 0.114]).mean()
    across, down = np.flatnonzero(there.any(0)), np.flatnonzero(there.any(1))
    height, width = grey.shape
    return (across[0] / width, down[0] / height, (across[-1] + 1) / width, (down[-1] + 1) / height), (width, height)


def said(form, shares, size):
    """A box as a model of a family writes it, and for Kosmos-2 the shares that its cells mean."""
    family = FAMILIES[form]
    if form == "kosmos2":
        cells = [min(31, int(share * 32)) for share in shares]
        alone = cells[0] == cells[2] or cells[1] == cells[3]
        meant = [(cell + (place // 2 if alone else 0.5)) / 32 for place, cell in enumerate(cells)]
        corners = cells[1] * 32 + cells[0], cells[3] * 32 + cells[2]
        return "<object><patch_index_{:04d}><patch_index_{:04d}></object>".format(*corners), meant
    if form == "florence2":
        return "dog" + "".join(f"<loc_{min(999, int(share * 1000))}>" for share in shares), None
    sides = qwen_resized(size) if form == "qwen2.5_vl" else size if family.scale == 0 else (family.scale,) * 2
    a, b, c, d = (share * side for share, side in zip(shares, sides * 2, strict=True))
    a, b, c, d = (round(one, 3) if form == "normalised" else round(one) for one in (a, b, c, d))
    replies = {
        "qwen_vl": f"<ref>狗</ref><box>({a},{b}),({c},{d})</box>",
        "qwen2_vl": f"<|box_start|>({a},{b}),({c},{d})<|box_end|>",
        "gemini": json.dumps([{"box_2d": [b, a, d, c], "label": "dog"}]),
        "minicpm_v": f"<ref>狗</ref><box>{a} {b} {c} {d}</box>",
        "paligemma": "".join(f"<loc{min(1023, int(one)):04d}>" for one in (b, a, d, c)) + " dog",
        "xywh": f"[{a}, {b}, {c - a}, {d - b}]",
        "qwen2.5_vl": f'```json\n[\n\t{{"bbox_2d": [{a}, {b}, {c}, {d}], "label": "狗"}}\n]\n```',
        "qwen3_vl": f'```json\n[\n\t{{"bbox_2d": [{a}, {b}, {c}, {d}], "label": "狗"}}\n]\n```',
    }
    return replies.get(form) or f"[[{a}, {b}, {c}, {d}]]", None


def said_and_meant(form, box, size):
    """A box as a model of a family writes it, and the box that this means: Kosmos-2's 32 cells cannot say every one."""
    (left, top, wide, high), (width, height) = box, size
    text, meant = said(form, (left / width, top / height, (left + wide) / width, (top + high) / height), size)
    if meant:
        left, top, right, bottom = (share * side for share, side in zip(meant, size * 2, strict=True))
        box = [left, top, right - left, bottom - top]
    return text, box


class Seer(Handler):
    """Answers with the box of the image that it is sent, which it reads without EXIF; its path begins with the form."""

    def do_GET(self):
        self.reply(200, {"object": "list", "data": [{"id": "seer", "object": "model"}]})

    def do_POST(self):
        content = json.loads(self.asked())["messages"][-1]["content"]
        parts = [] if isinstance(content, str) else content
        urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        form = self.path.split("/")[1]
        text = said(form, *found(base64.b64decode(urls[0].partition(",")[2])))[0] if urls else "a fishmonger"
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        self.reply(200, {"id": "x", "object": "chat.completion", "model": "seer", "choices": [choice]})


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Form -> a data root with the pictures and their boxes."""
    root = tmp_path_factory.mktemp("grounding")
    files = {}
    for number, (size, kind) in enumerate(product(SIZES, KINDS)):
        picture, box = drawn(size, number)
        files[number] = (f"{number}-{kind}", file_of(picture, kind), size, box)

    def build(form):
        folder = root / form / "cvlue"
        (folder / "VG").mkdir(parents=True)
        (folder / "images").mkdir()
        rows = []
        for number, (name, content, (width, height), box) in files.items():
            (folder / "images" / name).write_bytes(content)
            row = {"ref_id": number, "image": f"images/{name}", "text": "狗", "width": width, "height": height}
            rows.append(row | {"bbox": box})
        (folder / "VG/gold.json").write_text(json.dumps(rows), encoding="utf-8")
        return root / form

    return build


@pytest.mark.parametrize("form", BOX_FORMATS)
def test_a_box_is_read_in_every_format_and_size_of_image(form):
    refused = 0
    for number, size in enumerate(SIZES):
        specific = {"size": size, "box_format": form, "box_pixels": "3136-12845056"}
        if image_refused(specific):
            refused += 1
            continue
        text, gold = said_and_meant(form, drawn(size, number)[1], size)
        (box,) = predicted_boxes(text, specific)
        assert iou(box, gold) >= 0.95, (size, text)  # a side of 11 pixels is off by a quarter of one
    assert refused == (2 if FAMILIES[form].sizes_by else 0)


# Pixels of the resized image and of the original one; all others are shares, which know no size.
@pytest.mark.parametrize("form", ["qwen2.5_vl", "xywh"])
def test_planted_boxes_are_found_in_every_kind_and_size_of_image(tmp_path, data, form):
    with LoopbackServer(Seer, f"/{form}/v1") as server:
        settings = {"model": "seer", "base_url": server.url, "concurrency": 4}
        (tmp_path / "seer.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        options = ["--data", str(data(form)), "--output-dir", "out", "--task-args", f"box_format={form}"]
        command, main = ["eval", "seer.yaml", "cvlue_vg", *options], "cultureval.scripts.main"
        run = run_forked(main, command, tmp_path, own_variables(tmp_path), network=True, loaded="ours")
    assert run.returncode == 0, run.stderr
    results = results_of(tmp_path / "out")
    scores, record = results["results"]["cvlue_vg|0"], results["cultureval"]["tasks"]["cvlue_vg|0"]
    rows = details_of(tmp_path / "out")["cvlue_vg|0"]
    refused = 2 * len(KINDS) if FAMILIES[form].sizes_by else 0
    assert (len(rows), record["rows"], record["refused"]) == (120, 120 - refused, refused)
    scored = [row for row in rows if row["metric"]["iou"] is not None]
    low = [row["doc"]["specific"]["image_path"] for row in scored if row["metric"]["iou"] < 0.97]
    assert len(scored) == record["rows"]
    assert scores["iou"] >= 0.99 and scores["unparsable"] == 0, low
