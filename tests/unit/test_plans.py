"""Plans of many runs: what is finished is left out, a failure stops nothing, and nothing of a plan reaches a shell."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cultureval.reports.plans import running, slurm
from cultureval.reports.plans.plan_file import read_plan
from cultureval.reports.plans.progress import log_file, standing, state_file, status_table, taken
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.main import app
from cultureval.scripts.run import eval_options

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
  - {model: org/fails, suites: palmx}
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


def test_a_plan_goes_on_after_failures_and_leaves_out_what_is_finished(plan: Path, tmp_path: Path) -> None:
    _, runs = read_plan(plan, FLAGS)
    assert [run.name for run in runs] == [
        "org_first on qimma",
        "org_first on m2cqa:tf_en|0",
        "org_fails on palmx",
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


def test_the_array_job_quotes_what_the_plan_names(plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = tmp_path / "shows its words; $(touch owned)"
    shown.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    shown.chmod(0o755)
    monkeypatch.setattr(slurm.sys, "executable", str(shown))
    plan.write_text(PLAN + "output_dir: \"out $(touch owned) 'x'\"\n")
    content, runs = read_plan(plan, FLAGS)
    script = slurm.write_array_job(content, runs, plan)
    lines = script.read_text().splitlines()
    assert lines[0] == "#!/bin/bash"
    assert lines[1:5] == [
        "#SBATCH --job-name=cultureval",
        "#SBATCH --array=0-4%2",
        "#SBATCH --partition=gpu",
        "#SBATCH --cpus-per-task=8",
    ]
    done = subprocess.run([script], capture_output=True, text=True, env={"SLURM_ARRAY_TASK_ID": "3"}, cwd="/")
    assert done.stdout.splitlines() == ["-m", "cultureval", "run", str(plan), "--only", "3"], done.stderr
    alone = subprocess.run([script], capture_output=True, text=True, env={})
    assert alone.returncode and "submit this script with sbatch" in alone.stderr
    assert not list(tmp_path.rglob("owned"))
    if checker := shutil.which("shellcheck") or shutil.which("shellcheck", path=str(Path(sys.executable).parent)):
        checked = subprocess.run([checker, script], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout


# Each list names the one before it ten times: ten letters to the power of twelve, written out.
ALIASES = "k0: &k0 [x], " + ", ".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 10)}]" for n in range(1, 13))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("models: [a]", "a has no `suites`"),
        ("models: [a, a]\nsuites: q", "two models are called a"),
        ("models: []\nsuites: q", "models: List should have at least 1 item"),
        ("suites: q", "models: Field required"),
        ("models: [a]\nsuites: q\nmodel: b", "model: Extra inputs are not permitted"),
        ("models: [a]\nsuites: q\noptions: {limt: 3}", "has no option 'limt' for plans. Did you mean limit"),
        ("models: [a]\nsuites: q\noptions: {limit: true}", "option 'limit' takes a value, not True"),
        ("models: [a]\nsuites: q\noptions: {skip-unscorable: 1}", "takes true or false, not 1"),
        ("models: [--help]\nsuites: q", "models.0.model: String should match"),
        ("models: [{model: a, name: ../b}]\nsuites: q", "models.0.name: String should match"),
        ('models: [a]\nsuites: q\nslurm: {time: "1\\n$(reboot)"}', "slurm.time"),
        ('models: [a]\nsuites: q\nslurm: {"x\\ny": 1}', "slurm.x"),
        ("models: [{model: a, settings: &x {y: *x}}]\nsuites: q", "cannot be read as a plan|no plain values"),
        ("models: [{model: a, settings: {" + ALIASES + "}}]\nsuites: q", "settings of its models are longer than"),
        ("models: [a]\nsuites: q\noutput_dir: ~no-such-user/x", "~no-such-user/x. is of no user here"),
        ("models: [a", "cannot be read as a plan"),
        ("- a", "Input should be a valid dictionary"),
    ],
)
def test_wrong_plans_are_refused_with_the_place(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with pytest.raises(CulturevalError, match=words):
        read_plan(file, FLAGS)


def test_the_command_knows_the_options_of_eval_and_shows_how_runs_stand(plan: Path) -> None:
    known = eval_options()
    assert (known["limit"], known["skip-unscorable"], known["dtype"]) == (False, True, False)
    assert not {"output-dir", "json", "help"} & set(known)
    done = CliRunner().invoke(app, ["run", str(plan), "--status"])
    assert done.exit_code == 0 and "5 runs: 5 not run" in done.stdout, done.output
    refused = CliRunner().invoke(app, ["run", str(plan), "--only", "5"])
    assert isinstance(refused.exception, CulturevalError) and "the runs 0 to 4" in str(refused.exception)
    failed = CliRunner().invoke(app, ["run", str(plan), "--only", "2"])
    assert failed.exit_code == 1 and "1 of 5 runs failed: org_fails on palmx" in failed.output


def test_the_printed_sbatch_command_can_be_pasted_where_a_folder_has_spaces(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(json.dumps({"models": ["a"], "suites": ["qimma"], "output_dir": str(tmp_path / "o u t")}))
    printed = CliRunner().invoke(app, ["run", str(plan), "--slurm"]).stdout
    assert shlex.split(printed) == ["sbatch", str((tmp_path / "o u t" / "array_job.sh").resolve())]
