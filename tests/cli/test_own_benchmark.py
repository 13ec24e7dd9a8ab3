"""A benchmark in one file through whole commands: eval, summary, comparison, page."""

import json
import shutil

import pytest
from own_benchmark import ANSWERED, write_benchmark
from result_files import details_of, results_of


def test_the_file_of_the_docs_is_evaluated_compared_and_shown(cultureval, tiny_lm, tmp_path):
    write_benchmark(tmp_path)
    shutil.copytree(tiny_lm, tmp_path / "other-model")
    own = ("--custom-suites", "proverbs.py")
    for model, out in ((tiny_lm, "a"), (tmp_path / "other-model", "b")):
        run = cultureval("eval", model, "proverbs", *own, "--data", "data", "--output-dir", out, "--device", "cpu")
        assert run.returncode == 0 and "proverbs" in run.stdout, run.stderr
    docs = [row["doc"] for row in details_of(tmp_path / "a")["proverbs|0"]]
    assert len(docs) == 12 and {tuple(doc["choices"]) for doc in docs} == {(" 1", " 2", " 3", " 4")}
    mean = results_of(tmp_path / "a")["results"]["proverbs|0"]["acc_norm"]
    compared = cultureval("compare", "a", "b", *own, "--output-dir", "c", "--json")
    assert "proverbs" in {row["name"] for row in json.loads(compared.stdout)["differences"]}, compared.stderr
    page = cultureval("leaderboard", "a", "b", *own, "--out", "page", "--charts", "none", "--json")
    (table,) = json.loads(page.stdout)["tables"]
    assert [row["cells"][0]["value"] for row in table["rows"]] == [pytest.approx(mean)] * 2, page.stderr


def test_generated_answers_are_scored_by_the_authors_functions(cultureval, tiny_lm, tmp_path):
    write_benchmark(tmp_path, name="answered_sums", text=ANSWERED)
    command = ("eval", tiny_lm, "sums", "--custom-suites", "answered_sums.py", "--data", "data", "--output-dir", "o")
    run = cultureval(*command, "--device", "cpu")
    assert run.returncode == 0, run.stderr
    rows = details_of(tmp_path / "o")["sums|0"]
    lengths = [len(row["model_response"]["text"][0]) for row in rows]
    assert results_of(tmp_path / "o")["results"]["sums|0"]["length"] == pytest.approx(sum(lengths) / len(lengths))
    refused = cultureval("eval", tiny_lm, "essays", *command[3:], "--device", "cpu")
    assert refused.returncode == 2 and "--judge" in refused.stderr
