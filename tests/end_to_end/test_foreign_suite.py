"""A suite of another package, built as a wheel outside the tree and installed, works without an edit to ours.

Its questions are Persian, its options are labelled `1. 2. 3. 4.`
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from result_files import details_of, results_of
from stock_lighteval import stock_lighteval

from cultureval.prompts.templates import template_hash
from cultureval.tasks.new_suite import write_suite

NAME = "persian_proverbs"
TEMPLATE = """---
labels: 1 2 3 4
separator: " "
---
برای پرسش زیر تنها یکی از گزینه‌ها درست است. آن را برگزینید.

$question
$options
پاسخ:
"""
ROWS = [
    ("«آب از آب تکان نخورد» یعنی چه؟", ["هیچ اتفاقی نیفتاد", "سیل آمد", "باران بارید", "دریا توفانی شد"], "1"),
    ("پایتخت ایران کدام است؟", ["شیراز", "تهران", "تبریز", "اصفهان"], "2"),
    ("نوروز در آغاز کدام فصل است؟", ["زمستان", "پاییز", "بهار", "تابستان"], "3"),
    ("شاهنامه سرودهٔ کیست؟", ["حافظ", "سعدی", "مولوی", "فردوسی"], "4"),
    ("«دست و دلباز» به چه کسی می‌گویند؟", ["بخشنده", "ترسو", "تنبل", "خشمگین"], "1"),
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder into which the suite's wheel is installed; beside it `data` holds the rows."""
    folder = tmp_path_factory.mktemp("persian")
    suite = write_suite(NAME, list("1234"), "fa", folder)
    (suite / "src" / NAME / "templates" / "question.txt").write_text(TEMPLATE, encoding="utf-8")
    lines = [json.dumps(dict(zip(("question", "options", "answer"), row, strict=True))) for row in ROWS]
    (suite / "samples" / "my-lab" / NAME / "test.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (suite / "samples").rename(folder / "data")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder / "wheels"]
    subprocess.run([*pip, *build, suite], check=True, timeout=300)
    (wheel,) = (folder / "wheels").iterdir()
    target = folder / "site"
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", target, wheel], check=True, timeout=300)
    return target


def test_an_installed_suite_is_listed_evaluated_and_summarised_and_stock_lighteval_agrees(
    installed, cultureval, tiny_lm, tmp_path
):
    paths = {"PYTHONPATH": str(installed)}
    listed = cultureval("tasks", "--suite", NAME, "--json", **paths)
    (record,) = json.loads(listed.stdout)
    assert (record["task"], record["suite"], record["language"]) == (NAME, NAME, "fa")

    data = installed.parent / "data"
    run = cultureval("eval", tiny_lm, NAME, "--data", data, "--output-dir", "ours", "--device", "cpu", **paths)
    assert run.returncode == 0, run.stderr
    ours, rows = results_of(tmp_path / "ours"), details_of(tmp_path / "ours")[f"{NAME}|0"]
    scores = ours["results"][f"{NAME}|0"]
    prompt = ours["config_tasks"][f"{NAME}|0"]["rows_report"]["prompt"]
    assert f"task:{NAME}/0-shot/v0|subsets:1|rows:5|data:my-lab/{NAME}@local" in run.stdout
    assert f"|prompt:{prompt}|" in run.stdout
    assert prompt not in (template_hash("qimma/templates/mcq"), template_hash("qimma/templates/mcq_c"))
    check_docs([row["doc"] for row in rows])

    start = tmp_path / "start"  # where `stock_lighteval` puts what lets stock LightEval start offline
    environment = {"PYTHONPATH": os.pathsep.join(map(str, (start, installed))), "CULTUREVAL_DATA": str(data)}
    arguments = (f"model_name={tiny_lm},dtype=float32,batch_size=2", NAME, "--custom-tasks", "cultureval.tasks")
    end = ("--output-dir", "stock", "--save-details")
    stock_lighteval(tmp_path, "accelerate", *arguments, *end, **environment)
    stock = details_of(tmp_path / "stock")[f"{NAME}|0"]
    by_query = {row["doc"]["query"]: row for row in stock}
    assert len(by_query) == len(rows)
    for row in rows:
        other = by_query[row["doc"]["query"]]
        assert row["doc"]["choices"] == other["doc"]["choices"]
        assert row["metric"] == other["metric"]
        assert row["model_response"]["logprobs"] == pytest.approx(other["model_response"]["logprobs"], abs=1e-4)
    assert {name: scores[name] for name in ("acc", "acc_norm")} == {
        name: results_of(tmp_path / "stock")["results"][f"{NAME}|0"][name] for name in ("acc", "acc_norm")
    }


def check_docs(docs: list[dict]) -> None:
    """The Persian prompts, whose labels and not ours are scored."""
    assert len(docs) == len(ROWS)
    for question, options, answer in ROWS:
        (doc,) = [doc for doc in docs if question in doc["query"]]
        lines = [f"{number}. {option}" for number, option in enumerate(options, start=1)]
        body = TEMPLATE.split("---\n")[2].removesuffix("\n")
        assert doc["query"] == body.replace("$question", question).replace("$options", "\n".join(lines))
        assert doc["choices"] == [" 1", " 2", " 3", " 4"]
        assert doc["gold_index"] in (int(answer) - 1, [int(answer) - 1])


def test_a_template_without_labels_in_an_installed_suite_stops_the_run(installed, cultureval, tiny_lm, tmp_path):
    """What was scored against Arabic letters before is refused in one sentence."""
    template = installed / NAME / "templates" / "question.txt"
    text = template.read_text(encoding="utf-8")
    try:
        template.write_text(text.replace("$options", "أ. یک\nب. دو"), encoding="utf-8")
        arguments = ("--data", installed.parent / "data", "--device", "cpu")
        run = cultureval("eval", tiny_lm, NAME, *arguments, PYTHONPATH=str(installed))
    finally:
        template.write_text(text, encoding="utf-8")
    assert run.returncode == 2
    told = run.stderr.splitlines()[-1]
    assert "row 0 of test.jsonl" in told and "does not show 1, 2, 3, 4 as the labels of its options" in told
    assert f"{NAME}:templates/question" in told
    assert not list(Path(tmp_path).glob("results/**/*.json"))
