"""Where the code problems are found, and what of them is refused."""

import gzip
import hashlib
import json
import shutil
from pathlib import Path

import pytest

from cultureval.audit.checks.table import manifest_row
from cultureval.audit.cleaning import cleaned_subsets, write_cleaned
from cultureval.audit.sources import read_items
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import CulturevalError, SourceUnavailable
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.manifest import write_manifest
from cultureval.tasks.qimma import code_data
from cultureval.tasks.qimma.code_data import CODE_DATASETS, REPO, JudgedContent, compare_with_published, load_problems
from cultureval.tasks.reading import prepare_subset

pytestmark = pytest.mark.usefixtures("own_cache")

SAMPLES = samples_root() / REPO
REAL = Path(__file__).parents[2].parent / "shared" / "data" / "evalplus_arabic"


@pytest.fixture
def row():
    return json.loads((SAMPLES / "HumanEvalPlus.jsonl").read_text(encoding="utf-8").splitlines()[0])


def write(folder, rows, name="HumanEvalPlus.jsonl"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize("below", ["", REPO])
@pytest.mark.parametrize("packed", [False, True])
def test_data_may_be_a_root_or_the_folder_of_the_files_packed_or_not(tmp_path, below, packed):
    folder = tmp_path / "root" / below
    folder.mkdir(parents=True)
    for dataset in CODE_DATASETS.values():
        if packed:
            with gzip.open(folder / f"{dataset.file}.gz", "wb") as file:
                file.write((SAMPLES / dataset.file).read_bytes())
        else:
            shutil.copy(SAMPLES / dataset.file, folder)
    for name in CODE_DATASETS:
        found = load_problems(name, str(tmp_path / "root"))
        assert dict(found.rows) == dict(load_problems(name, "samples").rows)
        assert len(found.rows) == 6 and found.revision == "local"
        assert found.evalplus_hash == hashlib.md5(found.file.read_bytes()).hexdigest()


def test_the_same_problems_in_another_packing_are_the_same_rows(tmp_path):
    """Packed or not, in another order, or with another spelling of the same text, they were "other rows"."""
    name = CODE_DATASETS["humaneval"].file
    rows = [json.loads(line) for line in (SAMPLES / name).read_text("utf-8").splitlines()]
    changed = [dict(reversed(row.items())) | {"note": "theirs"} for row in reversed(rows)]
    other = [*rows[:-1], rows[-1] | {"base_input": rows[-1]["base_input"][:-1]}]
    for folder, written in (("changed", changed), ("other", other)):
        (tmp_path / folder).mkdir()
        with gzip.open(tmp_path / folder / f"{name}.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\r\n" for row in written)
    whole, *found = (load_problems("humaneval", str(path)) for path in (SAMPLES, *tmp_path.iterdir()))
    assert [one.fingerprint == whole.fingerprint for one in found].count(True) == 1
    assert all(one.fingerprint.startswith(one.content_hash) for one in found)  # of `code generate`'s file, too


def test_a_folder_without_the_files_is_named(tmp_path):
    with pytest.raises(SourceUnavailable, match=r"HumanEvalPlus\.jsonl\.gz"):
        load_problems("humaneval", str(tmp_path))


def test_a_part_and_refined_prompts_are_handed_to_evalplus_as_a_file(tmp_path, row):
    refined = row["prompt"].replace("إذا بلغ", "إذا وصل")
    (tmp_path / "fixed.csv").write_text(
        'task_id,Fixed,Human Check\nHumanEval/9001,"' + refined.replace('"', '""') + '",No\n', encoding="utf-8"
    )
    whole = load_problems("humaneval", "samples")
    part = load_problems("humaneval", "samples", tmp_path / "fixed.csv", limit=2)
    assert list(part.rows) == ["HumanEval/9001", "HumanEval/9002"] and part.refined == 1
    assert part.rows["HumanEval/9001"]["prompt"] == refined != whole.rows["HumanEval/9001"]["prompt"]
    written = [json.loads(line) for line in part.file.read_text(encoding="utf-8").splitlines()]
    assert {item["task_id"]: item for item in written} == dict(part.rows)
    assert part.content_hash != whole.content_hash == load_problems("humaneval", "samples", limit=2).content_hash


def test_a_refined_prompt_that_changes_a_test_is_refused_by_name(tmp_path, row):
    write(tmp_path, [row | {"prompt": row["prompt"].replace("25.0", "26.0")}], "fixed.jsonl")
    with pytest.raises(CulturevalError, match=r"HumanEval/9001.*25\.0"):
        load_problems("humaneval", "samples", tmp_path / "fixed.jsonl")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"task_id": "Mbpp/1"}, "HumanEval/"),
        ({"task_id": "HumanEval/٣"}, "task_id"),
        ({"task_id": 3}, "task_id"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": "def f(): '\ufffd'"}, "encoding"),
        ({"entry_point": "os.system"}, "entry_point"),
        ({"base_input": []}, "base_input"),
        ({"base_input": "[[1]]"}, "base_input"),
        ({"plus_input": [1]}, "plus_input"),
        ({"atol": "0"}, "atol"),
        ({"atol": float("nan")}, "atol"),
        ({"canonical_solution": None}, "canonical_solution"),
    ],
)
def test_a_broken_row_is_named(tmp_path, row, change, named):
    data = write(tmp_path, [row, row | {"task_id": "HumanEval/2"} | change])
    with pytest.raises(CulturevalError, match="row 1") as caught:
        load_problems("humaneval", data)
    assert named in str(caught.value)


def test_a_missing_column_and_a_repeated_problem_are_named(tmp_path, row):
    with pytest.raises(CulturevalError, match="no column 'atol'"):
        load_problems("humaneval", write(tmp_path / "a", [{name: row[name] for name in row if name != "atol"}]))
    with pytest.raises(CulturevalError, match="is duplicated"):
        load_problems("humaneval", write(tmp_path / "b", [row, row]))


@pytest.mark.skipif(not REAL.is_dir(), reason="the published files are not on this machine")
@pytest.mark.parametrize(("name", "rows"), [("humaneval", 164), ("mbpp", 378)])
def test_the_published_files_are_read_as_evalplus_reads_them(name, rows, monkeypatch):
    import importlib

    module = importlib.import_module(f"evalplus.data.{name}")
    found = load_problems(name, str(REAL))
    assert len(found.rows) == rows == CODE_DATASETS[name].rows
    monkeypatch.setattr(module, f"{name.upper()}_OVERRIDE_PATH", str(found.file))
    load = {"humaneval": "get_human_eval_plus", "mbpp": "get_mbpp_plus"}[name]
    assert found.problems() == getattr(module, load)()
    assert found.evalplus_hash == getattr(module, f"{load}_hash")()


@pytest.mark.skipif(not REAL.is_dir(), reason="the real data is not here")
@pytest.mark.parametrize("name", list(CODE_DATASETS))
def test_the_published_problems_are_known_whatever_their_order_and_anything_else_is_told(name):
    dataset = CODE_DATASETS[name]
    whole = load_problems(name, str(REAL))
    assert (len(whole.rows), whole.difference, whole.shortened) == (dataset.rows, "", "")
    rows = list(whole.rows.values())
    first, second = rows[0]["plus_input"], rows[1]["plus_input"]
    shorter, longer = rows[0] | {"plus_input": first[:-1]}, rows[1] | {"plus_input": [*second, [9, 9, 9]]}
    fewer = rf"1 problem with fewer tests than published: {rows[0]['task_id']} ("
    turned = {row["task_id"]: dict(reversed(row.items())) for row in reversed(rows)}
    assert compare_with_published(dataset, turned) == ("", "")
    without = f"1 problem of the {dataset.rows} of {dataset.title}, without {rows[1]['task_id']}"
    for changed, told in (
        (rows[:1], without),
        ([shorter, *rows[1:]], fewer),
        ([shorter, longer, *rows[2:]], fewer),
        ([rows[0] | {"plus_input": [*first[:-1], first[0]]}, *rows[1:]], fewer),
        ([rows[0] | {"plus_input": []}, *rows[1:]], f"1 of {dataset.rows} problems have no extra tests"),
        ([rows[0] | {"atol": 0.5}, *rows[1:]], ""),
        ([rows[0] | {"task_id": f"{dataset.prefix}9000"}], ""),
    ):
        difference, shortened = compare_with_published(dataset, {row["task_id"]: row for row in changed})
        assert difference.startswith(f"Not the published {dataset.title}")
        assert told in shortened and bool(told) == bool(shortened)
        assert len(changed) == 1 or f"1 with other content: {rows[0]['task_id']}" in difference or changed[1] == longer
    more, _ = compare_with_published(dataset, whole.rows | {"x": rows[0] | {"task_id": "x"}})
    assert "1 added: x" in more


def test_two_files_of_one_data_set_are_refused(tmp_path, row):
    write(tmp_path, [row], "HumanEvalPlus.jsonl.gz")
    with pytest.raises(CulturevalError, match=r"holds HumanEvalPlus.jsonl and HumanEvalPlus.jsonl.gz: remove one"):
        load_problems("humaneval", write(tmp_path, [row]))


def test_problems_that_a_manifest_leaves_out_are_no_fault_and_fewer_tests_are(row):
    dataset = CODE_DATASETS["humaneval"]
    rows = {"HumanEval/0": row}
    assert "without HumanEval/1," in compare_with_published(dataset, rows)[1]
    excused = compare_with_published(dataset, rows, {f"HumanEval/{number}" for number in range(1, 163)})[1]
    assert "without HumanEval/163;" in excused and "1 problem with fewer tests" in excused


def test_what_a_manifest_discards_is_left_out_and_not_missed_also_of_cleaned_data(tmp_path, monkeypatch):
    """`code evaluate` never looked at a manifest, and no command knew that cleaned data lack problems on purpose."""
    task, file = CODE_DATASETS["humaneval"].task, tmp_path / "manifest.jsonl"
    data = tmp_path / "whole"
    rows = [json.loads(line) for line in (SAMPLES / "HumanEvalPlus.jsonl").read_text("utf-8").splitlines()]
    write(data / REPO, rows)
    published = {one["task_id"]: JudgedContent.of(one) for one in rows}
    monkeypatch.setattr(code_data, "published_problems", lambda dataset: published)
    items = read_items([task], DataOptions(root=data))
    decisions = ["keep", "discard", *["keep"] * len(items)]
    manifest = write_manifest(
        file, [manifest_row(item, one, [], ["check"]) for item, one in zip(items, decisions, strict=False)]
    )
    write_cleaned(cleaned_subsets(items, manifest), manifest, tmp_path / "cleaned", "jsonl")
    found, reports = [], []
    for root, manifests in ((data, str(file)), (tmp_path / "cleaned", "")):
        with use_settings(current_settings().with_(data_root=str(root), manifest=manifests)) as settings:
            found.append(load_problems("humaneval"))
            options = DataOptions(root=root, manifests=settings.manifest)
            reports.append(prepare_subset(all_tasks()[task], options).report)
            assert "Shortened" not in reports[-1]["other_data"] and "missing" not in reports[-1]["other_data"]
            assert f"1 left out by a manifest: {rows[1]['task_id']}" in found[-1].difference
    by_manifest, cleaned = found
    assert list(by_manifest.rows) == list(cleaned.rows) == [rows[0]["task_id"], *(one["task_id"] for one in rows[2:])]
    assert by_manifest.fingerprint == cleaned.fingerprint and list(by_manifest.left_out) == [rows[1]["task_id"]]
    assert by_manifest.evalplus_hash == cleaned.evalplus_hash
    for one, report in zip(found, reports, strict=True):
        assert not one.shortened and one.difference and dict(one.manifest) == report["manifest"]
        assert (one.manifest["hash"], one.manifest["discarded"]) == (manifest.hash, 1)
    (left,) = (tmp_path / "cleaned").rglob("test.jsonl")
    left.write_text("".join(left.read_text(encoding="utf-8").splitlines(keepends=True)[1:]), encoding="utf-8")
    cut = load_problems("humaneval", str(tmp_path / "cleaned"))
    assert f"without {rows[0]['task_id']}, {rows[1]['task_id']}" in cut.shortened


def test_only_prompts_that_differ_are_refined_and_two_files_of_one_name_are_one_too_many(tmp_path):
    """A file of unchanged prompts was recorded as so many refined ones, and CRLF was asked of the model."""
    rows = [json.loads(line) for line in (SAMPLES / "HumanEvalPlus.jsonl").read_text("utf-8").splitlines()]
    prompts = tmp_path / "prompts.jsonl"
    lines = [{"task_id": row["task_id"], "prompt": row["prompt"].replace("\n", "\r\n")} for row in rows]
    prompts.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    write(tmp_path / REPO, rows)
    found = load_problems("humaneval", str(tmp_path), prompts)
    assert found.refined == 0 and [row["prompt"] for row in found.rows.values()] == [row["prompt"] for row in rows]
    (file,) = (tmp_path / REPO).glob("HumanEval*")
    shutil.copy(file, file.with_name(file.name.lower()))
    with pytest.raises(CulturevalError, match="remove one"):
        load_problems("humaneval", str(tmp_path))
