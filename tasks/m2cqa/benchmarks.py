"""M2CQA: true and false statements on images, three prompts in four varieties, scored by what a model accepts.

Paper: "Once Correct, Still Wrong: Counterfactual Hallucination in Multilingual Vision-Language Models", arXiv
2602.05437; prompts from Table 8, metrics from section 3, varieties from section 2.
Verified: prompts, metrics, size, that statements are judged one by one; the layout of AynVQA's task1b, whose test
split is drawn from M2CQA. Inferred: that the full set is evaluated. Ours: the column names and configurations looked
for in QCRI/M2CQA, greedy decoding of at most 32, 256 and 1,024 tokens, the image before the text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from cultureval.metrics.m2cqa.names import STATEMENTS as METRICS
from cultureval.prompts.m2cqa.rows import statement_rows
from cultureval.prompts.preparation import PreparedRow
from cultureval.runtime.data.row_files import files_matching, files_of_split, iter_rows, rows_of_files
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.row_order import rows_before_shuffle
from cultureval.tasks.suite import Benchmark, MetricSet, Source, Subset, Task

PROMPTS = {"tf": "True or False", "answer_reason": "Answer then Reason", "reason_first": "Reasoning First"}
DIALECTS = ("ajp", "arz")
STATEMENTS = 3 * 9990  # three an item

# Variety -> (its names in sources, register).
VARIETIES: dict[str, tuple[tuple[str, ...], str]] = {
    "en": (("en", "EN", "eng", "english", "English"), "standard"),
    "msa": (("msa", "MSA", "ar", "arb", "arabic", "Arabic"), "MSA"),
    "ajp": (("ajp", "AJP", "lev", "levantine", "Levantine"), "dialectal"),
    "arz": (("arz", "ARZ", "egy", "egyptian", "Egyptian"), "dialectal"),
}
M2CQA_FILES = ("{name}/*", "{name}.*", "{name}-*", "*_{name}.*")
AYNVQA_FILES = ("task1b/test_{name}.*", "{name}/test*")
# AynVQA's name on the hub, and earlier ones, under which a data root may hold it.
AYNVQA = "QCRI/ImageEval-ArabicNLP26"
EARLIER = ("QCRI/AynVQA-ArabicNLP26", "QCRI/AynVQA", "QCRI/ImageEval2026-Task1-AynVQA")


def find_statements(
    folder: Path, task: Task, splits: Sequence[str], patterns: Sequence[str]
) -> tuple[list[Path], list[Path]]:
    """Files of a variety: by configuration, by name, else the tables with a column that names the variety.

    Where the folder declares no configuration, `{name}` in the patterns is one of the variety's names in sources.
    """
    names = list(task.subset_names)
    globs = [pattern.format(name=name) for pattern in patterns for name in names]
    files = files_of_split(folder, names, splits) or files_matching(folder, globs)
    if not files:
        files = [file for file in files_matching(folder, ["*"]) if _names_variety(file, names)]
    return files, []


def _names_variety(file: Path, names: Sequence[str]) -> bool:
    first = next(islice(iter_rows(file), 1), {})
    return variety_of(first) is not None or any(str(column).endswith(f"_{name}") for column in first for name in names)


def variety_of(row: Mapping[str, Any]) -> str | None:
    """The variety that a row of a table of several names; None where a table is of one variety or a row holds all."""
    return next((str(row[name]) for name in ("lang", "language", "variety", "dialect") if row.get(name)), None)


def check_items(rows: Sequence[PreparedRow]) -> None:
    """Refuses an item that is duplicated: CFHR counts items, and statements would be paired at random."""
    seen: dict[tuple[str, str], str] = {}
    for row in rows:
        key = row["item_id"], row["role"]
        if key in seen:
            raise CulturevalError(
                f"M2CQA, {row['language']}: the item {row['item_id']!r} is duplicated, in {seen[key]} and "
                f"{row['source_row']}. Ids must be unique; remove one of the rows."
            )
        seen[key] = row["source_row"]


def _source(repo: str, splits: tuple[str, ...], patterns: tuple[str, ...], variety: str, **properties: Any) -> Source:
    return Source(
        repo,
        "original",
        partial(statement_rows, language=variety),
        splits=splits,
        few_shot_splits=(),
        subset_of=variety_of,
        find=partial(find_statements, splits=splits, patterns=patterns),
        read=rows_of_files,
        check=check_items,
        reorder=rows_before_shuffle,
        caveat="CFHR counts only items whose Q+ is answered rightly: read it beside the accuracy on Q+ (q_plus_acc). "
        "The rows Dialect (_dialect) are the means of both dialects, as in the paper.",
        **properties,
    )


def _sources(variety: str) -> tuple[Source, ...]:
    licence = "CC BY-NC-SA 4.0 (paper, appendix B; the hub's first commit says Apache-2.0)"
    m2cqa = _source("QCRI/M2CQA", ("test", "train"), M2CQA_FILES, variety, licence=licence, gated=True)
    if variety in DIALECTS:
        return (m2cqa,)
    return m2cqa, *aynvqa_sources(variety)


def aynvqa_sources(variety: str) -> tuple[Source, ...]:
    """AynVQA's test split, drawn from M2CQA, by its name on the hub and by earlier ones."""
    now = _source(AYNVQA, ("test",), AYNVQA_FILES, variety, licence="CC BY-NC-SA 4.0 (data card); CC BY-NC 4.0 (task)")
    found_as = f"an earlier name of {AYNVQA}"
    return now, *(replace(now, repo=repo, on_hub=False, how_to_get=found_as) for repo in EARLIER)


def _benchmark(prompt: str, variety: str) -> Benchmark:
    names, register = VARIETIES[variety]
    script = "en" if variety == "en" else "ar"
    aliases = names + tuple(f"task1b_{name}" for name in names)
    mean = f"m2cqa:_dialect_{prompt}" if variety in DIALECTS else None  # the paper's Dialect rows (Table 2)
    return Benchmark(
        name="M2CQA",
        domain=PROMPTS[prompt],
        group="m2cqa",
        sources=_sources(variety),
        subsets=(Subset(variety, f"{prompt}_{variety}", STATEMENTS, aliases, register=register, mean=mean),),
        metric_set=MetricSet(f"m2cqa_{prompt}", "true/false statements", METRICS),
        template=f"m2cqa/templates/{script}/{prompt}",
        language=script,
        images=True,
        shared_items="m2cqa",
    )


BENCHMARKS = tuple(_benchmark(prompt, variety) for prompt in PROMPTS for variety in VARIETIES)
