"""`cultureval run`: models on suites, here one after the other, or as the jobs of a SLURM array.

Runs of models on one device share a process, so that the next run need not load again what is the same.

A run is finished when its folder has a results file. All other runs are started or resumed.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.files import results_below
from cultureval.runtime.errors import CulturevalError, ProblemList, counted, described, escaped, shorten, wrong_settings
from cultureval.runtime.model_settings import read_model_settings, refuse_keys, yaml_problem
from cultureval.runtime.settings import current_settings, use_settings, variable_of
from cultureval.tasks.selection import select_tasks

LOG, ASKED, ARRAY_JOB = "run.log", "run.json", "array_job.sh"
FINISHED, UNFINISHED, CHANGED, OPEN = "finished", "not finished", "changed since", "not run"
Text = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f\x7f]+$")]
Names = Annotated[list[Text], BeforeValidator(lambda raw: [raw] if isinstance(raw, str) else raw), Field(min_length=1)]
Options = Annotated[tuple[str, ...], BeforeValidator(lambda raw: shlex.split(raw) if isinstance(raw, str) else raw)]


def _sbatch_option(text: str) -> str:
    """An option of sbatch for the script. The plan itself sets the array and the command."""
    if not re.fullmatch(r"--(?!array|wrap)[a-z-]{1,60}(=[\w.,:=/%@+-]{1,200})?", text, re.ASCII):
        raise ValueError("write --NAME or --NAME=VALUE without spaces and quotes; not --array and --wrap")
    return text


def _without_keys(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a model, which the runs' folders hold."""
    try:
        refuse_keys(settings)
    except CulturevalError as error:
        raise ValueError(str(error).rstrip(".")) from None
    return settings


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PlannedModel(_Part):
    """A model of a plan, as `cultureval eval` takes it, with its folder's name, settings, suites and options."""

    model: Text
    name: Text | None = None
    settings: Annotated[dict[str, Any], AfterValidator(_without_keys)] = {}
    suites: Names | None = None
    options: Options = ()


class Plan(_Part):
    """The content of a plan; docs/scaling.md shows its fields."""

    models: Annotated[
        list[Annotated[PlannedModel, BeforeValidator(lambda raw: {"model": raw} if isinstance(raw, str) else raw)]],
        Field(min_length=1),
    ]
    suites: Names = []
    output_dir: Path = Path("results")
    options: Options = ()
    slurm: list[Annotated[str, AfterValidator(_sbatch_option)]] = []
    at_once: Annotated[int, Field(ge=1)] | None = None


@dataclass(frozen=True)
class PlannedRun:
    """One run: a model on a suite; `folder` is its output folder, `options` those of `cultureval eval`."""

    model: PlannedModel
    suite: str
    options: tuple[str, ...]
    folder: Path

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.folder.parent.name} on {self.suite}"

    @property
    def asked(self) -> str:
        """Model, suite, options and settings as text; the run's folder keeps it."""
        return json.dumps([self.model.model, self.suite, self.options, self.model.settings], default=str, indent=1)

    @property
    def state(self) -> str:
        """FINISHED, UNFINISHED, CHANGED or OPEN."""
        asked = self.folder / ASKED
        if not asked.is_file():
            return OPEN
        if asked.read_text(encoding="utf-8") != self.asked:
            return CHANGED
        started = asked.stat().st_mtime_ns
        written = any(file.stat().st_mtime_ns >= started for file in results_below(self.folder.absolute()))
        return FINISHED if written else UNFINISHED


def read_plan(file: Path, check: Callable[[str, str, Sequence[str]], None]) -> tuple[Plan, list[PlannedRun]]:
    """A plan and its runs, in the order of models and suites.

    Args:
        file: YAML.
        check: Called with model, suite and options of each run; a CulturevalError refuses them.

    Raises:
        CulturevalError: The file cannot be read or is wrong; the message has all wrong options and suites.
    """
    import yaml

    try:
        plan = Plan.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    except ValidationError as error:
        raise CulturevalError(f"{file}: {shorten(wrong_settings(error), 600)}.") from error
    except yaml.YAMLError as error:
        raise CulturevalError(f"{file} cannot be read as a plan: {yaml_problem(error)}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CulturevalError(f"{file} cannot be read as a plan: {shorten(described(error), 300)}") from error
    runs: dict[Path, PlannedRun] = {}
    problems = ProblemList()
    for model in plan.models:
        options = plan.options + model.options
        local = model.model.startswith(("/", "~", "."))
        label = plain(model.name or (Path(model.model).name if local else model.model))
        if not (suites := model.suites or plan.suites):
            raise CulturevalError(f"{file}: {model.model} has no `suites`, and the plan has none.")
        for suite in suites:
            folder = plan.output_dir.expanduser() / label / plain(suite)
            if folder in runs:
                raise CulturevalError(f"{file}: two runs have the folder {folder}: give each model a `name`.")
            runs[folder] = PlannedRun(model, suite, options, folder)
            with problems.collecting():
                check(model.model, suite, options)
                select_tasks([suite])
    problems.raise_if_any()
    return plan, list(runs.values())


def plain(text: str) -> str:
    """A text as a folder's name."""
    return re.sub(r"[^\w.-]+", "_", text).strip("._-")[-100:] or "run"


class _Process:
    """A process of `scripts.plan_process`, started when a run needs it; a run that fails ends it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def status_of(self, words: list[str], environment: dict[str, str], log: Path) -> int:
        """The exit status of a command in this process."""
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "cultureval.scripts.plan_process"]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process: Any = self._process
        print(json.dumps([words, environment, str(log)]), file=process.stdin, flush=True)
        answer = process.stdout.readline()  # empty where a signal has ended the process
        status = int(answer) if answer else process.wait()
        if status:
            self.end()
        return status

    def end(self) -> None:
        """Ends the process, which frees its device."""
        if self._process:
            self._process.communicate()
            self._process = None


def run_plan(runs: Sequence[PlannedRun], say: Callable[[str], None]) -> list[PlannedRun]:
    """Runs the unfinished runs one after the other, and returns those that failed.

    Args:
        say: Called with a sentence on each run.
    """
    failed, shared = [], _Process()
    for run in runs:
        if run.state == FINISHED:
            say(f"{run.name}: finished, left out.")
            continue
        say(f"{run.name}: starts; its output is in {run.folder / LOG}")
        run.folder.mkdir(parents=True, exist_ok=True)
        (run.folder / ASKED).write_text(run.asked, encoding="utf-8")
        status = _status_of(run, shared)
        if status or run.state != FINISHED:
            failed.append(run)
            say(f"{run.name}: failed with status {status}: {last_message(run)}")
        else:
            say(f"{run.name}: finished")
    shared.end()
    return failed


def _status_of(run: PlannedRun, shared: _Process) -> int:
    """The exit status of a run, in the shared process or in its own."""
    settings, command = dict(current_settings().model_settings) | run.model.settings, command_of(run)
    environment = {
        variable_of("model_settings"): json.dumps(settings, default=str),
        variable_of("custom_suites"): ",".join(current_settings().custom_suites),
    }
    if shares_a_process(run, settings):
        return shared.status_of(command[3:], environment, run.folder / LOG)
    shared.end()
    with (run.folder / LOG).open("wb") as log:
        variables = os.environ | environment
        return subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log).returncode


def shares_a_process(run: PlannedRun, settings: Mapping[str, Any]) -> bool:
    """Whether a run may be in one process with others: a model here, on one device."""
    with use_settings(current_settings().with_(model_settings=settings)), suppress(CulturevalError):
        return not {"base_url", "backend", "device_map"} & read_model_settings(run.model.model).keys()
    return False  # its own process says what is wrong


def command_of(run: PlannedRun) -> list[str]:
    """The command of a run as words; no shell parses it."""
    words = [sys.executable, "-m", "cultureval", "eval", *run.options, f"--output-dir={run.folder}"]
    return [*words, "--", run.model.model, run.suite]


def last_message(run: PlannedRun) -> str:
    """The last line of a run's log."""
    log = run.folder / LOG
    text = log.read_bytes()[-4000:].decode("utf-8", "replace") if log.is_file() else ""
    return escaped(next((line.strip() for line in reversed(text.splitlines()) if line.strip()), ""))


def write_array_job(plan: Plan, runs: Sequence[PlannedRun], file: Path) -> Path:
    """Writes the script of an array job, a job for each run, into the plan's output folder; returns its path."""
    folder = plan.output_dir.expanduser().absolute()
    at_once = f"%{plan.at_once}" if plan.at_once else ""
    words = [sys.executable, "-m", "cultureval", "run", str(file.absolute())]
    lines = [
        "#!/bin/bash",
        "#SBATCH --job-name=cultureval",
        f"#SBATCH --array=0-{len(runs) - 1}{at_once}",
        *(f"#SBATCH {option}" for option in plan.slurm),
        "# One job for each run of the plan. Jobs of finished runs end at once. Submit it again to go on.",
        "set -euo pipefail",
        f"cd -- {shlex.quote(str(Path.cwd()))}",
        f'exec {shlex.join(words)} --only "${{SLURM_ARRAY_TASK_ID:?submit this script with sbatch}}"',
    ]
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / ARRAY_JOB
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    script.chmod(0o755)
    return script


def status_table(runs: Sequence[PlannedRun]) -> str:
    """The state of each run of a plan, as a table."""
    states = [run.state for run in runs]
    rows = [
        (str(number), run.folder.parent.name, run.suite, state, last_message(run)[:80] if state == UNFINISHED else "")
        for number, (run, state) in enumerate(zip(runs, states, strict=True))
    ]
    total = ", ".join(f"{count} {word}" for word, count in Counter(states).items())
    table = terminal_table(("run", "model", "suite", "state", "last message"), rows, "rllll")
    return f"{table}\n{counted(len(runs), 'run')}: {total}"
