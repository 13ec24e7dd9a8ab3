import re
from pathlib import Path

import pytest
import transformers
from growth import grows_slowly
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cultureval.metrics.cvlue.grounding import (
    BOX_FORMATS,
    FAMILIES,
    format_of_model,
    image_refused,
    iou,
    parse_boxes,
    predicted_boxes,
    qwen_resized,
)

SIDES = st.floats(0, 2000, allow_nan=False)
BOXES = st.tuples(SIDES, SIDES, SIDES, SIDES)


@given(BOXES, BOXES)
def test_iou_is_symmetric_and_between_0_and_1(one, other):
    for convention in ("official", "continuous"):
        value = iou(one, other, convention)
        assert 0 <= value <= 1 + 1e-9
        assert value == pytest.approx(iou(other, one, convention))
    assert iou(one, one) == pytest.approx(1)


def test_an_empty_prediction_is_0_and_a_broken_one_an_error():
    assert iou([], [0, 0, 5, 5]) == iou(None, [0, 0, 5, 5], "continuous") == 0
    for box in ([1, 2, 3], [1, 2, 3, float("nan")], [1, 2, 3, "x"], [0, 0, 1e200, 1e200], [0, 0, 1, 10**400], ["a"]):
        with pytest.raises(ValueError, match="predicted box"):
            iou(box, [0, 0, 5, 5])
    with pytest.raises(ValueError, match="gold box"):
        iou([], [])
    with pytest.raises(ValueError, match="neither"):
        iou([0, 0, 1, 1], [0, 0, 1, 1], "pascal")


@pytest.mark.parametrize(
    ("text", "format", "size", "expected"),
    [
        ("<ref>狗</ref><box>(0,0),(999,500)</box>", "qwen_vl", (999, 999), [[0, 0, 999, 500]]),
        ("(500,500),(0,0)", "qwen_vl", (999, 1998), [[0, 0, 500, 1000]]),
        ("<|box_start|>(100, 200),(300, 400)<|box_end|>", "qwen2_vl", (500, 1000), [[50, 200, 100, 200]]),
        ('```json\n[{"bbox_2d": [28, 56, 84, 84], "label": "狗"}]\n```', "qwen2.5_vl", (280, 280), [[28, 56, 56, 28]]),
        ('[{"bbox_2d": [10, 20, 30, 40]}, {"bbox_2d": [1, 2, 3', "qwen2.5_vl", (280, 280), [[10, 20, 20, 20]]),
        ('{"bbox_2d": [100, 100, 200, 300]}', "qwen3_vl", (2000, 1000), [[200, 100, 200, 200]]),
        ('{"x1": 100, "y1": 200, "x2": 300, "y2": 400}', "qwen3_vl", (500, 1000), [[50, 200, 100, 200]]),
        ('[{"bbox": {"xmin": 1, "ymin": 2, "xmax": 3, "ymax": 4}}]', "xyxy", (50, 50), [[1, 2, 2, 2]]),
        ('{"x": 1, "y": 2, "width": 3, "height": 4}', "xyxy", (50, 50), [[1, 2, 3, 4]]),
        ('{"ymin": 2, "xmin": 1, "ymax": 4, "xmax": 3}', "gemini", (1000, 1000), [[1, 2, 2, 2]]),
        ("[1, 2, 11, 22]", "xyxy", (50, 50), [[1, 2, 10, 20]]),
        ("[1.5, 2, 11, 22]", "xywh", (50, 50), [[1.5, 2, 11, 22]]),
        ("[1.5, 2, -11, 22]", "xywh", (50, 50), []),
        ("1, 2, 11, 22", "xyxy", (50, 50), []),
        ("[1, 2, 11, 22]", "qwen_vl", (50, 50), []),
        ("[1, 2, 11, 22]", "qwen3_vl", (50, 50), []),
        ("(1,2),(3,4)", "xyxy", (50, 50), []),
        ('{"bbox_2d": ["a", 1, 2, 3]}', "qwen3_vl", (50, 50), []),
        ("我看不到", "qwen_vl", (50, 50), []),
        ("<ref>狗</ref><box>[[100, 200, 300, 400]]</box>", "internvl", (500, 1000), [[50, 200, 100, 200]]),
        ("[[004,290,998,610;010,020,030,040]]", "cogvlm", (1000, 1000), [[4, 290, 994, 320], [10, 20, 20, 20]]),
        (
            "<|begin_of_box|>[[１００，２，３００，４]]<|end_of_box|>",
            "glm_v",
            (500, 1000),
            [[50, 2, 100, 2]],
        ),
        ("<|ref|>狗<|/ref|><|det|>[[0, 0, 999, 999]]<|/det|>", "deepseek_vl2", (640, 480), [[0, 0, 640, 480]]),
        ("<ref>狗</ref><box>100 200 300 400</box>", "minicpm_v", (500, 1000), [[50, 200, 100, 200]]),
        ("<loc0256><loc0128><loc0512><loc0256> dog", "paligemma", (1024, 1024), [[128, 256, 128, 256]]),
        ("<object><patch_index_0000><patch_index_1023></object>", "kosmos2", (64, 64), [[1, 1, 62, 62]]),
        ('```json\n[{"box_2d": [200, 100, 400, 300]}]', "gemini", (500, 1000), [[50, 200, 100, 200]]),
        ("[0.1, 0.2, 0.3, 0.4]", "normalised", (500, 1000), [[50, 200, 100, 200]]),
        # of Florence-2's 1000 bins each side, the centres
        ("dog<loc_100><loc_200><loc_300><loc_400>", "florence2", (500, 1000), [[50.25, 200.5, 100, 200]]),
    ],
)
def test_boxes_of_each_format(text, format, size, expected):
    assert parse_boxes(text, format, size) == [pytest.approx(box) for box in expected]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["1" * 20_000, "[" + "1," * 9_999, '"x":' * 5_000, "<loc_1>" * 2_500, "{" * 20_000])
def test_long_replies_are_read_in_linear_time(text):
    def read(size):
        for format in BOX_FORMATS:
            parse_boxes(text[:size], format, (640, 480))

    assert grows_slowly(read, len(text) // 4)


SIZES = [
    (640, 3),
    (600, 3),
    (601, 3),
    (3, 640),
    (1, 300),
    (1, 1),
    (2, 2),
    (5000, 25),
    (5001, 25),
    (28, 5601),
    (57, 11_401),
]


@pytest.mark.parametrize("model_type", ["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "glm4v", "glm46v"])
def test_an_image_that_the_formats_processor_refuses_has_no_box_and_a_reason(model_type):
    """Behind a server, too, before the first question: as transformers' own processor of that type does."""
    from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING_NAMES

    processor = getattr(transformers, IMAGE_PROCESSOR_MAPPING_NAMES[model_type]["pil"])()
    for size in SIZES:
        specific = {"size": size, "box_format": format_of_model(model_type), "box_pixels": "3136-12845056"}
        try:
            processor(images=[Image.new("RGB", size)])
            assert image_refused(specific) == ""
        except ValueError as error:
            assert str(error) in image_refused(specific)
            assert predicted_boxes('{"bbox_2d": [0, 0, 5, 5]}', specific) == []


def test_pixels_of_the_resized_image():
    """Sides become multiples of 28; a processor may have other limits."""
    assert qwen_resized((280, 281)) == (280, 280)
    assert qwen_resized((10, 10)) == (56, 56)
    width, height = qwen_resized((8000, 6000))
    assert width * height <= 12_845_056 and width % 28 == height % 28 == 0
    with pytest.raises(ValueError, match="aspect ratio"):
        qwen_resized((20_001, 100))
    reply = '{"bbox_2d": [0, 0, 50, 50]}'
    assert parse_boxes(reply, "qwen2.5_vl", (112, 112), (3136, 3136)) == [[0, 0, 100, 100]]


def test_a_models_type_has_one_format():
    """The types are those of configurations; a few are of models whose code is not in transformers."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    types = [name for family in FAMILIES.values() for name in family.model_types]
    assert len(set(types)) == len(types)
    with_code_of_their_own = {"qwen", "internvl_chat", "cogvlm", "cogvlm2", "deepseek_vl_v2", "deepseek_vl2"}
    assert set(types) - set(CONFIG_MAPPING_NAMES) - {"minicpmv", "minicpmo"} == with_code_of_their_own
    assert (format_of_model("qwen2_5_vl"), format_of_model("bert")) == ("qwen2.5_vl", None)
    assert format_of_model("llava") is None, "its boxes are of a padded image, which no format undoes"


def test_the_examples_of_the_documentation_are_read():
    """The table of docs/cvlue.md has every format, with a reply that has one box inside the image."""
    lines = (Path(__file__).parents[2] / "docs/cvlue.md").read_text(encoding="utf-8").splitlines()
    rows = [re.split(r"(?<!\\)\|", line)[1:3] for line in lines if line.startswith("| `") and line.count("|") > 3]
    examples = {
        name: reply.strip().strip("`").replace("\\|", "|")
        for names, reply in rows
        for name in re.findall(r"`([\w.]+)`", names)
    }
    examples = {name: reply for name, reply in examples.items() if name in BOX_FORMATS}
    assert set(examples) == set(BOX_FORMATS)
    for name, reply in examples.items():
        (box,) = parse_boxes(reply, name, (1000, 1000))
        assert min(box[2:]) > 0 and max(box[0] + box[2], box[1] + box[3]) <= 1000
