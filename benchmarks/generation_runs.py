"""Ways of generating answers that are compared: ours, transformers' `generate` in batches, LightEval, lm-eval."""

import inspect
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.scoring_harnesses import load_ours, stock_lighteval, stock_lm_eval
from benchmarks.scoring_runs import build_bench_model, read_questions, synchronise

if TYPE_CHECKING:
    from cultureval.models.hf import HFModel

Texts = list[str]
Runner = Callable[[Sequence[str]], Texts]
OURS = "ours"


def measure_generation(
    model: Path | None,
    prompts: int,
    shared: int,
    new_tokens: int,
    repeats: int,
    batch_size: int,
    device: str,
    dtype: str,
) -> dict[str, dict[str, float]]:
    """Times greedy answers to prompts with a shared beginning, in turns.

    Args:
        model: Folder of a text model; None builds a random one of 99M parameters.
        prompts: How many.
        shared: Tokens of their beginning.
        new_tokens: Most tokens of an answer.
        repeats: Turns, of which the median counts.
        batch_size: Of the others; ours is `auto`.
        device: "cpu", "cuda", ...
        dtype: Of all: "float32", "bfloat16", ...

    Returns:
        By name: seconds, tokens a second, the share of texts that are ours, and how much slower than ours.

    Raises:
        CulturevalError: The model cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="cultureval-bench-") as temporary:
        folder, questions = Path(temporary), read_questions(None)
        ours = load_ours(model or build_bench_model(folder / "bench-model", questions), device, dtype, folder, "off")
        texts = with_beginning(ours, [question.prompt for question in questions], prompts, shared)
        ways = runners(ours, model or folder / "bench-model", new_tokens, batch_size, folder)
        for run in ways.values():
            run(texts[:2])  # chooses our route, and loads what is loaded once
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        answers: dict[str, Texts] = {}
        for _ in range(repeats):
            for name, run in ways.items():
                start = time.perf_counter()
                answers[name] = run(texts)
                synchronise(device)
                seconds[name].append(time.perf_counter() - start)
        tokens = sum(map(len, ours_tokens(ours, texts, new_tokens)))
        return {name: _numbers(seconds, answers, name, tokens) for name in ways}


def _numbers(seconds: dict[str, list[float]], answers: dict[str, Texts], name: str, tokens: int) -> dict[str, float]:
    alike = sum(own.strip() == other.strip() for own, other in zip(answers[OURS], answers[name], strict=True))
    return {
        "seconds": round(median(seconds[name]), 2),
        "tokens_per_second": round(tokens / median(seconds[name]), 1),
        "same_texts": alike / len(answers[OURS]),
        "times_ours": round(median(a / b for a, b in zip(seconds[name], seconds[OURS], strict=True)), 2),
    }


def with_beginning(ours: "HFModel", questions: Sequence[str], count: int, shared: int) -> Texts:
    """Questions after one beginning of about so many tokens, such as few-shot examples are."""
    tokens = ours.tokenizer("\n\n".join(questions), add_special_tokens=False)["input_ids"]
    beginning = ours.tokenizer.decode(list(islice(cycle(tokens), shared)))
    # Numbered, so that no two prompts are the same.
    return [f"{beginning}\n\n{number}. {text}" for number, text in enumerate(islice(cycle(questions), count), start=1)]


def runners(ours: "HFModel", folder: Path, new_tokens: int, batch_size: int, temporary: Path) -> dict[str, Runner]:
    """Ways of answering by name: ours first, then those that are installed."""
    found: dict[str, Runner] = {OURS: lambda texts: _ours(ours, texts, new_tokens)}
    found["generate"] = lambda texts: _sorted_batches(ours, texts, new_tokens, batch_size)
    found["lighteval"] = _lighteval(ours, folder, new_tokens, batch_size, temporary)
    if (lm_eval := _lm_eval(ours, new_tokens, batch_size)) is not None:
        found["lm_eval"] = lm_eval
    return found


def _docs(texts: Sequence[str], new_tokens: int) -> list:
    from lighteval.tasks.requests import Doc

    more = {"choices": [], "gold_index": 0, "task_name": "bench", "generation_size": new_tokens, "stop_sequences": []}
    return [Doc(query=text, id=str(number), **more) for number, text in enumerate(texts)]


def _ours(ours: "HFModel", texts: Sequence[str], new_tokens: int) -> Texts:
    """A complete run: rendering, tokens, answers, journal."""
    from cultureval.runtime.journal import Journal

    ours.journal = Journal(ours.journal.folder, resume=False)
    return [response.text[0] for response in ours.greedy_until(_docs(texts, new_tokens))]


def ours_tokens(ours: "HFModel", texts: Sequence[str], new_tokens: int) -> list[list[int]]:
    """The tokens of our answers, from the journal."""
    return [response.output_tokens[0] for response in ours.greedy_until(_docs(texts, new_tokens))]


def _sorted_batches(ours: "HFModel", texts: Sequence[str], new_tokens: int, batch_size: int) -> Texts:
    """Transformers' `generate` on prompts sorted by length and padded on the left."""
    import torch

    model, tokenizer = ours.loaded.model, ours.tokenizer
    order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
    found: dict[int, str] = {}
    for start in range(0, len(order), batch_size):
        places = order[start : start + batch_size]
        inputs = tokenizer([texts[place] for place in places], padding=True, return_tensors="pt").to(model.device)
        inputs.pop("token_type_ids", None)
        with torch.inference_mode():
            pad = tokenizer.pad_token_id
            out = model.generate(**inputs, max_new_tokens=new_tokens, do_sample=False, pad_token_id=pad)
        decoded = tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        found |= dict(zip(places, decoded, strict=True))
    return [found[place] for place in range(len(texts))]


def _lighteval(ours: "HFModel", folder: Path, new_tokens: int, batch_size: int, temporary: Path) -> Runner:
    """LightEval's answers, without its response cache."""
    stock = stock_lighteval(ours, folder, batch_size, temporary)

    generate = inspect.unwrap(type(stock).greedy_until)  # without LightEval's cache of answers

    def run(texts: Sequence[str]) -> Texts:
        return [response.text[0] for response in generate(stock, _docs(texts, new_tokens))]

    return run


def _lm_eval(ours: "HFModel", new_tokens: int, batch_size: int) -> Runner | None:
    """lm-eval's answers; None if it is not installed."""
    if (harness := stock_lm_eval(ours, batch_size)) is None:
        return None
    from lm_eval.api.instance import Instance

    def run(texts: Sequence[str]) -> Texts:
        settings = {"until": [], "max_gen_toks": new_tokens, "do_sample": False}
        return harness.generate_until(
            [
                Instance(request_type="generate_until", doc={}, arguments=(text, dict(settings)), idx=number)
                for number, text in enumerate(texts)
            ],
            disable_tqdm=True,
        )

    return run
