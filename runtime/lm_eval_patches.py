"""What `cultureval bench` uses of lm-eval that is not public: how it encodes a prompt with a choice."""

from typing import Any

from cultureval.runtime.patches import Patch, expect, source_of


def encode_pair(harness: Any, prompt: str, choice: str) -> tuple[list[int], list[int]]:
    """The tokens of a prompt and of a choice, as lm-eval's `HFLM` scores them."""
    return harness._encode_pair(prompt, choice)


def _pairs_are_encoded_so() -> None:
    import inspect

    from lm_eval.models.huggingface import HFLM

    method = getattr(HFLM, "_encode_pair", None)
    taken = list(inspect.signature(method).parameters) if method else []
    expect(taken == ["self", "context", "continuation"], f"lm-eval's _encode_pair takes {', '.join(taken)} now")
    expect("self._encode_pair(" in source_of("lm_eval.api.model"), "lm-eval encodes what it scores elsewhere")


PATCHES = (
    Patch(
        "lm_eval",
        "lm_eval.api.model.TemplateLM._encode_pair",
        "lm-eval encodes prompt and choice together: scores are compared only where the tokens are the same.",
        ("0.4.13",),
        _pairs_are_encoded_so,
    ),
)
