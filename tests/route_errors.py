"""Wrong masks, positions and caches, which the checks of routes must catch."""

from contextlib import ExitStack
from dataclasses import replace
from random import Random
from unittest.mock import patch

import torch

from cultureval.models.generation import growing_cache
from cultureval.models.generation.forward import Reader
from cultureval.models.generation.route import choose_generation_route
from cultureval.models.generation.rows import DecodingRow
from cultureval.models.loading import LoadedModel
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


def given_changed(change):
    """A `Reader._logits` that gets other masks or positions."""

    def make(logits):
        def wrong(reader, cache, ids, given):
            return logits(reader, cache, ids, change(dict(given), cache.get_seq_length(), ids))

        return wrong

    return make


def seen_padding(given, cached, ids):
    """Rows see the zeros before them."""
    if "attention_mask" in given:
        given["attention_mask"] = torch.ones_like(given["attention_mask"])
    return given


def hidden_column(given, cached, ids):
    """No row sees the fifth column from the end of what was read before."""
    if cached > 5:
        mask = given.get("attention_mask", torch.ones(ids.shape[0], cached + ids.shape[1], dtype=torch.long)).clone()
        mask[:, cached - 5] = 0
        given["attention_mask"] = mask
    return given


def columns_as_positions(given, cached, ids):
    """Positions count the zeros before a row."""
    return given | {"position_ids": torch.arange(cached, cached + ids.shape[1])[None].expand(ids.shape[0], -1)}


def answers_one_further(given, cached, ids):
    """Tokens after those in the cache stand one position too far from them."""
    return given | {"position_ids": given["position_ids"] + (cached > 0)}


def of_another(together):
    """A row goes on with the keys and values of the row before it."""

    def wrong(states, parts, room):
        return together(states, [replace(part, rows=[max(0, row - 1) for row in part.rows]) for part in parts], room)

    return wrong


def one_column_off(together):
    """Copies of the shared beginning stand one column too early."""

    def wrong(states, parts, room):
        whole = together(states, parts, room)
        copies = any(part.before is not None for part in parts)
        return whole.roll(-1, dims=2) if copies else whole

    return wrong


# Name -> whose attribute becomes what.
SCORING = {
    "choices see each other": (TokenTree, "visibility", leaks),
    "positions by column": (ChoiceScorer, "_feed_tree", by_column),
    "choices one position too far": (ChoiceScorer, "_feed_tree", one_further),
    "cached prompt one token off": (PrefixCache, "keep", stale),
    "one token of the prompt hidden": (TokenTree, "visibility", hidden),
}
GENERATION = {
    "rows see their padding": (Reader, "_logits", given_changed(seen_padding)),
    "positions by column": (Reader, "_logits", given_changed(columns_as_positions)),
    "answers one position too far": (Reader, "_logits", given_changed(answers_one_further)),
    "a row goes on with another's cache": (growing_cache, "_together", of_another),
    "shared beginning one column off": (growing_cache, "_together", one_column_off),
    "one column hidden": (Reader, "_logits", given_changed(hidden_column)),
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


def checked_generation(model, tokenizer, prompts=None):
    """The check of a model's route of generation, on two prompts."""
    rows = [DecodingRow(None, prompt, 3, Random(0)) for prompt in prompts or (prompt_of(0, 90), prompt_of(5, 33))]
    return choose_generation_route(LoadedModel(model, tokenizer, None, {"name": "m"}, 2048), rows, "")
