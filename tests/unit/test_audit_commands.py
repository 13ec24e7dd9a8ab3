"""What commands of audits refuse before they begin: missing files, verdicts that would be replaced, hostile names."""

import csv

import pytest
from typer.testing import CliRunner

from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.main import app
from cultureval.tasks.manifest import read_manifest, write_manifest

M, COLUMNS = "manifest.jsonl", "question=question,options=A+B,gold=answer"
TABLE = "question,A,B,answer\nما عاصمة مصر؟,القاهرة,دمشق,A\nما عاصمة سوريا؟,القاهرة,دمشق,B\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.csv").write_text(TABLE, encoding="utf-8")

    def invoke(*words):
        try:
            done = CliRunner().invoke(app, words, catch_exceptions=False)
        except (CulturevalError, OSError) as error:
            return str(error)
        return done.output

    return invoke


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("audit run nope.csv", "nope.csv: no such file or folder."),
        ("audit run ./nope", "./nope: no such file or folder."),
        ("audit run q.csv --judges A.yaml,B.yaml", "No such file or directory: 'A.yaml'"),
        ("audit code --model A.yaml", "No such file or directory: 'A.yaml'"),
        ("audit code --reviewed nope.csv", "'nope.csv' does not exist"),
        ("audit code", "Name the model that refines"),
        ("audit code --reviewed q.csv --model A.yaml", "Name the model that refines"),
        ("audit curate nope --writer A.yaml --blind B.yaml", "No such file or directory: 'A.yaml'"),
        ("audit curate nope --writer A.yaml --blind B.yaml --people x.csv", "x.csv"),
    ],
)
def test_a_missing_file_is_named_as_a_file(run, command, message):
    assert message in run(*command.split())


@pytest.mark.parametrize(
    "command",
    [
        "audit code --model {}",
        "audit curate nope --writer {} --blind c",
        "audit curate nope --writer c --blind c --translator msa={}",
    ],
)
def test_where_one_model_is_asked_several_are_refused(run, command):
    assert "a,b: name one model, not 2." in run(*command.format("a,b").split())


@pytest.mark.parametrize("judges", ["حكم,قاض", f"a,{'x' * 61}"])
def test_judges_whose_names_cannot_stand_in_a_manifest_are_refused(run, judges):
    assert "needs another `name`" in run("audit", "run", "q.csv", "--judges", judges)


def test_examples_alone_are_not_judged(run, tmp_path):
    (tmp_path / "q.csv").rename(tmp_path / "q_dev.csv")
    assert "few-shot examples alone" in run(
        "audit", "run", "q_dev.csv", "--judges", "a,b", "--columns", "question=question,options=A+B,gold=answer"
    )


def test_no_manifest_of_people_is_replaced(run, tmp_path):
    command = ("audit", "run", "q.csv", "--columns", COLUMNS)
    assert "saved: audit" in run(*command)
    rows = [row.model_copy(update={"by": ["person:amal"]}) for row in read_manifest(tmp_path / "audit" / M).rows]
    write_manifest(tmp_path / "audit" / M, rows)
    assert "holds people's verdicts" in run(*command)
    assert "is there already" in run("audit", "apply", "x", "--manifest", "m", "--write-manifest", "q.csv")


@pytest.mark.parametrize(
    ("file", "column", "command"),
    [
        ("audit/review.csv", "verdict", f"audit run q.csv --columns {COLUMNS}"),
        ("audit-code/humaneval_review.csv", "verdict", "audit code --model A.yaml"),
        ("audit-code/mbpp_review.csv", "verdict", "audit code --model A.yaml"),
        ("curated/sheet.csv", "correctness", "audit curate nope --writer A.yaml --blind B.yaml"),
    ],
)
def test_no_file_with_verdicts_is_replaced(run, tmp_path, file, column, command):
    sheet = tmp_path / file
    sheet.parent.mkdir()

    def fill(text):
        with sheet.open("w", encoding="utf-8-sig", newline="") as lines:  # as a spreadsheet saves it
            columns = ["item", "need_image", column]
            csv.writer(lines, delimiter=";").writerows([columns, ["x", "", ""], ["y", "", text]])
        return sheet.read_bytes()

    filled = fill("Incorrect")
    assert f"{file} holds people's verdicts: move it, or name another --output-dir." in run(*command.split())
    assert sheet.read_bytes() == filled
    fill(" ")
    assert "verdicts" not in run(*command.split())


def test_prompts_that_people_decided_on_are_not_refined_anew(run, tmp_path):
    (tmp_path / "audit-code").mkdir()
    (tmp_path / "audit-code" / "mbpp.jsonl").write_text('{"task_id": "Mbpp/2", "reason": "person"}\n')
    assert "mbpp.jsonl holds people's verdicts" in run("audit", "code", "--model", "A.yaml")


def test_a_clean_audit_leaves_no_items_of_an_earlier_one(run, tmp_path):
    command = ("audit", "run", "q.csv", "--columns", COLUMNS)
    (tmp_path / "q.csv").write_text(TABLE.replace("دمشق", "القاهرة"), encoding="utf-8")
    assert "items for people" in run(*command) and (tmp_path / "audit" / "review.csv").is_file()
    (tmp_path / "q.csv").write_text(TABLE, encoding="utf-8")
    assert "items for people" not in run(*command)
    assert not {"review.csv", "tasks.json", "labelling.xml"} & {file.name for file in (tmp_path / "audit").iterdir()}
