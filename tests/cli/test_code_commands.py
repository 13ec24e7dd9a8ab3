"""Code as people type it: `score humaneval`, `check --canonicals`, and `eval qimma_code`."""

import contextlib
import io
import json
import re
import shutil
from pathlib import Path

import pytest
from faulty_server import FaultyServer
from result_files import details_of, results_of

from cultureval.runs.loading import load
from cultureval.runtime.data_options import samples_root
from cultureval.tasks.qimma.code_data import CODE_DATASETS, REPO, load_problems

FORGED = "class Equal:\n    def __eq__(self, other): return True\n\ndef {name}(*args):\n    return Equal()\n"


def canonical(dataset):
    rows = load_problems(dataset, "samples").rows
    return {task_id: row["prompt"] + row["canonical_solution"] for task_id, row in rows.items()}


def write_samples(path, samples):
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples), encoding="utf-8")
    return path


def solutions(programs):
    return [{"task_id": task_id, "solution": code} for task_id, code in programs.items()]


def test_the_canonical_solutions_pass_and_every_reader_sees_it(cultureval, tmp_path):
    for name, dataset in CODE_DATASETS.items():
        samples = write_samples(tmp_path / f"{name}.jsonl", solutions(canonical(name)))
        run = cultureval("score", name, "--pred", samples, "--data", "samples", "--output-dir", name)
        assert run.returncode == 0, run.stderr
        assert "pass@1 (base and extra tests): 1.0000" in run.stdout
        results = results_of(tmp_path / name)
        scores = results["results"][f"{dataset.task}|0"]
        assert (scores["plus_pass@1"], scores["base_pass@1"], scores["not_judged"]) == (1.0, 1.0, 0.0)
        assert results["config_general"]["model_name"] == name
        (record,) = results["cultureval"]["tasks"].values()
        assert record["rows"] > 0 and record["rows_hash"]
        assert results["cultureval"]["signatures"][0]["fields"]["data_hash"] == record["rows_hash"][:8]
        assert len(details_of(tmp_path / name)[f"{dataset.task}|0"]) == 6
        assert evalplus_prints(name, samples) == ["pass@1:\t1.000"] * 2


def evalplus_prints(dataset, samples):
    """The scores that plain EvalPlus reads from the result file beside the samples."""
    from evalplus.evaluate import evaluate

    with contextlib.redirect_stdout(io.StringIO()) as printed:
        evaluate(dataset, str(samples))
    assert "Load from previous results" in printed.getvalue()
    return re.findall(r"pass@1:\t[0-9.]+", printed.getvalue())


def test_wrong_forged_and_several_solutions(cultureval, tmp_path):
    programs = canonical("mbpp")
    names = list(programs)
    entry = load_problems("mbpp", "samples").rows[names[0]]["entry_point"]
    wrong = {names[0]: FORGED.format(name=entry), names[1]: "def to_dinars(fils):\n    return (fils, 0)\n"}
    samples = write_samples(tmp_path / "two.jsonl", solutions(programs) + solutions(programs | wrong))
    run = cultureval("score", "mbpp", "--pred", samples, "--data", "samples", "--json", "--workers", 2)
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["pass_at_k"]["plus"] == {"pass@1": pytest.approx(5 / 6), "pass@2": 1.0}
    verdicts = [json.loads(line) for line in (tmp_path / "two_verdicts.jsonl").read_text().splitlines()]
    forged = next(verdict for verdict in verdicts if (verdict["task_id"], verdict["sample_index"]) == (names[0], 1))
    assert forged["base"] == "fail"
    assert "wrong output" in forged["reason"]
    written = json.loads((tmp_path / "two_eval_results.json").read_text())
    assert [entry["plus_status"] for entry in written["eval"][names[0]]] == ["pass", "fail"]
    assert set(written) == {"date", "hash", "eval"}
    assert written["eval"][names[1]][1]["base_fail_tests"] == [[2750]]
    (rows,) = details_of((tmp_path / report["results"]).parents[len(Path(report["model"]).parts) + 1]).values()
    told = {row["doc"]["id"]: row["doc"]["specific"]["verdict"] for row in rows}[names[1]]
    assert told["base"] == "pass, fail" and told["reason"].startswith("solution 1: base: wrong output")
    assert "input (2750)" in told["reason"]


@pytest.mark.slow
def test_unequal_solutions_are_one_mean_of_problems_everywhere(cultureval, refusal, tmp_path):
    programs = canonical("mbpp")
    names = list(programs)
    wrong = [one for one in solutions(dict.fromkeys(programs, "def no(): pass")) if one["task_id"] in names[1:3]]
    samples = write_samples(tmp_path / "some.jsonl", solutions(programs) + wrong)
    command = ("score", "mbpp", "--pred", samples, "--data", "samples")
    assert "Some problems have 1 solution, others up to 2" in refusal(*command)
    run = cultureval(*command, "--partial")
    assert run.returncode == 0, run.stderr
    assert "pass@1 (base and extra tests): 0.8333" in run.stdout, "(1/2 + 1/2 + 4) of 6 problems"
    assert "Some problems have 1 solution, others up to 2" in run.stdout
    (loaded,) = load(tmp_path / "results").runs
    (record,) = loaded.record.tasks.values()
    score = loaded.score(record.task, "plus_pass@1")
    assert not loaded.differs and (score.value, score.n, score.asked) == (pytest.approx(5 / 6), 6, 6)
    shown = cultureval("show", "results", record.task.partition("|")[0], names[1]).stdout
    assert "reply 2 of 2: def no(): pass" in shown and "base tests: pass, fail" in shown and "KeyError" in shown


@pytest.mark.slow
def test_a_defect_of_the_data_is_named(cultureval, tmp_path):
    folder = tmp_path / "root" / REPO
    shutil.copytree(samples_root() / REPO, folder)
    rows = [json.loads(line) for line in (folder / "MBPPPlus.jsonl").read_text(encoding="utf-8").splitlines()]
    rows[3]["canonical_solution"] = "\ndef palm_rows(n):\n  raise ValueError('no')\n"
    (folder / "MBPPPlus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run = cultureval("check", "--canonicals", "mbpp", "--data", "root")
    assert run.returncode == 1 and run.stdout.startswith("Mbpp/9004: base fail, plus fail: "), run.stderr
    assert run.stdout.endswith("5 of 6 canonical solutions of mbpp pass their own tests.\n")


@pytest.fixture
def knowing_server():
    """A server that knows the canonical solutions, says so at length, and thinks aloud before."""
    rows = [row for name in CODE_DATASETS for row in load_problems(name, "samples").rows.values()]

    def reply(asked, index):
        known = [row["prompt"] + row["canonical_solution"] for row in rows if row["prompt"].strip() in asked]
        code = known[0] if known else "7"
        return f"<think>```python\ndef no(): pass\n```</think>إليك الحل:\n```python\n{code}\n```\nانتهى."

    with FaultyServer(reply=reply, reasoning=None, entry={"id": "knows"}) as server:
        yield server.url


@pytest.mark.slow
@pytest.mark.parametrize("no_network", [[]])  # the server is on this machine
@pytest.mark.parametrize("prompt", ["auto", "evalplus"])
def test_a_model_that_knows_the_answers_gets_all_points(cultureval, knowing_server, tmp_path, no_network, prompt):
    (tmp_path / "server.yaml").write_text(f"model: knows\nbase_url: {knowing_server}\n", encoding="utf-8")
    run = cultureval(
        *("eval", "server.yaml", "qimma_code", "--data", "samples", "--output-dir", "out"),
        HF_HUB_OFFLINE="1",
        CULTUREVAL_CODE_PROMPT=prompt,
    )
    assert run.returncode == 0, run.stderr
    results = results_of(tmp_path / "out")
    average = results["results"]["qimma_code:_average|0"]
    assert (average["plus_pass@1"], average["base_pass@1"], average["not_judged"]) == (1.0, 1.0, 0.0)
    (signature,) = results["cultureval"]["signatures"]
    assert signature["fields"]["prompt"].endswith("+evalplus") is (prompt == "evalplus")
    (row, *_) = details_of(tmp_path / "out")["qimma_code:mbpp_plus|0"]
    assert row["metric"] == {"plus_pass@1": 1.0, "base_pass@1": 1.0, "not_judged": 0.0}
    assert "canonical_solution" not in str(row)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("score", "mbpp", "--pred", "short.jsonl", "--data", "samples"), "5 of 6 problems have no solution"),
        (("score", "humaneval", "--pred", "short.jsonl", "--data", "samples"), "Do the format and --data match"),
        (("check", "--canonicals", "mbpp"), "cultureval fetch"),
    ],
)
def test_bad_input_ends_with_one_clear_sentence(refusal, tmp_path, command, sentence):
    write_samples(tmp_path / "short.jsonl", [{"task_id": "Mbpp/9001", "solution": "pass"}])
    assert sentence in refusal(*command)
