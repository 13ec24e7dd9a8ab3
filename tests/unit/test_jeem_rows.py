"""JEEM's rows in the one layout that is read, and the shipped samples."""

import io
import json
import shutil

import pyarrow
import pyarrow.parquet as parquet
import pytest
from PIL import Image

from cultureval.prompts.jeem.rows import cannot_tell, caption_prompt, question_prompt
from cultureval.runtime.data.content_store import stored_texts
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import CulturevalError, MissingColumn
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.reading import forget_files, prepare_subset

pytestmark = pytest.mark.usefixtures("own_cache")

SAMPLES = samples_root() / "toloka" / "JEEM"


def picture(colour):
    stream = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(stream, "PNG")
    return stream.getvalue()


def prepared(task, root, **options):
    forget_files()
    subset = prepare_subset(all_tasks()[task], DataOptions(root=root, **options))
    lines = (subset.folder / "test.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines], subset.report


def sample_rows():
    return [json.loads(line) for line in (SAMPLES / "test.jsonl").read_text(encoding="utf-8").splitlines()]


def write_json(root, rows, name="test.jsonl"):
    path = root / "toloka" / "JEEM" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    shutil.copytree(SAMPLES / "images", root / "toloka" / "JEEM" / "images", dirs_exist_ok=True)
    return root


def row_of(**cells):
    row = sample_rows()[0] | cells
    return {name: value for name, value in row.items() if value is not ...}


def test_samples_reach_every_task_with_the_shared_pool_and_unanswerable_questions():
    counts = {}
    for name in (task for task in all_tasks() if task.startswith("jeem")):
        rows, report = prepared(name, samples_root())
        counts[name] = (len(rows), sum(row["shared"] for row in rows))
        assert {row["shared"] for row in rows} == {True, False}
        assert report["expected_rows"] == all_tasks()[name].expected_rows
        if name.startswith("jeem_vqa"):
            assert {row["answerable"] for row in rows} == {True, False}
            assert any(row["references"] != [row["answer"]] for row in rows)
    assert counts["jeem_caption:msa"] == (12, 4)
    assert {counts[f"jeem_caption:{code}"] for code in ("jo", "ae", "eg", "ma")} == {(3, 1)}
    assert {counts[f"jeem_vqa:{code}"] for code in ("jo", "ae", "eg", "ma")} == {(15, 5)}


def test_doc_says_all_that_model_metrics_and_judge_need():
    (row, *_), _ = prepared("jeem_caption:eg", samples_root())
    doc = caption_prompt(row, "jeem_caption:eg|0")
    assert doc.query.startswith("اوصف الصورة دي باللهجة المصرية")
    assert doc.get_golds() == row["references"]
    assert Image.open(doc.images[0]).size == (192, 144)
    assert doc.specific["judge"] == {
        "templates": ["jeem_caption_image_reference", "jeem_caption_reference"],
        "slots": {"country": "Egypt", "reference": row["references"][0]},
    }
    assert len(stored_texts(doc.specific["reference_set"])) == 3
    (row, *_), _ = prepared("jeem_caption:msa", samples_root())
    assert caption_prompt(row).specific["judge"]["templates"] == [
        "jeem_caption_image_reference_msa",
        "jeem_caption_reference_msa",
    ]
    rows, _ = prepared("jeem_vqa:ae", samples_root())
    unknown = next(row for row in rows if not row["answerable"])
    doc = question_prompt(unknown)
    assert unknown["question"] in doc.query and doc.choices == ["مب مبين من الصورة"]
    assert doc.specific["judge"]["slots"] == {
        "country": "the United Arab Emirates",
        "question": unknown["question"],
        "reference": "مب مبين من الصورة",  # in the dialect, as the model is asked to say it
    }


@pytest.mark.parametrize(
    ("answer", "unknown"),
    [
        ("<Cannot tell from the picture>", True),
        (" cannot tell from the picture. ", True),
        ("&lt;Cannot tell from the picture&gt;", False),
        ("مش مبين", False),
        ("Cannot tell from the picture لكن يمكن", True),
        ("I cannot tell from the picture who it is", False),
    ],
)
def test_the_annotators_option(answer, unknown):
    assert cannot_tell(answer) == unknown


def test_parquet_with_images_inside_and_other_names_of_columns(tmp_path):
    """Image structs as the hub writes them; the bytes tell the image that two countries share."""
    folder = tmp_path / "toloka" / "JEEM" / "data"
    folder.mkdir(parents=True)
    rows = [
        {
            "image_id": str(number),
            "country": country,
            "photo": {"bytes": picture(colour), "path": f"{number}.png"},
            "caption_msa": f"وصف {number}",
            "caption_dialect": f"لهجة {number}",
            "questions": ["شو؟"],
            "answers": ["بيت"],
        }
        for number, (country, colour) in enumerate([("Jordan", "red"), ("JO", "blue"), ("Morocco", "blue")])
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "test-00000-of-00001.parquet")
    with pytest.raises(MissingColumn, match="'image'.*--columns"):
        prepared("jeem_caption:jo", tmp_path)
    columns = {"image": "photo"}
    rows, report = prepared("jeem_caption:jo", tmp_path, columns=columns)
    assert [(row["references"], row["shared"]) for row in rows] == [(["لهجة 0"], False), (["لهجة 1"], True)]
    assert len(prepared("jeem_caption:msa", tmp_path, columns=columns)[0]) == 3
    assert len(prepared("jeem_vqa:ma", tmp_path, columns=columns)[0]) == 1
    with pytest.raises(CulturevalError, match="no row is left"):
        prepared("jeem_caption:eg", tmp_path, columns=columns)


def test_images_behind_links_of_the_hubs_cache(tmp_path):
    snapshot = write_json(tmp_path, sample_rows()) / "toloka" / "JEEM"
    repository = tmp_path / "hub" / "datasets--toloka--JEEM"
    (repository / "blobs").mkdir(parents=True)
    for path in list(snapshot.rglob("*.*")):
        shutil.move(path, repository / "blobs" / path.name)
        path.symlink_to(repository / "blobs" / path.name)
    (repository / "snapshots").mkdir()
    shutil.move(snapshot, repository / "snapshots" / "abc")
    (tmp_path / "root" / "toloka").mkdir(parents=True)
    (tmp_path / "root" / "toloka" / "JEEM").symlink_to(repository / "snapshots" / "abc")
    assert len(prepared("jeem_caption:jo", tmp_path / "root")[0]) == 3


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"country": "Tunisia"}, "is not one of Jordan"),
        ({"caption_msa": " "}, "null or empty"),
        ({"caption_msa": "A tent in the desert, 3 mountains."}, "holds no Arabic letter"),
        ({"caption_msa": ...}, "columns found: image_id, country, image, caption_dialect"),
        ({"country": ...}, "no column 'country'"),
        ({"image": "images/none.png"}, "names no file"),
        ({"image": "وصف طويل " * 100}, "too long|names no file"),
        ({"image": "images/\0.png"}, "null|names no file"),
        ({"image": None}, "holds no image"),
        ({"image": "../../../secret.png"}, "outside the"),
        ({"image": "test.jsonl"}, "not an image that can be decoded"),
    ],
)
def test_broken_rows_stop_with_their_place(tmp_path, cells, message):
    root = write_json(tmp_path, [*sample_rows()[2:], row_of(**cells), row_of(**cells)])
    with pytest.raises(CulturevalError, match=message) as caught:
        prepared("jeem_caption:msa", root)
    assert "toloka/JEEM" in str(caught.value)


def test_a_broken_row_is_in_no_reference_set(tmp_path):
    root = write_json(tmp_path, [*sample_rows()[1:], row_of(caption_dialect=None)])
    rows, report = prepared("jeem_caption:jo", root)
    assert len(rows) == len(stored_texts(rows[0]["reference_set"])) == 2
    assert report["skipped_rows"][0]["column"] == "caption_dialect"
