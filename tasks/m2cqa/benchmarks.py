"""M2CQA: true and false statements on images, three prompts in four varieties; AynVQA.

Paper: "Once Correct, Still Wrong: Counterfactual Hallucination in Multilingual Vision-Language Models", arXiv
2602.05437; prompts from Table 8, metrics from section 3, varieties from section 2.
AynVQA (ImageEval 2026, Task 1b) is the part of M2CQA without gated access, in English and MSA. It is a separate suite
in five forms with other headlines.
Paper: "ImageEval 2026: Culturally Grounded Arabic Multimodal Evaluation", arXiv 2608.30475; the organisers' repository
ImageEval2026/ImageEval2026-tasks.
Verified: prompts, metrics, size, that each statement has its own verdict.
Inferred: that the full set is evaluated.
Ours: the names of columns and configurations in QCRI/M2CQA; greedy decoding of at most 32, 256 and 1,024 tokens (the
paper states no length); the image comes first.
AynVQA. Verified: the layout of the data, the sizes of the splits, the organisers' prompt, their reading of verdicts,
the five metrics and their order. The test split's 1,000 items are drawn from M2CQA, train and dev from OASIS.
Ours: the joint form, greedy decoding; an undefined rate is null, where the organisers' scorer has 0.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cultureval.metrics.declared import Metrics
from cultureval.metrics.m2cqa import names
from cultureval.prompts.m2cqa import rows
from cultureval.prompts.preparation import PreparedRow
from cultureval.runtime.dotted_names import lazy_call
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.row_order import rows_before_shuffle
from cultureval.runtime.settings import Option, current_settings
from cultureval.tasks.suite import Benchmark, Instrument, Kind, Source, Subset, Suite, Task

METRICS = "cultureval.metrics.m2cqa.lighteval"
STRICT = Instrument(name=lambda: "verdicts(strict)")
ORGANISERS = Instrument(name=lambda: "verdicts(organisers)")


def _statements(name: str, prompt: Any, size: int, parts: Any, declared: Metrics, instrument: Instrument) -> Kind:
    """A kind with three statements for each item, each with its own verdict."""
    make_metrics = lazy_call(f"{METRICS}:statement_metrics", name.partition("_")[2], parts, declared)
    return Kind(
        name, "true/false statements", declared, prompt, make_metrics, size, instrument=instrument, rows_per_item=3
    )


# Prompt -> maximum of new tokens. (The organisers' baseline stops after 10 tokens.)
SIZES = {"tf": 32, "answer_reason": 256, "reason_first": 1024}
KINDS = {
    name: _statements(
        *(f"m2cqa_{name}", partial(rows.statement_prompt, prompt=name), size),
        *(names.STATEMENT_PARTS, names.STATEMENTS, STRICT),
    )
    for name, size in SIZES.items()
}
LABELLED_KINDS = {
    name: _statements(
        *(f"aynvqa_{name}", partial(rows.statement_prompt, prompt=name), size),
        *(names.LABELLED_PARTS, names.LABELLED, STRICT),
    )
    for name, size in SIZES.items()
}
ONE_WORD = _statements(
    *("aynvqa_one_word", rows.one_word_prompt, 10, names.ORGANISERS_PARTS, names.ORGANISERS, ORGANISERS)
)
JOINT = Kind(
    *("aynvqa_joint", "one of three", names.JOINT, rows.joint_prompt, lazy_call(f"{METRICS}:joint_metrics"), 10),
    instrument=Instrument(name=lambda: "choice(one of three)"),
)

PROMPTS = {"tf": "True or False", "answer_reason": "Answer then Reason", "reason_first": "Reasoning First"}
DIALECTS = ("ajp", "arz")
STATEMENTS = 3 * 9990  # three for each item

# Variety (also the name of its configuration) -> register.
VARIETIES = {"en": "standard", "msa": "MSA", "ajp": "dialectal", "arz": "dialectal"}
CAVEAT = (
    "CFHR counts only items with a right answer to Q+: read it beside the accuracy on Q+ (q_plus_acc). "
    "The rows Dialect (_dialect) are the means of both dialects, as in the paper."
)


def check_items(prepared: Sequence[PreparedRow]) -> None:
    """Refuses duplicated items: CFHR counts items, and their statements could not be paired."""
    places: dict[tuple[str, str], str] = {}
    for row in prepared:
        key = row["item_id"], row["role"]
        if key in places:
            raise CulturevalError(
                f"M2CQA, {row['language']}: the item {row['item_id']!r} is duplicated, in {places[key]} and "
                f"{row['source_row']}. Ids must be unique; remove one of the rows."
            )
        places[key] = row["source_row"]


def _benchmark(prompt: str, variety: str) -> Benchmark:
    script = "en" if variety == "en" else "ar"
    mean = f"m2cqa:_dialect_{prompt}" if variety in DIALECTS else None  # the paper's Dialect rows (Table 2)
    source = Source(
        "QCRI/M2CQA",
        "original",
        partial(rows.statement_rows, language=variety),
        few_shot_splits=(),
        columns=("id", "image", "q_plus", "q_minus", "country", "category", "subcategory"),
        check=check_items,
        reorder=rows_before_shuffle,
        caveat=CAVEAT,
        licence="CC BY-NC-SA 4.0 (paper, appendix B; the hub's first commit says Apache-2.0)",
        gated=True,
    )
    return Benchmark(
        name="M2CQA",
        domain=PROMPTS[prompt],
        group="m2cqa",
        sources=(source,),
        subsets=(Subset(variety, f"{prompt}_{variety}", STATEMENTS, register=VARIETIES[variety], mean=mean),),
        kind=KINDS[prompt],
        template=f"m2cqa/templates/{script}/{prompt}",
        language=script,
        images=True,
        shared_items="m2cqa",
    )


BENCHMARKS = tuple(_benchmark(prompt, variety) for prompt in PROMPTS for variety in VARIETIES)

# --- AynVQA -----------------------------------------------------------------------------------------------------------

# Items of each split with labels (overview of ImageEval 2026, Table 1).
ITEMS = {"test": 1000, "dev": 500, "train": 3000}
SPLIT = Option(
    "aynvqa_split",
    "CULTUREVAL_AYNVQA_SPLIT",
    "test",
    "Split of AynVQA: `test` is drawn from M2CQA, the others from OASIS",
    values=tuple(ITEMS),
    signed=False,
)
AYNVQA_CAVEAT = (
    "AynVQA: contrastive instability is the share of items with a wrong verdict among items with a right verdict."
)


def find_split(folder: Path, task: Task) -> tuple[list[Path], list[Path]]:
    """The file of the chosen split and the task's language, without few-shot examples."""
    file = folder / "task1b" / f"{SPLIT.read(current_settings())}_{task.subset}.jsonl"
    return [file] if file.is_file() else [], []


def other_data(prepared: Sequence[PreparedRow]) -> str:
    """A sentence on another split than `test`, the split of the ranking; "" for `test`."""
    split, found = SPLIT.read(current_settings()), len({row["item_id"] for row in prepared})
    sizes = f"{found:,} items of {ITEMS[split]:,}"
    return "" if split == "test" else f"AynVQA's split {split} ({sizes}); the organisers rank models on `test`."


def _aynvqa(group: str, domain: str, kind: Kind, template: str, language: str) -> Benchmark:
    script, joint = "en" if language == "en" else "ar", kind is JOINT
    source = Source(
        "QCRI/ImageEval-ArabicNLP26",
        "original",
        partial(rows.joint_row if joint else rows.labelled_rows, language=language),
        find=find_split,
        check=None if joint else check_items,
        reorder=None if joint else rows_before_shuffle,
        other_data=other_data,
        caveat=AYNVQA_CAVEAT,
        licence="CC BY-NC-SA 4.0 (data card); CC BY-NC 4.0 (task)",
    )
    return Benchmark(
        name="AynVQA",
        domain=domain,
        group=group,
        sources=(source,),
        subsets=(Subset(language, rows=ITEMS["test"] * (1 if joint else 3), register=VARIETIES[language]),),
        kind=kind,
        template=f"m2cqa/templates/{template.replace('SCRIPT', script)}",
        language=script,
        images=True,
        shared_items="aynvqa",
    )


# The organisers' form first, then M2CQA's three prompts on the same rows, then the joint form.
FORMS = (
    (names.AYNVQA, "One word", ONE_WORD, "aynvqa/one_word"),
    *((f"{names.AYNVQA}_{name}", PROMPTS[name], LABELLED_KINDS[name], f"SCRIPT/{name}") for name in PROMPTS),
    (names.AYNVQA_JOINT, "Joint", JOINT, "aynvqa/joint"),
)

M2CQA = Suite(
    name="m2cqa",
    title="M2CQA: counterfactual hallucination on images, three prompts in four language varieties",
    benchmarks=BENCHMARKS,
    tables="cultureval.reports.m2cqa.table:tables",
    comparison="cultureval.reports.m2cqa.comparison:compare_m2cqa",
    page="docs/m2cqa.md",
)
AYNVQA_SUITE = Suite(
    name="aynvqa",
    title="AynVQA (ImageEval 2026, Task 1b): the part of M2CQA without gated access, in English and MSA",
    benchmarks=tuple(_aynvqa(*form, language) for form in FORMS for language in ("en", "msa")),
    options=(SPLIT,),
    tables="cultureval.reports.m2cqa.table:aynvqa_tables",
    submissions="cultureval.reports.m2cqa.submissions:SUBMISSIONS",
    page="docs/m2cqa.md",
)
SUITE = (M2CQA, AYNVQA_SUITE)
