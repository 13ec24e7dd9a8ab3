"""The checks before a route is taken: sound routes pass, wrong masks, positions and caches do not; they are short."""

import pytest
import torch
from route_errors import SCORING, checked_scoring, in_error, prompt_of, size_of
from tiny_models import folder_of
from transformers import AutoModelForCausalLM

from cultureval.models.scoring.packed import ChoiceScorer, ScoringRequest
from cultureval.models.scoring.route_check import (
    LONGEST,
    LONGEST_FP32,
    allowed_difference,
    last_bits_changed,
    shortened,
)


# 16 bits hide two errors of the first family.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "dtype"), [("llama", torch.float32), ("gemma3", torch.float32), ("gemma3", torch.bfloat16)]
)
@pytest.mark.parametrize("error", ["", *SCORING])
def test_sound_routes_of_scoring_pass_and_wrong_ones_do_not(family, dtype, error):
    model = AutoModelForCausalLM.from_pretrained(folder_of(family), dtype=dtype).eval()
    with in_error(SCORING.get(error)):
        found = checked_scoring(model)
    assert (found.route == "packed") == (not error), found
    assert 0 < found.seconds
    if error and dtype == torch.float32:
        assert size_of(found) > 1000


def test_the_check_feeds_few_tokens_whatever_the_prompts_length():
    model = AutoModelForCausalLM.from_pretrained(folder_of("llama")).eval()
    scorer, prompt = ChoiceScorer(model), prompt_of(0, 1600)
    scorer._check([ScoringRequest([*prompt, last], [[30, 31, 32], [40, 41]], False, None) for last in (20, 21)])
    assert scorer.forwarded_tokens < 11 * LONGEST_FP32
    assert len(shortened(prompt, model)) == LONGEST_FP32 and shortened(prompt[:20], model) == prompt[:20]
    assert len(shortened(prompt, model.to(torch.bfloat16))) == LONGEST
    with last_bits_changed(model):
        assert allowed_difference(1e-3, model.float()) == pytest.approx(16e-3)
