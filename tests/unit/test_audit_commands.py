"""What commands of audits refuse before they begin: missing files, manifests that would be replaced, hostile names."""

import pytest
from typer.testing import CliRunner

from cultureval.audit.checks import run_checks
from cultureval.audit.sources import columns_given, read_items
from cultureval.runtime.data_options import DataOptions
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
    ("command", "told"),
    [
        ("audit run nope.csv", "nope.csv: no such file or folder."),
        ("audit run ./nope", "./nope: no such file or folder."),
        ("audit run q.csv --judges A.yaml,B.yaml", "A.yaml: no such file"),
        ("audit code --model A.yaml", "A.yaml: no such file"),
        ("audit code --reviewed nope.csv", "nope.csv: no such file."),
        ("audit code --reviewed nope.csv --model A.yaml", "leave --model out"),
        ("audit curate m2cqa nope --writer A.yaml --blind B.yaml", "A.yaml: no such file"),
        ("audit curate m2cqa nope --writer A.yaml --blind B.yaml --people x.csv", "x.csv"),
    ],
)
def test_a_missing_file_is_named_as_a_file(run, command, told):
    assert told in run(*command.split())


@pytest.mark.parametrize(
    "command",
    [
        "audit code --model {}",
        "audit curate m2cqa nope --writer {} --blind c",
        "audit curate m2cqa nope --writer c --blind c --translator msa={}",
    ],
)
@pytest.mark.parametrize("models", ["two.yaml", "a,b"])
def test_where_one_model_is_asked_several_are_refused(run, tmp_path, command, models):
    (tmp_path / "two.yaml").write_text("judges: [{model: a}, {model: b}]", encoding="utf-8")
    assert f"{models}: name one model, not 2." in run(*command.format(models).split())


@pytest.mark.parametrize("judges", [f"{'x' * 40}-w4a16,{'x' * 40}-w8a8", "حكم,قاض"])
def test_judges_whose_names_are_one_in_a_manifest_are_refused(run, judges):
    assert "in a manifest" in run("audit", "run", "q.csv", "--judges", judges)


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
    assert "holds people's decisions" in run(*command)
    assert "is there already" in run("audit", "apply", "x", "--manifest", "m", "--write-manifest", "q.csv")


def test_names_of_files_stand_in_manifests_without_what_a_terminal_obeys(tmp_path):
    folder = tmp_path / "a\x1b[2J\u202eb"
    folder.mkdir()
    (folder / "x\ty\u200f.csv").write_text(TABLE, encoding="utf-8")
    items = read_items([str(folder)], DataOptions(), columns_given(COLUMNS))
    saved = write_manifest(tmp_path / "m.jsonl", run_checks(items).rows)
    row = read_manifest(tmp_path / "m.jsonl").rows[0]
    assert row == saved.rows[0] and (row.source, row.row) == (r"a\x1b[2J\u202eb", r"x\ty\u200f.csv:0")
    line = (tmp_path / "m.jsonl").read_text(encoding="utf-8").replace(r"a\\x1b[2J\\u202eb", r"a\u001b[2J")
    (tmp_path / "m.jsonl").write_text(line, encoding="utf-8")
    with pytest.raises(CulturevalError, match="line 2: source"):
        read_manifest(tmp_path / "m.jsonl")
