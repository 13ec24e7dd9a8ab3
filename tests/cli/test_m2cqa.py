"""M2CQA through the real command line: scripted responders behind a server, and a tiny vision model."""

import json

import pytest
import yaml
from faulty_server import FaultyServer
from forked_commands import own_variables, run_forked
from PIL import Image
from result_files import details_of, results_of, summary_of

from cultureval.prompts.templates import render
from cultureval.runs.loading import load
from cultureval.runs.table import tables_of
from cultureval.runtime.data_options import samples_root
from cultureval.tasks.m2cqa.benchmarks import PROMPTS, VARIETIES

WORDS = {"en": ("True", "False"), "ar": ("صحيح", "خطأ")}
FORMATS = {
    "en": {
        "tf": "The final answer is: {}",
        "answer_reason": "The final answer is: {}. Evidence: I see it.",
        "reason_first": "Thinking Steps: I look at it. The final answer is {}.",
    },
    "ar": {
        "tf": "الإجابة النهائية هي: {}",
        "answer_reason": "الإجابة النهائية هي: {}. الدليل: هذا ظاهر.",
        "reason_first": "خطوات التفكير: أنظر إليها. الإجابة النهائية هي {}.",
    },
}


def truths():
    """{(prompt's text, variety's script, prompt)} of every statement of the samples, and whether it is true."""
    known = {}
    for variety in VARIETIES:
        script = "en" if variety == "en" else "ar"
        lines = (samples_root() / "QCRI/M2CQA" / variety / "test.jsonl").read_text(encoding="utf-8").splitlines()
        for row in map(json.loads, lines):
            for text in (row["q_plus"], *row["q_minus"]):
                for prompt in PROMPTS:
                    query = render(f"m2cqa/templates/{script}/{prompt}", statement=text)
                    known[query] = (script, prompt, text == row["q_plus"])
    return known


TRUTHS = truths()


def responder(verdict):
    """Answers in the format asked for with what `verdict(truth)` says."""

    def answer(prompt, index):
        image, _, query = prompt.partition("] | ")
        assert image.startswith("[image image/png")
        script, name, truth = TRUTHS[query]
        return FORMATS[script][name].format(WORDS[script][0 if verdict(truth) else 1])

    return answer


@pytest.fixture
def evaluate(tmp_path):
    """Runs `cultureval eval` on a scripted server, which the command with the network cut could not reach."""

    def run(verdict, *tasks, out="out", options=()):
        with FaultyServer(reply=responder(verdict), entry={"id": f"org/{out}"}) as server:
            settings = tmp_path / "server.yaml"
            settings.write_text(yaml.safe_dump({"model": f"org/{out}", "base_url": server.url, "concurrency": 32}))
            command = ["eval", str(settings), *tasks]
            command += ["--data", "samples", "--output-dir", out, "--no-resume", *options]
            own = own_variables(tmp_path) | {"HF_HUB_OFFLINE": "1"}
            arguments = list(map(str, command))
            done = run_forked("cultureval.scripts.main", arguments, tmp_path, own, network=True, loaded="ours")
            assert done.returncode == 0, done.stderr
            return done, results_of(tmp_path / out), len(server.requests)

    return run


def test_always_true_always_false_and_perfect(evaluate, cultureval, refusal, tmp_path):
    """CFHR is 1, null and 0; the details hold what was shown, asked, answered and read, statement by statement."""
    expected = {
        "yes": (lambda truth: True, 1.0),
        "no": (lambda truth: False, None),
        "right": (lambda truth: truth, 0.0),
    }
    cells = [f"m2cqa:{prompt}_{variety}|0" for prompt in PROMPTS for variety in VARIETIES]
    dialects = [f"m2cqa:_dialect_{prompt}|0" for prompt in PROMPTS]
    for name, (verdict, cfhr) in expected.items():
        limit = "4" if name == "no" else "18"
        done, results, asked = evaluate(verdict, "m2cqa", out=name, options=["--limit", limit])
        assert ("--limit 4 would cut an item of 3 rows: it is raised to 6" in done.stderr) == (name == "no")
        items = 2 if name == "no" else 6
        assert asked == 12 * 3 * items
        scores = results["results"]
        assert {cell: scores[cell]["cfhr"] for cell in [*cells, *dialects]} == dict.fromkeys([*cells, *dialects], cfhr)
        for cell in cells:
            values = scores[cell]
            assert (values["invalid_rate"], values["n_items"]) == (0, items)
            assert values["cfhr_valid_only"] == values["cfhr_lenient"] == cfhr
            assert values["n_q_plus"] == (0 if cfhr is None else 6)
        assert not {"m2cqa:_average|0", "all"} & set(scores)  # prompts and varieties differ in kind
        assert scores[dialects[0]]["n_items"] == 2 * items  # counts are added
        for table in tables_of(load(tmp_path / name).runs[0]):
            assert table.rows == ["English", "MSA", "Levantine", "Egyptian", "Dialect", "Mean"]
            assert [table.cells[row, "CFHR"].value for row in table.rows] == [cfhr] * 6
            assert {table.cells[row, "invalid"].value for row in table.rows} == {0}
            assert table.cells["English", "Q+"].n == items
        (file,) = (tmp_path / name).glob("results/**/results_*.json")
        assert "NaN" not in file.read_text(encoding="utf-8")
        (line,) = [line for line in summary_of(tmp_path / name).splitlines() if "task:m2cqa/0-shot" in line]
        assert "|data:QCRI/M2CQA@local|" in line and "|scorer:verdicts(strict)|" in line
    for cell, rows in details_of(tmp_path / "right").items():
        assert len(rows) == 18
        for row in rows:
            doc, specific = row["doc"], row["doc"]["specific"]
            assert row["metric"]["verdict"] == ("true" if specific["role"] == "q_plus" else "false")
            assert TRUTHS[doc["query"]][1] == cell.split(":")[1].rpartition("_")[0]
            assert specific["statement"] in doc["query"] and row["model_response"]["text"]
            with Image.open(doc["images"][0]) as picture:
                assert picture.format == "PNG"
    compared = cultureval("compare", "yes", "right", "--suite", "m2cqa", "--output-dir", "compared")
    assert compared.returncode == 0, compared.stderr
    # All six items differ alike, so their clusters tell no interval; McNemar's mid-p is 1 / 64.
    assert ["en", "tf", "org/yes", "org/right", "6", "+1.000", "n/a", "0.016"] in [
        line.split()[:8] for line in compared.stdout.splitlines()
    ]
    assert {file.suffix for file in (tmp_path / "compared").iterdir()} == {".csv", ".pdf", ".svg", ".png"}
    assert "limit: 18 / 6" in refusal("compare", "yes", "no", "--suite", "m2cqa")
