"""Our scoring of choices measured against LightEval's and lm-eval's, in one process, interleaved.

It stands beside its command since it needs what no other room may import together: our model file, our prompts and the
random models of the samples. What becomes of the measurements is in `scoring_speed.py`.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import chain, cycle, islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.lower_limit import multiply, product_flops
from benchmarks.peak_memory import peak_memory
from benchmarks.scoring_harnesses import (
    ChoiceItem,
    Scores,
    doc_of,
    lighteval_runner,
    lm_eval_runner,
    load_ours,
    one_pass,
    ours_scores,
    scored_afresh,
    text_limit,
    vision_limit,
    vision_naive,
    vision_pass,
)
from benchmarks.scoring_speed import Measured, summary
from cultureval.prompts.options import LABELS
from cultureval.prompts.templates import load_template
from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.errors import CulturevalError
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm, build_tiny_vision_lm
from cultureval.samples.tiny_models.text_parts import train_tokenizer

if TYPE_CHECKING:
    from cultureval.models.hf import HFModel

BENCH_SIZES = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 8, "num_attention_heads": 8}
BENCH_SIZES |= {"num_key_value_heads": 8, "head_dim": 64, "vocab_size": 64_000, "max_position_embeddings": 4096}
RANKING_PROMPT, RANKING_CHOICES, RANKING_TOKENS = 400, 100, (7, 8, 9, 10, 11)

FORMS_OF_DATA = 'JSONL of {"prompt": "...", "choices": ["...", ...]}, or ArabicMMLU in its own columns (CSV, parquet)'
SCENARIOS = ("letters", "full_text", "ranking_100", "vision_ranking")


def measure_scoring(
    model: Path | None,
    data: Path | None,
    questions: int,
    repeats: int,
    batch_size: int,
    device: str,
    dtype: str,
    scenarios: Sequence[str] = SCENARIOS,
) -> dict[str, dict[str, float | None]]:
    """Times our scoring of choices and other harnesses', in turns.

    Args:
        model: Folder of a text model; None builds a random one.
        data: File of questions; None takes the shipped rows of ArabicMMLU.
        questions: Questions of letters and full_text.
        repeats: Of each measurement, of which the median counts.
        batch_size: Of LightEval and lm-eval.
        device: "cpu", "cuda", ...
        dtype: Of all: "float32", "bfloat16", ...
        scenarios: Which are measured.

    Returns:
        The numbers of each scenario by name: seconds, ratios, MiB; None if a harness has none.

    Raises:
        CulturevalError: A scenario is unknown, or the data cannot be read or are too few.
    """
    if unknown := set(scenarios) - set(SCENARIOS):
        raise CulturevalError(f"Unknown scenario {', '.join(sorted(unknown))}: there are {', '.join(SCENARIOS)}.")
    with tempfile.TemporaryDirectory(prefix="cultureval-bench-") as temporary:
        bench = Bench(Path(temporary), model, read_questions(data), questions, repeats, batch_size, device, dtype)
        if any("ranking" in name for name in scenarios):
            bench.ranking()  # before any timing, since it raises for too little text
        return {name: bench.scenarios[name]() for name in scenarios}


def read_questions(path: Path | None) -> list[ChoiceItem]:
    """Questions of a file of either form, or of the shipped samples of ArabicMMLU.

    Raises:
        CulturevalError: The file cannot be read, or a row is of neither form.
    """
    files = [path] if path else sorted(samples_root().glob("MBZUAI/ArabicMMLU/*/test.jsonl"))
    rows = [(file, number, row) for file in files for number, row in enumerate(read_rows(file), start=1)]
    if not rows:
        raise CulturevalError(f"{path} holds no questions: give {FORMS_OF_DATA}.")
    return [_question(*placed) for placed in rows]


def _question(file: Path, number: int, row: dict[str, Any]) -> ChoiceItem:
    if row.get("Question") and row.get("Option 1"):
        return _from_arabicmmlu(row)
    choices = row.get("choices")
    texts = [row.get("prompt"), *choices] if isinstance(choices, list) and choices else [None]
    if not all(isinstance(text, str) and text for text in texts):
        raise CulturevalError(f"{file}, row {number}: expected {FORMS_OF_DATA}.")
    return ChoiceItem(row["prompt"], choices)


def _from_arabicmmlu(row: dict[str, Any]) -> ChoiceItem:
    options = [row[f"Option {number}"] for number in range(1, 6) if row.get(f"Option {number}")]
    question = "\n".join(part for part in (row.get("Context"), row["Question"]) if part)
    template = load_template("qimma/templates/mcq")
    prompt = template.render(question=question, options=template.options(options))
    return ChoiceItem(prompt, [f" {option}" for option in options])


class Bench:
    """The scenarios over one model and one set of questions."""

    def __init__(
        self,
        folder: Path,
        model: Path | None,
        questions: Sequence[ChoiceItem],
        count: int,
        repeats: int,
        batch_size: int,
        device: str,
        dtype: str,
    ) -> None:
        self.temporary, self.repeats, self.batch_size = folder, repeats, batch_size
        self.device, self.dtype = device, dtype
        self.all = list(questions)
        # Texts of true/false questions repeat: 100 candidates cut from them would share most of their tokens.
        self.several = [question for question in self.all if len(question.choices) >= 4] or self.all
        self.questions = self.several[:: max(1, len(self.several) // count)][:count]
        self.model_folder = model or build_bench_model(folder / "bench-model", self.all)
        self.scenarios = {
            "letters": lambda: self._text(self._letters()),
            "full_text": lambda: self._text(self.questions),
            "ranking_100": lambda: self._text([self.ranking()]),
            "vision_ranking": self._vision,
        }
        self._ours: HFModel | None = None

    @property
    def ours(self) -> "HFModel":
        """Our model file, loaded on first use."""
        # Without chat template: lm-eval and the limit get the unchanged prompts.
        self._ours = self._ours or load_ours(self.model_folder, self.device, self.dtype, self.temporary, "off")
        return self._ours

    def _letters(self) -> list[ChoiceItem]:
        return [ChoiceItem(question.prompt, list(LABELS[: len(question.choices)])) for question in self.questions]

    def ranking(self) -> ChoiceItem:
        """One prompt of 400 tokens and 100 candidates of about 9 tokens, cut out of the questions' texts.

        Raises:
            CulturevalError: There is too little text for 100 different candidates.
        """
        tokenizer = self.ours.tokenizer
        prompt = "\n".join(question.prompt for question in self.several)
        prompts = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        options = "".join(chain.from_iterable(question.choices for question in self.several))
        # A short text is read several times, and cut at different positions each time.
        tokens = cycle(tokenizer(options, add_special_tokens=False)["input_ids"])
        pieces = (list(islice(tokens, length)) for length in islice(cycle(RANKING_TOKENS), 10 * RANKING_CHOICES))
        texts = (" " + tokenizer.decode(piece).strip() for piece in pieces)
        candidates = list(islice(dict.fromkeys(texts), RANKING_CHOICES))
        if len(candidates) < RANKING_CHOICES:
            raise CulturevalError(
                f"ranking_100 needs more data: only {len(candidates)} candidates could be cut from it."
            )
        return ChoiceItem(tokenizer.decode(list(islice(cycle(prompts), RANKING_PROMPT))).strip(), candidates)

    def _text(self, questions: Sequence[ChoiceItem]) -> dict[str, float | None]:
        runners = {
            "ours": lambda: ours_scores(self.ours, questions),
            "one_pass": lambda: one_pass(self.ours, questions),
            "products": lambda: multiply(self.ours.loaded.model),
            "lighteval": lighteval_runner(self.ours, self.model_folder, questions, self.batch_size, self.temporary),
            "lm_eval": lm_eval_runner(self.ours, questions, self.batch_size),
        }
        measured = interleaved(runners, self.repeats, self.ours.loaded.model.device.type)
        return summary(measured, text_limit(self.ours, questions) / product_flops(self.ours.loaded.model))

    def _vision(self) -> dict[str, float | None]:
        """100 candidates after an image of 576 tokens and a question, against one pass per candidate."""
        folder = build_tiny_vision_lm(
            self.temporary / "vision-model",
            tokenizer=train_tokenizer([question.prompt for question in self.all], 32_000, True, "<image>"),
            image_size=336,
            patch_size=14,
            **BENCH_SIZES,
        )
        vision = load_ours(folder, self.device, self.dtype, self.temporary)
        docs = [doc_of(self.ranking()._replace(prompt="ماذا ترى في الصورة؟"), _picture(336))]
        runners = {
            "ours": lambda: scored_afresh(vision, docs),
            "one_pass": lambda: vision_pass(vision, docs[0]),
            "products": lambda: multiply(vision.loaded.model),
            "naive": lambda: [vision_naive(vision, docs[0])],
        }
        measured = interleaved(runners, self.repeats, vision.loaded.model.device.type)
        return summary(measured, vision_limit(vision, docs[0]) / product_flops(vision.loaded.model))


def build_bench_model(folder: Path, questions: Sequence[ChoiceItem]) -> Path:
    """A random Llama of 8 layers, 512 wide, with a 64,000-token head and a tokenizer trained on the questions."""
    texts = [question.prompt + "".join(question.choices) for question in questions]
    texts += [label for label in LABELS for _ in range(10)]
    tokenizer = train_tokenizer(texts, BENCH_SIZES["vocab_size"])
    return build_tiny_causal_lm(folder, tokenizer=tokenizer, **BENCH_SIZES)


def _picture(side: int) -> Any:
    from PIL import Image

    return Image.effect_noise((side, side), 60).convert("RGB")


def interleaved(
    runners: dict[str, Callable[[], Scores | None] | None], repeats: int, device: str
) -> dict[str, Measured]:
    """Run all, interleaved: ours and its bounds once to warm up, then `repeats` timed runs."""
    present = {name: run for name, run in runners.items() if run}
    seconds: dict[str, list[float]] = {name: [] for name in present}
    peaks: dict[str, list[float]] = {name: [] for name in present}
    scores: dict[str, Scores | None] = {}
    for name in ("ours", "one_pass", "products"):  # ours chooses the route once per model; one round is enough then
        present[name]()
    for _ in range(repeats):
        for name, run in present.items():
            with peak_memory(device, peaks[name]):
                start = time.perf_counter()
                scores[name] = run()
                synchronise(device)
                seconds[name].append(time.perf_counter() - start)
    return {name: Measured(median(seconds[name]), max(peaks[name]), scores[name]) for name in present}


def synchronise(device: str) -> None:
    """Wait until the device is idle."""
    import torch

    if device != "cpu":
        torch.accelerator.synchronize()
