"""CVLUE through `cultureval eval`: the shipped samples and a tiny vision model, without network."""

import io
import json

import numpy as np
import pytest
from PIL import Image
from result_files import details_of, results_of, summary_of
from vision_families import build_vision_lm

from cultureval.metrics.cvlue.names import MACRO
from cultureval.metrics.cvlue.ranking import gold_ranks
from cultureval.tasks.catalogue import all_tasks


def test_the_whole_suite_runs_offline(cultureval, tiny_vlm, tmp_path):
    command = ("eval", tiny_vlm, "cvlue", "--data", "samples", "--output-dir", "out", "--model-args", "device=cpu")
    run = cultureval(*command, "--task-args", "box_format=xyxy")
    assert run.returncode == 0, run.stderr
    results, details = results_of(tmp_path / "out"), details_of(tmp_path / "out")
    tasks = {name: task for name, task in all_tasks().items() if task.suite == "cvlue"}
    assert set(details) == {f"{name}|0" for name in tasks} and len(tasks) == 8
    for name, task in tasks.items():
        scores = results["results"][f"{name}|0"]
        assert set(task.metrics) <= set(scores)
        assert all(0 <= scores[metric] <= (35 if "gallery" in metric else 100) for metric in task.metrics)
    summary = summary_of(tmp_path / "out")
    assert "cvlue_vqa|0: 5 images: no known split has this size" in summary
    assert "QIMMA" not in summary and "CVLUE, Chinese: percent" in summary
    assert "boxes are asked for and read as xyxy writes them" in summary
    docs = [row["doc"] for row in details["cvlue_vg|0"]]
    assert all("只用像素坐标[x1, y1, x2, y2]回答" in doc["query"] for doc in docs)
    shown = cultureval("show", "out", "cvlue_vg", "503")
    assert shown.returncode == 0, shown.stderr
    assert "左边的大熊猫" in shown.stdout and (tmp_path / "out/pictures/cvlue_vg-503.png").is_file()
    check_files(tmp_path, results["results"])
    compared = cultureval("compare", "out", "--suite", "cvlue")
    assert compared.returncode == 0, compared.stderr
    assert "that was not released" in compared.stdout and "mPLUG-Owl2" in compared.stdout
    check_dialogues(details["cvlue_vd|0"], results["results"]["cvlue_vd|0"])
    check_galleries(details["cvlue_itr|0"], results["results"]["cvlue_itr|0"])


def check_files(folder, results):
    """The tables of a run by field and category begin with its own scores."""
    for name, metrics in MACRO.items():
        (file,) = (folder / "out/cvlue").rglob(f"cvlue-{name}.json")
        rows = json.loads(file.read_text(encoding="utf-8"))
        assert {row["level"] for row in rows} == {"all", "field", "category"} and file.with_suffix(".csv").is_file()
        for metric in metrics:
            assert rows[0][metric] == pytest.approx(results[f"cvlue_{name}|0"][metric]), metric
            assert rows[0][f"{metric}_low"] <= rows[0][metric] <= rows[0][f"{metric}_high"]


def check_dialogues(rows, scores):
    """The four ways of scoring candidates, computed again from what the details hold."""
    assert len(rows) == 6
    gold = [row["doc"]["gold_index"] for row in rows]
    sums = np.array([row["model_response"]["logprobs"] for row in rows])
    ends = np.array(row_ends(rows))
    counts = np.array([[len(choice) for choice in row["model_response"]["output_tokens"]] for row in rows])
    assert counts.shape == (6, 100) and counts.min() > 0
    ways = {"": sums / counts, "_sum": sums, "_mean_end": (sums + ends) / (counts + 1), "_sum_end": sums + ends}
    for suffix, values in ways.items():
        ranks = gold_ranks(values, gold)
        assert scores[f"mean_rank{suffix}"] == pytest.approx(ranks.mean())
        assert scores[f"MRR{suffix}"] == pytest.approx((1 / ranks).mean())
        assert scores[f"R@10{suffix}"] == pytest.approx((ranks <= 10).mean())


def row_ends(rows):
    return [[end[0] for end in row["model_response"]["logits"]] for row in rows]


def check_galleries(rows, scores):
    """Recall in both directions from the table [images, captions], by a stable sort."""
    responses = [row["model_response"] for row in rows]
    means = [
        [total / len(tokens) for total, tokens in zip(r["logprobs"], r["output_tokens"], strict=True)]
        for r in responses
    ]
    table, own = np.array(means), [set(row["doc"]["gold_index"]) for row in rows]
    assert table.shape == (7, 35)
    found = [[place in own[i] for place in np.argsort(-line, kind="stable")] for i, line in enumerate(table)]
    assert scores["TR@5"] == pytest.approx(np.mean([any(line[:5]) for line in found]))
    order = np.argsort(-table, axis=0, kind="stable")
    hits = [any(caption in own[image] for image in order[:1, caption]) for caption in range(35)]
    assert scores["IR@1"] == pytest.approx(np.mean(hits))


def odd_images():
    """Image files by name; the last four cannot be shown to the model."""
    picture = Image.linear_gradient("L").resize((64, 56)).convert("RGB")
    deep = Image.fromarray((np.asarray(picture.convert("L")).astype(np.uint16)) * 257)
    kinds = {
        "phone.jpg": (picture, "MPO", {"save_all": True, "append_images": [picture]}),
        "print.tif": (picture.convert("CMYK"), "TIFF", {}),
        "palette.gif": (picture.quantize(8), "GIF", {}),
        "glass.png": (picture.convert("RGBA"), "PNG", {}),
        "sixteen.png": (deep, "PNG", {}),
        "strip.png": (picture.resize((600, 2)), "PNG", {}),
    }
    files = {}
    for name, (image, kind, options) in kinds.items():
        stream = io.BytesIO()
        image.save(stream, kind, **options)
        files[name] = stream.getvalue()
    return files | {"cut.png": files["glass.png"][:60], "page.png": b"<html>not found</html>"}


def test_odd_images_are_scored_or_named_and_left_out(cultureval, refusal, tmp_path):
    (tmp_path / "data/cvlue/VQA").mkdir(parents=True)
    (tmp_path / "data/cvlue/images").mkdir()
    rows = []
    for number, (name, content) in enumerate(odd_images().items()):
        (tmp_path / "data/cvlue/images" / name).write_bytes(content)
        rows.append({"image": f"images/{name}", "question_id": number, "question": "几个？", "answer": "2"})
    (tmp_path / "data/cvlue/VQA/gold.json").write_text(json.dumps(rows), encoding="utf-8")
    model = build_vision_lm(tmp_path / "tiny-qwen2-vl", "qwen2_vl", max_position_embeddings=2048)
    command = ("eval", model, "cvlue_vqa", "--data", "data", "--output-dir", "out", "--model-args")
    told = refusal(*command, "device=cpu")
    assert all(name in told for name in ("cut.png", "page.png", "sixteen.png")) and "3 broken rows" in told
    kept = [row for row in rows if row["image"] not in ("images/page.png", "images/sixteen.png")]
    (tmp_path / "data/cvlue/VQA/gold.json").write_text(json.dumps(kept), encoding="utf-8")
    run = cultureval(*command, "device=cpu,batch_size=4")
    assert run.returncode == 0, run.stderr
    report = results_of(tmp_path / "out")["config_tasks"]["cvlue_vqa|0"]["rows_report"]
    (broken,), (refused,) = report["skipped_rows"], report["refused_rows"]
    assert "cut.png" in broken["value"] and "can be decoded" in broken["reason"]
    assert "strip.png" in refused["value"] and "aspect ratio" in refused["reason"]
