"""A lower limit of scoring: the matrix products that no way of scoring can leave out, at this machine's speed of them.

Counted are every distinct token once in each layer but the last, which only the rows that predict a choice's token
need; the vocabulary head for these rows; attention's products of each token with those before it; and what an image
needs. All else (norms, activations, softmax, masks, copies, tokenisation, files) counts nothing.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torch import nn

ROWS = 512  # of the products whose speed is measured; more are no faster


class Needed(NamedTuple):
    """What must be computed for choices after prompts.

    Attributes:
        tokens: Distinct tokens to encode: with different texts before them.
        rows: Those of them that predict a choice's token.
        pairs: (token, itself or a token before it), which attention multiplies.
    """

    tokens: int
    rows: int
    pairs: int


def needed_tokens(pairs: Iterable[tuple[Sequence[int], Sequence[Sequence[int]]]]) -> Needed:
    """What must be computed for (prompt's tokens, tokens of each choice); a choice's last token is not encoded."""
    nodes: dict[tuple[int, int], int] = {}
    rows: set[int] = set()
    depths = 0
    for prompt, choices in pairs:
        for choice in choices:
            node = 0
            for depth, token in enumerate([*prompt, *choice[:-1]], start=1):
                known = len(nodes)
                node = nodes.setdefault((node, token), known + 1)
                depths += depth * (len(nodes) - known)
                if depth >= len(prompt):
                    rows.add(node)
    return Needed(len(nodes), len(rows), depths)


def needed_flops(model: Any, needed: Needed) -> float:
    """Floating-point operations of the text model's products and of its vocabulary head."""
    config = model.config.get_text_config(decoder=True)
    layers = list(model.get_decoder().layers)
    heads = config.num_attention_heads
    width = heads * (getattr(config, "head_dim", None) or config.hidden_size // heads)
    weights = needed.tokens * sum(_weights(layer) for layer in layers[:-1])
    head = _weights(layers[-1]) + model.get_output_embeddings().weight.numel()
    return 2 * (weights + needed.rows * head) + 4 * width * needed.pairs * (len(layers) - 1)


def image_flops(model: Any, inputs: dict[str, Any]) -> float:
    """Floating-point operations for the images of a prompt: what PyTorch counts in a pass besides the text model."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    with torch.no_grad(), FlopCounterMode(display=False) as everything:
        model.base_model(**inputs, use_cache=False)
    text = {"inputs_embeds": model.get_input_embeddings()(inputs["input_ids"])}
    with torch.no_grad(), FlopCounterMode(display=False) as of_text:
        model.get_decoder()(**text, use_cache=False)
    return everything.get_total_flops() - of_text.get_total_flops()


def multiply(model: Any) -> None:
    """Run the products of all layers of the text model for `ROWS` rows, whose time says how fast this machine is."""
    import torch

    from cultureval.runtime.onednn_products import onednn_products

    linear = [part for layer in model.get_decoder().layers for part in layer.modules() if _is_linear(part)]
    sizes = {part.in_features for part in linear}
    rows = {size: torch.ones(1, ROWS, size, dtype=model.dtype, device=model.device) for size in sizes}
    with torch.inference_mode(), onednn_products(model.device):
        for part in linear:
            torch.nn.functional.linear(rows[part.in_features], part.weight)


def product_flops(model: Any) -> float:
    """Floating-point operations of `multiply`."""
    return 2.0 * ROWS * sum(map(_weights, model.get_decoder().layers))


def _weights(module: "nn.Module") -> int:
    return sum(part.weight.numel() for part in module.modules() if _is_linear(part))


def _is_linear(part: "nn.Module") -> bool:
    import torch

    return isinstance(part, torch.nn.Linear)
