"""Plans of many runs: what is finished is left out, a failure stops nothing, and nothing of a plan reaches a shell."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cultureval.reports import plans
from cultureval.reports.plans import LOG, read_plan, run_plan, status_table
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.evaluate import check_options
from cultureval.scripts.main import app

# Stands for `cultureval eval`: writes a results file, unless its model is to fail.
EVAL = """
import json, os, pathlib, sys
*options, folder, _, model, suite = sys.argv[1:]
if "fails" in model:
    print("Traceback\\ncultureval: no such\\x1b[2J model", file=sys.stderr)
    sys.exit(2)
file = pathlib.Path(folder.partition("=")[2], "results", "m", f"results_{os.getpid()}.json")
file.parent.mkdir(parents=True, exist_ok=True)
file.write_text(json.dumps([options, model, suite, os.environ.get("CULTUREVAL_MODEL_SETTINGS")]))
"""
PLAN = """
models:
  - org/first
  - {model: org/fails, suites: qimma_palmx}
  - {model: "$(touch owned); 'x'", name: third, settings: {dtype: bfloat16}, options: --limit 5}
suites: [qimma, "m2cqa:tf_en|0"]
options: --limit 3 --skip-unscorable
slurm: [--partition=gpu, --time=12:00:00, --exclusive]
at_once: 2
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "eval.py").write_text(EVAL)
    whole = plans.command_of
    monkeypatch.setattr(plans, "shares_a_process", lambda run, settings: False)
    monkeypatch.setattr(plans, "command_of", lambda run: [sys.executable, "eval.py", *whole(run)[4:]])
    file = tmp_path / "plan; $(touch owned).yaml"
    file.write_text(PLAN)
    return file


def states(plan: Path) -> list[str]:
    return [run.state for run in read_plan(plan, check_options)[1]]


def test_a_plan_goes_on_after_failures_and_leaves_out_what_is_finished(plan: Path, tmp_path: Path) -> None:
    _, runs = read_plan(plan, check_options)
    assert [str(run.folder) for run in runs] == [
        "results/org_first/qimma",
        "results/org_first/m2cqa_tf_en_0",
        "results/org_fails/qimma_palmx",
        "results/third/qimma",
        "results/third/m2cqa_tf_en_0",
    ]
    assert states(plan) == ["not run"] * 5
    said: list[str] = []
    assert run_plan(runs, said.append) == [runs[2]]
    assert states(plan) == ["finished", "finished", "not finished", "finished", "finished"]
    assert any(r"status 2: cultureval: no such\x1b[2J model" in one for one in said)
    assert "Traceback" in (runs[2].folder / LOG).read_text() and not (tmp_path / "owned").exists()
    (file,) = runs[3].folder.rglob("results_*.json")
    options, model, suite, settings = json.loads(file.read_text())
    assert options == ["--limit", "3", "--skip-unscorable", "--limit", "5"]
    assert (model, suite, json.loads(settings)) == ("$(touch owned); 'x'", "qimma", {"dtype": "bfloat16"})
    table = status_table(runs)
    assert "5 runs: 4 finished, 1 not finished" in table and "\x1b" not in table

    said.clear()
    run_plan(runs, said.append)
    assert len(list(tmp_path.rglob("results_*.json"))) == 4 and sum("finished, left out" in one for one in said) == 4
    plan.write_text(PLAN.replace("bfloat16", "float16").replace("org/fails", "org/works"))
    assert states(plan) == ["finished", "finished", "not run", "changed since", "changed since"]
    shutil.rmtree(runs[0].folder / "results")
    assert states(plan)[0] == "not finished"
    changed = read_plan(plan, check_options)[1]
    assert run_plan(changed, said.append) == [] and states(plan) == ["finished"] * 5
    assert len(list(changed[3].folder.rglob("results_*.json"))) == 2, "older results stay"


@pytest.mark.parametrize(
    "name", ['it\'s "a" plan; $(touch owned) `touch owned`.yaml', "خطة مارس.yaml", "a\nb$HOME.yaml"]
)
def test_the_array_job_quotes_what_the_plan_names(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    shown = tmp_path / "shows its words; $(touch owned)"
    shown.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    shown.chmod(0o755)
    monkeypatch.setattr(plans.sys, "executable", str(shown))
    plan.write_text(PLAN + "output_dir: \"out $(touch owned) 'x'\"\n")
    content, runs = read_plan(plan, check_options)
    plan = plan.rename(plan.with_name(name))
    script = plans.write_array_job(content, runs, plan)
    names = ("job-name=cultureval", "array=0-4%2", "partition=gpu", "time=12:00:00", "exclusive")
    assert script.read_text().splitlines()[1:6] == [f"#SBATCH --{name}" for name in names]
    done = subprocess.run([script], capture_output=True, text=True, env={"SLURM_ARRAY_TASK_ID": "3"}, cwd="/")
    assert done.stdout == "\n".join(["-m", "cultureval", "run", str(plan), "--only", "3", ""]), done.stderr
    alone = subprocess.run([script], capture_output=True, text=True, env={})
    assert alone.returncode and "submit this script with sbatch" in alone.stderr
    assert not list(tmp_path.rglob("owned"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("models: [a]", "a has no `suites`"),
        ("models: [org/a, org_a]\nsuites: qimma", "two runs have the folder results/org_a/qimma"),
        ("models: []\nsuites: q", "models: List should have at least 1 item"),
        ("models: [a]\nsuites: q\nmodel: b", "model: Extra inputs are not permitted"),
        ("models: [a]\nsuites: qimma\noptions: --limt 3", "No such option: --limt"),
        ("models: [a]\nsuites: qimma\noptions: 'limit 3'", "limit 3: a word in them is no option"),
        ("models: [a]\nsuites: qimma\noptions: --dry-run", "they give no scores"),
        ("models: [a]\nsuites: qimma\noptions: --limit '3", "options: .*No closing quotation"),
        ("models: [a]\nsuites: [qima, palmxx]", "(?s)'qima'.*Did you mean qimma.*'palmxx'"),
        ('models: [a]\nsuites: q\nslurm: ["--time=1\\n$(reboot)"]', "slurm.0"),
        ("models: [a]\nsuites: q\nslurm: [--array=0-99]", "slurm.0"),
        ("models: [a]\nsuites: q\nslurm: [--wrap=reboot]", "slurm.0"),
        ("models: [a", "cannot be read as a plan"),
        ("- a", "Input should be a valid dictionary"),
    ],
)
def test_wrong_plans_are_refused_with_the_place(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with pytest.raises(CulturevalError, match=words):
        read_plan(file, check_options)


def test_the_command_shows_how_runs_stand_and_names_what_failed(plan: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["run", str(plan), "--status"])
    assert done.exit_code == 0 and "5 runs: 5 not run" in done.stdout, done.output
    refused = CliRunner().invoke(app, ["run", str(plan), "--only", "5"])
    assert isinstance(refused.exception, CulturevalError) and "the runs 0 to 4" in str(refused.exception)
    failed = CliRunner().invoke(app, ["run", str(plan), "--only", "2"])
    assert failed.exit_code == 1 and "1 of 5 runs failed: org_fails on qimma_palmx" in failed.output
    printed = CliRunner().invoke(app, ["run", str(plan), "--slurm"]).stdout
    assert printed == f"sbatch {tmp_path / 'results' / 'array_job.sh'}\n"
