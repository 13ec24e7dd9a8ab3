"""Manifests: no text in them; discarded rows are left out of what a task reads; changed rows are an error."""

import gzip
import json
from dataclasses import replace

import pytest

from cultureval.audit.checks import manifest_row
from cultureval.audit.sources import read_items
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.manifest import manifest_of, merged, read_manifest, write_manifest
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
    assert report["manifest"] == {"name": "manifest.jsonl", "hash": manifest.hash, "discarded": 1}
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
    assert f"changed rows: {lines[1]['row']}" in str(raised.value)
    assert f"missing rows: {lines[2]['row']}" in str(raised.value)


@pytest.mark.parametrize("task", [TASK, "qimma_code:humaneval_plus"])
def test_a_manifest_of_other_files_is_no_manifest_of_the_same_rows(tmp_path, task):
    """Else it would leave out nothing, without a word."""
    found = find_subset(all_tasks()[task], DataOptions(root=samples_root()))
    content, name = found.files[0].read_bytes(), found.files[0].name
    for root, file, written_as in (("a", f"{name}.gz", gzip.compress(content)), ("b", name, content)):
        (tmp_path / root / found.source.repo).mkdir(parents=True)
        (tmp_path / root / found.source.repo / file).write_bytes(written_as)
    manifest = tmp_path / "manifest.jsonl"
    packed = DataOptions(root=tmp_path / "a", manifests=(manifest,))
    written(manifest, read_items([task], replace(packed, manifests=())), ["discard", *["keep"] * 99])
    assert prepare_subset(all_tasks()[task], packed).report["manifest"]["discarded"] == 1
    with pytest.raises(CulturevalError, match=f"missing rows: .*{name}.gz:0"):
        prepare_subset(all_tasks()[task], replace(packed, root=tmp_path / "b"))


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
