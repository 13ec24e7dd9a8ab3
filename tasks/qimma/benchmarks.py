"""QIMMA: its 109 subsets as one table.

Paper: "Are Arabic Benchmarks Reliable? QIMMA's Quality-First Approach to LLM Evaluation", arXiv 2604.03395; subsets
from Tables 2a and 5, domains from Table 4, prompt formats from section 3.3.2, metrics from section 5.1 (Eq. 1-4).
Verified: subsets, domains, metrics, labels, BERTScore's model (paper, QIMMA's task code).
The two code subsets are 3LM's Arabic HumanEval+ and MBPP+, judged by EvalPlus's rules; QIMMA's average counts each of
the two as a benchmark. Prompts, stops and limits are 3LM's (its evalplus-arabic); a group holds them both.
Inferred: which of MedArabiQ's files its subsets are, the name of GAT's curated copy, GAT's column names, that the hub's
copy of the code problems holds the two files of 3LM's GitHub repository.
Ours: the wording of the prompts of original sources.
Rows of curated copies are those kept in Table 2; those of the original ArabicMMLU its authors' 14,575, examples
included; those of the original GAT the 13,986 that the paper began with.
"""

import csv
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib.resources import files as package_files
from types import MappingProxyType
from typing import Any

from cultureval.metrics.declared import MULTI_SELECT
from cultureval.metrics.qimma import names
from cultureval.metrics.semantic import bertscore_model, try_bertscore
from cultureval.prompts.choices import multi_select_prompt
from cultureval.prompts.preparation import Prepare
from cultureval.prompts.qimma import code_problems, rows
from cultureval.runtime.data.scorers import versioned_name
from cultureval.runtime.doc_fields import PAPER, PARITIES
from cultureval.runtime.dotted_names import lazy_call
from cultureval.runtime.extras import require_camel_tools
from cultureval.runtime.settings import Option
from cultureval.tasks.kinds import CHOICES, MULTIPLE_CHOICE_KIND, generated
from cultureval.tasks.qimma.code_data import (
    CODE_DATASETS,
    REPO,
    check_problems,
    find_problem_files,
    other_data,
)
from cultureval.tasks.suite import SCORE, Average, Benchmark, Instrument, Kind, Source, Subset, Suite, Task

PROMPTS_ARE_OURS = "Prompts of original sources are ours, not QIMMA's wording."
PARITY = "{parity}"  # of what was run with LightEval; FannOrFlop and code were run with their authors' programs
METRICS = "cultureval.metrics.qimma.lighteval"
JUDGE = "cultureval.metrics.code.report"


def _bertscore_name() -> str:
    return f"BERTScore({versioned_name(bertscore_model())},last layer,no idf,no rescaling)"


def _check_bertscore() -> None:
    try_bertscore(bertscore_model())


def _check_words() -> None:
    require_camel_tools()  # words of poems are split before they are compared
    _check_bertscore()


# QIMMA's task code: 512 new tokens up to a newline for QA; unpublished for FannOrFlop (ours: 4,096, no stop).
BERTSCORE_MODEL = Instrument(
    _bertscore_name, _check_bertscore, sources=lambda: (bertscore_model(),), needs="BERTScore model"
)
SANDBOX = Instrument(
    *(lazy_call(f"{JUDGE}:judge_name"), lazy_call(f"{JUDGE}:check_sandbox")),
    before_generation=True,
    needs="bubblewrap",
)
MULTIPLE_CHOICE = replace(MULTIPLE_CHOICE_KIND, parity=PARITY)
SEVERAL_RIGHT = Kind(
    *("multi_select", "multi-select", MULTI_SELECT, multi_select_prompt, lazy_call(f"{CHOICES}:multi_select_metrics")),
    parity=PARITY,
)
ANSWERS = Kind(
    *("bertscore", "QA", names.BERTSCORE, rows.answer_prompt, lazy_call(f"{METRICS}:bertscore_metrics"), 512, ("\n",)),
    instrument=BERTSCORE_MODEL,
    parity=PARITY,
)
POEMS = Kind(
    *("fannorflop", "QA", names.FANNORFLOP, rows.poem_prompt, lazy_call(f"{METRICS}:fannorflop_metrics"), 4096),
    instrument=replace(BERTSCORE_MODEL, check=_check_words),
)
LOCATION = Option(
    "location",
    "CULTUREVAL_ARABCULTURE_LOCATION",
    "country_region",
    "`country_region` (default), `region` or `none`: what ArabCulture's prompt says",
    values=("country_region", "region", "none"),
    signed=False,
)
SHUFFLE = Option(
    "shuffle",
    "CULTUREVAL_SHUFFLE",
    "on",
    "`off` keeps AraDiCE-Culture's right option in the first place",
    values=("on", "off"),
    signed=False,
)
PARITY_OPTION = Option(
    "parity",
    "CULTUREVAL_PARITY",
    PAPER,
    "`paper` (default) tokenises prompt and label together, with BOS, as `lighteval vllm` does; `sound` tokenises them "
    "apart, with one BOS",
    values=PARITIES,
    signed=False,
)

# MedArabiQ's golds without a label that an option line has: QIMMA kept 299 of its 300 rows.
ARABIC_COLUMNS = ("Question - Arabic", "Answer - Arabic")
MEDARABIQ_UNREADABLE = {"multiple-choice-questions.csv": (58, 82), "fill-in-the-blank-choices.csv": (86,)}
# MedAraBench's 32 rows without a gold letter, a gold option or a question: QIMMA kept the other 4,927.
MEDARABENCH_UNREADABLE = (
    "232 353 377 398 446 724 749 792 963 1162 1163 1164 1165 1166 1167 1168 "
    "1182 1237 1515 1518 1548 1562 1590 1599 1783 2568 2991 3180 3222 3602 4540 4813"
)


def medarabench_subset(row: Mapping[str, Any]) -> str | None:
    """The specialty of a row of MedAraBench's test split."""
    return row.get("Medical Specialty")


def curated(name: str, prepare: Prepare = rows.curated_choice, pool_configs: bool = False) -> Source:
    """QIMMA's own copy `qimma/<name>` (QIMMA's task code: splits test and validation)."""
    return Source(f"qimma/{name}", "curated", prepare, few_shot_splits=("validation",), pool_configs=pool_configs)


def original(repo: str, prepare: Prepare, **properties: Any) -> Source:
    """The source that QIMMA's authors started from."""
    return Source(repo, "original", prepare, **{"caveat": PROMPTS_ARE_OURS} | properties)


# QIMMA's task code at 4e8958d2 reads one pooled config; its later list of tasks has one a subset, as the paper's scores
# need. Rows of a pooled copy do not say their subset, so that copy is not read.
PALMX_CURATED = curated("MCQ_PALMX-2025")
PALMX: dict[str, Any] = {
    "pool_configs": True,
    "licence": "non-commercial research",
    "gated": True,
    "how_to_get": "A curated copy with one config does not say which subset its rows are of. For the original, accept "
    "the terms of UBC-NLP/palmx_2025_* on the hub (they share your contact information)",
}
PALMX_ISLAMIC = original("UBC-NLP/palmx_2025_subtask2_islamic", rows.palmx, **PALMX)
PALMX_CULTURE = original("UBC-NLP/palmx_2025_subtask1_culture", rows.palmx, **PALMX)
NATIVEQA = (
    curated("MCQ_NativeQA", pool_configs=True),
    original("tiiuae/NativeQA", rows.nativeqa, pool_configs=True, licence="Falcon LLM"),
)
SYNTHETICQA = (
    curated("MCQ_SyntheticQA", pool_configs=True),
    original("tiiuae/SyntheticQA", rows.syntheticqa, pool_configs=True, licence="Falcon LLM"),
)
GAT_CURATED = curated("MCQ_GAT")
GAT: dict[str, Any] = {"files": ("{subset}.*",), "columns": ("question", "A", "B", "C", "D", "answer", "context")}
GATMATH = (GAT_CURATED, original("smballaa/GATmath", rows.gat, licence="CC BY-NC-SA", **GAT))
GATLC = (GAT_CURATED, original("smballaa/GATLc", rows.gat, **GAT))
GATLC_READING = (GAT_CURATED, original("smballaa/GATLc", partial(rows.gat, passages=True), **GAT))


def medarabiq(file: str, prepare: Prepare) -> Source:
    """One of MedArabiQ's files, which only its GitHub repository has."""
    return original(
        "nyuad-cai/MedArabiQ",
        prepare,
        files=(f"*{file}",),
        on_hub=False,
        unreadable=frozenset(MEDARABIQ_UNREADABLE.get(file, ())),
        licence="NYU, internal non-commercial evaluation, no redistribution",
        gated=True,
        how_to_get=f"datasets/{file} of the GitHub repository nyuad-cai/MedArabiQ",
    )


def medarabiq_choice(file: str, question: str, answer: str) -> tuple[Source, ...]:
    """The copies of a multiple-choice subset of MedArabiQ; `question` and `answer` are columns of its file."""
    prepare = partial(rows.medarabiq_choice, question=question, answer=answer)
    return curated("MCQ_MedArabiQ"), medarabiq(file, prepare)


def medarabiq_answer(file: str, question: str, answer: str) -> tuple[Source, ...]:
    """As `medarabiq_choice`, of a subset with free answers."""
    prepare = partial(rows.medarabiq_answer, question=question, answer=answer)
    return curated("QA_MedArabiQ", rows.curated_answer), medarabiq(file, prepare)


def _benchmark(
    name: str,
    domain: str,
    group: str,
    *sources: Source,
    kept: int | None = None,
    own: Mapping[str, tuple[Source, ...]] = MappingProxyType({}),
    kind: Kind = MULTIPLE_CHOICE,
    template: str = "mcq",
    published: int | None = None,
) -> Benchmark:
    """A benchmark whose subsets are the rows of `subsets.csv` with its group.

    Args:
        sources: Copies of its data; those of some subsets are in `own`, by the subset.
        kept: Rows of the curated copy, and `published` those of the original, where only their sum is known.
    """
    with package_files(__package__).joinpath("subsets.csv").open(encoding="utf-8", newline="") as stream:
        table = [row for row in csv.DictReader(stream) if row["group"] == group]
    return Benchmark(
        name,
        kind,
        domain=domain,
        group=group,
        sources=sources,
        subsets=tuple(
            Subset(
                row["subset"],
                key=row["key"] or (None if len(table) > 1 else ""),
                rows=int(row["rows"]) if row["rows"] else None,
                aliases=tuple(filter(None, row["aliases"].split("|"))),
                template=f"qimma/templates/{row['template']}" if row["template"] else None,
                sources=own.get(row["subset"]),
                register=row["register"] or "MSA",
            )
            for row in table
        ),
        template=f"qimma/templates/{template}",
        group_rows={form: count for form, count in (("curated", kept), ("original", published)) if count},
    )


def _code(dataset: str) -> Kind:
    metrics, stops = (
        lazy_call("cultureval.metrics.code.lighteval:code_metrics"),
        code_problems.CONTINUATION_STOPS[dataset],
    )
    asked = code_problems.code_prompt, metrics, code_problems.NEW_TOKENS, stops, SANDBOX
    return Kind(f"code_{dataset}", "code", names.CODE, *asked)


BENCHMARKS = (
    _benchmark(
        *("AraDiCE-Culture", "Cultural", "qimma_aradice"),
        curated("MCQ_AraDiCE-Culture"),
        original("QCRI/AraDiCE-Culture", rows.aradice, licence="CC BY-NC-SA 4.0"),
        kept=180,
    ),
    _benchmark(
        *("ArabCulture", "Cultural", "qimma_arabculture"),
        curated("MCQ_ArabCulture"),
        original("MBZUAI/ArabCulture", rows.arabculture, licence="CC BY-NC-SA 4.0"),
        kept=3475,
        template="arabculture_{location}",
    ),
    _benchmark(
        *("PalmX", "Cultural", "qimma_palmx"),
        own={"Islamic Culture": (PALMX_CURATED, PALMX_ISLAMIC), "General Culture": (PALMX_CURATED, PALMX_CULTURE)},
        kept=2976,
    ),
    _benchmark(
        *("ArabicMMLU", "STEM", "qimma_arabicmmlu"),
        curated("MCQ_ArabicMMLU"),
        original("MBZUAI/ArabicMMLU", rows.arabicmmlu, licence="CC BY-NC 4.0 (hub card); CC BY-NC-SA 4.0 (GitHub)"),
        kept=13727,
        published=14575,
    ),
    _benchmark(
        *("GAT", "STEM", "qimma_gat"),
        *GATMATH,
        own=dict.fromkeys(("Analogy", "Association", "Completion", "Contextual"), GATLC) | {"Reading": GATLC_READING},
        kept=13985,
        published=13986,
    ),
    _benchmark(
        *("3LM STEM", "STEM", "qimma_3lm_stem"), own={"NativeQA": NATIVEQA, "SyntheticQA": SYNTHETICQA}, kept=2608
    ),
    _benchmark(
        *("MizanQA", "Legal", "qimma_mizanqa"),
        curated("MCQ_MizanQA", rows.curated_multi_select, pool_configs=True),
        original(
            "adlbh/MizanQA-v0",
            rows.mizanqa,
            splits=("train",),
            few_shot_splits=(),
            pool_configs=True,
            columns=("question", "options", "answers"),
        ),
        kept=1728,
        kind=SEVERAL_RIGHT,
        template="multi_select",
    ),
    _benchmark(
        *("ArabLegalQA", "Legal", "qimma_arablegalqa"),
        curated("QA_ArabLegalEval", rows.curated_answer, pool_configs=True),
        *(
            original(f"{owner}/ArabLegalEval", rows.arablegalqa, splits=("train", "test"), pool_splits=True)
            for owner in ("FarisHijazi", "THIQAH-RD")  # one data set under two names
        ),
        kept=79,
        kind=ANSWERS,
        template="qa_c",
    ),
    _benchmark(
        *("MedArabiQ", "Medical", "qimma_medarabiq_mcq"),
        own={
            "fib_with_choices": medarabiq_choice("fill-in-the-blank-choices.csv", *ARABIC_COLUMNS),
            "mcq_bias": medarabiq_choice("multiple-choice-withbias.csv", "Question with Bias", "Answer"),
            "mcq_knowledge": medarabiq_choice("multiple-choice-questions.csv", "Question", "Answer"),
        },
        kept=299,
    ),
    _benchmark(
        *("MedArabiQ", "Medical", "qimma_medarabiq_qa"),
        own={
            "llm_modified": medarabiq_answer(
                "patient-doctor-qa-llm.csv", "Modified question description", "Unmodified answer"
            ),
            "fib_no_choices": medarabiq_answer("fill-in-the-blank-nochoices.csv", *ARABIC_COLUMNS),
        },
        kept=200,
        kind=ANSWERS,
        template="qa",
    ),
    _benchmark(
        *("MedAraBench", "Medical", "qimma_medarabench"),
        curated("MCQ_MedAraBench"),
        original(
            "nyuad-cai/MedAraBench",
            rows.medarabench,
            files=("*test_split*.csv",),
            subset_of=medarabench_subset,
            unreadable=frozenset(map(int, MEDARABENCH_UNREADABLE.split())),
            on_hub=False,
            how_to_get="medarabench-test_split.csv of the GitHub repository nyuad-cai/MedAraBench",
        ),
        kept=4927,
    ),
    _benchmark(
        *("AraTrust", "Safety", "qimma_aratrust"),
        curated("MCQ_AraTrust", pool_configs=True),
        original("asas-ai/AraTrust", rows.aratrust, pool_configs=True),
        original("asas-ai/AraTrust-categorized", rows.aratrust, splits=("train",), pool_configs=True),
        kept=522,
    ),
    _benchmark(
        *("FannOrFlop", "Poetry", "qimma_fannorflop"),
        original(
            "omkarthawakar/FannOrFlop", rows.fannorflop, splits=("train",), pool_configs=True, licence="Apache-2.0"
        ),
        kind=POEMS,
        template="fannorflop",
    ),
    *(
        Benchmark(
            name="3LM Code",
            domain="Coding",
            group="qimma_code",
            sources=(
                original(
                    REPO,
                    partial(code_problems.prepare_problem, dataset=name, prefix=dataset.prefix),
                    caveat="",  # the prompts are 3LM's, as QIMMA's are
                    find=partial(find_problem_files, dataset=dataset),
                    check=check_problems,
                    other_data=partial(other_data, dataset=dataset),
                    licence="Falcon LLM",
                    how_to_get=f"{dataset.file}.gz is also in frameworks/evalplus-arabic/evalplus/data/data_files "
                    "of the GitHub repository tiiuae/3LM-benchmark",
                ),
            ),
            subsets=(Subset(dataset.title, dataset.task.partition(":")[2], dataset.rows),),
            kind=_code(name),
            template=code_problems.INSTRUCTION,
        )
        for name, dataset in CODE_DATASETS.items()
    ),
)
CODE = "qimma_code"


def benchmark_tasks() -> dict[str, list[Task]]:
    """The subsets of each of the fourteen benchmarks, in the paper's order; the two of code are benchmarks."""
    found: dict[str, list[Task]] = {}
    for task in QIMMA.tasks():
        found.setdefault(task.subset if task.group == CODE else task.benchmark, []).append(task)
    return found


def averages() -> list[Average]:
    """The benchmarks that are no single group, the domains, and the average (section 5, Tables 3 and 4)."""
    found: list[Average] = []
    members: dict[str, str] = {}
    domains: dict[str, dict[str, str]] = {}
    for benchmark, tasks in benchmark_tasks().items():
        first, groups = tasks[0], tuple(dict.fromkeys(task.group for task in tasks))
        if len(tasks) == 1:
            member = {first.task: first.metrics[0]}
        elif len(groups) == 1:
            member = {first.group: first.metrics[0]}
        else:
            own = f"qimma_{benchmark.lower()}"
            found.append(Average(own, benchmark, {task.task: task.metrics[0] for task in tasks}, groups))
            member = {own: SCORE}
        members |= member
        domains.setdefault(first.domain, {}).update(member)
    of_domains = [Average(f"qimma_{name.lower()}", name, inside, tuple(inside)) for name, inside in domains.items()]
    return [*found, *of_domains, Average("qimma", "QIMMA", members, tuple(one.name for one in of_domains))]


QIMMA = Suite(
    name="qimma",
    title="QIMMA: 109 subsets of 14 Arabic benchmarks, knowledge, reasoning, culture, poetry and code",
    benchmarks=BENCHMARKS,
    options=(LOCATION, SHUFFLE, PARITY_OPTION),
    tables="cultureval.reports.qimma.table:tables",
    charts="cultureval.reports.qimma.charts:charts",
    averages=averages,
    page="docs/qimma.md",
)
# Choices with generated answers, not in the paper: a suite of its own, whose numbers are never averaged with those of
# log-probabilities.
QIMMA_GEN = Suite(
    name="qimma_gen",
    title="QIMMA, generated answers: its choices, for models without log-probabilities",
    benchmarks=generated(BENCHMARKS, "qimma"),
    options=(LOCATION, SHUFFLE),
    tables="cultureval.reports.qimma.table:generative_tables",
    page="docs/qimma.md",
)
SUITE = (QIMMA, QIMMA_GEN)
