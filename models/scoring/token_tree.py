"""Prompts and choices as one tree of tokens with merged prefixes, and its attention mask.

A tree continues a cached prefix (see `prefix_cache`) and has only the tokens to feed after it. The last token of a
choice is predicted, not fed, unless the end of the text after it is scored.

Columns are attention positions: first the cached tokens, then the tree's nodes in depth-first order, so that a node's
descendants directly follow it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch

Tokens = Sequence[int]


@dataclass(frozen=True)
class Branch:
    """A prompt and its choices, as tokens.

    Attributes:
        prompt: Token ids, at least one; image tokens included.
        choices: Token ids of each choice; they may be empty, equal, or prefixes of each other.
        ending: Whether to score that the text ends after each choice.
    """

    prompt: Tokens
    choices: Sequence[Tokens]
    ending: bool = False

    def needs_scoring(self) -> bool:
        """Whether anything must be predicted."""
        return bool(self.choices) and (self.ending or any(self.choices))


@dataclass
class TokenTree:
    """Branches with merged prefixes.

    Attributes:
        cached: Number of cached tokens that the tree continues.
        tokens: Token id of each node.
        depths: Number of tokens before each node; its position.
        seen: Number of cached tokens that each node sees.
        ends: Index after each node's last descendant.
        reads: (column, token, choice) for every token of every choice, choices counted over all branches; the column's
            output predicts the token.
        closes: (column, choice) of each choice's last token (or the prompt's, for an empty choice), if requested.
        path: Columns of the last branch's prompt.
    """

    cached: int
    tokens: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    reads: list[tuple[int, int, int]] = field(default_factory=list)
    closes: list[tuple[int, int]] = field(default_factory=list)
    path: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tokens)

    def columns(self) -> list[int]:
        """The columns with a needed output, in order."""
        return sorted({column for column, *_ in self.reads} | {column for column, _ in self.closes})

    def visibility(self, window: int | None, device: torch.device | str = "cpu") -> torch.Tensor:
        """The columns that each node sees: itself, its ancestors and its part of the cached tokens.

        Args:
            window: Size of a sliding window, by positions: a token sees itself and window - 1 before it; None for full
                attention.
            device: Device of the result.

        Returns:
            bool [nodes, cached + nodes].
        """
        depths, seen, ends = torch.tensor([self.depths, self.seen, self.ends], device=device)
        place = torch.arange(len(self), device=device)
        cached = torch.arange(self.cached, device=device)
        nodes = (place[None, :] <= place[:, None]) & (place[:, None] < ends[None, :])
        mask = torch.cat([cached[None, :] < seen[:, None], nodes], 1)
        if window is not None:
            mask &= depths[:, None] - torch.cat([cached, depths])[None, :] < window
        return mask


def common_length(first: Tokens, second: Tokens) -> int:
    """Length of the common prefix of two token sequences."""
    shortest = min(len(first), len(second))
    return next((place for place in range(shortest) if first[place] != second[place]), shortest)


def build_tree(cached: Tokens, branches: Sequence[Branch]) -> TokenTree:
    """Merges branches into a tree; only adjacent branches share a common prefix.

    Args:
        cached: Tokens that need not be fed.
        branches: In the order in which their choices are counted.
    """
    tree = TokenTree(len(cached))
    path, before, count = list(range(len(cached))), cached, 0
    for branch in branches:
        path = _grow(tree, path, common_length(before, branch.prompt), branch.prompt)
        before, tree.path = branch.prompt, list(path)
        _grow_choices(tree, path, branch, count)
        count += len(branch.choices)
    _close(tree, path)
    return tree


def _grow_choices(tree: TokenTree, prompt: list[int], branch: Branch, count: int) -> None:
    """Adds a branch's choices after its prompt, sorted so that common prefixes are adjacent."""
    path, before, start = prompt, (), len(prompt)
    for index in sorted(range(len(branch.choices)), key=lambda index: list(branch.choices[index])):
        choice = branch.choices[index]
        fed = choice if branch.ending else choice[:-1]
        path = _grow(tree, path, start + common_length(before, fed), fed, start)
        before = fed
        tree.reads += [(path[start + place - 1], token, count + index) for place, token in enumerate(choice)]
        if branch.ending:
            tree.closes.append((path[-1], count + index))
    _close(tree, path[start:])


def _grow(tree: TokenTree, path: list[int], shared: int, tokens: Tokens, start: int = 0) -> list[int]:
    """Keeps the first `shared` columns of a path and continues with tokens that begin at depth `start`."""
    _close(tree, path[shared:])
    path = path[:shared]
    seen = next((tree.seen[column - tree.cached] for column in path[-1:] if column >= tree.cached), len(path))
    for token in tokens[shared - start :]:
        path.append(tree.cached + len(tree))
        tree.tokens.append(token)
        tree.depths.append(len(path) - 1)
        tree.seen.append(seen)
        tree.ends.append(0)
    return path


def _close(tree: TokenTree, columns: Iterable[int]) -> None:
    """Sets the end of the descendants of finished nodes."""
    for column in columns:
        if column >= tree.cached:
            tree.ends[column - tree.cached] = len(tree)
