"""A complete `cultureval eval` measured against `lm_eval` with the same model, rows and tasks: two commands, in turns.

It stands beside its command since it needs what no other room may import together: the samples' random model, the files
of runs, and the tasks as lm-eval has them.
"""

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.data.row_files import Row, read_rows
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import variable_of
from cultureval.tasks.catalogue import name_and_shots

GROUP = "qimma_arabicmmlu"
CLOSE = 1e-3  # of log-probabilities: each harness is about that far from double precision


class Same(NamedTuple):
    """How equal the answers of two runs are.

    Attributes:
        rows: Of all tasks.
        furthest: Largest difference of a log-probability.
        scores: Rows with the same scores; a choice between two that are equally probable may fall differently.
    """

    rows: int
    furthest: float
    scores: int


def measure_end_to_end(
    data: Path | None, model: Path | None, limit: int | None, repeats: int, batch_size: int, device: str, dtype: str
) -> dict[str, float]:
    """Times both commands from their start to their end, in turns.

    Args:
        data: ArabicMMLU's table in its own columns; None: the shipped rows.
        model: Folder of a text model; None builds a random one.
        limit: At most this many rows of a subject.
        repeats: Runs of each command; medians are returned.
        batch_size: Of lm-eval, which pads its batches; ours are made by tokens.
        device: "cpu", "cuda", ...
        dtype: Of all: "float32", "bfloat16", ...

    Returns:
        Seconds of both, of the model's own computation in ours, their ratios, and how equal the answers are.

    Raises:
        CulturevalError: A command failed, lm-eval is not installed, or the two do not ask the same.
    """
    from benchmarks.scoring_runs import build_bench_model, read_questions

    with tempfile.TemporaryDirectory(prefix="cultureval-bench-") as temporary:
        folder = Path(temporary)
        place = model.resolve() if model else build_bench_model(folder / "bench-model", read_questions(data))
        runs = TimedCommands(folder, place, data_root(folder, data), limit, batch_size, device, dtype)
        seconds: dict[str, list[float]] = {"ours": [], "model": [], "lm_eval": []}
        for turn in range(repeats):
            seconds["ours"].append(runs.ours(out := folder / f"ours-{turn}"))
            seconds["model"].append(computing_seconds(out))
            details = details_of(out)
            seconds["lm_eval"].append(runs.lm_eval(other := folder / f"lm-eval-{turn}", details))
        # Rounding of 16 bits has no limit that both harnesses promise: it is shown.
        close = CLOSE if dtype == "float32" else math.inf
        same = compare(details, lambda task: samples_of(other, task), close)
    return summary(seconds, same)


def summary(seconds: Mapping[str, list[float]], same: Same) -> dict[str, float]:
    """The figures of the measurement; ratios are medians of the turns' ratios."""
    turns = list(zip(seconds["ours"], seconds["model"], seconds["lm_eval"], strict=True))
    return {
        **{f"{name}_s": round(median(values), 2) for name, values in seconds.items()},
        "ratio_to_model": round(median(ours / own for ours, own, _ in turns), 2),
        "speedup_vs_lm_eval": round(median(other / ours for ours, _, other in turns), 2),
        "rows": same.rows,
        "max_abs_difference": same.furthest,
        "rows_with_same_scores": same.scores,
    }


LEVELS = {"Primary": "Primary School", "Middle": "Middle School", "High": "High School", "Prof": "Professional"}
LEVELS |= {"Univ": "University"}


def data_root(folder: Path, data: Path | None) -> str:
    """A data root that holds this full table of ArabicMMLU as the hub does, or the name of the shipped one."""
    if data is None:
        return "samples"
    place, configs = folder / "root" / "MBZUAI" / "ArabicMMLU", dict[tuple[str, str], list[Row]]()
    for row in read_rows(data):
        configs.setdefault((subject_of(row), "test" if row["is_few_shot"] == "0" else "dev"), []).append(row)
    declared: dict[str, list[dict[str, str]]] = {}
    for (subject, split), rows in configs.items():
        write_csv(place / subject / f"{split}.csv", rows, exact=True)
        declared.setdefault(subject, []).append({"split": split, "path": f"{subject}/{split}.csv"})
    front = {"configs": [{"config_name": subject, "data_files": files} for subject, files in declared.items()]}
    (place / "README.md").write_text(f"---\n{json.dumps(front)}\n---\n", encoding="utf-8")
    return str(folder / "root")


def subject_of(row: Row) -> str:
    """The config of a row of the full table: `Biology` of level `High` is `Biology (High School)`."""
    level = row["Level"]
    return f"{row['Subject']} ({LEVELS.get(level, level)})" if level else row["Subject"]


class Cost(NamedTuple):
    """What a command took: seconds, and seconds of processors, its own processes' included."""

    wall: float
    cpu: float


def timed(command: list[str], folder: Path, environment: Mapping[str, str]) -> Cost:
    """Runs a Python command from its start to its end.

    Args:
        command: Arguments of Python.
        folder: In which it runs.
        environment: Its variables.

    Raises:
        CulturevalError: It failed.
    """
    start, before = time.perf_counter(), _children_seconds()
    done = subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        last = " ".join(done.stderr.strip().splitlines()[-3:])
        raise CulturevalError(f"{command[1].partition('.')[0]} failed (pip install '.[lm-eval]' has lm-eval): {last}")
    return Cost(time.perf_counter() - start, _children_seconds() - before)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class TimedCommands:
    """The two commands, each in a process of its own that ends with it."""

    def __init__(
        self, folder: Path, model: Path, root: str, limit: int | None, batch_size: int, device: str, dtype: str
    ) -> None:
        self.folder, self.model, self.batch_size = folder, model, batch_size
        self.device, self.dtype = device, dtype
        self.limit = ["--limit", str(limit)] if limit else []
        own = {variable_of("data_root"): root, variable_of("form"): "mixed", "HF_HUB_OFFLINE": "1"}
        own |= {variable_of("cache"): str(folder / "cache"), "HF_DATASETS_CACHE": str(folder / "datasets")}
        self.environment = os.environ | own

    def ours(self, out: Path) -> float:
        """Seconds of `cultureval eval`, no answer reused."""
        command = [
            "-m",
            "cultureval.scripts.main",
            "eval",
            str(self.model),
            GROUP,
            "--no-resume",
            "--model-args",
            f"dtype={self.dtype},device={self.device}",
        ]
        return self._seconds([*command, "--output-dir", str(out), *self.limit])

    def lm_eval(self, out: Path, tasks: Mapping[str, Any]) -> float:
        """Seconds of `lm_eval` on these tasks, by our export of them."""
        from cultureval.tasks.harnesses.lm_eval_files import harness_name, write_task_files

        command = ["-m", "lm_eval", "--model", "hf", "--model_args", f"pretrained={self.model},dtype={self.dtype}"]
        command += ["--tasks", ",".join(map(harness_name, tasks)), "--include_path", str(write_task_files())]
        command += ["--batch_size", str(self.batch_size), "--device", self.device]
        return self._seconds([*command, "--log_samples", "--output_path", str(out), *self.limit])

    def _seconds(self, command: list[str]) -> float:
        return timed(command, self.folder, self.environment).wall


def computing_seconds(out: Path) -> float:
    """Seconds that the model computed in a run of ours, as its results say."""
    from cultureval.runs.loading import load

    (run,) = load(out).runs
    return run.record.timing.computing or 0.0


def details_of(out: Path) -> dict[str, list[dict[str, Any]]]:
    """Task -> the details of its rows, of a run of ours."""
    from cultureval.runs.files import read_details
    from cultureval.runs.loading import load

    (run,) = load(out).runs
    return {
        name_and_shots(task)[0]: read_details(run.details[task]).to_pylist()
        for task, one in run.record.tasks.items()
        if one.rows
    }


def samples_of(out: Path, task: str) -> Iterator[dict[str, Any]]:
    """lm-eval's samples of a task, in the rows' order."""
    from cultureval.tasks.harnesses.lm_eval_files import harness_name

    (file,) = out.glob(f"**/samples_{harness_name(task)}_20*.jsonl")
    with file.open(encoding="utf-8") as lines:
        yield from sorted(map(json.loads, lines), key=lambda row: row["doc_id"])


def compare(
    ours: Mapping[str, list[dict[str, Any]]], theirs: Callable[[str], Iterator[dict[str, Any]]], close: float = CLOSE
) -> Same:
    """How equal the answers are, row by row.

    Args:
        ours: Task -> details of its rows.
        theirs: A task's samples, in the same order.
        close: Nats by which log-probabilities may differ.

    Raises:
        CulturevalError: The two did not ask the same, or answers differ by more than rounding.
    """
    rows, furthest, scores = 0, 0.0, 0
    for task, details in ours.items():
        for row, sample in zip(details, theirs(task), strict=True):
            if sample["arguments"]["gen_args_0"]["arg_0"] != row["model_response"]["input"]:
                raise CulturevalError(f"lm_eval asks another prompt in {task}.")
            pairs = zip(row["model_response"]["logprobs"], sample["filtered_resps"], strict=True)
            furthest = max(furthest, *(abs(own - float(value)) for own, (value, _) in pairs))
            rows, scores = rows + 1, scores + all(sample[name] == value for name, value in row["metric"].items())
    if not furthest <= close:
        raise CulturevalError(f"Answers of both harnesses differ by up to {furthest:.1e} nats: more than rounding.")
    return Same(rows, furthest, scores)
