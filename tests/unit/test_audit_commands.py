"""What commands of audits refuse before they begin: missing files, manifests that would be replaced, hostile names."""

import pytest
from typer.testing import CliRunner

from cultureval.audit.columns import columns_given
from cultureval.audit.sources import read_items
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.main import app
from cultureval.tasks.manifest import read_manifest, write_manifest

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
        ("audit check nope.csv", "nope.csv: no such file or folder."),
        ("audit check ./nope", "./nope: no such file or folder."),
        ("audit run q.csv --judges A.yaml,B.yaml", "No such file or directory: 'A.yaml'"),
        ("audit code --model A.yaml", "No such file or directory: 'A.yaml'"),
        ("audit code --reviewed nope.csv", "nope.csv: no such file."),
        ("audit code --reviewed nope.csv --model A.yaml", "leave --model out"),
        ("curate m2cqa nope --writer A.yaml --blind B.yaml", "No such file or directory: 'A.yaml'"),
        ("curate m2cqa nope --writer A.yaml --blind B.yaml --people x.csv", "x.csv"),
    ],
)
def test_a_missing_file_is_named_as_a_file(run, command, told):
    assert told in run(*command.split())


@pytest.mark.parametrize(
    "command",
    [
        "audit code --model {}",
        "curate m2cqa nope --writer {} --blind c",
        "curate m2cqa nope --writer c --blind c --translator msa={}",
    ],
)
def test_where_one_model_is_asked_several_are_refused(run, command):
    assert "a,b: name one model, not 2." in run(*command.format("a,b").split())


@pytest.mark.parametrize("judges", [f"{'x' * 40}-w4a16,{'x' * 40}-w8a8", "حكم,قاض"])
def test_judges_whose_names_are_one_in_a_manifest_are_refused(run, judges):
    assert "in a manifest" in run("audit", "run", "q.csv", "--judges", judges)


def test_examples_alone_are_not_judged(run, tmp_path):
    (tmp_path / "q.csv").rename(tmp_path / "q_dev.csv")
    assert "few-shot examples alone" in run("audit", "run", "q_dev.csv", "--judges", "a,b")


def test_indices_of_the_gold_that_begin_with_1_are_seen_with_named_columns_too(tmp_path):
    table = "question,answer,x,y,z\nأ؟,1,ب,ت,ث\nب؟,3,ب,ت,ث\n"
    (tmp_path / "q.csv").write_text(table, encoding="utf-8")
    columns = columns_given("question=question,options=x+y+z,gold=answer")
    items = read_items([str(tmp_path / "q.csv")], DataOptions(), columns)
    assert [(item.gold, item.gold_problem) for item in items] == [((0,), ""), ((2,), "")]


def test_a_manifest_below_the_home_folder_is_written_there(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert "saved: ~/m.jsonl" in run("audit", "check", "q.csv", "--write-manifest=~/m.jsonl")
    assert read_manifest(tmp_path / "home" / "m.jsonl").rows
    assert "~/m.jsonl is there already" in run("audit", "check", "q.csv", "--write-manifest=~/m.jsonl")


def test_a_manifest_is_replaced_only_by_force(run, tmp_path):
    check = ("audit", "check", "q.csv", "--write-manifest", "m.jsonl")
    run(*check)
    before = (tmp_path / "m.jsonl").read_bytes()
    assert "m.jsonl is there already" in run(*check, "--only", "missing_gold")
    assert "m.jsonl is there already" in run(
        "audit", "import", "x", "--manifest", "m.jsonl", "--write-manifest", "m.jsonl"
    )
    assert (tmp_path / "m.jsonl").read_bytes() == before
    assert "saved: m.jsonl" in run(*check, "--force")
    rows = [row.model_copy(update={"by": ["person:amal"]}) for row in read_manifest(tmp_path / "m.jsonl").rows]
    write_manifest(tmp_path / "audit" / "manifest.jsonl", rows)
    assert "holds people's decisions" in run("audit", "run", "q.csv", "--judges", "a,b")
