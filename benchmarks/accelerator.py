"""`python -m benchmarks accelerator`: how near to a card's limit choices and answers are computed, beside others.

Models are random, their weights are made on the device. Ours computes all rows; plain passes, lm-eval and LightEval
compute the first ones, and times are compared per row.
"""

import contextlib
import gc
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchmarks.generation_runs import ours_tokens, runners
from benchmarks.scoring_harnesses import (
    ChoiceItem,
    Scores,
    doc_of,
    lighteval_runner,
    lm_eval_runner,
    load_ours,
    one_pass,
    scored_afresh,
)
from benchmarks.scoring_runs import FORMS_OF_DATA, read_questions, synchronise
from cultureval.models.throughput import peak_share
from cultureval.prompts.options import LABELS
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.printing import print_note
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm
from cultureval.samples.tiny_models.text_parts import train_tokenizer

if TYPE_CHECKING:
    from cultureval.models.hf import HFModel

VOCABULARY = 8000  # of the tokenizer: about as many tokens a row as real models have
# Sizes of Llama 3.2 1B and Llama 2 7B, and one for a CPU.
SHAPES: dict[str, dict[str, int]] = {
    "tiny": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": VOCABULARY},
    "1b": {"hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "vocab_size": 128_256},
    "7b": {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32_000},
}
SHAPES["tiny"] |= {"intermediate_size": 256, "num_key_value_heads": 2, "head_dim": 16}
SHAPES["1b"] |= {"intermediate_size": 8192, "num_key_value_heads": 8, "head_dim": 64}
SHAPES["7b"] |= {"intermediate_size": 11_008, "num_key_value_heads": 32, "head_dim": 128}
CANDIDATES = 64
COLUMNS = ("seconds", "rows", "tokens/s", "of peak", "saved", "of one pass", "plain", "lm-eval", "LightEval", "equal")


def bench_accelerator(
    data: Annotated[Path | None, typer.Option(help=f"{FORMS_OF_DATA}; default: the shipped rows.")] = None,
    shape: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(SHAPES)}; default: 1b and 7b.")] = None,
    device: Annotated[str, typer.Option(help="cuda, cpu, ...")] = "cuda",
    dtype: Annotated[str, typer.Option(help="bfloat16, float32, ...")] = "bfloat16",
    rows: Annotated[int, typer.Option(min=2, help="Rows of letters and of full texts.")] = 2000,
    rankings: Annotated[int, typer.Option(min=1, help=f"Prompts with {CANDIDATES} candidates.")] = 32,
    answers: Annotated[int, typer.Option(min=2, help="Answers.")] = 200,
    new_tokens: Annotated[int, typer.Option(min=1, help="Tokens of an answer.")] = 128,
    others: Annotated[int, typer.Option(min=1, help="Rows of the others, and of the comparison.")] = 64,
    batch_size: Annotated[int, typer.Option(min=1, help="Of lm-eval and LightEval.")] = 32,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object to stdout and nothing else.")] = False,
) -> None:
    """Times choices and answers on a card. Example: python -m benchmarks accelerator --data ArabicMMLU.csv"""
    found: dict[str, dict[str, Any]] = {}
    with contextlib.redirect_stdout(sys.stderr):
        questions = list(islice(cycle(read_questions(data)), rows))
        for name in shape or ["1b", "7b"]:
            with loaded(questions, SHAPES[name], device, dtype, batch_size) as card:
                for what, items in workloads(questions, rankings).items():
                    found[f"{name} {what}"] = card.choices(items, min(others, len(items)))
                    print_note(f"{name} {what}: {found[f'{name} {what}']['seconds']:.1f} s")
                found[f"{name} answers"] = card.answers(questions[:answers], new_tokens)
    if as_json:
        print(json.dumps(found))
        return
    cells = [[name, *(_cell(numbers.get(column)) for column in COLUMNS)] for name, numbers in found.items()]
    print(terminal_table(["", *COLUMNS], cells, "l" + "r" * len(COLUMNS)))
    print(
        "others: times slower than ours, per row; equal: share of the same choice or text as plain passes, or generate."
    )


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def workloads(questions: Sequence[ChoiceItem], rankings: int) -> dict[str, list[ChoiceItem]]:
    """Choices by letters, by full texts, and rankings of `CANDIDATES` options of other questions."""
    letters = [item._replace(choices=[f" {label}" for label in LABELS[: len(item.choices)]]) for item in questions]
    options = cycle(dict.fromkeys(choice for item in questions for choice in item.choices))
    ranked = [item._replace(choices=list(islice(options, CANDIDATES))) for item in questions[:rankings]]
    return {"letters": letters, "full text": list(questions), "rankings": ranked}


@contextlib.contextmanager
def loaded(
    questions: Sequence[ChoiceItem], sizes: dict[str, int], device: str, dtype: str, batch_size: int
) -> Iterator["Card"]:
    """A random model on the device, with a tokenizer trained on the questions; its memory is freed at the end."""
    texts = [text for item in questions[:500] for text in (item.prompt, *item.choices)]
    texts += [f" {label}" for label in LABELS for _ in range(10)]
    with tempfile.TemporaryDirectory(prefix="cultureval-bench-") as temporary:
        card = Card(Path(temporary), train_tokenizer(texts, VOCABULARY), sizes, device, dtype, batch_size)
        yield card
        del card.ours
        gc.collect()


class Card:
    """A model on a device, timed on choices and answers."""

    def __init__(
        self, folder: Path, tokenizer: Any, sizes: dict[str, int], device: str, dtype: str, batch_size: int
    ) -> None:
        import torch
        from transformers import AutoModelForCausalLM, LlamaConfig

        from cultureval.models.answering import Generator
        from cultureval.models.scoring.packed import ChoiceScorer

        self.folder, self.device, self.batch_size = folder / "model", device, batch_size
        build_tiny_causal_lm(self.folder, tokenizer=tokenizer, **SHAPES["tiny"])
        self.ours: HFModel = load_ours(self.folder, device, dtype, folder, "off")
        config = LlamaConfig(**self.ours.loaded.model.config.to_diff_dict() | sizes)
        with torch.device(device):
            model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype)).eval()
        model.generation_config = self.ours.loaded.model.generation_config
        self.ours.loaded.model = model
        self.ours.scorer = ChoiceScorer(model, self.ours.loaded.end_ids(), two_phases=True)
        self.ours.generator = Generator(self.ours)

    def choices(self, items: Sequence[ChoiceItem], count: int) -> dict[str, float | None]:
        """The numbers of scoring `items`; the others score the first `count` of them."""
        scorer, first, docs = self.ours.scorer, items[:count], [doc_of(item) for item in items]
        scored_afresh(self.ours, docs[:2])  # chooses the route
        fed, alone = scorer.fed, scorer.alone
        seconds, scores = self._timed(lambda: scored_afresh(self.ours, docs))
        tokens, row = scorer.fed - fed, seconds / len(items)
        one, _ = self._timed(lambda: one_pass(self.ours, items))
        stock = {
            "plain": lambda: self._plainly(first),
            "lm-eval": lm_eval_runner(self.ours, first, self.batch_size),
            "LightEval": lighteval_runner(self.ours, self.folder, first, self.batch_size, self.folder.parent),
        }
        measured = {name: self._timed(run) for name, run in stock.items() if run}
        plain = measured["plain"][1]
        return {
            "seconds": seconds,
            "rows": len(items),
            "tokens/s": tokens / seconds,
            "of peak": peak_share(self.ours.loaded.model, tokens, seconds),
            "saved": 1 - tokens / (scorer.alone - alone),
            "of one pass": seconds / one,
            **{name: spent / count / row for name, (spent, _) in measured.items()},
            "equal": sum(best(own) == best(other) for own, other in zip(scores, plain, strict=False)) / count,
            "max_difference": largest_difference(scores[:count], plain),
        }

    def answers(self, items: Sequence[ChoiceItem], new_tokens: int) -> dict[str, float | None]:
        """The numbers of greedy answers; all answer all prompts."""
        texts = [f"{number}. {item.prompt}" for number, item in enumerate(items)]
        ways = runners(self.ours, self.folder, new_tokens, self.batch_size, self.folder.parent)
        for run in ways.values():
            run(texts[:2])
        measured = {name: self._timed(lambda run=run: run(texts)) for name, run in ways.items()}
        seconds, found = measured["ours"]
        tokens, generated = sum(map(len, ours_tokens(self.ours, texts, new_tokens))), measured["generate"][1]
        names = {"generate": "plain", "lm_eval": "lm-eval", "lighteval": "LightEval"}
        return {
            "seconds": seconds,
            "rows": len(texts),
            "tokens/s": tokens / seconds,
            **{names[name]: spent / seconds for name, (spent, _) in measured.items() if name in names},
            "equal": sum(own.strip() == other.strip() for own, other in zip(found, generated, strict=True))
            / len(texts),
        }

    def _plainly(self, items: Sequence[ChoiceItem]) -> Scores:
        scorer = self.ours.scorer
        routes, scorer.routes = scorer.routes, {False: "plain"}
        try:
            return scored_afresh(self.ours, [doc_of(item) for item in items])
        finally:
            scorer.routes = routes

    def _timed(self, run: Callable[[], Any]) -> tuple[float, Any]:
        """Seconds of a run, with what it returns."""
        synchronise(self.device)
        start = time.perf_counter()
        result = run()
        synchronise(self.device)
        return time.perf_counter() - start, result


def best(scores: Sequence[float]) -> int:
    """The place of the highest score."""
    return max(range(len(scores)), key=scores.__getitem__)


def largest_difference(scores: Scores, others: Scores) -> float:
    """The largest difference of two scores of one choice, in nats."""
    pairs = ((one, two) for own, other in zip(scores, others, strict=True) for one, two in zip(own, other, strict=True))
    return max((abs(one - two) for one, two in pairs if math.isfinite(two)), default=0.0)
