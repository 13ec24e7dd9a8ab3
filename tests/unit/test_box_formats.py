"""Hints at the format in which a model writes its boxes."""

import random

import pytest

from cultureval.metrics.cvlue.grounding import FAMILIES
from cultureval.reports.cvlue.table import misread_boxes

SIZE = (1000, 500)


def rows_of(reply, used):
    """Replies that are almost right: `reply` takes the shares of the sides of left, top, right, bottom."""
    numbers, rows = random.Random(0), []
    for _ in range(20):
        left, top = numbers.uniform(0, 0.5), numbers.uniform(0, 0.5)
        right, bottom = left + numbers.uniform(0.2, 0.5), top + numbers.uniform(0.2, 0.5)
        box = [left * SIZE[0], top * SIZE[1], (right - left) * SIZE[0], (bottom - top) * SIZE[1]]
        specific = {"box": box, "size": SIZE, "box_format": used, "box_pixels": "3136-12845056"}
        text = reply(left + 0.01, top, right, bottom)
        rows.append({"doc": {"specific": specific}, "model_response": {"text": [text]}})
    return rows


def thousandths(*shares):
    return "<box>[[{}, {}, {}, {}]]</box>".format(*(round(1000 * share) for share in shares))


@pytest.mark.parametrize(
    ("reply", "used", "words"),
    [
        (thousandths, "internvl", None),
        (thousandths, "qwen_vl", "100% of the replies have no box that can be read; read as "),
        (thousandths, "xyxy", "outside the image or tiny; read as "),
        (lambda *shares: str([round(share, 3) for share in shares]), "xyxy", "or tiny; read as normalised"),
        (lambda a, b, c, d: thousandths(b, a, d, c), "internvl", "--box-format gemini"),
        (lambda *shares: "我看不到", "internvl", "no other format fits better"),
    ],
)
def test_a_wrong_format_is_told_with_the_one_that_fits(reply, used, words):
    found = misread_boxes(rows_of(reply, used))
    assert (found is None) if words is None else words in found
    if words and "read as" in words:
        assert found.rpartition("--box-format ")[2].rstrip(".") in FAMILIES


def test_no_rows_no_hint():
    assert misread_boxes([]) is None
