import csv
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cultureval.metrics.declared import SHARE
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.main import app
from cultureval.tasks.catalogue import all_suites, all_tasks, declared_metric, groups, task_names
from cultureval.tasks.checking import check_data
from cultureval.tasks.selection import select_tasks

ROOT = Path(__file__).parents[2]
TABLE_5 = ROOT / "tests" / "reference" / "qimma_table_5.csv"
FIELDS = "task suite group subset domain task_type language register metrics source expected_rows".split()


# Table 5 leaves the two code subsets out; Tables 2a and 4 have them.
CODE = {("3LM Code", "HumanEval+"): ("Coding", "code"), ("3LM Code", "MBPP+"): ("Coding", "code")}


def test_pass_at_k_is_a_share_for_every_k():
    assert declared_metric("qimma_code:mbpp_plus|0", "plus_pass@3").range == SHARE
    assert declared_metric("qimma_code:mbpp_plus", "plus_pass@3_other") is None


def test_qimma_lists_the_papers_109_subsets():
    """Pairs, domains and formats as the paper's Tables 2a, 4 and 5 have them."""
    output = CliRunner().invoke(app, ["tasks", "qimma", "--json"]).stdout
    records = json.loads(output)["tasks"]
    with TABLE_5.open(encoding="utf-8") as file:
        table = {(row["benchmark"], row["subset"]): (row["domain"], row["format"]) for row in csv.DictReader(file)}
    found = {(record["benchmark"], record["subset"]): (record["domain"], record["task_type"]) for record in records}
    assert len(records) == len(table | CODE) == 109
    assert found == table | CODE
    assert all(set(FIELDS) <= set(record) for record in records)


def listed(*arguments):
    """What `cultureval tasks` prints where standard output is no terminal; no line is over 80 cells."""
    done = CliRunner().invoke(app, ["tasks", *arguments])
    assert done.exit_code == 0 and max(map(len, done.stdout.splitlines())) <= 80, done.stdout
    return done.stdout


def test_the_list_begins_with_a_row_a_suite_in_80_columns():
    """Rows as the papers count them: 52,232 of QIMMA's curated copies, 3 x 4 x 29,970 statements of M2CQA."""
    text = listed()
    first = [line for line in text.split("\n\n")[0].splitlines()[1:] if not line.startswith(" ")]
    assert [line.split()[0] for line in first] == list(all_suites())
    cells = {line.split()[0]: line for line in first}
    assert re.search(r" 109 +52,232 +text model, +ar$", cells["qimma"])
    assert re.search(r" 12 +359,640 +vision model, +ar, en$", cells["m2cqa"])
    assert " 26,000 " in cells["aynvqa"] and "≥249,596" in cells["cvlue"]  # which are published only in part
    words = text.split()
    assert "≥: known for some tasks only, ?: unknown." in " ".join(words)
    for needed in ("log-probabilities,", "bubblewrap", "BERTScore", "gated", "dialect", "spBLEU's"):
        assert needed in words
    titles = " ".join(suite.title for suite in all_suites().values()).split()
    assert {word for word in titles if word.lower() == word} <= {*words}  # no word is broken


@pytest.mark.parametrize("suite", all_suites())
def test_a_suite_lists_its_groups_and_a_group_its_tasks_in_80_columns(suite):
    text = listed(suite)
    for group, members in groups(suite).items():
        (line,) = [line for line in text.splitlines() if line.split()[:1] == [group]]
        assert str(len(members)) in line.split() and all_tasks()[members[0]].metrics[0] in line
    longest = max(groups(suite), key=lambda group: len(groups(suite)[group]))
    tasks = listed(longest)
    assert all(name in tasks for name in groups(suite)[longest])
    assert all_suites()[suite].page in text
    args = json.loads(CliRunner().invoke(app, ["tasks", suite, "--json"]).stdout)["task_args"]
    assert [one["name"] for one in args] == [option.name for option in all_suites()[suite].options]
    for one in args:
        assert f"{one['name']}={one['default']}" in text and one["help"].split()[0] in text
        assert all(value in text for value in one["values"])


def test_every_task_is_still_listed_with_its_source_and_as_json():
    text = listed("--all")
    assert all(name in text and task.as_record()["source"] in text for name, task in all_tasks().items())
    assert re.search(r"^qimma_palmx:islamic +UBC-NLP/palmx_2025_subtask2_islamic +1,001$", text, re.MULTILINE)
    assert "2,976 of the curated copy" in text  # the sum of the group, beside the original's rows
    assert json.loads(CliRunner().invoke(app, ["tasks", "--json"]).stdout)["tasks"] == [
        task.as_record() for task in all_tasks().values()
    ]
    one = json.loads(CliRunner().invoke(app, ["tasks", "qimma_gat:algebra", "--json"]).stdout)
    assert [record["task"] for record in one["tasks"]] == ["qimma_gat:Algebra"]


def test_the_few_shot_tasks_that_documents_name_have_examples_in_the_samples():
    texts = [file.read_text("utf-8") for file in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]]
    texts.append(refusal("qimma_aratrust|many"))
    named = {found for text in texts for found in re.findall(r"\bqimma_[\w:() ]+\|[1-9]\b", text)}
    assert len(named) > 1
    assert [one.problem for one in check_data(named, DataOptions(root=samples_root())) if one.problem] == []


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(CulturevalError, match="qimma_gat"):
        app(["tasks", "qima_gat"], standalone_mode=False)


def test_groups_hold_one_set_of_metrics():
    """LightEval averages a missing metric of a group as 0."""
    for members in groups().values():
        assert len({all_tasks()[name].metrics for name in members}) == 1


def test_no_task_draws_its_examples_from_the_split_that_it_evaluates():
    sources = [source for task in all_tasks().values() for source in task.sources if not source.find]
    assert [one.repo for one in sources if set(one.splits) & set(one.few_shot_splits)] == []


def test_known_row_counts_add_up_to_the_papers_totals():
    """Table 2a, kept and discarded together; MedAraBench's public file has 4,959 rows, the paper says 4,960."""
    totals = {"AraDiCE-Culture": 180, "ArabCulture": 3482, "PalmX": 3001, "3LM STEM": 2609, "MedAraBench": 4959}
    totals |= {
        "3LM Code": 164 + 378,
        "MizanQA": 1769,
        "ArabLegalQA": 79,
        "MedArabiQ": 500,
        "AraTrust": 522,
        "FannOrFlop": 6984,
    }
    for benchmark, total in totals.items():
        tasks = [task for task in all_tasks().values() if task.suite == "qimma" and task.benchmark == benchmark]
        assert sum(task.expected_rows for task in tasks) == total


def test_selection_of_suites_groups_tasks_and_files(tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("# two\nqimma_gat:Algebra\n\nqimma_palmx|3\n", encoding="utf-8")
    assert len(select_tasks(["qimma"])[0]) == 109
    assert select_tasks([str(names)])[0] == ["qimma_gat:Algebra|0", "qimma_palmx:islamic|3", "qimma_palmx:culture|3"]
    assert select_tasks(["qimma_gat:algebra,QIMMA_ArabicMMLU:driving test|5"]) == (
        ["qimma_gat:Algebra|0", "qimma_arabicmmlu:Driving Test|5"],
        {"qimma_gat:Algebra|0", "qimma_arabicmmlu:Driving Test|5"},
    )


def test_task_list_file_of_the_suite_runs_all_of_it():
    listed = Path(__file__).parents[2] / "tasks" / "qimma" / "qimma.txt"
    assert select_tasks([str(listed)])[0] == select_tasks(["qimma"])[0]
    assert set(listed.read_text(encoding="utf-8").split()) <= task_names()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("qimma_aratrus", "qimma_aratrust"),
        ("quimma", "qimma"),
        ("qimma_arabicmmlu:Biology", "Biology (High School)"),
        ("qimma_aratrust|many", "few-shot"),
    ],
)
def test_a_wrong_name_suggests_the_nearest(name, hint):
    assert hint in refusal(name)


def refusal(name):
    with pytest.raises(CulturevalError) as refused:
        select_tasks([name])
    return str(refused.value)
