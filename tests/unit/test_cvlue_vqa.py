import pytest
from hypothesis import given
from hypothesis import strategies as st

from cultureval.metrics.vqa import cvlue_correct


@given(st.text(max_size=8), st.sampled_from(["是", "有", "不是", "2", "左边", "T恤", ""]))
def test_each_mode_accepts_what_the_stricter_one_does(prediction, gold):
    strict = cvlue_correct(prediction, gold, "strict")
    assert strict <= cvlue_correct(prediction, gold, "loose")
    asks = prediction.lower().strip().rstrip("。.").endswith(("？", "吗"))
    assert cvlue_correct(prediction, gold, "exact") <= (strict or asks)


def test_no_answer_is_wrong_and_a_mode_must_exist():
    assert not cvlue_correct(None, "", "exact")
    with pytest.raises(ValueError, match="none of"):
        cvlue_correct("是", "是", "lenient")
