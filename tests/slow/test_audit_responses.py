"""`cultureval audit responses` on saved runs: a planted wrong key comes first, and into a manifest."""

import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from cultureval.audit.sources import read_items
from cultureval.reports.audit.answers import read_answers
from cultureval.runs.writing import write_details
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.manifest import read_manifest

TASK = "qimma_aratrust"


def save_answers(root, model, items, choose):
    rows = []
    for item in items:
        place = choose(item)
        totals = [-1.0 if option == place else -5.0 for option in range(len(item.options))]
        row = item.row.rpartition("/")[2]
        rows.append(
            {
                "doc": {
                    "id": "0",
                    "query": "س",
                    "choices": ["أ", "ب", "ج", "د", "هـ"][: len(item.options)],
                    "gold_index": [item.gold[0]],
                    "specific": {"source_row": row},
                },
                "metric": {"acc_norm": float(place == item.gold[0])},
                "model_response": {"logprobs": totals, "output_tokens": [[1]] * len(totals)},
            }
        )
    write_details(root, model, "2026-01-01T00-00-00", f"{TASK}|0", pyarrow.Table.from_pylist(rows))


def test_the_command_ranks_saved_runs_and_writes_a_manifest(cultureval, tmp_path):
    items = [
        item for item in read_items([TASK], DataOptions(root=samples_root())) if item.split == "test" and item.options
    ]
    bad = items[1]
    rival = (bad.gold[0] + 1) % len(bad.options)
    for number in range(8):
        able = number >= 3

        def choose(item, able=able, number=number):
            if item is bad:
                return rival if able else bad.gold[0]
            return item.gold[0] if able or len(item.question) % 3 == number else (item.gold[0] + 1) % len(item.options)

        save_answers(tmp_path / "runs", f"model-{number}", items, choose)
    command = ("runs", "--data", "samples", "--findings", "all.jsonl", "--write-manifest", "m.jsonl")
    done = cultureval("audit", "responses", *command)
    assert done.returncode == 0, done.stderr
    first = json.loads((tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert (first["row"], first["reasons"][0]) == (bad.row.rpartition("/")[2], "wrong_key")
    assert first["rival"] == ["أ", "ب", "ج", "د"][rival] and first["strong_gold"] == 0
    assert "of the strong choose" in done.stdout and f"{len(items)} items by 8 models" in done.stdout
    (row, *_) = [one for one in read_manifest(tmp_path / "m.jsonl").rows if one.row == bad.row]
    assert row.decision == "review" and row.reasons[0] == "responses:wrong_key" and row.by == ["responses"]
    save_answers(tmp_path / "other", "model-9", [item for item in items if item is not bad][:2], lambda item: 0)
    changed = tmp_path / "changed"
    save_answers(changed, "model-9", items[:1], lambda item: 0)
    (file,) = changed.rglob("*.parquet")
    table = pyarrow.parquet.read_table(file).to_pylist()
    table[0]["doc"]["gold_index"] = [(items[0].gold[0] + 1) % len(items[0].options)]
    write_details(changed, "model-9", "2026-01-02T00-00-00", f"{TASK}|0", pyarrow.Table.from_pylist(table))
    with pytest.raises(CulturevalError, match="another gold"):
        read_answers([tmp_path / "runs", changed])
    assert np.isnan(read_answers([tmp_path / "runs", tmp_path / "other"]).right).sum() == len(items) - 2
