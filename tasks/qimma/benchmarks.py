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

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from cultureval.metrics.declared import MULTI_SELECT
from cultureval.metrics.qimma import names
from cultureval.prompts.choices import multi_select_prompt
from cultureval.prompts.preparation import Prepare
from cultureval.prompts.qimma import code_problems, rows
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

MCQ = "qimma/templates/mcq"
PROMPTS_ARE_OURS = "Prompts of original sources are ours, not QIMMA's wording."
PARITY = "{parity}"  # of what was run with LightEval; FannOrFlop and code were run with their authors' programs
METRICS = "cultureval.metrics.qimma.lighteval"
JUDGE = "cultureval.metrics.code.report"


def _bertscore_name() -> str:
    from cultureval.metrics.semantic import bertscore_model
    from cultureval.runtime.data.scorers import versioned_name

    return f"BERTScore({versioned_name(bertscore_model())},last layer,no idf,no rescaling)"


def _check_bertscore() -> None:
    from cultureval.metrics.semantic import bertscore_model, try_bertscore

    try_bertscore(bertscore_model())


def _check_words() -> None:
    require_camel_tools()  # words of poems are split before they are compared
    _check_bertscore()


def _bertscore_model() -> tuple[str, ...]:
    from cultureval.metrics.semantic import bertscore_model

    return (bertscore_model(),)


# QIMMA's task code: 512 new tokens up to a newline for QA; unpublished for FannOrFlop (ours: 4,096, no stop).
BERTSCORE_MODEL = Instrument(_bertscore_name, _check_bertscore, sources=_bertscore_model, needs="BERTScore model")
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

ARABICMMLU_SUBJECTS = """Arabic Language (Middle School)|Arabic Language (Primary School)|Arabic Language (High School)
Arabic Language (Grammar)|Arabic Language (General)|Civics (High School)|Civics (Middle School)
Social Science (Middle School)|Social Science (Primary School)|Economics (High School)|Economics (University)
Economics (Middle School)|History (High School)|History (Primary School)|History (Middle School)
Political Science (University)|Geography (High School)|Geography (Middle School)|Geography (Primary School)
Islamic Studies (High School)|Islamic Studies (Primary School)|Islamic Studies (Middle School)|Islamic Studies
Natural Science (Primary School)|Natural Science (Middle School)|Philosophy (High School)|General Knowledge
General Knowledge (Middle School)|General Knowledge (Primary School)|Biology (High School)|Math (Primary School)
Physics (High School)|Computer Science (Primary School)|Computer Science (High School)|Computer Science (Middle School)
Computer Science (University)|Law (Professional)|Accounting (University)|Management (University)|Driving Test"""

# Rows of each country's config (the data set's card).
ARABCULTURE_ROWS = {
    "Algeria": 271,
    "Egypt": 265,
    "Jordan": 290,
    "KSA": 261,
    "Lebanon": 255,
    "Libya": 239,
    "Morocco": 276,
    "Palestine": 273,
    "Sudan": 256,
    "Syria": 279,
    "Tunisia": 261,
    "UAE": 283,
    "Yemen": 273,
}

# MedArabiQ's golds without a label that an option line has: QIMMA kept 299 of its 300 rows.
ARABIC_COLUMNS = ("Question - Arabic", "Answer - Arabic")
MEDARABIQ_UNREADABLE = {"multiple-choice-questions.csv": (58, 82), "fill-in-the-blank-choices.csv": (86,)}
# MedAraBench's 32 rows without a gold letter, a gold option or a question: QIMMA kept the other 4,927.
MEDARABENCH_UNREADABLE = (
    "232 353 377 398 446 724 749 792 963 1162 1163 1164 1165 1166 1167 1168 "
    "1182 1237 1515 1518 1548 1562 1590 1599 1783 2568 2991 3180 3222 3602 4540 4813"
)
# Rows of each specialty in the published test split, counted.
MEDARABENCH_ROWS = {
    "Anatomy": 934,
    "Histology": 214,
    "Histology and Anatomy": 39,
    "Histology and Systemic Anatomy": 10,
    "Anesthesia": 82,
    "Biochemistry": 371,
    "Cell Biology": 292,
    "Genetics": 339,
    "Physics": 701,
    "Chemistry": 82,
    "Embryology": 6,
    "Emergency Medicine": 23,
    "Gastroenterology": 29,
    "Neurology": 46,
    "Cardiology": 19,
    "Thoracic Internal": 19,
    "Oncology": 13,
    "Chest Diseases": 10,
    "Gastroenterology & Hepatology": 41,
    "Microbiology": 151,
    "Ophthalmology": 260,
    "Pathology": 54,
    "Pharmacology": 66,
    "Physiology": 667,
    "Statistics": 363,
    "Surgery": 128,
}


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


def medarabiq_choice(name: str, file: str, question: str, answer: str) -> Subset:
    """A multiple-choice subset of MedArabiQ; `question` and `answer` are columns of its file."""
    prepare = partial(rows.medarabiq_choice, question=question, answer=answer)
    return Subset(name, rows=100, sources=(curated("MCQ_MedArabiQ"), medarabiq(file, prepare)))


def medarabiq_answer(name: str, file: str, question: str, answer: str, **properties: Any) -> Subset:
    """A free-answer subset of MedArabiQ; `question` and `answer` are columns of its file."""
    prepare = partial(rows.medarabiq_answer, question=question, answer=answer)
    sources = (curated("QA_MedArabiQ", rows.curated_answer), medarabiq(file, prepare))
    return Subset(name, rows=100, sources=sources, **properties)


def choices(
    name: str,
    domain: str,
    group: str,
    group_rows: Mapping[str, int],
    sources: tuple[Source, ...],
    subsets: Iterable[Subset],
    template: str = MCQ,
) -> Benchmark:
    """A benchmark of questions with one right option."""
    return Benchmark(
        name,
        MULTIPLE_CHOICE,
        domain=domain,
        group=group,
        sources=sources,
        subsets=tuple(subsets),
        template=template,
        group_rows=group_rows,
    )


def _code(dataset: str) -> Kind:
    metrics, stops = (
        lazy_call("cultureval.metrics.code.lighteval:code_metrics"),
        code_problems.CONTINUATION_STOPS[dataset],
    )
    asked = code_problems.code_prompt, metrics, code_problems.NEW_TOKENS, stops, SANDBOX
    return Kind(f"code_{dataset}", "code", names.CODE, *asked)


BENCHMARKS = (
    choices(
        *("AraDiCE-Culture", "Cultural", "qimma_aradice", {"curated": 180}),
        sources=(
            curated("MCQ_AraDiCE-Culture"),
            original("QCRI/AraDiCE-Culture", rows.aradice, licence="CC BY-NC-SA 4.0"),
        ),
        subsets=(Subset(c, rows=30) for c in ("Egypt", "Syria", "Lebanon", "Jordan", "Palestine", "Qatar")),
    ),
    choices(
        *("ArabCulture", "Cultural", "qimma_arabculture", {"curated": 3475}),
        sources=(
            curated("MCQ_ArabCulture"),
            original("MBZUAI/ArabCulture", rows.arabculture, licence="CC BY-NC-SA 4.0"),
        ),
        subsets=(Subset(country, rows=count) for country, count in ARABCULTURE_ROWS.items()),
        template="qimma/templates/arabculture_{location}",
    ),
    choices(
        *("PalmX", "Cultural", "qimma_palmx", {"curated": 2976}),
        sources=(),
        subsets=(
            Subset("Islamic Culture", "islamic", 1001, sources=(PALMX_CURATED, PALMX_ISLAMIC)),
            Subset("General Culture", "culture", 2000, sources=(PALMX_CURATED, PALMX_CULTURE)),
        ),
    ),
    choices(
        *("ArabicMMLU", "STEM", "qimma_arabicmmlu", {"curated": 13727, "original": 14575}),
        sources=(
            curated("MCQ_ArabicMMLU"),
            original(
                "MBZUAI/ArabicMMLU",
                rows.arabicmmlu,
                licence="CC BY-NC 4.0 (hub card); CC BY-NC-SA 4.0 (GitHub)",
            ),
        ),
        subsets=(Subset(name) for line in ARABICMMLU_SUBJECTS.splitlines() for name in line.split("|")),
    ),
    choices(
        *("GAT", "STEM", "qimma_gat", {"curated": 13985, "original": 13986}),
        sources=GATMATH,
        subsets=(
            Subset("Algebra", aliases=("algebra",)),
            Subset("Analogy", aliases=("analogy",), sources=GATLC, template="qimma/templates/mcq_i_analogy"),
            Subset("Arithmetic", aliases=("arithmetic", "problem_solving", "Problem Solving")),
            Subset("Association", aliases=("association",), sources=GATLC),
            Subset("Comparisons", aliases=("comparisons",)),
            Subset("Completion", aliases=("completion",), sources=GATLC, template="qimma/templates/mcq_i_completion"),
            Subset("Contextual", aliases=("contextual",), sources=GATLC, template="qimma/templates/mcq_i_contextual"),
            Subset("Geometry", aliases=("geometry",)),
            Subset("Reading", aliases=("reading",), sources=GATLC),
        ),
    ),
    choices(
        *("3LM STEM", "STEM", "qimma_3lm_stem", {"curated": 2608}),
        sources=(),
        subsets=(
            Subset("NativeQA", "native", 865, sources=NATIVEQA),
            Subset("SyntheticQA", "synthetic", 1744, sources=SYNTHETICQA),
        ),
    ),
    Benchmark(
        name="MizanQA",
        domain="Legal",
        group="qimma_mizanqa",
        group_rows={"curated": 1728},
        sources=(
            curated("MCQ_MizanQA", rows.curated_multi_select, pool_configs=True),
            original(
                "adlbh/MizanQA-v0",
                rows.mizanqa,
                splits=("train",),
                few_shot_splits=(),
                pool_configs=True,
                columns=("question", "options", "answers"),
            ),
        ),
        subsets=(Subset("MizanQA", "", 1769),),
        kind=SEVERAL_RIGHT,
        template="qimma/templates/multi_select",
    ),
    Benchmark(
        name="ArabLegalQA",
        domain="Legal",
        group="qimma_arablegalqa",
        group_rows={"curated": 79},
        sources=(
            curated("QA_ArabLegalEval", rows.curated_answer, pool_configs=True),
            *(
                original(f"{owner}/ArabLegalEval", rows.arablegalqa, splits=("train", "test"), pool_splits=True)
                for owner in ("FarisHijazi", "THIQAH-RD")  # one data set under two names
            ),
        ),
        subsets=(Subset("QA", "", 79),),
        kind=ANSWERS,
        template="qimma/templates/qa_c",
    ),
    choices(
        *("MedArabiQ", "Medical", "qimma_medarabiq_mcq", {"curated": 299}),
        sources=(),
        subsets=(
            medarabiq_choice("fib_with_choices", "fill-in-the-blank-choices.csv", *ARABIC_COLUMNS),
            medarabiq_choice("mcq_bias", "multiple-choice-withbias.csv", "Question with Bias", "Answer"),
            medarabiq_choice("mcq_knowledge", "multiple-choice-questions.csv", "Question", "Answer"),
        ),
    ),
    Benchmark(
        name="MedArabiQ",
        domain="Medical",
        group="qimma_medarabiq_qa",
        group_rows={"curated": 200},
        sources=(),
        subsets=(
            medarabiq_answer(
                *("llm_modified", "patient-doctor-qa-llm.csv"),
                *("Modified question description", "Unmodified answer"),
                aliases=("qa_with_llm_mods",),
                register="dialectal",
            ),
            medarabiq_answer(
                *("fib_no_choices", "fill-in-the-blank-nochoices.csv", *ARABIC_COLUMNS),
                template="qimma/templates/qa_f",
            ),
        ),
        kind=ANSWERS,
        template="qimma/templates/qa",
    ),
    choices(
        *("MedAraBench", "Medical", "qimma_medarabench", {"curated": 4927}),
        sources=(
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
        ),
        subsets=(
            Subset(name, rows=count, aliases=("Thorasic Internal",) if name == "Thoracic Internal" else ())
            for name, count in MEDARABENCH_ROWS.items()
        ),
    ),
    choices(
        *("AraTrust", "Safety", "qimma_aratrust", {"curated": 522}),
        sources=(
            curated("MCQ_AraTrust", pool_configs=True),
            original("asas-ai/AraTrust", rows.aratrust, pool_configs=True),
            original("asas-ai/AraTrust-categorized", rows.aratrust, splits=("train",), pool_configs=True),
        ),
        subsets=(Subset("AraTrust", "", 522),),
    ),
    Benchmark(
        name="FannOrFlop",
        domain="Poetry",
        group="qimma_fannorflop",
        sources=(
            original(
                "omkarthawakar/FannOrFlop", rows.fannorflop, splits=("train",), pool_configs=True, licence="Apache-2.0"
            ),
        ),
        subsets=(Subset("FannOrFlop", "", 6984),),
        kind=POEMS,
        template="qimma/templates/fannorflop",
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
    """The subsets of each of the fourteen benchmarks, in the paper's order of domains and benchmarks."""
    found: dict[str, list[Task]] = {}
    for task in QIMMA.tasks():
        found.setdefault(benchmark_of(task.group, task.benchmark, task.subset), []).append(task)
    return found


def benchmark_of(group: str, benchmark: str, subset: str) -> str:
    """The paper's benchmark of a subset: MedArabiQ's two groups are one, the two code tasks are two."""
    return subset if group == CODE else benchmark


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
    order=10,
)
# Choices with generated answers, not in the paper: a suite of its own, whose numbers are never averaged with those of
# log-probabilities.
QIMMA_GEN = Suite(
    name="qimma_gen",
    title="QIMMA, generated answers: its choices, for models without log-probabilities",
    benchmarks=generated(BENCHMARKS, "qimma"),
    options=(LOCATION, SHUFFLE),
    tables="cultureval.reports.qimma.table:generative_tables",
    page="docs/without_log_probabilities.md",
    order=11,
)
SUITE = (QIMMA, QIMMA_GEN)
