"""AynVQA (ImageEval 2026, Task 1b): the part of M2CQA that anyone can get, in English and MSA, in five forms.

Paper: "ImageEval 2026: Culturally Grounded Arabic Multimodal Evaluation", arXiv 2608.30475; the organisers' repository
ImageEval2026/ImageEval2026-tasks.
Verified: the layout of the data, the sizes of the splits, the organisers' prompt, their reading of verdicts, the five
metrics and their order. The test split's 1,000 items are drawn from M2CQA, train and dev from OASIS.
Ours: the joint form, greedy decoding; that an undefined rate is null where the organisers' scorer has 0.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cultureval.metrics.m2cqa.names import AYNVQA, AYNVQA_JOINT, JOINT, LABELLED, ORGANISERS
from cultureval.prompts.m2cqa.rows import joint_row, labelled_rows
from cultureval.prompts.preparation import PreparedRow
from cultureval.runtime.patches.lighteval.row_order import rows_before_shuffle
from cultureval.runtime.settings import Option, current_settings
from cultureval.tasks.m2cqa.benchmarks import PROMPTS, check_items
from cultureval.tasks.suite import Benchmark, MetricSet, Source, Subset, Task

# Items of each split with labels (overview of ImageEval 2026, Table 1).
ITEMS = {"test": 1000, "dev": 500, "train": 3000}
SPLIT = Option(
    "aynvqa_split",
    "CULTUREVAL_AYNVQA_SPLIT",
    "test",
    "split of AynVQA: `test` (default; drawn from M2CQA), `dev` or `train` (from OASIS)",
    values=tuple(ITEMS),
    signed=False,
)
OPTIONS = (SPLIT,)
REPO = "QCRI/ImageEval-ArabicNLP26"

LANGUAGES = {"en": "standard", "msa": "MSA"}
CAVEAT = "AynVQA: contrastive instability is the share of items not wholly right among those with a right verdict."


def find_split(folder: Path, task: Task) -> tuple[list[Path], list[Path]]:
    """The file of the chosen split and the task's language; there are no examples."""
    file = folder / "task1b" / f"{SPLIT.read(current_settings())}_{task.subset}.jsonl"
    return [file] if file.is_file() else [], []


def other_data(prepared: Sequence[PreparedRow]) -> str:
    """Of the splits that models are not ranked on which it is, and its number of items; "" of `test`."""
    split, found = SPLIT.read(current_settings()), len({row["item_id"] for row in prepared})
    sizes = f"{found:,} items of {ITEMS[split]:,}"
    return "" if split == "test" else f"AynVQA's split {split} ({sizes}), of other data than `test`, which is ranked."


def _source(language: str, joint: bool) -> Source:
    return Source(
        REPO,
        "original",
        partial(joint_row if joint else labelled_rows, language=language),
        find=find_split,
        check=None if joint else check_items,
        reorder=None if joint else rows_before_shuffle,
        other_data=other_data,
        caveat=CAVEAT,
        licence="CC BY-NC-SA 4.0 (data card); CC BY-NC 4.0 (task)",
    )


def _benchmark(group: str, domain: str, metrics: MetricSet, templates: dict[str, str], language: str) -> Benchmark:
    rows = ITEMS["test"] * (1 if group == AYNVQA_JOINT else 3)  # statements
    return Benchmark(
        name="AynVQA",
        domain=domain,
        group=group,
        sources=(_source(language, group == AYNVQA_JOINT),),
        subsets=(Subset(language, rows=rows, register=LANGUAGES[language]),),
        metric_set=metrics,
        template=templates[language],
        language="en" if language == "en" else "ar",
        images=True,
        shared_items="aynvqa",
    )


def _benchmarks() -> tuple[Benchmark, ...]:
    """The organisers' form first, then M2CQA's three prompts on the same rows, then the joint form."""
    statements = "true/false statements"
    ours = dict.fromkeys(LANGUAGES, "m2cqa/templates/aynvqa/one_word")
    joint = dict.fromkeys(LANGUAGES, "m2cqa/templates/aynvqa/joint")
    forms = [(AYNVQA, "One word", MetricSet("aynvqa_one_word", statements, ORGANISERS), ours)]
    for prompt, domain in PROMPTS.items():
        metrics = MetricSet(f"aynvqa_{prompt}", statements, LABELLED)
        templates = {name: f"m2cqa/templates/{'en' if name == 'en' else 'ar'}/{prompt}" for name in LANGUAGES}
        forms.append((f"{AYNVQA}_{prompt}", domain, metrics, templates))
    forms.append((AYNVQA_JOINT, "Joint", MetricSet("aynvqa_joint", "one of three", JOINT), joint))
    return tuple(_benchmark(*form, language) for form in forms for language in LANGUAGES)


BENCHMARKS = _benchmarks()
