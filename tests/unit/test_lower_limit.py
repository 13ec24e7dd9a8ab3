"""The lower limit of `python -m benchmarks scoring`, and the pass over the vocabulary that is compared with it."""

import pytest
import torch
from tiny_models import folder_of
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM

from benchmarks.lower_limit import Needed, multiply, needed_flops, needed_tokens, product_flops
from cultureval.models.scoring import lm_head
from cultureval.models.scoring.lm_head import Rows


def test_every_distinct_token_is_counted_once():
    first, second = ([1, 2, 3], [[4], [5, 6], [5, 7]]), ([1, 2, 9], [[4]])
    # 1, 2, 3, 5 and 9 are encoded; after 3, 5 and 9 something is predicted; they have 0 to 3 tokens before them.
    assert needed_tokens([first, second]) == Needed(5, 3, 1 + 2 + 3 + 4 + 3)


def test_products_are_those_that_pytorch_counts_in_a_pass():
    model = AutoModelForCausalLM.from_pretrained(folder_of("llama"), attn_implementation="eager")
    tokens, config = 11, model.config
    with torch.no_grad(), FlopCounterMode(display=False) as counted:
        model(input_ids=torch.arange(tokens)[None], use_cache=False)
    attention = 4 * config.num_attention_heads * config.head_dim * tokens**2 * config.num_hidden_layers
    assert counted.get_total_flops() == needed_flops(model, Needed(tokens, tokens, 0)) + attention
    pairs = needed_flops(model, Needed(tokens, tokens, tokens**2)) - needed_flops(model, Needed(tokens, tokens, 0))
    assert pairs == attention * (config.num_hidden_layers - 1) / config.num_hidden_layers
    multiply(model)
    assert product_flops(model) > 0


@pytest.mark.parametrize("size", [2**20, 3000])
def test_log_probabilities_and_the_first_of_equal_tokens(size, monkeypatch):
    monkeypatch.setattr(lm_head, "SLICE", size)
    values = torch.randint(-3, 4, (3, 5000), generator=torch.Generator().manual_seed(0)).float()
    values[0] *= 30
    values[1, 4500] = values[1, 17] = 9.0  # the same in two slices
    values[2, 4999] = 10.0
    at = torch.arange(3).repeat_interleave(5000)
    tokens = torch.arange(5000).repeat(3)
    logprobs, best = Rows(values).log_probs(at, tokens)
    assert torch.equal(best, (tokens == values.argmax(-1)[at]))
    assert torch.allclose(logprobs.double(), values.double().log_softmax(-1).flatten(), rtol=1e-6, atol=1e-5)
