"""Packed scoring gives the scores of plain forward passes, whatever the model, the choices and the batch."""

import copy
import functools
import logging
from itertools import pairwise
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import (
    VISION,
    image_requests,
    picture,
    plain_scores,
    text_model,
    tokens_fed,
    vision_model,
    vision_processor,
)
from torch.overrides import TorchFunctionMode

from cultureval.models import throughput
from cultureval.models.scoring import packed as packed_scoring
from cultureval.models.scoring import two_phases
from cultureval.models.scoring.attention import ROWS
from cultureval.models.scoring.lm_head import Rows
from cultureval.models.scoring.packed import ChoiceScorer, ScoringRequest
from cultureval.models.scoring.token_tree import Branch, build_tree, common_length

TEXT = ("llama", "qwen2", "gemma3")
TOLERANCE, MANY = 1e-4, 40  # MANY: choices

token = st.integers(9, 300)
# Few different tokens, so that choices share beginnings, repeat each other, and may be empty.
choice = st.lists(st.integers(9, 14) | token, max_size=9)


phases = pytest.mark.parametrize("in_phases", [False, True], ids=["tree", "two_phases"])


# One choice and many, which take long, for one family of each kind.
def grid(families):
    return [(family, 5) for family in families] + [(families[0], count) for count in (1, MANY)]


def choices_of(count):
    return st.lists(choice, min_size=count, max_size=count)


def agree(scores, expected):
    assert [score.logprob for score in scores] == pytest.approx([total for total, _ in expected], abs=TOLERANCE)
    assert [score.is_greedy for score in scores] == [greedy for _, greedy in expected]


def greedy_choice(model, prompt, length=3):
    return model.generate(torch.tensor([prompt]), max_new_tokens=length, do_sample=False)[0, len(prompt) :].tolist()


@st.composite
def prompts_with_common_beginnings(draw):
    """Prompts of few or many tokens that branch off each other anywhere, continue each other, or are equal."""
    prompts = [draw(st.lists(token, min_size=1, max_size=40))]
    for _ in range(draw(st.integers(0, 4))):
        old = draw(st.sampled_from(prompts))
        prompts.append(old[: draw(st.integers(0, len(old)))] + draw(st.lists(st.integers(9, 11), max_size=6)) or [9])
    return draw(st.permutations(prompts))


def scored(scorer, requests):
    """Scores of requests by index, in the batches that the scorer makes."""
    found = {}
    for batch in scorer.batches(requests):
        found |= dict(zip(batch, scorer.score([requests[index] for index in batch]), strict=True))
    assert sorted(found) == list(range(len(requests)))
    return [found[index] for index in range(len(requests))]


@pytest.mark.slow
@phases
@pytest.mark.parametrize(("family", "count"), grid(TEXT))
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_text_prompts_score_as_plain_passes_do_whatever_they_share(family, count, in_phases, data):
    model = text_model(family)
    prompts = data.draw(prompts_with_common_beginnings())[: 2 if count == MANY else 5]
    choices = [data.draw(choices_of(count)) for _ in prompts]
    choices[0][0] = greedy_choice(model, prompts[0])
    scorer = ChoiceScorer(model, [1], data.draw(st.sampled_from([20, 60, 2000])), in_phases)
    long = data.draw(st.sampled_from([2, 5, packed_scoring.LONG_PREFIX]))
    with patch.object(packed_scoring, "LONG_PREFIX", long), patch.object(two_phases, "LONG_BEGINNING", long):
        scores = scored(scorer, [ScoringRequest(*pair) for pair in zip(prompts, choices, strict=True)])
    for own, prompt, of_one in zip(scores, prompts, choices, strict=True):
        agree(own, plain_scores(model, prompt, of_one))
    assert set(scorer.routes.values()) <= {"packed"}


@pytest.mark.slow
@phases
@pytest.mark.parametrize(("family", "count"), grid(VISION))
@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_prompts_with_images_score_as_plain_passes_do_whatever_they_share(family, count, in_phases, data):
    model, requests = vision_model(family), []
    side = st.integers(20, 90)
    for _ in range(1 if count == MANY else data.draw(st.integers(1, 2))):
        sizes = data.draw(st.lists(st.tuples(side, side), min_size=1, max_size=2))
        texts = data.draw(st.lists(st.text(st.sampled_from("وش فيه؟"), max_size=30), min_size=1, max_size=3))
        requests += image_requests(family, sizes, texts, [data.draw(choices_of(count)) for _ in texts])
    scorer = ChoiceScorer(model, [], data.draw(st.sampled_from([40, 2000])), in_phases)
    for request, own in zip(requests, scored(scorer, requests), strict=True):
        agree(own, plain_scores(model, request.prompt, request.choices, **request.vision))
    assert set(scorer.routes.values()) <= {"packed"}


@pytest.mark.slow
@pytest.mark.parametrize("family", VISION)
def test_the_rounds_of_a_dialogue_feed_the_image_and_the_shared_history_once(family):
    model, seen = vision_model(family), []
    history = ["وش فيه بالصورة؟", " شاي.", " وين الناس؟", " في البيت.", " كم عددهم؟", " ثلاثة."]
    rounds = ["".join(history[: 2 * turn + 1]) for turn in range(3)]
    choices = [[20 + place % 7, 30 + place, 31, 32] for place in range(100)]
    requests = image_requests(family, [(64, 64)], rounds, [choices] * 3)
    scorer = ChoiceScorer(model, token_budget=400)  # too little for two rounds in one tree
    scorer.routes = {True: "packed"}
    names = ("visual", "vision_tower", "vision_model")
    tower = next(getattr(model.model, name) for name in names if hasattr(model.model, name))
    hook = tower.register_forward_hook(lambda *_: seen.append(1))
    with tokens_fed(model) as fed:
        scores = scored(scorer, requests)
    hook.remove()
    assert len(seen) == 1
    for request, own in zip(requests, scores, strict=True):
        agree(own[::9], plain_scores(model, request.prompt, request.choices[::9], **request.vision))
    nodes = 7 + 100 + 100  # the choices' first tokens, and what is fed behind each: not their last
    shared = [common_length(one.prompt, other.prompt) for one, other in pairwise(requests)]
    prompts = sum(len(request.prompt) for request in requests) - sum(shared)
    assert sum(fed) == prompts + 3 * nodes


def test_two_phases_feed_a_long_beginning_once_and_labels_need_no_more_than_the_prompts():
    model, examples = text_model("llama"), list(range(9, 290)) * 2
    requests = [ScoringRequest([*examples, *range(20, 30 + number)], [[10], [11]]) for number in range(20)]
    scorer = ChoiceScorer(model, token_budget=100, two_phases=True)
    scorer.routes = {False: "packed"}
    with tokens_fed(model) as fed:
        scores = scored(scorer, requests)
    own = sum(len(request.prompt) - len(examples) for request in requests)
    shared = len(examples) + 9  # the prompts continue with the same tokens; the last of each is fed with it
    assert scorer.fed == shared + own - 20 * 9
    assert len(fed) > 3 and sum(fed) < 1.5 * scorer.fed
    assert scorer.alone == 2 * sum(len(request.prompt) for request in requests)
    for request, found in zip(requests[::7], scores[::7], strict=True):
        agree(found, plain_scores(model, request.prompt, request.choices))


def test_the_share_of_the_peak_counts_the_weights_that_every_token_needs(monkeypatch):
    model = copy.deepcopy(text_model("llama")).to(torch.bfloat16)
    assert throughput.peak_share(model, 1000, 2.0) is None  # a CPU
    monkeypatch.setattr(throughput, "_peak", lambda _: 100.0)
    layers = model.model.layers
    weights = sum(part.numel() for part in layers.parameters()) - sum(
        part.numel() for part in layers[-1].mlp.parameters()
    )
    assert throughput.peak_share(model, 1000, 2.0) == pytest.approx(2 * weights * 1000 / 2.0 / 100e12)
    assert throughput.peak_share(model.float(), 1000, 2.0) is None


def test_a_shared_instruction_is_fed_once_for_all_batches():
    model, instruction = text_model("llama"), list(range(20, 60))
    requests = [ScoringRequest([*instruction, 100 + number, 9], [[10], [11, 12]]) for number in range(20)]
    scorer = ChoiceScorer(model, token_budget=30)
    scorer.routes = {False: "packed"}
    with tokens_fed(model) as fed:
        scores = scored(scorer, requests)
    assert sum(fed) == len(instruction) + 20 * (2 + 1)
    for request, own in zip(requests, scores, strict=True):
        agree(own, plain_scores(model, request.prompt, request.choices))
    assert len(scorer.prefix.tokens) == len(instruction) + 2
    assert scorer.prefix.cache.get_seq_length() == len(instruction) + 2  # one prompt's keys and values, not a batch's
    scorer.clear_cache()
    assert scorer.prefix.cache.get_seq_length() == 0


def test_prompts_about_different_images_are_never_scored_together():
    one, other = (image_requests("llava", [size], ["?"], [[[9, 10]]])[0] for size in ((40, 40), (64, 40)))
    scorer = ChoiceScorer(vision_model("llava"))
    assert len(list(scorer.batches([one, other]))) == 2


@pytest.mark.slow
@phases
@pytest.mark.parametrize("family", VISION)
def test_a_vision_model_scores_text_after_images(family, in_phases):
    model, processor = vision_model(family), vision_processor(family)
    text = processor.apply_chat_template([{"role": "user", "content": [{"type": "image"}]}], add_generation_prompt=True)
    inputs = dict(processor(text=[text], images=[[picture(64, 40)]], return_tensors="pt"))
    prompt, choices = inputs.pop("input_ids")[0].tolist(), [[9, 10, 11], [12]]
    del inputs["attention_mask"]
    ChoiceScorer(model, two_phases=in_phases).score([ScoringRequest(prompt, choices, vision=inputs)])
    (text,) = ChoiceScorer(model, two_phases=in_phases).score([ScoringRequest([0, 20, 30, 40], choices)])
    agree(text, plain_scores(model, [0, 20, 30, 40], choices))


@pytest.mark.parametrize("family", TEXT)
def test_the_plain_route_scores_the_same(family):
    model, prompt = text_model(family), list(range(20, 50))
    choices = [[9, 10, 11, 12], [13], [], [9, 10, 30, 31, 32, 33, 34, 35, 36, 37]]
    scorer = ChoiceScorer(model, token_budget=30)
    scorer.routes = {False: "plain"}
    agree(scorer.score([ScoringRequest(prompt, choices)])[0], plain_scores(model, prompt, choices))


@phases
def test_the_log_probability_of_ending_is_that_of_any_end_token_behind_the_choice(in_phases):
    model, prompt, choices = text_model("llama"), [0, 20, 21], [[9], [9, 10, 11], []]
    (scores,) = ChoiceScorer(model, [1, 2], two_phases=in_phases).score([ScoringRequest(prompt, choices, True)])
    for score, tokens in zip(scores, choices, strict=True):
        last = model(torch.tensor([[*prompt, *tokens]])).logits[0, -1].log_softmax(-1)
        assert score.end_logprob == pytest.approx(last[[1, 2]].logsumexp(0).item(), abs=TOLERANCE)
    ((score, *_),) = ChoiceScorer(model).score([ScoringRequest(prompt, choices)])
    assert score.end_logprob is None


class RefusesMasks(torch.nn.Module):
    """Attention that takes every custom mask for a causal one, as fused kernels without mask support do."""

    def __init__(self, forward):
        super().__init__()
        self.plain = forward

    def forward(self, *args, attention_mask=None, **kwargs):
        return self.plain(*args, attention_mask=None, **kwargs)


@phases
def test_a_model_that_ignores_masks_is_found_out_and_scored_plainly(in_phases, monkeypatch, caplog):
    # A model of its own: older pytests undo the patch by leaving `forward` on the instance, for later tests too.
    model, prompt = text_model.__wrapped__("llama"), list(range(20, 40))
    choices = [[9, 10, 11, 12, 13], [14, 15, 16, 17, 18], [9, 15, 11, 17, 13]]
    expected = plain_scores(model, prompt, choices)
    monkeypatch.setattr(model, "forward", RefusesMasks(model.forward).forward)
    monkeypatch.setattr(type(model), "forward", type(model).forward)  # the signature stays the model's own
    with caplog.at_level(logging.WARNING):
        scorer = ChoiceScorer(model, two_phases=in_phases)
        agree(scorer.score([ScoringRequest(prompt, choices)])[0], expected)
    assert scorer.routes == {False: "plain"}
    assert "packed scoring is off" in caplog.text


@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_attention_of_a_large_tree_is_computed_in_blocks(family):
    rows = []

    class Seen(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is torch.nn.functional.scaled_dot_product_attention:
                rows.append(args[0].shape[2])
            return func(*args, **(kwargs or {}))

    model, prompts = text_model(family), [[*range(20, 40), last, *range(40, 60)] for last in (60, 61, 62, 63)]
    choices = [[9, 10, 11], [9, 12], [13]]
    scorer = ChoiceScorer(model)
    scorer.routes = {False: "packed"}
    with Seen():
        found = scorer.score([ScoringRequest(prompt, choices) for prompt in prompts])
    assert len(set(rows)) == 2 and max(rows) == ROWS  # whole blocks and what remains
    for prompt, scores in zip(prompts, found, strict=True):
        agree(scores, plain_scores(model, prompt, choices))


@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_the_lm_head_sees_only_the_rows_that_predict_a_choice(family, monkeypatch):
    model, seen, read = text_model(family), [], []
    log_probs = Rows.log_probs
    monkeypatch.setattr(Rows, "log_probs", lambda rows, *of: read.append(len(rows.values)) or log_probs(rows, *of))
    hook = model.lm_head.register_forward_hook(lambda _, __, logits: seen.append(logits.shape[:-1].numel()))
    scorer = ChoiceScorer(model, token_budget=4000)
    scorer.routes = {False: "packed"}
    scorer.score([ScoringRequest([*range(20, 60), last], [[9], [10], [11]]) for last in (60, 61, 62)])
    assert read == [3]  # one row a prompt, whatever the number of one-token choices
    scorer.score([ScoringRequest(list(range(20, 60)), [[9, 10, 11], [9, 10, 12], [13]])])
    hook.remove()
    assert read == [3, 3]  # the prompt's last row; the shared beginning 9 10 stands once
    assert max(seen) <= 3


@pytest.mark.parametrize("plain", [True, False])
def test_log_probabilities_are_the_same_from_hidden_states_and_from_logits(plain, monkeypatch):
    monkeypatch.setattr("cultureval.models.scoring.lm_head.SLICE", 40)  # many slices, of 1024 tokens at least
    numbers = torch.Generator().manual_seed(0)
    head = torch.nn.Linear(16, 5000)
    hidden = torch.randn(7, 16, generator=numbers)
    at, tokens = torch.tensor([0, 0, 3, 6, 5]), torch.tensor([0, 4999, 1024, 17, 2047])
    logits = head(hidden).detach()
    tokens[3] = logits[6].argmax()
    rows = Rows(hidden, head) if plain else Rows(logits)
    logprobs, is_best = rows.log_probs(at, tokens)
    assert logprobs.tolist() == pytest.approx(logits.log_softmax(-1)[at, tokens].tolist(), abs=1e-5)
    assert is_best.tolist() == (logits.argmax(-1)[at] == tokens).tolist()


def test_a_head_with_something_behind_it_is_left_to_the_model(monkeypatch):
    model, prompt, choices = text_model("llama"), [0, 20, 21], [[9, 10, 11], [12, 13], [14]]
    plain = type(model).forward

    @functools.wraps(plain)
    def capped(self, *args, **kwargs):
        out = plain(self, *args, **kwargs)
        out.logits = torch.tanh(out.logits / 3) * 3
        return out

    expected = plain_scores(model, prompt, choices)
    monkeypatch.setattr(type(model), "forward", capped)
    scorer = ChoiceScorer(model)
    agree(scorer.score([ScoringRequest(prompt, choices)])[0], plain_scores(model, prompt, choices))
    assert (scorer.head.is_plain, scorer.routes) == (False, {False: "packed"})
    assert [total for total, _ in expected] != pytest.approx(
        [total for total, _ in plain_scores(model, prompt, choices)]
    )


def test_choices_beyond_the_budget_reuse_the_prompts_keys_and_values():
    model, seen = text_model("llama"), []
    hook = model.model.embed_tokens.register_forward_hook(lambda _, args, __: seen.append(tuple(args[0].shape)))
    scorer = ChoiceScorer(model, token_budget=50)
    scorer.routes = {False: "packed"}
    choices = [[9, 10 + index, 11] for index in range(40)]
    scores = scorer.score([ScoringRequest(list(range(20, 60)), choices)])[0]
    hook.remove()
    agree(scores, plain_scores(model, list(range(20, 60)), choices))
    assert len(seen) > 2
    assert all(width <= 50 for _, width in seen[1:])
    assert sum(width for _, width in seen) == 40 + 40 + len(seen)  # the 9 in front of all is fed once a tree


@given(
    st.lists(token, max_size=6),
    st.lists(st.tuples(prompts_with_common_beginnings(), choices_of(3)), max_size=2),
    st.booleans(),
)
def test_a_tree_spells_every_choice_and_every_node_sees_its_beginning(prefix, groups, ending):
    branches = [
        Branch(prefix[: 2 * number] + prompt, choices, ending)
        for number, (prompts, choices) in enumerate(groups, start=1)
        for prompt in sorted(prompts)
    ]
    tree = build_tree(prefix, branches)
    seen = tree.visibility(None)
    tokens = [*prefix, *tree.tokens]

    def line(column):
        """The tokens that a column sees, which are its whole beginning."""
        row = seen[column - len(prefix)] if column >= len(prefix) else torch.arange(len(tokens)) <= column
        return [tokens[place] for place in row.nonzero().flatten()]

    owners = [(branch, choice) for branch in branches for choice in branch.choices]
    read = [[] for _ in owners]
    for column, fed, index in tree.reads:
        assert line(column) == [*owners[index][0].prompt, *read[index]]
        read[index].append(fed)
    assert read == [list(choice) for _, choice in owners]
    for column, index in tree.closes:
        assert line(column) == [*owners[index][0].prompt, *owners[index][1]]
    assert len(tree.closes) == len(owners) * ending
    assert [len(line(len(prefix) + node)) - 1 for node in range(len(tree))] == tree.depths


def test_choices_with_common_beginnings_share_nodes():
    tree = build_tree([], [Branch([5, 6], [[1, 2, 3], [1, 2, 4, 4], [1], [], [7, 8], [1, 2]])])
    assert tree.tokens == [5, 6, 1, 2, 4, 7]


def test_an_empty_prompt_is_refused():
    with pytest.raises(ValueError, match="at least one token"):
        ChoiceScorer(text_model("llama")).score([ScoringRequest([], [[9]])])
