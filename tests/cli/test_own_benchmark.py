"""A benchmark in one file through whole commands: eval, other harnesses, summary, comparison, page, a judge."""

import json
import shutil

import pytest
import yaml
from harness_runs import Runs
from own_benchmark import ANSWERED, write_benchmark
from result_files import details_of, results_of

from cultureval.samples.scripted_judge import MODEL, scripted_judge
from cultureval.tasks.harnesses.lm_eval_files import write_task_files
from cultureval.tasks.registration import find_suites


def test_the_file_of_the_docs_is_evaluated_compared_and_shown(cultureval, tiny_lm, tmp_path):
    write_benchmark(tmp_path)
    shutil.copytree(tiny_lm, tmp_path / "other-model")
    own = ("--custom-suites", "proverbs.py")
    for model, out in ((tiny_lm, "a"), (tmp_path / "other-model", "b")):
        run = cultureval(
            "eval", model, "proverbs", *own, "--data", "data", "--output-dir", out, "--model-args", "device=cpu"
        )
        assert run.returncode == 0 and "proverbs" in run.stdout, run.stderr
    docs = [row["doc"] for row in details_of(tmp_path / "a")["proverbs|0"]]
    assert len(docs) == 12 and {tuple(doc["choices"]) for doc in docs} == {(" 1", " 2", " 3", " 4")}
    mean = results_of(tmp_path / "a")["results"]["proverbs|0"]["acc_norm"]
    compared = cultureval("compare", "a", "b", *own, "--output-dir", "c", "--json")
    assert "proverbs|0" in {row["name"] for row in json.loads(compared.stdout)["differences"]}, compared.stderr
    page = cultureval("leaderboard", "a", "b", *own, "--out", "page", "--charts", "none", "--json")
    (table,) = json.loads(page.stdout)["tables"]
    assert [row["cells"][0]["value"] for row in table["rows"]] == [pytest.approx(mean)] * 2, page.stderr


@pytest.mark.slow
def test_stock_lighteval_and_lm_eval_give_its_scores(tiny_lm, tmp_path, monkeypatch):
    variables = {"CULTUREVAL_CUSTOM_SUITES": str(write_benchmark(tmp_path)), "CULTUREVAL_DATA": str(tmp_path / "data")}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    find_suites.cache_clear()
    assert (write_task_files() / "proverbs" / "proverbs.yaml").is_file()
    runs = Runs(tmp_path, tiny_lm, variables)
    (ours, _), (stock, _), (other, _) = (
        runs.ours(["proverbs"]),
        runs.lighteval(["proverbs"]),
        runs.lm_eval(["proverbs"]),
    )
    for metric in ("acc_norm", "acc", "acc_norm_stderr"):
        expected = pytest.approx(ours["proverbs|0"][metric])
        assert stock["proverbs|0"][metric] == expected and other["results"]["proverbs"][f"{metric},none"] == expected


def test_answers_are_scored_by_the_authors_functions_and_by_a_judge(cultureval, no_network, tiny_lm, tmp_path):
    no_network.clear()  # the judge's server is on this machine
    write_benchmark(tmp_path, name="answered_sums", text=ANSWERED)
    command = ("eval", tiny_lm, "sums", "essays", "--custom-suites", "answered_sums.py", "--data", "data")
    refused = cultureval(*command, "--output-dir", "o", "--model-args", "device=cpu")
    assert refused.returncode == 2 and "CULTUREVAL_JUDGE" in refused.stderr
    with scripted_judge() as url:
        (tmp_path / "judge.yaml").write_text(yaml.safe_dump({"name": "script", "model": MODEL, "base_url": url}))
        run = cultureval(*command, "--output-dir", "o", "--model-args", "device=cpu", CULTUREVAL_JUDGE="judge.yaml")
    assert run.returncode == 0, run.stderr
    lengths = [len(row["model_response"]["text"][0]) for row in details_of(tmp_path / "o")["sums|0"]]
    scores = results_of(tmp_path / "o")["results"]
    assert scores["sums|0"]["length"] == pytest.approx(sum(lengths) / len(lengths))
    (judged,) = [value for name, value in scores["essays|0"].items() if name.endswith("_clarity")]
    assert 1 <= judged <= 5
