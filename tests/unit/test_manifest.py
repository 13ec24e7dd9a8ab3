"""Manifests: no text in them; discarded rows are left out of what a task reads; changed rows are an error."""

import fcntl
import gzip
import json
import os
from dataclasses import replace

import pytest
from PIL import Image

from cultureval.audit.checks.table import manifest_row
from cultureval.audit.cleaning import cleaned_subsets, push_cleaned, write_cleaned
from cultureval.audit.sources import read_items, read_items_of_each_task
from cultureval.reports.audit.texts import cleaned_text
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.manifest import manifest_of, merged, read_manifest, write_manifest
from cultureval.tasks.qimma.code_data import problems_of
from cultureval.tasks.reading import find_subset, prepare_subset

TASK = "qimma_aratrust"


@pytest.fixture
def items():
    found = read_items([TASK], DataOptions(root=samples_root()))
    return [item for item in found if item.split == "test"]


def written(path, items, decisions):
    rows = [manifest_row(item, decision, [], ["check"]) for item, decision in zip(items, decisions, strict=False)]
    return write_manifest(path, rows)


def test_discarded_rows_are_left_out_and_the_run_records_the_manifest(items, tmp_path):
    file = tmp_path / "manifest.jsonl"
    manifest = written(file, items, ["discard", "review", *["keep"] * len(items)])
    options = DataOptions(root=samples_root(), manifests=(file,))
    before = prepare_subset(all_tasks()[TASK], DataOptions(root=samples_root())).report
    report = prepare_subset(all_tasks()[TASK], options).report
    assert report["rows"] == before["rows"] - 1
    assert report["manifest"] == {
        "name": "manifest.jsonl",
        "hash": manifest.hash,
        "discarded": 1,
        "for_review": 1,
    }
    assert report["row_counts"]["discarded"] == 1
    assert report["fingerprint"] != before["fingerprint"]
    assert read_manifest(file).hash == manifest.hash == manifest_of([file]).hash


def test_rows_that_changed_or_are_gone_are_an_error_that_names_them(items, tmp_path):
    file = tmp_path / "manifest.jsonl"
    written(file, items, ["keep"] * 2)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[1]["hash"] = "0" * 64
    lines[2]["row"] = lines[2]["row"].rpartition(":")[0] + ":99999"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(CulturevalError) as raised:
        prepare_subset(all_tasks()[TASK], DataOptions(root=samples_root(), manifests=(file,)))
    assert f"{lines[1]['row']} has other content than when it was audited" in str(raised.value)
    assert f"{lines[2]['row']} is no longer there" in str(raised.value)


@pytest.mark.parametrize("task", [TASK, "qimma_code:humaneval_plus"])
def test_a_manifest_of_packed_files_is_no_manifest_of_the_same_rows_unpacked(tmp_path, task):
    """It left out nothing, without a word."""
    found = find_subset(all_tasks()[task], DataOptions(root=samples_root()))
    content, name = found.files[0].read_bytes(), found.files[0].name
    for root, file, written_as in (("a", f"{name}.gz", gzip.compress(content)), ("b", name, content)):
        (tmp_path / root / found.source.repo).mkdir(parents=True)
        (tmp_path / root / found.source.repo / file).write_bytes(written_as)
    manifest = tmp_path / "manifest.jsonl"
    packed = DataOptions(root=tmp_path / "a", manifests=(manifest,))
    written(manifest, read_items([task], replace(packed, manifests=())), ["discard", *["keep"] * 99])
    assert prepare_subset(all_tasks()[task], packed).report["manifest"]["discarded"] == 1
    with pytest.raises(CulturevalError, match=f"{name}.gz:0 is no longer there"):
        prepare_subset(all_tasks()[task], replace(packed, root=tmp_path / "b"))
    if task != TASK:
        settings = current_settings().with_(manifest=str(manifest))
        with use_settings(settings), pytest.raises(CulturevalError, match=f"{name}.gz:0 is no longer there"):
            problems_of(task, str(tmp_path / "b"))


def test_no_text_fits_into_a_manifest_and_broken_ones_are_told(items, tmp_path):
    file = tmp_path / "manifest.jsonl"
    manifest = written(file, items, ["keep"])
    text = file.read_text(encoding="utf-8")
    assert not any(part and part in text for part in (items[0].question, *items[0].options))
    row = manifest.rows[0].model_dump()
    broken = {
        "reasons": [items[0].question],
        "by": ["a b"],
        "hash": "xyz",
        "decision": "drop",
        "row": "test.csv",
        "question": items[0].question,
    }
    for name, value in broken.items():
        file.write_text(text.splitlines()[0] + "\n" + json.dumps(row | {name: value}) + "\n")
        with pytest.raises(CulturevalError, match=rf"line 2: .*{name}"):
            read_manifest(file)
    file.write_text("{}\n")
    with pytest.raises(CulturevalError, match="is no manifest"):
        read_manifest(file)


def test_a_persons_decision_counts_before_others_then_the_strictest(items, tmp_path):
    one, two, three = items[:3]
    checks = [manifest_row(item, "review", ["check:mixed_scripts"], ["check"]) for item in (one, two, three)]
    people = [manifest_row(one, "keep", ["person:keep"], ["person:a"])]
    judges = [
        manifest_row(two, "discard", ["judge:x:flag"], ["judge:x"]),
        manifest_row(one, "discard", [], ["judge:x"]),
    ]
    files = [write_manifest(tmp_path / f"{place}.jsonl", rows) for place, rows in enumerate([checks, judges, people])]
    found = {row.row: row for row in merged(files).rows}
    assert [found[item.row].decision for item in (one, two, three)] == ["keep", "discard", "review"]
    assert found[one.row].by == ["person:a", "judge:x", "check"]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "jsonl", "arrow"])
def test_cleaned_data_are_a_data_root_with_the_rows_that_the_manifest_leaves(items, tmp_path, form):
    file = tmp_path / "manifest.jsonl"
    manifest = written(file, items, ["discard", "keep", "review"])
    every = read_items([TASK], DataOptions(root=samples_root()))
    subsets = cleaned_subsets(every, manifest)
    (folder,) = write_cleaned(subsets, manifest, tmp_path / "cleaned", form)
    assert [(one.discarded, one.undecided) for one in subsets] == [(1, len(items) - 3)]
    assert items[0].question not in "".join(item.read_text() for item in folder.rglob("README.md"))
    kept, discarded, undecided, examples = cleaned_text(subsets, manifest, [folder], None).splitlines()[1].split()[-4:]
    few_shot = sum(item.split == "few_shot" for item in every)
    assert (kept, discarded, undecided, examples) == (str(len(items) - 1), "1", str(len(items) - 3), str(few_shot))
    if form == "arrow":
        import datasets

        (place,) = [path for path in folder.iterdir() if path.is_dir()]
        assert len(datasets.load_from_disk(str(place))["test"]) == len(items) - 1
        return
    options = DataOptions(root=tmp_path / "cleaned")
    cleaned = prepare_subset(all_tasks()[TASK], options)
    left = prepare_subset(all_tasks()[TASK], DataOptions(root=samples_root(), manifests=(file,)))
    assert rows_of(cleaned) == rows_of(left)
    assert cleaned.report["manifest"] == left.report["manifest"] | {"for_review": 0}
    with pytest.raises(CulturevalError, match="has cleaned by another: clean the source by both"):
        prepare_subset(all_tasks()[TASK], replace(options, manifests=(file,)))


def test_a_renamed_file_of_a_folder_is_gone(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for name in "ab":
        (data / f"{name}.csv").write_text(f"question,A,B,answer\nسؤال {name},x,y,A\n", encoding="utf-8")
    manifest = written(tmp_path / "m.jsonl", read_items([str(data)], DataOptions()), ["keep", "discard"])
    (data / "b.csv").rename(data / "c.csv")
    with pytest.raises(CulturevalError, match="b.csv:0 is no longer there"):
        cleaned_subsets(read_items([str(data)], DataOptions()), manifest)


def test_a_subset_of_a_table_is_cleaned_by_the_manifest_of_all_and_its_own_lost_rows_are_gone(tmp_path):
    file = tmp_path / "MBZUAI" / "ArabicMMLU" / "ArabicMMLUs.csv"
    file.parent.mkdir(parents=True)
    head = "Subject,Level,Question,Context,Answer Key,Option 1,Option 2,Option 3,Option 4,Option 5,is_few_shot\n"
    subjects = ("Driving Test,", "Economics,Univ")
    rows = [f"{subject},سؤال {subject[:4]} {number}؟,,A,x,y,,,,0\n" for number in range(2) for subject in subjects]
    file.write_text(head + "".join(rows), encoding="utf-8")
    tasks = [f"qimma_arabicmmlu:{name}" for name in ("Driving Test", "Economics (University)")]
    options = DataOptions(root=tmp_path, form="original")
    every = read_items(tasks, options)
    manifest = written(tmp_path / "m.jsonl", every, ["keep", "discard", "review", "keep"])
    (some,) = cleaned_subsets(read_items(tasks[:1], options), manifest)
    assert len(every) == 4 and (some.discarded, len(some.splits["test"])) == (1, 1)
    assert "in the whole manifest: 1 (" in cleaned_text([some], manifest, [tmp_path], None)
    with pytest.raises(CulturevalError, match="ArabicMMLUs.csv:2 is no longer there"):
        cleaned_subsets(read_items(tasks[:1], options)[:1], manifest)


def test_two_processes_do_not_write_cleaned_data_to_one_folder_at_once(items, tmp_path):
    manifest = written(tmp_path / "manifest.jsonl", items, ["discard"])
    subsets = cleaned_subsets(items, manifest)
    (tmp_path / "cleaned").mkdir()
    other = os.open(tmp_path / "cleaned", os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(CulturevalError, match="Another process writes"):
        write_cleaned(subsets, manifest, tmp_path / "cleaned", "jsonl")
    os.close(other)
    assert write_cleaned(subsets, manifest, tmp_path / "cleaned", "jsonl")


def rows_of(subset):
    lines = (subset.folder / "test.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) | {"source_row": ""} for line in lines]


def test_broken_letters_are_kept_as_json_or_refused(tmp_path):
    table = tmp_path / "items.jsonl"
    table.write_text('{"question": "x \\ud800", "A": "a", "B": "b", "answer": "A"}\n')
    items = read_items([str(table)], DataOptions())
    manifest = written(tmp_path / "m.jsonl", items, ["keep"])
    subsets = cleaned_subsets(items, manifest)
    (folder,) = write_cleaned(subsets, manifest, tmp_path / "cleaned", "jsonl")
    (left,) = folder.rglob("test.jsonl")
    assert read_items([str(left)], DataOptions())[0].hash == items[0].hash
    for form in ("parquet", "arrow"):
        with pytest.raises(CulturevalError, match="Give --file-format jsonl"):
            write_cleaned(subsets, manifest, tmp_path / "cleaned", form)
    assert left.is_file()  # what was written before stays, and is replaced as a whole
    write_cleaned(subsets, manifest, tmp_path / "cleaned", "jsonl")
    (folder / ".cultureval-manifest").unlink()
    with pytest.raises(CulturevalError, match="holds other data"):
        write_cleaned(subsets, manifest, tmp_path / "cleaned", "jsonl")


def test_no_path_in_data_writes_outside_the_cleaned_copy(tmp_path):
    (tmp_path / "deep" / "real").mkdir(parents=True)
    real = tmp_path / "deep" / "real" / "x.png"
    Image.new("RGB", (4, 4), "red").save(real)
    (tmp_path / "secret.png").write_bytes(real.read_bytes())
    named = [str(real), "x.png", "../real/x.png", "../../secret.png"]
    rows = [{"question": f"q{n}?", "A": "a", "B": "b", "answer": "A", "image": name} for n, name in enumerate(named)]
    (real.parent / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "link").symlink_to(real.parent)
    items = read_items([str(tmp_path / "link" / "t.jsonl")], DataOptions())
    manifest = written(tmp_path / "m.jsonl", items, ["keep"] * 4)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    (folder,) = write_cleaned(cleaned_subsets(items, manifest), manifest, tmp_path / "a" / "cleaned", "jsonl")
    added = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert added and all(path.is_relative_to(folder) for path in added)
    (left,) = folder.rglob("test.jsonl")
    images = [json.loads(line)["image"] for line in left.read_text().splitlines()]
    assert [(folder / name).is_file() for name in images[:3]] == [True] * 3
    assert images[3] == named[3] and not (folder / "secret.png").exists()


def test_a_manifest_of_other_data_cleans_nothing(items, tmp_path):
    manifest = written(tmp_path / "manifest.jsonl", items, ["keep"])
    changed = replace(manifest, rows=(manifest.rows[0].model_copy(update={"hash": "0" * 64}),))
    with pytest.raises(CulturevalError, match="has other content"):
        cleaned_subsets(items, changed)
    other = replace(manifest, rows=(manifest.rows[0].model_copy(update={"source": "a/b"}),))
    with pytest.raises(CulturevalError, match="decides on no row of .*; it is about a/b"):
        cleaned_subsets(items, other)


def test_cleaned_subsets_are_pushed_as_private_configs(items, tmp_path, monkeypatch):
    import datasets

    pushed = []
    monkeypatch.setattr(
        datasets.DatasetDict,
        "push_to_hub",
        lambda self, repo, **options: pushed.append((repo, {name: len(rows) for name, rows in self.items()}, options)),
    )
    manifest = written(tmp_path / "manifest.jsonl", items, ["discard", "keep"])
    push_cleaned(cleaned_subsets(items, manifest), manifest, "lab/clean")
    (repo, splits, options), *others = pushed
    assert (repo, splits, others) == ("lab/clean", {"test": len(items) - 1}, [])
    assert options["private"] is True and options["config_name"] == items[0].subset
    assert manifest.hash in options["commit_message"]
    shown = read_items_of_each_task(["jeem"], DataOptions(root=samples_root()))
    manifest = written(tmp_path / "jeem.jsonl", shown[:1], ["discard"])
    with pytest.raises(CulturevalError, match="hf upload lab/clean FOLDER"):
        push_cleaned(cleaned_subsets(shown, manifest), manifest, "lab/clean")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "form"),
    [
        (["cvlue"], "jsonl"),
        (["jeem"], "parquet"),
        (["m2cqa"], "parquet"),
        (["alqasida", "alqasida_dev"], "jsonl"),
        (["qimma"], "jsonl"),
    ],
)
def test_every_task_reads_the_same_from_a_cleaned_copy_as_by_the_manifest(names, form, tmp_path, monkeypatch):
    own = DataOptions(root=samples_root())
    items = read_items_of_each_task(names, own)
    once = {(item.source, item.row): item for item in items if item.split == "test"}
    by_task = {item.task: (item.source, item.row) for item in items if item.split == "test"}
    gone = set(by_task.values())  # the last row of each task
    decided = ["discard" if key in gone else "keep" for key in once]
    manifest = written(tmp_path / "m.jsonl", list(once.values()), decided)
    subsets = cleaned_subsets(items, manifest)
    write_cleaned(subsets, manifest, tmp_path / "cleaned", form)
    tasks = [all_tasks()[name] for name in by_task if name not in left_empty(items, gone)]
    assert len(tasks) >= len(names)
    found = {}
    for kind, options in (
        ("by", replace(own, manifests=(tmp_path / "m.jsonl",))),
        ("from", DataOptions(root=tmp_path / "cleaned")),
    ):
        # Another cache: what rows refer to must come with the copy.
        monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / kind))
        found[kind] = {task.task: prepare_subset(task, options).report for task in tasks}
    for name, report in found["by"].items():
        same = ("fingerprint", "manifest", "rows", "form", "prompt", "revision", "few_shot_rows")
        other = found["from"][name]
        assert {key: report[key] for key in same} | {"manifest": report["manifest"] | {"for_review": 0}} == {
            key: other[key] for key in same
        }, name
        assert report["manifest"]["discarded"] >= 1


def left_empty(items, gone):
    left = {item.task for item in items if item.split == "test" and (item.source, item.row) not in gone}
    return {item.task for item in items} - left
