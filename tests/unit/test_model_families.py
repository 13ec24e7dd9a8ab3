"""Families of models that are made otherwise than Llama: scored as plain passes do, packed where they bear it."""

import copy
from dataclasses import replace

import pytest
import torch
from tiny_models import VISION, image_requests, plain_scores, vision_model
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

from cultureval.models.memory import LEAST_TOKENS, MOST_TOKENS, tokens_that_fit
from cultureval.models.scoring.packed import ChoiceScorer, ScoringRequest
from cultureval.models.scoring.plain import TOLERANCE
from cultureval.runtime.errors import CulturevalError

IMAGE = 300
SIZES = {
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "initializer_range": 0.2,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}
SHARED = {name: value for name, value in SIZES.items() if name not in ("num_key_value_heads", "head_dim")}
GPT2 = {**SHARED, "n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 512}
LAYERS = {**SHARED, "num_layers": 4, "num_heads": 4}
del LAYERS["num_hidden_layers"], LAYERS["num_attention_heads"]
MAMBA2 = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_chunk_size": 16, "mamba_n_groups": 1}
FAMILIES = [
    ("mistral", {**SIZES, "sliding_window": 8}, "packed"),
    ("gemma2", {**SIZES, "sliding_window": 8, "query_pre_attn_scalar": 16, "final_logit_softcapping": 3.0}, "packed"),
    ("gpt_oss", {**SIZES, "sliding_window": 8, "num_local_experts": 4, "num_experts_per_tok": 2}, "packed"),
    ("qwen3_moe", {**SIZES, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}, "packed"),
    ("gpt2", GPT2, "packed"),
    ("gpt_neox", {**SHARED, "rotary_pct": 0.25}, "packed"),
    ("bloom", {**SHARED, "n_layer": 3, "n_head": 4}, "plain"),
    ("mpt", {"d_model": 64, "n_heads": 4, "n_layers": 3, "vocab_size": 320, "initializer_range": 0.2}, "plain"),
    ("falcon", {**SHARED, "alibi": True, "multi_query": False}, "plain"),
    ("lfm2", {**SIZES, "full_attn_idxs": [1, 3], "block_ff_dim": 128}, "plain"),
    ("falcon_h1", {**SIZES, **MAMBA2, "mamba_d_ssm": 128}, "plain"),
    ("jamba", {**SIZES, "num_experts": 2, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_dt_rank": 8}, "plain"),
    ("mamba", {**SHARED, "state_size": 8}, "plain"),
]


def tiny(auto, kind, **settings):
    torch.manual_seed(0)
    return auto.from_config(AutoConfig.for_model(kind, **settings)).eval()


def tokens(count, seed):
    return torch.randint(9, 290, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def scored_as_plain_passes_do(scorer, model, requests):
    for batch in scorer.batches(requests):
        for index, own in zip(batch, scorer.score([requests[index] for index in batch]), strict=True):
            expected = plain_scores(model, requests[index].prompt, requests[index].choices)
            assert [score.logprob for score in own] == pytest.approx([total for total, _ in expected], abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("in_phases", [False, True], ids=["tree", "two_phases"])
@pytest.mark.parametrize(("kind", "settings", "route"), FAMILIES)
def test_letters_alone_letters_together_and_texts_are_scored_as_plain_passes_do(kind, settings, route, in_phases):
    model = tiny(AutoModelForCausalLM, kind, **settings)
    assert LEAST_TOKENS <= tokens_that_fit(model) <= MOST_TOKENS
    scorer, letters = ChoiceScorer(model, [], 150, in_phases), [[9], [10], [11]]
    scored_as_plain_passes_do(scorer, model, [ScoringRequest(tokens(60, 1), letters)])
    assert scorer.routes == {False: route}
    scored_as_plain_passes_do(scorer, model, [ScoringRequest(tokens(20, seed), letters) for seed in (2, 3, 4)])
    assert scorer.routes == {False: route}
    texts = [tokens(count, count) for count in (1, 3, 9, 4, 2)]
    scored_as_plain_passes_do(scorer, model, [ScoringRequest(tokens(count, 5), texts) for count in (1, 12, 33)])


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "settings", "route"), FAMILIES)
def test_in_16_bits_the_same_routes_are_taken(kind, settings, route):
    model = tiny(AutoModelForCausalLM, kind, **settings).to(torch.bfloat16)
    prompt, texts = tokens(16, 5), [tokens(count, count) for count in (1, 5)]
    scorer = ChoiceScorer(model)
    own = [score.logprob for score in scorer.score([ScoringRequest(prompt, texts)])[0]]
    assert scorer.routes == {False: route}
    expected = [total for total, _ in plain_scores(model, prompt, texts)]
    assert own == pytest.approx(expected, abs=2 * TOLERANCE[torch.bfloat16])


@pytest.mark.parametrize(
    ("kind", "settings", "route"),
    [
        ("mistral", {**SIZES, "sliding_window": 32}, "packed"),
        ("gpt_neo", {**LAYERS, "attention_types": [[["global", "local"], 2]], "window_size": 32}, "plain"),
    ],
)
def test_a_window_that_the_first_prompts_do_not_fill_is_kept_all_the_same(kind, settings, route):
    model = tiny(AutoModelForCausalLM, kind, **settings)
    scorer = ChoiceScorer(model)
    scored_as_plain_passes_do(scorer, model, [ScoringRequest([0, last], [[9], [10]]) for last in (30, 31)])
    texts = [tokens(count, count) for count in (1, 5, 9)]
    scored_as_plain_passes_do(scorer, model, [ScoringRequest(tokens(60, seed), texts) for seed in (1, 2)])
    assert scorer.routes == {False: route}


def test_a_model_that_reads_both_ways_is_refused():
    scorer = ChoiceScorer(tiny(AutoModelForCausalLM, "bert", **SHARED))
    with pytest.raises(CulturevalError, match="BertLMHeadModel is not causal"):
        scorer.score([ScoringRequest(tokens(20, 1), [[9, 10], [11, 12]])])


DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0] * 8,
    "long_factor": [4.0] * 8,
}
PHI3 = {**SIZES, "original_max_position_embeddings": 64, "rope_parameters": LONGROPE}
LLAMA = {**SIZES, "max_position_embeddings": 64, "rope_parameters": DYNAMIC}


@pytest.mark.parametrize(
    ("kind", "settings", "lengths"),
    # Dynamic frequencies remember the longest pass, so that only one length is beyond the limit here.
    [("phi3", PHI3, (20, 35, 62, 100, 30)), ("llama", LLAMA, (20, 35, 66))],
)
def test_keys_that_turn_with_the_whole_length_are_not_kept_beyond_it(kind, settings, lengths):
    model = tiny(AutoModelForCausalLM, kind, **settings)
    scorer, beginning = ChoiceScorer(model), tokens(30, 1)
    for count in lengths:
        prompt = beginning[:count] + tokens(max(count - 30, 0), count)
        for text in ([*tokens(more, more), 9] for more in (1, 3, 5)):
            own = scorer.score([ScoringRequest(prompt, [text])])[0][0].logprob
            rows = model(torch.tensor([[*prompt, *text[:-1]]]), use_cache=False).logits[0].log_softmax(-1)
            pairs = zip(rows[len(prompt) - 1 :], text, strict=True)  # the last token is predicted, not fed
            assert own == pytest.approx(sum(row[token].item() for row, token in pairs), abs=1e-4)
    assert scorer.routes == {False: "packed"}


def test_a_long_prompt_does_not_change_the_scores_of_short_ones_beside_it():
    model = tiny(AutoModelForCausalLM, "phi3", **PHI3)
    scorer = ChoiceScorer(model)
    for lengths in ((20, 30), (20, 100)):
        requests = [ScoringRequest(tokens(count, count + lengths[1]), [[9], [10]]) for count in lengths]
        assert len(list(scorer.batches(requests))) == 1
        scored_as_plain_passes_do(scorer, model, requests)


def vision_requests(model_inputs):
    """Two texts about one image of 16 tokens."""
    shared, texts = [*tokens(3, 1), *[IMAGE] * 16, *tokens(6, 2)], [tokens(count, count) for count in (1, 3, 7, 2)]
    prompts = [shared + tokens(count, 20 + count) for count in (2, 9)]
    return [ScoringRequest(prompt, texts, vision=model_inputs(len(prompt)), images="one") for prompt in prompts]


def in_precision(dtype, inputs):
    return {name: value.to(dtype) if value.is_floating_point() else value for name, value in inputs.items()}


def tower(kind):
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    return {"model_type": kind, **sizes, "image_size": 32, "patch_size": 8}


def paligemma():
    """A model, and its inputs for a prompt and a choice after it."""
    vision = tower("siglip_vision_model") | {"projection_dim": 64, "vision_use_head": False}
    text = {"model_type": "gemma", **SIZES}
    sizes = {"projection_dim": 64, "hidden_size": 64, "image_token_index": IMAGE}
    model = tiny(AutoModelForImageTextToText, "paligemma", text_config=text, vision_config=vision, **sizes)
    pixels = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(1))

    def inputs(prompt, choice=0):
        types = torch.nn.functional.pad(torch.zeros(1, prompt, dtype=torch.long), (0, choice), value=1)
        return {"pixel_values": pixels, "token_type_ids": types}

    return model, inputs


def mllama():
    """A model, and its inputs for a prompt and a choice after it."""
    sizes = {"num_global_layers": 1, "attention_heads": 2, "vision_output_dim": 64, "intermediate_layers_indices": [0]}
    tiles = {"max_num_tiles": 2, "supported_aspect_ratios": [[1, 1], [1, 2], [2, 1]]}
    text = {"model_type": "mllama_text_model", **SIZES, "cross_attention_layers": [1, 3]}
    vision = tower("mllama_vision_model") | sizes | tiles
    model = tiny(AutoModelForImageTextToText, "mllama", text_config=text, vision_config=vision, image_token_index=320)
    for name, parameter in model.named_parameters():
        if "gate" in name:  # closed in a fresh model, which then sees no image
            torch.nn.init.constant_(parameter, 0.7)
    pixels = torch.randn(1, 1, 2, 3, 32, 32, generator=torch.Generator().manual_seed(1))

    def inputs(prompt, choice=0):
        seen = torch.zeros(1, prompt + choice, 1, 2, dtype=torch.long)
        seen[:, 3:, :, 0] = 1  # the second tile is padding
        shape = {"aspect_ratio_ids": torch.tensor([[1]]), "aspect_ratio_mask": torch.tensor([[[1, 0]]])}
        return {"pixel_values": pixels, "cross_attention_mask": seen, **shape}

    return model, inputs


@pytest.mark.slow
@pytest.mark.parametrize("family", [paligemma, mllama])
def test_choices_after_images_that_are_not_read_causally(family):
    """PaliGemma's choices must not see each other; Mllama's must see the image that their prompt sees."""
    model, inputs = family()
    scorer = ChoiceScorer(model)
    for request in vision_requests(inputs):
        own = [score.logprob for score in scorer.score([request])[0]]
        for choice, found in zip(request.choices, own, strict=True):
            given = inputs(len(request.prompt), len(choice))
            assert found == pytest.approx(plain_scores(model, request.prompt, [choice], **given)[0][0], abs=1e-4)
    assert scorer.routes == {True: "plain"}


@pytest.mark.slow
@pytest.mark.parametrize("family", VISION)
def test_in_16_bits_vision_models_are_packed(family):
    texts, model = [tokens(count, count) for count in (1, 5)], copy.deepcopy(vision_model(family)).to(torch.bfloat16)
    (request,) = image_requests(family, [(40, 40)], ["وش"], [texts])
    request = replace(request, vision=in_precision(torch.bfloat16, request.vision))
    scorer = ChoiceScorer(model)
    own = [score.logprob for score in scorer.score([request])[0]]
    assert scorer.routes == {True: "packed"}
    expected = [total for total, _ in plain_scores(model, request.prompt, texts, **request.vision)]
    assert own == pytest.approx(expected, abs=2 * TOLERANCE[torch.bfloat16])
