"""Plans of many runs: what is finished is left out, a failure stops nothing, and nothing of a plan reaches a shell."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cultureval.reports.plans import running
from cultureval.reports.plans.plan_file import arguments_of, read_plan
from cultureval.reports.plans.running import log_file, standing, state_file, status_table, taken
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.evaluate import eval_options
from cultureval.scripts.main import app

FLAGS = {"limit": False, "data": False, "skip-unscorable": True, "batch-size": False}
# Stands for `cultureval eval`: writes a results file, unless its model is to fail.
EVAL = """
import json, os, pathlib, sys
*options, _, model, suite = sys.argv[1:]
folder = pathlib.Path(next(one for one in options if one.startswith("--output-dir=")).partition("=")[2])
if "fails" in model:
    print("Traceback\\ncultureval: 1 problem, to be solved:\\n1. no such\\x1b[2J model", file=sys.stderr)
    sys.exit(2)
file = folder / "results" / "m" / f"results_{len(list(folder.rglob('results_*.json')))}.json"
file.parent.mkdir(parents=True, exist_ok=True)
file.write_text(json.dumps([options, model, suite, os.environ.get("CULTUREVAL_MODEL_SETTINGS")]))
"""
PLAN = """
models:
  - org/first
  - {model: org/fails, suites: qimma_palmx}
  - {model: "$(touch owned); 'x'", name: third, settings: {dtype: bfloat16}, options: {limit: 5}}
suites: [qimma, "m2cqa:tf_en|0"]
options: {limit: 3, skip_unscorable: true}
slurm: {partition: gpu, cpus-per-task: 8}
at_once: 2
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "eval.py").write_text(EVAL)
    whole = running.command_of
    monkeypatch.setattr(running, "command_of", lambda run: [sys.executable, "eval.py", *whole(run)[4:]])
    file = tmp_path / "plan; $(touch owned).yaml"
    file.write_text(PLAN)
    return file


def states(plan: Path) -> list[str]:
    return [standing(run)[0] for run in read_plan(plan, FLAGS)[1]]


@pytest.mark.slow
def test_a_plan_goes_on_after_failures_and_leaves_out_what_is_finished(plan: Path, tmp_path: Path) -> None:
    _, runs = read_plan(plan, FLAGS)
    assert [run.name for run in runs] == [
        "org_first on qimma",
        "org_first on m2cqa:tf_en|0",
        "org_fails on qimma_palmx",
        "third on qimma",
        "third on m2cqa:tf_en|0",
    ]
    assert states(plan) == ["not run"] * 5
    said: list[str] = []
    assert running.run_plan(runs, said.append) == [runs[2]]
    assert states(plan) == ["finished", "finished", "failed", "finished", "finished"]
    assert (
        any(r"failed: 1 problem, to be solved: 1. no such\x1b[2J model" in one for one in said)
        and not (tmp_path / "owned").exists()
    )
    options, model, suite, settings = json.loads((runs[3].folder / "results/m/results_0.json").read_text())
    assert options == ["--limit=5", "--skip-unscorable", f"--output-dir={runs[3].folder}"]
    assert (model, suite, json.loads(settings)) == ("$(touch owned); 'x'", "qimma", {"dtype": "bfloat16"})
    table = status_table(runs)
    assert "5 runs: 4 finished, 1 failed" in table and "\x1b" not in table

    said.clear()
    running.run_plan(runs, said.append)
    assert len(list(tmp_path.rglob("results_*.json"))) == 4 and sum("finished, left out" in one for one in said) == 4
    plan.write_text(PLAN.replace("bfloat16", "float16").replace("org/fails", "org/works"))
    assert states(plan) == ["finished", "finished", "not run", "changed since", "changed since"]
    shutil.rmtree(runs[0].folder / "results")
    state_file(runs[1]).write_text("{broken")
    assert states(plan)[:2] == ["results are gone", "not run"]
    with taken(runs[1]) as ours:
        assert ours and states(plan)[1] == "running"
        said.clear()
        running.run_plan([runs[1]], said.append)
        assert said == ["org_first on m2cqa:tf_en|0: running, left out."]
    assert "Traceback" in log_file(runs[2]).read_text()


@pytest.mark.parametrize(
    "name", ['it\'s "a" plan; $(touch owned) `touch owned`.yaml', "-rf.yaml", "خطة مارس.yaml", "a\nb\\$HOME.yaml"]
)
def test_the_array_job_quotes_what_the_plan_names(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    shown = tmp_path / "shows its words; $(touch owned)"
    shown.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    shown.chmod(0o755)
    monkeypatch.setattr(running.sys, "executable", str(shown))
    plan.write_text(PLAN + "output_dir: \"out $(touch owned) 'x'\"\n")
    content, runs = read_plan(plan, FLAGS)
    plan = plan.rename(plan.with_name(name))
    script = running.write_array_job(content, runs, plan)
    lines = script.read_text().splitlines()
    assert lines[0] == "#!/bin/bash"
    assert lines[1:5] == [
        "#SBATCH --job-name=cultureval",
        "#SBATCH --array=0-4%2",
        "#SBATCH --partition=gpu",
        "#SBATCH --cpus-per-task=8",
    ]
    done = subprocess.run([script], capture_output=True, text=True, env={"SLURM_ARRAY_TASK_ID": "3"}, cwd="/")
    assert done.stdout == "\n".join(["-m", "cultureval", "run", str(plan), "--only", "3", ""]), done.stderr
    assert subprocess.run(["bash", "-n", script]).returncode == 0
    alone = subprocess.run([script], capture_output=True, text=True, env={})
    assert alone.returncode and "submit this script with sbatch" in alone.stderr
    assert not list(tmp_path.rglob("owned"))
    if checker := shutil.which("shellcheck") or shutil.which("shellcheck", path=str(Path(sys.executable).parent)):
        checked = subprocess.run([checker, script], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout


# Each list names the one before it ten times: ten letters to the power of twelve, written out.
ALIASES = "k0: &k0 [x], " + ", ".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 10)}]" for n in range(1, 13))


def test_times_without_quotes_stay_times(plan: Path) -> None:
    plan.write_text(
        PLAN.replace(
            "cpus-per-task: 8",
            "time: 12:00:00, nice: 10, begin: 2026-12-01T08:00:00, deadline: 2026-12-05, account: 0123",
        )
    )
    content, runs = read_plan(plan, FLAGS)
    lines = running.write_array_job(content, runs, plan).read_text().splitlines()
    assert {"#SBATCH --time=12:00:00", "#SBATCH --nice=10", "#SBATCH --begin=2026-12-01T08:00:00"} < {*lines}
    assert {"#SBATCH --deadline=2026-12-05", "#SBATCH --account=0123"} < {*lines}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("models: [a]\nsuites: q\nslurm: {mem: 4 G}", "slurm.mem: '4 G' is not a single word of at most 200 letters"),
        ("models: [a]", "a has no `suites`"),
        ("models: [a, a]\nsuites: q", "two models are called a"),
        ("models: []\nsuites: q", "models: List should have at least 1 item"),
        ("suites: q", "models: Field required"),
        ("models: [a]\nsuites: q\nmodel: b", "model: Extra inputs are not permitted"),
        ("models: [a]\nsuites: q\noptions: {limt: 3}", "has no option 'limt' for plans. Did you mean limit"),
        ("models: [a]\nsuites: q\noptions: {limit: true}", "option 'limit' takes a value, not True"),
        ("models: [a]\nsuites: q\noptions: {skip-unscorable: 1}", "takes true or false, not 1"),
        ("models: [--help]\nsuites: q", "models.0.model: String should match"),
        ("models: [{model: a, name: ../b}]\nsuites: q", "models.0.name: '../b' is not a name of at most 100 letters"),
        ('models: [a]\nsuites: q\nslurm: {time: "1\\n$(reboot)"}', "slurm.time"),
        ('models: [a]\nsuites: q\nslurm: {"x\\ny": 1}', "slurm.x"),
        ("models: [a]\nsuites: q\nslurm: {--partition: gpu}", "slurm.--partition"),
        ("models: [a]\nsuites: q\nslurm: {array: 0-99}", "slurm.array"),
        ("models: [a]\nsuites: q\nslurm: {wrap: reboot}", "slurm.wrap"),
        ("models: [a]\nsuites: q\nslurm: {exclusive: true}", "slurm.exclusive"),
        ("models: [{model: a, settings: &x {y: *x}}]\nsuites: q", "cannot be read as a plan|lists and mappings alone"),
        ("models: [{model: a, settings: {" + ALIASES + "}}]\nsuites: q", "settings of its models are longer than"),
        ("models: [a]\nsuites: q\noutput_dir: ~no-such-user/x", "~no-such-user/x. names no user of this machine"),
        ('models: ["~no-such-user/x"]\nsuites: q', "~no-such-user/x. names no user of this machine"),
        ("models: [a", "cannot be read as a plan"),
        ("- a", "Input should be a valid dictionary"),
    ],
)
def test_wrong_plans_are_refused_with_the_place(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with pytest.raises(CulturevalError, match=words):
        read_plan(file, FLAGS)


def test_the_command_knows_the_options_of_eval_and_shows_how_runs_stand(plan: Path, tmp_path: Path) -> None:
    known = eval_options()
    assert (known["limit"], known["skip-unscorable"], known["dtype"]) == (False, True, False)
    assert not {"output-dir", "json", "help", "dry-run", "batch-out"} & set(known)
    switches = {"resume": False, "save_details": False, "skip_unscorable": False, "push-to-hub": True}
    given = arguments_of(switches, known, plan)
    assert given == ("--no-resume", "--no-save-details", "--push-to-hub")
    done = CliRunner().invoke(app, ["run", str(plan), "--status"])
    assert done.exit_code == 0 and "5 runs: 5 not run" in done.stdout, done.output
    refused = CliRunner().invoke(app, ["run", str(plan), "--only", "5"])
    assert isinstance(refused.exception, CulturevalError) and "the runs 0 to 4" in str(refused.exception)
    unknown = plan.with_name("unknown.yaml")
    unknown.write_text("models: [a]\nsuites: [qima, qimma, palmxx]")
    for option in ("--status", "--slurm"):
        told = str(CliRunner().invoke(app, ["run", str(unknown), option]).exception)
        assert "'qima'" in told and "Did you mean qimma" in told and "'palmxx'" in told
    assert not (tmp_path / "results" / "array_job.sh").exists()
    failed = CliRunner().invoke(app, ["run", str(plan), "--only", "2"])
    assert failed.exit_code == 1 and "1 of 5 runs failed: org_fails on qimma_palmx" in failed.output


def test_the_printed_sbatch_command_can_be_pasted_where_a_folder_has_spaces(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(json.dumps({"models": ["a"], "suites": ["qimma"], "output_dir": str(tmp_path / "o u t")}))
    printed = CliRunner().invoke(app, ["run", str(plan), "--slurm"]).stdout
    assert shlex.split(printed) == ["sbatch", str((tmp_path / "o u t" / "array_job.sh").resolve())]


# Stands for `cultureval eval` with its journal: asks what is not answered yet, waits half-way while `hold` is there.
ASKS = """
import os, pathlib, signal, sys
*options, _, model, suite = sys.argv[1:]
folder = pathlib.Path(next(one for one in options if one.startswith("--output-dir=")).partition("=")[2])
journal = folder / f"journal {suite}"
for question in range(6):
    if str(question) not in (journal.read_text().split() if journal.exists() else ()):
        with journal.open("a") as stream:
            stream.write(f"{question} ")
    if question == 2 and pathlib.Path("hold").exists():
        open("half", "w").close()
        open("pipe").read()
file = folder / "results" / "m" / f"results_{suite}_{os.getpid()}.json"
file.parent.mkdir(parents=True, exist_ok=True)
file.write_text("{}")
"""
RUN = """
import sys
from cultureval.reports.plans import running
from cultureval.scripts.main import main
whole = running.command_of
running.command_of = lambda run: [sys.executable, "asks.py", *whole(run)[4:]]
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("ended_by", [signal.SIGKILL, signal.SIGINT])
def test_a_plan_that_is_killed_goes_on_and_asks_nothing_twice(tmp_path: Path, ended_by: signal.Signals) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "hold").touch()
    file = tmp_path / "plan.yaml"
    file.write_text("models: [m]\nsuites: [qimma_palmx, qimma_aratrust]")
    command = [sys.executable, "-c", RUN, "run", str(file)]

    def again() -> str:
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100).stderr

    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True) as first:
        with (tmp_path / "pipe").open("w"):  # opens once the run is half-way
            assert (tmp_path / "half").exists()
            (tmp_path / "hold").unlink()
            if ended_by == signal.SIGKILL:  # of the plan's process alone: its run goes on
                first.kill()
                first.wait()
                told = again()
                assert "m on qimma_palmx: running, left out" in told and "m on qimma_aratrust: finished" in told
            else:  # as a terminal does
                os.killpg(first.pid, ended_by)
        first.wait()
        assert first.returncode
    told = again()
    while "running, left out" in told:  # until the run that was left alone has ended
        told = again()
    folder = tmp_path / "results" / "m"
    assert {
        suite: (folder / f"journal {suite}").read_text() for suite in ("qimma_palmx", "qimma_aratrust")
    } == dict.fromkeys(("qimma_palmx", "qimma_aratrust"), "0 1 2 3 4 5 ")
    assert "failed" not in told and again().count("finished, left out") == 2
