"""The check before a route is taken: sound routes pass, wrong masks and positions do not, and it is short."""

import pytest
import torch
from tiny_models import folder_of
from transformers import AutoModelForCausalLM

from cultureval.models.scoring.packed import ChoiceScorer, ScoringRequest
from cultureval.models.scoring.prefix_cache import PrefixCache
from cultureval.models.scoring.route_check import LONGEST, allowed_difference, last_bits_changed, shortened
from cultureval.models.scoring.token_tree import TokenTree

PROMPT = [9 + number * 7 % 280 for number in range(400)]
REQUESTS = [
    ScoringRequest([*PROMPT, 20 + number], [[30, 31, 32 + number], [40, 41], [50]], False, None) for number in range(2)
]


def leaks(visibility):
    """Every token sees all that stand before it: those of other choices too."""

    def wrong(tree, window, device="cpu"):
        mask, count = visibility(tree, window, device), len(tree)
        mask[:, -count:] = torch.ones(count, count, dtype=torch.bool).tril()
        return mask

    return wrong


def by_column(feed):
    """Positions are those of columns, as of a model that takes none."""

    def wrong(scorer, tree, columns, prompt):
        tree.depths[:] = range(tree.cached, tree.cached + len(tree))
        return feed(scorer, tree, columns, prompt)

    return wrong


def one_further(feed):
    """The tokens of choices stand one position too far from their prompt."""

    def wrong(scorer, tree, columns, prompt):
        tree.depths[:] = [depth + (depth >= len(prompt)) for depth in tree.depths]
        return feed(scorer, tree, columns, prompt)

    return wrong


def stale(keep):
    """A cache that is cut keeps the keys and values after those that it should."""

    def wrong(cache, columns, tokens, last):
        kept = list(columns)
        held = cache.cache.get_seq_length()
        keep(cache, [min(column + 1, held - 1) for column in kept], tokens, last)

    return wrong


WRONG = {"leaks": (TokenTree, "visibility", leaks), "by_column": (ChoiceScorer, "_feed_tree", by_column)}
WRONG["stale"] = (PrefixCache, "keep", stale)
WRONG["one_further"] = (ChoiceScorer, "_feed_tree", one_further)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("family", ["llama", "gemma3"])
@pytest.mark.parametrize("error", ["", *WRONG])
def test_sound_routes_pass_and_wrong_ones_do_not(monkeypatch, family, dtype, error):
    if error:
        owner, name, make = WRONG[error]
        monkeypatch.setattr(owner, name, make(getattr(owner, name)))
    model = AutoModelForCausalLM.from_pretrained(folder_of(family), dtype=dtype).eval()
    scorer = ChoiceScorer(model)
    scorer.score(REQUESTS)
    found = scorer.checks[False]
    assert (found.route == "packed") == (not error), found
    assert 0 < found.seconds
    if error:
        assert "packed scoring is off by" in found.reason


def test_the_check_feeds_few_tokens_whatever_the_prompts_length():
    model = AutoModelForCausalLM.from_pretrained(folder_of("llama")).eval()
    scorer = ChoiceScorer(model)
    long = [ScoringRequest(PROMPT * 4, [[30, 31, 32], [40, 41]], False, None)]
    scorer._check(long)
    assert scorer.forwarded_tokens < 20 * LONGEST
    assert len(shortened(PROMPT * 4, model)) == LONGEST and shortened(PROMPT[:50], model) == PROMPT[:50]
    with last_bits_changed(model):
        assert allowed_difference(1e-3, model) == pytest.approx(16e-3)
