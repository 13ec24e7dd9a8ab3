"""ArabCulture's prompt is its authors' own: compared with lm-evaluation-harness's task arab_culture, word for word."""

import pytest
from lm_eval.tasks.arab_culture import utils_mcq

from cultureval.prompts.preparation import Preparation
from cultureval.prompts.qimma.rows import COUNTRIES, REGIONS, arabculture

ROW = {
    "first_statement": "في العيد يجتمع الأهل صباحًا",
    "options": {"arabic_keys": ["أ", "ب", "ج"], "english_keys": ["A", "B", "C"], "text": ["خيار أول", "ثانٍ", "ثالث"]},
    "answer_key": {"arabic_answer_key": "ب", "english_answer_key": "B"},
}


@pytest.mark.parametrize(
    ("location", "country", "region"), [("country_region", True, True), ("region", False, True), ("none", False, False)]
)
def test_prompt_equals_the_harness(monkeypatch, location, country, region):
    monkeypatch.setattr(utils_mcq, "COUNTRY", country)
    monkeypatch.setattr(utils_mcq, "REGION", region)
    monkeypatch.setattr(utils_mcq, "MODEL_NAME", "any")
    monkeypatch.setattr(utils_mcq, "ARABIC", True)  # unset in the environment, the harness takes it for False
    for name in COUNTRIES:
        for place in REGIONS:
            row = ROW | {"country": name, "region": place}
            prepared = arabculture(row, Preparation(f"qimma/templates/arabculture_{location}"))
            assert prepared["prompt"] == utils_mcq.doc_to_text(row)
            assert prepared["index"] == [1]
