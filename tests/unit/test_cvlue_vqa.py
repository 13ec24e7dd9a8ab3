import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cultureval.metrics.cvlue.vqa import CONTRACTIONS, cvlue_correct, normalize_vqa_v2, soft_accuracy
from cultureval.reports.cvlue.official_scores import score_task
from cultureval.runtime.errors import CulturevalError


@given(st.text(max_size=8), st.sampled_from(["是", "有", "不是", "2", "左边", "T恤", ""]))
def test_each_mode_accepts_what_the_stricter_one_does(prediction, gold):
    strict = cvlue_correct(prediction, gold, "strict")
    assert strict <= cvlue_correct(prediction, gold, "loose")
    asks = prediction.lower().strip().rstrip("。.").endswith(("？", "吗"))
    assert cvlue_correct(prediction, gold, "exact") <= (strict or asks)


def test_no_answer_is_wrong_and_a_mode_must_exist():
    assert not cvlue_correct(None, "", "exact")
    with pytest.raises(ValueError, match="not one of"):
        cvlue_correct("是", "是", "lenient")


def test_soft_accuracy_leaves_each_answer_out():
    """VQA v2: with m of ten the same, the mean over left-out answers of min(1, matches / 3)."""
    for matches, expected in ((0, 0), (1, 0.3), (2, 0.6), (3, 0.9), (4, 1), (10, 1)):
        answers = ["red"] * matches + [f"other {number}" for number in range(10 - matches)]
        assert soft_accuracy("red", answers) == pytest.approx(expected)
    assert soft_accuracy("Three.", ["3"] * 9 + ["4"]) == 1
    assert soft_accuracy("Three.", ["3"] * 10) == 0, "answers that all agree are compared as they are"
    with pytest.raises(ValueError, match="no answer"):
        soft_accuracy("red", [])


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        *[
            ("The Two dogs.", "2 dogs"),
            ("dont", "don't"),
            ("x-y", "x y"),
            ("1,000", "1000"),
            ("yes, it is", "yes it is"),
        ],
        *[("TWAS wed've", "'twas we'd've"), ("somebody'd", "somebodyd"), ("shes Im ive", "shes im ive")],
        ("." * 40, "." * 8),
    ],
)
def test_normal_form_of_vqa_v2(text, normal):
    assert normalize_vqa_v2(text) == normal


def test_the_contractions_are_the_official_ones():
    """github.com/GT-Vision-Lab/VQA, vqaEval.py (a013f00): 100,000 answers made of them had the same scores there."""
    pairs = "\n".join(sorted(f"{word} {written}" for word, written in CONTRACTIONS.items()))
    assert len(CONTRACTIONS) == 120
    assert hashlib.sha256(pairs.encode()).hexdigest()[:16] == "b847028bf993545e"


def test_null_answers_are_told_and_a_decimal_id_is_named_as_what_is_wrong(tmp_path):
    gold = [{"image": "a.jpg", "question_id": number, "question": "?", "answer": "猫"} for number in range(4)]
    (tmp_path / "gold.json").write_text(json.dumps(gold), encoding="utf-8")

    def text_of(records):
        (tmp_path / "vqa.json").write_text(json.dumps(records), encoding="utf-8")
        return score_task("vqa", tmp_path / "gold.json", [tmp_path / "vqa.json"], tmp_path / "out").text

    assert "null" not in text_of(gold)
    assert "1 of 4 answers are null, which counts as wrong." in text_of([gold[0] | {"answer": None}, *gold[1:]])
    with pytest.raises(CulturevalError, match="has no question_id as integer or text"):
        text_of([gold[0] | {"question_id": 0.0}, *gold[1:]])
    with pytest.raises(CulturevalError, match="has no question_id as integer or text"):
        text_of([{name: one for name, one in gold[0].items() if name != "question_id"}, *gold[1:]])
