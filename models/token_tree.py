"""The choices of one prompt as a tree of tokens, in which a shared beginning stands once, and its attention masks.

A tree holds only the tokens that a model must be fed: the last token of a choice is predicted, not fed, unless the
log-probability of what follows it is wanted. Row -1 is the prompt's last token, row n >= 0 the tree's n-th node.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

PROMPT_ROW = -1


@dataclass
class TokenTree:
    """Choices merged by their common beginnings.

    Attributes:
        tokens: Token id of each node; a node comes after its parent.
        parents: Index of each node's parent, PROMPT_ROW for the first token of a choice.
        depths: How many tokens each node is behind the prompt's last one, less one; its position counts from there.
        reads: (row, token, choice) for every token of every choice: the row that predicts it.
        ends: The row behind each choice's last token; empty unless asked for.
    """

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    reads: list[tuple[int, int, int]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tokens)


def build_tree(choices: Sequence[Sequence[int]], ending: bool = False) -> TokenTree:
    """Merge choices into a tree.

    Args:
        choices: Token ids of each choice; they may be empty, equal, or beginnings of each other.
        ending: Whether a row behind each choice's last token is needed.
    """
    tree = TokenTree()
    children: dict[tuple[int, int], int] = {}
    for index, choice in enumerate(choices):
        row = PROMPT_ROW
        for place, token in enumerate(choice):
            tree.reads.append((row, token, index))
            if place + 1 < len(choice) or ending:
                row = _child(tree, children, row, token, place)
        if ending:
            tree.ends.append(row)
    return tree


def _child(tree: TokenTree, children: dict[tuple[int, int], int], row: int, token: int, depth: int) -> int:
    if (row, token) not in children:
        children[row, token] = len(tree)
        tree.tokens.append(token)
        tree.parents.append(row)
        tree.depths.append(depth)
    return children[row, token]


def ancestors(tree: TokenTree) -> torch.Tensor:
    """Which nodes each node comes from, itself included: bool [nodes, nodes]."""
    seen = torch.eye(len(tree), dtype=torch.bool)
    for node, parent in enumerate(tree.parents):
        if parent != PROMPT_ROW:
            seen[node] |= seen[parent]
    return seen


def visibility(
    trees: Sequence[TokenTree], lengths: Sequence[int], prompt_width: int, window: int | None
) -> torch.Tensor:
    """What the nodes of a batch of trees see: their prompt and their ancestors, as far as the window reaches.

    Args:
        trees: One tree a prompt.
        lengths: Length of each prompt in tokens; prompts are padded on the right.
        prompt_width: Number of columns that the padded prompts take.
        window: Reach of a sliding-window layer: a token sees itself and the window - 1 before it, by distance of
            positions; None for full attention.

    Returns:
        bool [batch, width, prompt_width + width] with width = nodes of the largest tree. Rows that pad a smaller tree
        see the prompt's first token, since a row that sees nothing gives NaN.
    """
    width = max(len(tree) for tree in trees)
    mask = torch.zeros(len(trees), width, prompt_width + width, dtype=torch.bool)
    for row, (tree, length) in enumerate(zip(trees, lengths, strict=True)):
        nodes = len(tree)
        mask[row, nodes:, 0] = True
        mask[row, :nodes, :length] = True
        mask[row, :nodes, prompt_width : prompt_width + nodes] = ancestors(tree)
        if window is not None:
            depths = torch.tensor(tree.depths)
            keys = torch.cat([torch.arange(prompt_width), length + depths])
            near = (length + depths)[:, None] - keys[None, :] < window
            mask[row, :nodes, : prompt_width + nodes] &= near
    return mask


def prompt_visibility(count: int, width: int, total: int, window: int | None) -> torch.Tensor:
    """What the tokens of prompts see, which stand in front of a batch's trees: causal, as far as the window reaches.

    Returns:
        bool [count, width, total]; nothing behind the prompts is seen.
    """
    place = torch.arange(width)
    distance = place[:, None] - place[None, :]
    seen = torch.zeros(width, total, dtype=torch.bool)
    seen[:, :width] = (distance >= 0) & (distance < (window or width))
    return seen.expand(count, -1, -1)
