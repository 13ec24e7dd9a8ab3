"""`--sources FILE.yaml`: data in other places, files, splits and columns; mistakes are named with what is near."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.main import app
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.reading import prepare_subset
from cultureval.tasks.source_overrides import with_overrides

pytestmark = pytest.mark.usefixtures("own_cache")

ROW = {"text": "ما عاصمة الأردن؟", "A": "عمّان", "B": "إربد", "key": "أ", "note": "x"}
COLUMNS = {"Question": "text", "Answer": "key"}
TASK = "qimma_aratrust"


def write_rows(file: Path, *rows: dict) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def written(tmp_path, content):
    file = tmp_path / "sources.yaml"
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return file


def prepared(tmp_path, content, task=TASK):
    with use_settings(current_settings().with_(sources=str(written(tmp_path, content)))):
        return prepare_subset(all_tasks()[task], DataOptions(root=tmp_path / "root"))


def test_another_repo_split_and_columns(tmp_path):
    write_rows(tmp_path / "root/my-lab/Trust/checked.jsonl", ROW, ROW | {"text": "س؟"})
    write_rows(tmp_path / "root/asas-ai/AraTrust/test.jsonl", {"Question": "س؟", "A": "x", "B": "y", "Answer": "A"})
    front = "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: checked\n    path: checked.jsonl\n---\n"
    (tmp_path / "root/my-lab/Trust/README.md").write_text(front, encoding="utf-8")
    entry = {"repo": "my-lab/Trust", "split": "checked", "columns": COLUMNS}
    report = prepared(tmp_path, {TASK: entry}).report
    assert (report["source"], report["rows"]) == ("my-lab/Trust", 2)
    assert report["sources"].startswith("sources.yaml@") and len(report["sources"]) == len("sources.yaml@") + 8
    other = prepared(tmp_path, {TASK: entry | {"revision": "v2"}}).report["sources"]
    assert other != report["sources"]


def test_file_patterns_of_a_group_and_a_subset_of_its_own(tmp_path):
    question = {"Question": "س؟", "Option A": "واحد", "Option B": "اثنان", "Option C": "ثلاثة"}
    for name in ("Egypt", "Syria", "other"):
        write_rows(tmp_path / f"root/QCRI/AraDiCE-Culture/v2/{name}.jsonl", question | {"Question": name})
    content = {
        "qimma_aradice:Syria": {"files": ["v2/other.jsonl"]},
        "AraDiCE-Culture": {"files": ["v2/{subset}.jsonl"]},
    }
    for subset, place in {"Egypt": "Egypt.jsonl:0", "Syria": "other.jsonl:0"}.items():
        folder = prepared(tmp_path, content, f"qimma_aradice:{subset}").folder
        assert json.loads((folder / "test.jsonl").read_text(encoding="utf-8"))["source_row"] == place


GOOD = {"repo": "my-lab/Trust", "columns": COLUMNS}
MISSPELT = {"Qestion" if name == "Question" else name: column for name, column in COLUMNS.items()}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("- a", ["is not a mapping"]),
        ("a: [", ["cannot be read as YAML"]),
        (
            {"qimma_aratrusst": GOOD},
            ["no task, group or benchmark 'qimma_aratrusst'", "Did you mean", "qimma_aratrust"],
        ),
        ({TASK: {"rep": "a/b"}}, ["no setting 'rep'", "Did you mean repo", "revision"]),
        ({TASK: {"repo": 3}}, ["repo", "string"]),
        ({TASK: {"repo": "Trust"}}, ["'Trust' is not `org/name`"]),
        ({TASK: GOOD | {"repo": "my-lab/Trusst"}}, ["no data set my-lab/Trusst", "Did you mean my-lab/Trust"]),
        ({TASK: GOOD | {"split": "tets"}}, ["no split 'tets'", "Did you mean test?"]),
        ({TASK: GOOD | {"files": ["tset.jsonl"]}}, ["no file of my-lab/Trust fits tset.jsonl", "test.jsonl"]),
        ({TASK: GOOD | {"files": ["../x.jsonl"]}}, ["leads out of the data set's folder", "data/*.csv"]),
        ({TASK: GOOD | {"files": ["{split}.csv"]}}, ["has {split}, which stands for nothing", "{subset}"]),
        ({TASK: GOOD | {"columns": {"Question": "txt"}}}, ["no column 'txt'", "Did you mean text", "It has text, A"]),
        ({TASK: GOOD | {"columns": COLUMNS | {"Contxt": "note"}}}, ["reads 'Contxt'", "Did you mean", "Context"]),
        ({TASK: GOOD | {"columns": MISSPELT}}, ["reads 'Qestion'. Did you mean Question"]),
        ({TASK: {"form": "curated", "split": "a", "files": ["b"]}}, ["not both"]),
        ({"qimma_fannorflop": {"form": "curated", "repo": "a/b"}}, ["no curated copy, only original"]),
        ({"PalmX": {"repo": "my-lab/palmx"}}, ["several data sets", "qimma_palmx:islamic"]),
        ({"qimma_aradice": {"files": ["*.csv"]}}, ["gives 6 subsets the same files", "{subset}"]),
        ({"cvlue_vqa": {"columns": {"a": "b"}}}, ["reader of their own", "`columns`"]),
    ],
)
def test_a_mistake_is_named_with_what_is_near(tmp_path, content, words):
    write_rows(tmp_path / "root/my-lab/Trust/test.jsonl", ROW)
    with pytest.raises(CulturevalError) as caught:
        prepared(tmp_path, content)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{TASK}: {{repo: a/b}}\n{TASK}: {{repo: c/d}}\n", f"line 2: '{TASK}' is there twice"),
        (f"{TASK}:\n  repo: a/b\n  split: test\n  repo: c/d\n", "line 4: 'repo' is there twice"),
    ],
)
def test_no_entry_is_lost_to_one_of_its_name(tmp_path, text, words):
    file = tmp_path / "sources.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CulturevalError, match=words):
        with_overrides(all_tasks(), file)


def test_the_commands_take_it_and_the_variable_too(tmp_path, monkeypatch):
    write_rows(tmp_path / "root/my-lab/Trust/test.jsonl", ROW)
    file = written(tmp_path, {TASK: GOOD})
    root = ["--data", str(tmp_path / "root")]
    checked = CliRunner().invoke(app, ["check", "qimma", *root, "--sources", str(file)])
    assert checked.exit_code == 0 and "Subsets with data: 1 of 109" in checked.stdout, checked.output
    monkeypatch.setenv("CULTUREVAL_SOURCES", str(file))
    listed = json.loads(CliRunner().invoke(app, ["tasks", "--suite", "qimma", "--json"]).stdout)
    assert {one["task"]: one["source"] for one in listed}[TASK] == "my-lab/Trust"
    wrong = CliRunner().invoke(app, ["check", "qimma", *root, "--sources", str(tmp_path / "no.yaml")])
    assert "is not a file" in str(wrong.exception or wrong.output)
