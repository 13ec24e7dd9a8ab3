import pytest
from hypothesis import given
from hypothesis import strategies as st

from cultureval.metrics.cvlue.grounding import BOX_FORMATS, FAMILIES, format_of_model, iou, parse_boxes, qwen_resized

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
        ("(500,500),(0,0)", "Qwen-VL", (999, 1998), [[0, 0, 500, 1000]]),
        ("<|box_start|>(100, 200),(300, 400)<|box_end|>", "Qwen2-VL", (500, 1000), [[50, 200, 100, 200]]),
        ('```json\n[{"bbox_2d": [28, 56, 84, 84], "label": "狗"}]\n```', "Qwen2.5-VL", (280, 280), [[28, 56, 56, 28]]),
        ('[{"bbox_2d": [10, 20, 30, 40]}, {"bbox_2d": [1, 2, 3', "qwen2.5_vl", (280, 280), [[10, 20, 20, 20]]),
        ('{"bbox_2d": [100, 100, 200, 300]}', "qwen3_vl", (2000, 1000), [[200, 100, 200, 200]]),
        ("[1, 2, 11, 22]", "xyxy", (50, 50), [[1, 2, 10, 20]]),
        ("在 [1.5, 2, 11, 22] 和 (0,0,3,4)", "xywh", (50, 50), [[1.5, 2, 11, 22], [0, 0, 3, 4]]),
        ("1, 2, 11, 22", "xyxy", (50, 50), []),
        ("[1, 2, 11, 22]", "qwen_vl", (50, 50), []),
        ("(1,2),(3,4)", "xyxy", (50, 50), []),
        ('{"bbox_2d": ["a", 1, 2, 3]}', "qwen3_vl", (50, 50), []),
        ("[" * 100_000, "qwen3_vl", (50, 50), []),
        ("我看不到", "qwen_vl", (50, 50), []),
        ("<ref>狗</ref><box>[[100, 200, 300, 400]]</box>", "internvl", (500, 1000), [[50, 200, 100, 200]]),
        ("[[004,290,998,610]]", "CogVLM", (1000, 1000), [[4, 290, 994, 320]]),
        ("[[004,290,998,610;010,020,030,040]]", "CogVLM", (1000, 1000), [[4, 290, 994, 320], [10, 20, 20, 20]]),
        (
            "<|begin_of_box|>[[１００，２００，３００，４００]]<|end_of_box|>",
            "glm_v",
            (500, 1000),
            [[50, 200, 100, 200]],
        ),
        ("<|ref|>狗<|/ref|><|det|>[[0, 0, 999, 999]]<|/det|>", "deepseek_vl2", (640, 480), [[0, 0, 640, 480]]),
        ("<ref>狗</ref><box>100 200 300 400</box>", "MiniCPM-V", (500, 1000), [[50, 200, 100, 200]]),
        ("<loc0256><loc0128><loc0512><loc0256> dog", "paligemma", (1024, 1024), [[128, 256, 128, 256]]),
        ("<object><patch_index_0000><patch_index_1023></object>", "kosmos2", (64, 64), [[1, 1, 62, 62]]),
        ('```json\n[{"box_2d": [200, 100, 400, 300]}]', "gemini", (500, 1000), [[50, 200, 100, 200]]),
        ("[0.1, 0.2, 0.3, 0.4]", "normalised", (500, 1000), [[50, 200, 100, 200]]),
        # JSON in any nesting, with any quotes, brackets, digits and commas
        (
            "{'objects': [{'狗': {'bbox_2d': [[100, 200], [300, 400]]}}]}",
            "qwen3_vl",
            (500, 1000),
            [[50, 200, 100, 200]],
        ),
        ("结果：｛“bbox”：【１００、２００、３００、４００】｝", "qwen3_vl", (500, 1000), [[50, 200, 100, 200]]),
        ('{"bboxes": [[[100, 200, 300, 400]]]}', "qwen3_vl", (500, 1000), [[50, 200, 100, 200]]),
        ('{"x1": 100, "y1": "200", "x2": 300, "y2": 400}', "qwen3_vl", (500, 1000), [[50, 200, 100, 200]]),
        ("المربع [١٠٠، ٢٠٠، ٣٠٠، ٤٠٠]", "internvl", (500, 1000), [[50, 200, 100, 200]]),
    ],
)
def test_boxes_of_each_format(text, format, size, expected):
    assert parse_boxes(text, format, size) == [pytest.approx(box) for box in expected]


@given(st.text(max_size=200), st.sampled_from(BOX_FORMATS))
def test_any_reply_is_read_or_gives_no_box(text, format):
    for box in parse_boxes(text, format, (640, 480)):
        assert iou(box, [0, 0, 10, 10]) >= 0


def test_formats_and_sizes_are_explicit():
    with pytest.raises(ValueError, match="choose from qwen_vl, qwen2_vl"):
        parse_boxes("", "florence", (1, 1))
    with pytest.raises(ValueError, match="size"):
        parse_boxes("", "xyxy", (0, 10))


def test_pixels_of_the_resized_image():
    """Sides become multiples of 28; a processor with other limits says so by `resized`."""
    assert qwen_resized((280, 281)) == (280, 280)
    assert qwen_resized((10, 10)) == (56, 56)
    width, height = qwen_resized((8000, 6000))
    assert width * height <= 12_845_056 and width % 28 == height % 28 == 0
    with pytest.raises(ValueError, match="aspect ratio"):
        qwen_resized((20_001, 100))
    reply = '{"bbox_2d": [0, 0, 50, 50]}'
    assert parse_boxes(reply, "qwen2.5_vl", (1000, 500), (100, 100)) == [[0, 0, 500, 250]]


def test_a_models_type_has_one_format():
    """The types are those of configurations; a few are of models whose code is not in transformers."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    types = [name for family in FAMILIES.values() for name in family.model_types]
    assert len(set(types)) == len(types)
    with_code_of_their_own = {"qwen", "internvl_chat", "cogvlm", "cogvlm2", "deepseek_vl_v2", "deepseek_vl2"}
    assert set(types) - set(CONFIG_MAPPING_NAMES) - {"minicpmv", "minicpmo"} == with_code_of_their_own
    assert (format_of_model("qwen2_5_vl"), format_of_model("bert")) == ("qwen2.5_vl", None)
    assert format_of_model("llava") is None, "its boxes are of a padded image, which no format undoes"
