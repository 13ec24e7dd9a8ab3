"""M2CQA's source in its one layout, its prompts, and what is no item."""

import copy
import hashlib
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import cultureval.tasks
from cultureval.prompts.m2cqa.rows import statement_prompt
from cultureval.prompts.templates import load_template, render
from cultureval.runtime.data.image_store import stored_image
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import CulturevalError, SourceUnavailable
from cultureval.tasks.catalogue import all_tasks, means_of_subsets
from cultureval.tasks.reading import forget_files, prepare_subset

pytestmark = pytest.mark.usefixtures("own_cache")

SAMPLES = samples_root() / "QCRI" / "M2CQA"
# SHA-256 of Table 8's texts with `{statement}` for the example, as the specification took them from the paper.
HASHES = {
    "m2cqa/templates/en/tf": "ea6efbd8fce7e919",
    "m2cqa/templates/ar/tf": "485bb27f1876cba5",
    "m2cqa/templates/en/answer_reason": "904696162bcde3ea",
    "m2cqa/templates/ar/answer_reason": "2fcf614ec543de71",
    "m2cqa/templates/en/reason_first": "dc788aa2f96ee50b",
    "m2cqa/templates/ar/reason_first": "cd83011022015f0f",
}


def sample_rows(variety="en"):
    return [json.loads(line) for line in (SAMPLES / variety / "test.jsonl").read_text(encoding="utf-8").splitlines()]


def prepared(root, task="m2cqa:tf_en", **options):
    forget_files()
    subset = prepare_subset(all_tasks()[task], DataOptions(root=Path(root), **options))
    rows = [json.loads(line) for line in (subset.folder / "test.jsonl").read_text(encoding="utf-8").splitlines()]
    return sorted(rows, key=lambda row: (row["item_id"], row["role"])), subset.report


def content(rows):
    names = ("item_id", "role", "statement", "image", "language", "country", "category")
    return [{name: row[name] for name in names} for row in rows]


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def with_images(folder):
    (folder / "images").mkdir(parents=True)
    for image in (SAMPLES / "images").glob("*.png"):
        (folder / "images" / image.name).write_bytes(image.read_bytes())


def test_prompts_are_the_papers_to_the_letter():
    for name, digest in HASHES.items():
        text = load_template(name).template.template.replace("$statement", "{statement}")
        assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest
    for task in (task for task in all_tasks().values() if task.suite == "m2cqa"):
        assert task.template in HASHES


def test_m2cqas_own_layout_with_bytes_in_parquet_gives_the_same_as_paths(tmp_path):
    """The hub's form of an image column; read in batches, from one file a configuration."""
    rows = sample_rows("msa")
    for row in rows:
        row["image"] = {"bytes": (SAMPLES / row["image"]).read_bytes(), "path": None}
    folder = tmp_path / "QCRI/M2CQA"
    (folder / "msa").mkdir(parents=True)
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), folder / "msa" / "test-00000-of-00001.parquet")
    declared = "configs:\n- config_name: msa\n  data_files:\n  - split: test\n    path: msa/test-*\n"
    (folder / "README.md").write_text(f"---\n{declared}---\n", encoding="utf-8")
    found, report = prepared(tmp_path, "m2cqa:tf_msa")
    assert content(found) == content(prepared(samples_root(), "m2cqa:tf_msa")[0])
    assert report["rows"] == 36
    with pytest.raises(SourceUnavailable):  # no other variety is taken in its place
        prepared(tmp_path, "m2cqa:tf_ajp")


ITEM = {"id": "a", "image": "images/oud.png", "q_plus": "yes", "q_minus": ["no", "never"]}
BROKEN = {
    "a statement missing": (ITEM | {"q_minus": ["no"]}, "holds 1 false statements, not two"),
    "four statements": (ITEM | {"q_minus": ["no", "never", "nope"]}, "holds 3 false statements"),
    "an empty statement": (ITEM | {"q_minus": ["no", " "]}, "has an empty entry"),
    "no true statement": (ITEM | {"q_plus": None}, "'q_plus' is null or empty"),
    "no image": (ITEM | {"image": None}, "holds no image"),
    "an image elsewhere": (ITEM | {"image": "../secret.png"}, "outside the"),
    "no id": (ITEM | {"id": ""}, "'id' is null or empty"),
}


def write_english(tmp_path, rows):
    folder = tmp_path / "QCRI/M2CQA"
    write_lines(folder / "en/test.jsonl", rows)
    declared = "configs:\n- config_name: en\n  data_files:\n  - split: test\n    path: en/test.jsonl\n"
    (folder / "README.md").write_text(f"---\n{declared}---\n", encoding="utf-8")


@pytest.mark.parametrize(("row", "reason"), BROKEN.values(), ids=BROKEN)
def test_an_item_that_is_not_whole_is_left_out_whole(tmp_path, row, reason):
    with_images(tmp_path / "QCRI/M2CQA")
    write_english(tmp_path, [ITEM | {"id": "b"}, row])
    rows, report = prepared(tmp_path)
    assert [row["item_id"] for row in rows] == ["b"] * 3
    (broken,) = report["skipped_rows"]
    assert re.search(reason, f"{broken['column']!r} {broken['reason']}")
    write_english(tmp_path, [row, row])
    with pytest.raises(CulturevalError, match=f"row 2 of test.jsonl.*{reason}"):
        prepared(tmp_path)


def test_a_duplicated_id_is_an_error(tmp_path):
    with_images(tmp_path / "QCRI/M2CQA")
    write_english(tmp_path, [ITEM, ITEM | {"q_plus": "other"}])
    with pytest.raises(CulturevalError, match=r"item 'a' is duplicated, in test.jsonl:0 and test.jsonl:1"):
        prepared(tmp_path)


def test_a_doc_holds_image_prompt_gold_item_and_role():
    rows = prepared(samples_root(), "m2cqa:answer_reason_arz")[0]
    for row in rows:
        doc = statement_prompt(row, "m2cqa:answer_reason_arz|0", "answer_reason")
        assert doc.query == render("m2cqa/templates/ar/answer_reason", statement=row["statement"])
        assert doc.query.endswith(f"العبارة: {row['statement']}")
        assert doc.images == [str(stored_image(row["image"]))]
        assert doc.get_golds() == ["صحيح" if row["role"] == "q_plus" else "غلط"]
        assert (doc.specific["item_id"], doc.specific["role"]) == (row["item_id"], row["role"])


def test_lighteval_hands_out_whole_items_in_order_whatever_the_limit(monkeypatch):
    """What `runtime/patches/lighteval/row_order.py` relies on, tried with LightEval's own task class."""
    from lighteval.tasks.lighteval_task import LightevalTask

    monkeypatch.setenv("CULTUREVAL_DATA", "samples")
    (config,) = [config for config in cultureval.tasks.TASKS_TABLE if config.name == "m2cqa:tf_en"]
    ids = [row["id"] for row in sample_rows()]
    for limit in (None, 3, 7, 30):
        docs = LightevalTask(copy.deepcopy(config)).get_docs(limit)
        taken = [(doc.specific["item_id"], doc.specific["role"]) for doc in docs]
        expected = [(item, role) for item in ids for role in ("q_plus", "q_minus_1", "q_minus_2")]
        assert taken == expected[:limit]
        assert {doc.specific["rows_of_task"] for doc in docs} == {36}


def test_the_dialect_means_are_means_of_metrics_and_undefined_ones_stay_so():
    results = {"m2cqa:tf_ajp|0": {"cfhr": 0.76, "f1": 0.58}, "m2cqa:tf_arz|0": {"cfhr": 0.81, "f1": float("nan")}}
    results |= {"m2cqa:reason_first_ajp|0": {"cfhr": 0.5}, "m2cqa:tf_en|0": {"cfhr": 0.1}}
    rows = means_of_subsets(results)
    assert list(rows) == ["m2cqa:_dialect_tf|0"]
    assert rows["m2cqa:_dialect_tf|0"]["cfhr"] == pytest.approx(0.785)
    assert rows["m2cqa:_dialect_tf|0"]["f1"] != rows["m2cqa:_dialect_tf|0"]["f1"]
