"""A suite of another package, built as a wheel outside the tree and installed, works without an edit to ours.

Its questions are Persian, its options are labelled `1. 2. 3. 4.`; it has an option of its own, and a judge template.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from result_files import details_of, results_of
from typer.testing import CliRunner

from cultureval.prompts.templates import template_hash
from cultureval.samples.scripted_judge import MODEL, scripted_judge
from cultureval.scripts.main import app
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
BRIEF = """---
labels: 1 2 3 4
---
$question
$options
"""
JUDGE = """---
form: likert
judged: reply
criteria: [Fluency]
---
Rate the Persian answer.
Question: $question
Reference Answer: $reference
Generated Answer: $reply
Fluency: X/5
"""
OPTION = """
from dataclasses import replace

from cultureval.runtime.settings import Option

WORDING = Option("wording", "CULTUREVAL_PERSIAN_WORDING", "question", "the template", ("question", "brief"))
TOKEN = Option("token", "CULTUREVAL_PERSIAN_TOKEN", "", "what opens the corpus", secret=True)
SUITE = replace(SUITE, options=(WORDING, TOKEN))
"""
OPEN_BENCHMARK = f"""
OPEN = MetricSet("open", "QA", ("exact_match",))
FIRST = BENCHMARKS[0]
BENCHMARKS += (
    Benchmark("Open", "Knowledge", "{NAME}_open", (DATA,), FIRST.subsets, OPEN, "{NAME}:templates/{{wording}}", "fa"),
)
"""
OPEN_KIND = f"""

def open_prompt(row, task_name=None):
    from lighteval.tasks.requests import Doc

    slots = {{"question": row["prompt"], "reference": row["labels"][0]}}
    judge = {{"templates": ["{NAME}:templates/fluency"], "slots": slots}}
    return Doc(task_name=task_name, query=row["prompt"], choices=["-"], gold_index=0, specific={{"judge": judge}})


def open_metrics():
    from lighteval.metrics.metrics import Metrics

    return [Metrics.exact_match.value]


KINDS["open"] = Kind(open_prompt, open_metrics, 4, judge_templates=("{NAME}:templates/fluency",))
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
    for name, text in {"question": TEMPLATE, "brief": BRIEF, "fluency": JUDGE}.items():
        (suite / "src" / NAME / "templates" / f"{name}.txt").write_text(text, encoding="utf-8")
    for name, text in {"__init__": OPTION, "benchmarks": OPEN_BENCHMARK, "kinds": OPEN_KIND}.items():
        with (suite / "src" / NAME / f"{name}.py").open("a", encoding="utf-8") as file:
            file.write(text)
    lines = [json.dumps(dict(zip(("question", "options", "answer"), row, strict=True))) for row in ROWS]
    (suite / "samples" / "my-lab" / NAME / "test.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (suite / "samples").rename(folder / "data")
    target = folder / "site"  # pip builds the wheel and installs it
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--no-build-isolation", "--target", target, suite], check=True, timeout=300)
    return target


@pytest.mark.slow
def test_an_installed_suite_is_listed_evaluated_and_summarised(installed, cultureval, tiny_lm, tmp_path):
    paths = {"PYTHONPATH": str(installed)}
    listed = cultureval("tasks", "--suite", NAME, "--json", **paths)
    record, other = json.loads(listed.stdout)
    assert other["task"] == f"{NAME}_open"
    assert (record["task"], record["suite"], record["language"]) == (NAME, NAME, "fa")

    data = installed.parent / "data"
    command = ("eval", tiny_lm, NAME, "--data", data, "--output-dir", "ours", "--device", "cpu", "--full")
    run = cultureval(*command, **paths)
    assert run.returncode == 0, run.stderr
    ours, rows = results_of(tmp_path / "ours"), details_of(tmp_path / "ours")[f"{NAME}|0"]
    prompt = ours["config_tasks"][f"{NAME}|0"]["rows_report"]["prompt"]
    assert f"task:{NAME}/0-shot/v0|subsets:1|rows:5|data:my-lab/{NAME}@local" in run.stdout
    assert f"|prompt:{prompt}|" in run.stdout
    assert prompt not in (template_hash("qimma/templates/mcq"), template_hash("qimma/templates/mcq_c"))
    check_docs([row["doc"] for row in rows])


def test_its_option_and_its_judge_template_are_used(installed, cultureval, tiny_lm, tmp_path, monkeypatch):
    paths = {"PYTHONPATH": str(installed)}
    arguments = ("--data", installed.parent / "data", "--output-dir", "open", "--device", "cpu", "--wording", "brief")
    run = cultureval("eval", tiny_lm, f"{NAME}_open", *arguments, "--token=hush-1947", **paths)
    assert run.returncode == 0, run.stderr
    (results,) = (tmp_path / "open").rglob("results_*.json")
    text = results.read_text(encoding="utf-8")
    assert "wording=brief" in text and '"--token=[secret]"' in text
    assert "hush-1947" not in text + run.stdout + run.stderr
    queries = [row["doc"]["query"] for row in details_of(tmp_path / "open")[f"{NAME}_open|0"]]
    assert sorted(query.splitlines()[0] for query in queries) == sorted(question for question, _, _ in ROWS)

    dry_run = ("judge", "open", "--judge", MODEL, "--dry-run")
    assert f"{len(ROWS)} calls" in cultureval(*dry_run, CULTUREVAL_CUSTOM_SUITES=str(installed / NAME)).stdout
    unknown = cultureval(*dry_run)
    assert unknown.returncode == 2
    assert "is its suite installed?" in unknown.stderr

    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    with scripted_judge() as url:
        settings = {"name": "script", "model": MODEL, "base_url": url}
        (tmp_path / "judge.yaml").write_text(json.dumps(settings), encoding="utf-8")
        line = ["judge", str(tmp_path / "open"), "--judge", str(tmp_path / "judge.yaml")]
        judged = CliRunner().invoke(app, line, catch_exceptions=False)
    assert judged.exit_code == 0, judged.output
    files = [file.read_text(encoding="utf-8") for file in (tmp_path / "open").rglob("results_*.json")]
    (scores,) = [json.loads(text)["results"][f"{NAME}_open|0"] for text in files if "judge_script_fluency" in text]
    assert 1 <= scores["judge_script_fluency_fluency"] <= 5


def test_a_new_suite_has_its_average_in_compare_its_page_and_its_headline(cultureval, tiny_lm, tmp_path):
    """As `new-benchmark` writes it, with a second group."""
    suite = write_suite("new_sums", list("1234"), "fa", tmp_path)
    second = """
BENCHMARKS += (Benchmark("Again", "Sums", "new_sums_again", (DATA,), BENCHMARKS[0].subsets, BENCHMARKS[0].metric_set,
                         BENCHMARKS[0].template, "fa"),)
"""
    with (suite / "src" / "new_sums" / "benchmarks.py").open("a", encoding="utf-8") as file:
        file.write(second)
    shutil.copytree(tiny_lm, tmp_path / "other-model")
    paths = {"CULTUREVAL_CUSTOM_SUITES": str(suite)}
    for model, out in ((tiny_lm, "a"), (tmp_path / "other-model", "b")):
        arguments = ("--data", suite / "samples", "--output-dir", out, "--device", "cpu")
        run = cultureval("eval", model, "new_sums", *arguments, **paths)
        assert run.returncode == 0 and "Average" in run.stdout, run.stderr
    compared = cultureval("compare", "a", "b", "--output-dir", "c", "--json", **paths)
    assert compared.returncode == 0, compared.stderr
    rows = json.loads(compared.stdout)["differences"]
    assert [row["name"] for row in rows if row["level"] == "average"] == ["new_sums: Average"], compared.stderr
    page = cultureval("leaderboard", "a", "b", "--out", "page", "--charts", "none", "--json", **paths)
    (table,) = json.loads(page.stdout)["tables"]
    average = [column["row"] for column in table["columns"]].index("Average")
    results = results_of(tmp_path / "a")["results"]
    mean = sum(results[f"{name}|0"]["acc"] for name in ("new_sums", "new_sums_again")) / 2
    assert [row["cells"][average]["value"] for row in table["rows"]] == [pytest.approx(mean)] * 2
    assert all(row["rank"] for row in table["rows"]) and (tmp_path / "page" / "index.html").is_file()


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
    """What was scored against Arabic letters before is refused, with the rows and the template."""
    template = installed / NAME / "templates" / "question.txt"
    text = template.read_text(encoding="utf-8")
    try:
        template.write_text(text.replace("$options", "أ. یک\nب. دو"), encoding="utf-8")
        arguments = ("--data", installed.parent / "data", "--device", "cpu")
        run = cultureval("eval", tiny_lm, NAME, *arguments, PYTHONPATH=str(installed))
    finally:
        template.write_text(text, encoding="utf-8")
    assert run.returncode == 2
    told = run.stderr
    assert "row 0 of test.jsonl" in told and "does not show 1, 2, 3, 4 as the labels of its options" in told
    assert f"{NAME}:templates/question" in told
    assert not list(Path(tmp_path).glob("results/**/*.json"))
