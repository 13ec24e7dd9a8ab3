"""QIMMA's tables: fourteen benchmarks, seven domains and the average, as the paper's Tables 3 and 4.

Paper (arXiv 2604.03395), section 5: a benchmark is the unweighted mean of its subsets, and a domain of its benchmarks.
The average is the mean of the fourteen benchmarks, not of the domains; HumanEval+ and MBPP+ count as two. The paper's
benchmark scores give its 14 averages and 98 domain scores. Inferred: MedArabiQ is the mean of its five subsets
(accuracy of three, BERTScore of two).
"""

from collections import Counter, defaultdict
from pathlib import Path

from cultureval.runs.loading import Run
from cultureval.runs.table import (
    AVERAGE,
    MOST_SUBSETS,
    Mean,
    Numbers,
    Place,
    ScoreNames,
    Table,
    equal,
    mean_of_cells,
    published_rows,
    with_subsets,
)
from cultureval.runtime.doc_fields import FIRST_TOKEN, GENERATED_LABEL, PAPER, REASONED, SOUND
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.qimma.benchmarks import benchmark_tasks
from cultureval.tasks.suite import SCORE

PUBLISHED = Path(__file__).with_name("published.csv")
GENERATED = {"strict": "acc_strict", "lenient": "acc_lenient", "invalid": "invalid_strict"}
PARITY = {
    PAPER: "Parity: paper (prompt and label tokenised together, as by `lighteval vllm`).",
    SOUND: "Parity: sound (prompt and label tokenised apart, one BOS); the paper's numbers are of `parity=paper`.",
    FIRST_TOKEN: "Parity: first token of a reply; not comparable with scores of whole labels, such as the paper's.",
    REASONED: "Parity: choices were scored after the model's reasoning; not comparable with the paper's scores.",
    GENERATED_LABEL: "Parity: labels were generated after reasoning; not comparable with the paper's scores.",
}


def tables(score_names: ScoreNames) -> list[Table]:
    """The table of QIMMA: choices by log-probabilities, answers, code."""
    benchmarks, domains = {}, defaultdict(list)
    for name, tasks in benchmark_tasks().items():
        benchmarks[name] = Mean(equal((task.task, task.metrics[0]) for task in tasks), 100, of_present=True)
        domains[tasks[0].domain].append(benchmarks[name])
    cells: dict[Place, Mean] = {(name, SCORE): mean for name, mean in benchmarks.items()}
    cells = with_subsets(cells, score_names) if len(score_names) <= MOST_SUBSETS else cells
    cells |= {(name, SCORE): mean_of_cells(means) for name, means in domains.items()}
    main = (AVERAGE, SCORE)
    cells[main] = mean_of_cells(benchmarks.values())
    return [Table("QIMMA", cells, "percent", main, published=published_numbers(), notes=_notes)]


def generative_tables(score_names: ScoreNames) -> list[Table]:
    """The table of choices with generated answers, which has no published numbers."""
    benchmarks: dict[str, list[str]] = {}
    for task in all_tasks().values():
        if task.suite == "qimma_gen":
            benchmarks.setdefault(task.benchmark, []).append(task.task)
    cells: dict[Place, Mean] = {
        (name, column): Mean(equal((task, metric) for task in tasks), 100, of_present=True)
        for name, tasks in benchmarks.items()
        for column, metric in GENERATED.items()
    }
    whole = {column: mean_of_cells(cells[name, column] for name in benchmarks) for column in GENERATED}
    cells |= {(AVERAGE, column): mean for column, mean in whole.items()}
    unit = "percent; invalid: replies that the strict reading cannot read"
    note = "Labels in generated replies, not log-probabilities: not comparable with QIMMA's own table."
    main, lower = (AVERAGE, "strict"), frozenset({"invalid"})
    return [Table("QIMMA, generated answers", cells, unit, main, lower, notes=lambda run, shots: [note])]


def published_numbers() -> dict[str, Numbers]:
    """Table 3. Each subset gets its benchmark's score, so averages and domains equal the paper's."""
    return {
        row["model"]: {
            (task.task, task.metrics[0]): float(row[name])
            for name, tasks in benchmark_tasks().items()
            for task in tasks
            if row[name]
        }
        for row in published_rows(PUBLISHED)
    }


def _notes(run: Run, shots: int) -> list[str]:
    """The form of the data, and the tokenisation of prompts if the record has it."""
    tasks = [task for task in run.tasks_of("qimma") if task.shots == shots]
    forms = Counter(task.form or "unknown" for task in tasks)
    text = ", ".join(f"{form} ({count} subsets)" if len(forms) > 1 else form for form, count in sorted(forms.items()))
    return [f"Data: {text}.", *(PARITY[name] for name in PARITY if name in {task.parity for task in tasks})]
