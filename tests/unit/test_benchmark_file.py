"""Benchmarks in one file: what they ask, what they refuse; and suites of other packages beside ours."""

import json
import sys
from pathlib import Path

import pytest
from own_benchmark import ANSWERED, PROVERBS, write_benchmark

from cultureval import Benchmark, generate, judged, multiple_choice
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import CulturevalError, MissingColumn
from cultureval.tasks.catalogue import all_suites, suites
from cultureval.tasks.reading import BrokenRows, prepare_subset
from cultureval.tasks.registration import find_suites

CHOICES = multiple_choice(labels="1 2 3 4", prompt="$question\n$options\nA:")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    find_suites.cache_clear()
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", "") and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]
    find_suites.cache_clear()


def benchmark(row, kind=CHOICES, **fields):
    return Benchmark("sums", kind, repo="my-lab/proverbs", language="fa", row=row, **fields)


def rows_of(one: Benchmark, data: Path) -> list[dict]:
    (task,) = one.tasks("s")
    subset = prepare_subset(task, DataOptions(root=data))
    return [json.loads(line) for line in (subset.folder / "test.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("name", suites())
def test_all_that_our_suites_name_is_there(name):
    suite = all_suites()[name]
    functions = ("of_model", "comparison", "analysis", "outputs", "picture", "tables")
    for field in (*functions, "run_files", "charts", "averages"):
        assert getattr(suite, field) is None or callable(suite.part(field))
    assert suite.title and (Path(__file__).parents[2] / suite.page).is_file()


def test_the_file_of_the_docs_is_a_suite_whose_rows_become_questions(folder):
    file = write_benchmark(folder)
    found = find_suites((str(file),))
    assert found.places == {"proverbs": str(file)}
    (task,) = found.suites["proverbs"].tasks()
    assert (task.task, task.language, task.metrics, task.register) == (
        "proverbs",
        "fa",
        ("acc_norm", "acc"),
        "standard",
    )
    subset = prepare_subset(task, DataOptions(root=folder / "data"))
    rows = [json.loads(line) for line in (subset.folder / "test.jsonl").read_text("utf-8").splitlines()]
    assert rows[1]["prompt"] == "پرسش: 21 + 22 = ?\n1. 42\n2. 43\n3. 44\n4. 45\nپاسخ:"
    assert (rows[1]["labels"], rows[1]["index"]) == ([" 1", " 2", " 3", " 4"], [1])
    assert len(subset.report["prompt"]) == 8  # the hash of the template's text


def test_the_docs_print_the_file_that_the_tests_run():
    assert PROVERBS.strip() in (Path(__file__).parents[2] / "docs" / "own_benchmark.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("row", "error", "words"),
    [
        (lambda r: {"question": r["nothing"]}, MissingColumn, "no column 'nothing'; columns found: question, options"),
        (lambda r: {"question": "q", "options": ["a", "b"], "gold": "4"}, BrokenRows, "not one of the labels 1 2"),
        (lambda r: {"question": "q", "options": list("abcde"), "gold": "1"}, BrokenRows, "two to 4 options"),
        (lambda r: {"question": "", "options": ["a", "b"], "gold": "1"}, BrokenRows, "is empty"),
        (lambda r: {"question": 1 / 0}, BrokenRows, "ZeroDivisionError"),
        (lambda r: {"question": "q", "options": ["a", "b"]}, CulturevalError, "must return 'gold'"),
        (lambda r: [r], CulturevalError, "must return a dictionary, not list"),
    ],
)
def test_rows_that_break_the_kind_are_refused(folder, row, error, words):
    write_benchmark(folder)
    with pytest.raises(error, match=words):
        rows_of(benchmark(row), folder / "data")


def test_questions_on_one_passage_are_one_cluster_and_braces_are_text(folder):
    write_benchmark(folder)
    kind = multiple_choice(labels="A B", prompt="{x} $context $question\n$options\n")

    def row(r):
        return {"question": r["question"], "options": ["a", "b"], "gold": "B", "context": r["answer"]}

    rows = rows_of(benchmark(row, kind), folder / "data")
    assert rows[0]["prompt"].startswith("{x} 1 20 + 21") and rows[0]["labels"] == ["A", "B"]
    assert len({one["cluster"] for one in rows}) == 4


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: multiple_choice(labels="A A", prompt="$question $options"), "two or more"),
        (lambda: multiple_choice(labels="A B", prompt="$question"), r"no slot \$options"),
        (lambda: generate({}, "$question"), "at least one metric"),
        (lambda: generate({"a": len}, "$question", lower=["b"]), "roles must be of these"),
        (lambda: benchmark(dict, name="x"), "multiple values"),
        (lambda: Benchmark("all", CHOICES, repo="a/b", row=dict), "is no name"),
        (lambda: Benchmark("x", CHOICES, repo="../b", row=dict), "organisation/name"),
        (lambda: Benchmark("x", CHOICES, repo="a/b"), "`repo` needs `row`"),
        (lambda: Benchmark("x", CHOICES), "give `repo`"),
        (lambda: Benchmark("x", "choice", repo="a/b", row=dict), "instance of Kind"),
        (lambda: Benchmark("x", CHOICES, repo="a/b", row=dict, language="Persian"), "ISO 639"),
        (lambda: Benchmark("x", CHOICES, repo="a/b", row=dict, spilt="test"), "spilt"),
    ],
)
def test_what_is_wrong_with_a_benchmark_is_told_where_it_is_made(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("nowhere.py", None, "there is no such file"),
        ("persian_nowhere", None, "No module named 'persian_nowhere'"),
        ("broken_one.py", "1 / 0", "ZeroDivisionError"),
        ("odd_one.py", "BENCHMARKS = 3", "neither BENCHMARKS, a list of cultureval.Benchmark, nor SUITE"),
        ("json.py", PROVERBS, "another module named 'json'"),
        ("no-name.py", PROVERBS, "not a name for a Python module"),
        ("twice_one.py", PROVERBS + "BENCHMARKS *= 2", "two tasks with one name"),
        ("qimma_like.py", PROVERBS.replace('"proverbs",', '"qimma_aratrust",'), "the name 'qimma_aratrust'"),
        ("qimma.py", PROVERBS, "the name 'qimma'"),
        (
            "typed_one.py",
            PROVERBS.replace('split="test"', "split=3"),
            "split: Input should be a valid string",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_name(folder, monkeypatch, name, text, words):
    monkeypatch.chdir(folder)
    if text is not None:
        (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(CulturevalError, match=words) as caught:
        find_suites((name,))
    assert f"--custom-suites {name}" in str(caught.value)


def install(folder: Path, value: str) -> None:
    """What pip leaves of a package with an entry point."""
    info = folder / "proverbs_suite-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: proverbs-suite\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[cultureval.suites]\npersian = {value}\n", encoding="utf-8")


def test_installed_benchmarks_are_found_and_one_that_fails_breaks_none_of_ours(folder, monkeypatch, caplog):
    monkeypatch.syspath_prepend(str(folder))
    write_benchmark(folder)
    install(folder, "proverbs:BENCHMARKS")
    assert [task.task for task in find_suites().suites["persian"].tasks()] == ["proverbs"]
    (folder / "proverbs.py").write_text("import sys\nsys.exit(3)", encoding="utf-8")
    del sys.modules["proverbs"]
    find_suites.cache_clear()
    found = find_suites()
    assert list(found.suites) == suites()
    assert "'persian' of the package proverbs-suite" in found.failures["persian"] and "left out" in caplog.text


def test_a_score_outside_its_range_is_refused():
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc

    kind = generate({"exact": lambda answer, right: 7 if answer == "bad" else answer in right}, "$question")
    (metric,) = kind.metrics()
    docs = [Doc(query="q", choices=["yes"], gold_index=[0], task_name="t", id="0")]
    assert metric.compute_sample(docs=docs, responses=[ModelResponse(text=["yes"])])["exact"] == [1.0]
    with pytest.raises(CulturevalError, match="the metric exact is 7.0, outside its range 0.0 to 1.0"):
        metric.compute_sample(docs=docs, responses=[ModelResponse(text=["bad"])])


def test_other_functions_have_another_signature():
    one, same = (generate({"m": len}, "$q").instrument.name() for _ in range(2))
    assert one == same

    def other(answer, references):
        return 0.0

    assert generate({"m": other}, "$q").instrument.name() != one


def test_judged_answers_need_a_judge(folder, monkeypatch):
    file = write_benchmark(folder, name="answered_sums", text=ANSWERED)
    tasks = {task.task: task for task in find_suites((str(file),)).suites["answered_sums"].tasks()}
    kind = tasks["essays"].kind
    assert kind.judge_templates == ("answered_sums:judge",)
    with pytest.raises(CulturevalError, match="CULTUREVAL_JUDGE"):
        kind.instrument.check()
    subset = prepare_subset(tasks["essays"], DataOptions(root=folder / "data"))
    row = json.loads((subset.folder / "test.jsonl").read_text("utf-8").splitlines()[0])
    judge = kind.prompt(row, "essays").specific["judge"]
    assert judge == {"templates": ["answered_sums:judge"], "slots": {"question": "20 + 21 = ?"}}
    assert judged("jeem_vqa", "$question").judge_templates == ("jeem_vqa",)


def test_check_tries_ten_rows_and_draws_the_first_prompt(folder, run_here):
    file = write_benchmark(folder)
    done = run_here("check", "proverbs.py", "--data", "data")
    assert done.returncode == 0 and "proverbs: 10 rows tried, all are valid." in done.stdout
    assert "پرسش: 20 + 21 = ?\n1. 41\n" in done.stdout and "gold: [' 1']" in done.stdout
    rows = folder / "data/my-lab/proverbs/test.jsonl"
    rows.write_text(rows.read_text("utf-8").replace('"answer": "2"', '"answer": "ب"'), encoding="utf-8")
    done = run_here("check", str(file), "--data", "data")
    assert done.returncode == 1 and "3 wrong" in done.stdout
    assert "row 2 of test.jsonl: column 'gold' is not one of the labels 1 2 3 4" in done.stdout
