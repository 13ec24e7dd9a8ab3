"""CVLUE's released folder: joins by id, what is said of the release, hostile paths, dialogue histories."""

import json
import shutil

import pyarrow.parquet
import pytest

from cultureval.prompts.templates import load_template
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.options import options_of_model
from cultureval.tasks.reading import forget_files, prepare_subset


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A data root with a copy of the samples, to be damaged."""
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    shutil.copytree(samples_root() / "cvlue", tmp_path / "cvlue")
    shutil.copytree(samples_root() / "visdial", tmp_path / "visdial")
    return tmp_path


def prepared(name, root, **options):
    forget_files()
    subset = prepare_subset(all_tasks()[name], DataOptions(root=root, suite=options))
    lines = (subset.folder / "test.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines], subset.report


def edit(path, change):
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(change(content) or content, ensure_ascii=False), encoding="utf-8")


def test_prompts_are_the_papers():
    """Appendix A.2; the dialogue's parts on lines of their own, or in one as printed."""
    words = {"zh/vqa": "只用一个阿拉伯数字或一个词或一个短语回答以下问题: ${question}"}
    words["en/vqa"] = "Answer the question with only an Arabic figure or a word or a phrase: ${question}"
    words["zh/vg_qwen_vl"] = "框出图中${expression}的位置"
    words["en/vg_qwen_vl"] = "<ref>${expression}</ref><box>"
    words["zh/vd_one_line"] = (
        "描述: ${caption} 对话历史: ${history} 根据图片描述和对话历史用一句话回答以下问题. 问题: ${question} 答案:"
    )
    words["en/vd_one_line"] = (
        "Context: ${caption} History: ${history} Answer the question with one sentence based on the context and "
        "dialogue history. Question: ${question} Answer:"
    )
    for name, text in words.items():
        assert load_template(f"cvlue/templates/{name}").template.template == text
    for language in ("zh", "en"):
        lines = load_template(f"cvlue/templates/{language}/vd_lines").template.template
        assert lines.replace("\n", " ") == words[f"{language}/vd_one_line"]


def test_the_release_is_recognised_by_its_number_of_images(root, monkeypatch):
    from cultureval.tasks.cvlue import files as cvlue_files

    monkeypatch.setitem(cvlue_files.SPLITS, "vqa", {"the paper": (1, 2, 3), "the 2025 release": (4, 6, 5)})
    report = prepared("cvlue_vqa", root)[1]
    assert (report["notes"], report["other_data"]) == (["5 images, as in the test split of the 2025 release."], "")
    edit(root / "cvlue/VQA/gold.json", lambda rows: [row for row in rows if "panda" not in row["image"]])
    report = prepared("cvlue_vqa", root)[1]
    assert report["notes"] == ["4 images, as in the training split of the 2025 release."]
    assert report["other_data"] == f"Not a test split; published scores are of test splits: {report['notes'][0]}"
    first, last = prepared("cvlue_vg", root)[1]["notes"]
    assert "no known split" in first and "read as qwen_vl" in last


def test_a_models_type_decides_the_box_format_unless_people_do(monkeypatch):
    monkeypatch.delenv("CULTUREVAL_BOX_FORMAT", raising=False)
    assert options_of_model("qwen2_5_vl") == {"box_format": "qwen2.5_vl"}
    assert options_of_model("llama") == options_of_model("") == {}
    monkeypatch.setenv("CULTUREVAL_BOX_FORMAT", "qwen_vl")
    assert options_of_model("qwen2_5_vl") == {}


@pytest.mark.parametrize(
    ("task", "file", "change", "sentence"),
    [
        ("cvlue_vqa", "VQA/gold.json", lambda rows: [rows[0], *rows], "is duplicated"),
        (
            "cvlue_vqa",
            "VQA/gold.json",
            lambda rows: [row | {"answer": ""} for row in rows],
            "'answer' is null or empty",
        ),
        ("cvlue_vg", "VG/gold.json", lambda rows: [row | {"width": 999} for row in rows], "not the size of the image"),
        ("cvlue_vg", "VG/gold.json", lambda rows: [row | {"bbox": [1, 2, 0, 4]} for row in rows], "is not a box"),
        ("cvlue_vg", "VG/gold.json", lambda rows: [row | {"bbox": [0, 0, 5, 10**400]} for row in rows], "is not a box"),
        ("cvlue_vg", "VG/gold.json", lambda rows: [row | {"image": "../../etc/x.png"} for row in rows], "outside the"),
        ("cvlue_vg", "VG/gold.json", lambda rows: [row | {"image": "/etc/passwd"} for row in rows], "outside the"),
        ("cvlue_vqa", "VQA/gold.json", lambda rows: [r | {"image": "x.png"} for r in rows], "row 1 .* names no file"),
        ("cvlue_vd", "VD/gold.json", lambda c: c["data"].append(c["data"][0]), "is duplicated"),
        ("cvlue_vd", "VD/gold.json", lambda c: c["data"][0].update(dialog_id=1), "is duplicated"),
        ("cvlue_vd", "VD/gold.json", lambda c: c["data"][0].update(answer=-1), "the answer is not among them"),
        ("cvlue_vd", "VD/test_VD.json", lambda c: c["dialogs"].__delitem__(0), "not in both"),
        ("cvlue_vd", "VD/gold.json", lambda c: c["data"][0]["answer_options"].reverse(), "not in both"),
        ("cvlue_vd", "VD/test_VD.json", lambda c: c["id2answer"].clear(), "released form .KeyError"),
        ("cvlue_vd", "VD/gold.json", lambda c: c["data"][0].update(dialog_id="0"), "released form .TypeError"),
        ("cvlue_itr", "IC/gold.json", lambda rows: [rows[0] | {"caption": "一只猫"}], "not a non-empty list of texts"),
        ("cvlue_itr", "IC/gold.json", lambda rows: [*rows, rows[0]], "is duplicated"),
        ("cvlue_itr", "IC/gold.json", lambda rows: {"data": rows}, "released form"),
    ],
)
def test_what_does_not_fit_is_refused(root, task, file, change, sentence):
    edit(root / "cvlue" / file, change)
    with pytest.raises(CulturevalError, match=sentence):
        prepared(task, root)


def test_the_order_of_the_files_does_not_matter(root):
    before, _ = prepared("cvlue_vd", root)
    edit(root / "cvlue/VD/test_VD.json", lambda content: content["dialogs"].reverse())
    edit(root / "cvlue/VD/gold.json", lambda content: content["data"].insert(0, content["data"].pop(2)))
    assert prepared("cvlue_vd", root)[0] == before


def test_a_history_without_the_round_before_is_completed_or_left_and_said(root):
    """As in the released example, whose history omits the round before the current one."""
    whole, _ = prepared("cvlue_vd", root)

    def omit(content):
        for dialog in content["dialogs"]:
            if len(dialog["dialog"]) > 1:
                del dialog["dialog"][-2]

    edit(root / "cvlue/VD/test_VD.json", omit)
    rows, report = prepared("cvlue_vd", root)
    assert [row["prompt"] for row in rows] == [row["prompt"] for row in whole]
    assert not any("lack" in note for note in report["notes"])
    rows, report = prepared("cvlue_vd", root, dialogue_history="as_given")
    assert "4 of 6 rounds have an incomplete history" in report["notes"][1]
    assert whole[2]["prompt"].count("问题:") == 3 and rows[2]["prompt"].count("问题:") == 2
    one_line, _ = prepared("cvlue_vd", root, dialogue_layout="one_line")
    assert "\n" not in one_line[2]["prompt"] and one_line[2]["prompt"] == whole[2]["prompt"].replace("\n", " ")


def test_visdial_has_relevance_for_one_round_of_an_image(root):
    rows, _ = prepared("cvlue_en_vd", root)
    assert [bool(row["relevance"]) for row in rows] == [False, True, False] * 2
    assert all(choice.startswith(" ") for row in rows for choice in row["choices"])
    assert "Question: what color is the teapot?\nAnswer: it is brown" in rows[1]["prompt"]
    edit(root / "visdial/visdial_1.0_val.json", lambda c: c["data"]["dialogs"][0]["dialog"][0].update(answer=999))
    with pytest.raises(CulturevalError, match="list index out of range"):
        prepared("cvlue_en_vd", root)


def test_a_hub_copy_in_parquet_is_read_in_batches(root):
    """VQA v2's schema: structs of answers, the image's bytes in the row."""
    folder = root / "lmms-lab-encoder" / "VQAv2" / "data"
    folder.mkdir(parents=True)
    image = next((samples_root() / "lmms-lab-encoder" / "VQAv2").rglob("*.png")).read_bytes()
    rows = [
        {
            "question_id": number,
            "image_id": number // 3,
            "question": f"How many are there, {number}?",
            "answers": [{"answer": "2", "answer_confidence": "yes", "answer_id": place} for place in range(10)],
            "image": {"bytes": image, "path": None},
        }
        for number in range(150)
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "validation-00000-of-00001.parquet")
    prepared_rows, report = prepared("cvlue_en_vqa", root)
    assert [row["id"] for row in prepared_rows] == [str(number) for number in range(150)]
    assert prepared_rows[4]["cluster"] == "1" and prepared_rows[4]["answers"] == ["2"] * 10
    assert prepared_rows[149]["source_row"] == "validation-00000-of-00001.parquet:149"
