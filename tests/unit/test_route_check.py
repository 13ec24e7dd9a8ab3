"""The checks before a route is taken: sound routes pass, wrong masks, positions and caches do not; they are short."""

import pytest
import torch
from route_errors import SCORING, checked_scoring, in_error, prompt_of
from tiny_models import folder_of, tokens_fed
from transformers import AutoModelForCausalLM

from cultureval.models.scoring.packed import ChoiceScorer, ScoringRequest
from cultureval.models.scoring.plain import LONGEST


@pytest.mark.parametrize("family", ["llama", "gemma3"])
@pytest.mark.parametrize("error", ["", *SCORING])
def test_sound_scoring_passes_and_wrong_scoring_does_not(family, error):
    model = AutoModelForCausalLM.from_pretrained(folder_of(family)).eval()
    with in_error(SCORING.get(error)):
        found = checked_scoring(model)
    assert (found.route == "packed") == (not error), found
    assert found.difference > 0.1 if error else found.difference < 1e-4


def test_16_bits_hide_no_choices_that_see_each_other():
    model = AutoModelForCausalLM.from_pretrained(folder_of("gemma3"), dtype=torch.bfloat16).eval()
    assert checked_scoring(model).route == "packed"
    with in_error(SCORING["choices see each other"]):
        assert checked_scoring(model).route == "plain"


def test_the_check_feeds_few_tokens_whatever_the_prompts_length():
    model = AutoModelForCausalLM.from_pretrained(folder_of("llama")).eval()
    scorer, prompt = ChoiceScorer(model), prompt_of(0, 1600)
    requests = [ScoringRequest([*prompt, last], [[30, 31, 32], [40, 41]], False, None) for last in (20, 21)]
    with tokens_fed(model) as fed:
        scorer._route(requests)
    assert sum(fed) < 9 * LONGEST
