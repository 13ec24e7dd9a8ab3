"""Wrong masks, positions and caches, which the checks of routes must catch."""

from contextlib import ExitStack
from unittest.mock import patch

import torch

from cultureval.models.scoring.packed import ChoiceScorer, ScoringRequest
from cultureval.models.scoring.prefix_cache import PrefixCache
from cultureval.models.scoring.token_tree import TokenTree


def leaks(visibility):
    """Every token sees all that stand before it: those of other choices too."""

    def wrong(tree, window, device="cpu"):
        mask, count = visibility(tree, window, device), len(tree)
        mask[:, -count:] = torch.ones(count, count, dtype=torch.bool).tril()
        return mask

    return wrong


def hidden(visibility):
    """No token sees the prompt's fifth."""

    def wrong(tree, window, device="cpu"):
        mask = visibility(tree, window, device)
        mask[5:, 4] = False
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


# Name -> whose attribute becomes what.
SCORING = {
    "choices see each other": (TokenTree, "visibility", leaks),
    "positions by column": (ChoiceScorer, "_feed_tree", by_column),
    "choices one position too far": (ChoiceScorer, "_feed_tree", one_further),
    "cached prompt one token off": (PrefixCache, "keep", stale),
    "one token of the prompt hidden": (TokenTree, "visibility", hidden),
}


def in_error(error):
    """A context in which a route has an error of these tables; None for none."""
    stack = ExitStack()
    if error:
        owner, name, make = error
        stack.enter_context(patch.object(owner, name, make(getattr(owner, name))))
    return stack


def prompt_of(number, count=400):
    """Tokens of every tiny model."""
    return [9 + (number + place) * 7 % 280 for place in range(count)]


def checked_scoring(model, prompts=None):
    """The check of a model's route of scoring, on two prompts."""
    one, other = prompts or ([*prompt_of(0), 20], [*prompt_of(0), 21])
    choices = [[30, 31, 32], [40, 41], [50]]
    scorer = ChoiceScorer(model)
    scorer.score([ScoringRequest(one, choices, False, None), ScoringRequest(other, choices, False, None)])
    return scorer.checks[False]
