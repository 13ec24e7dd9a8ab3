"""`cultureval eval` of tiny dual encoders of each family on the shipped samples, without network."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from result_files import details_of, results_of
from safetensors.torch import load_file, save_file

from cultureval.models.choice import load_model
from cultureval.models.encoders.dual_encoder import DualEncoder, EncoderSettings
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.errors import CulturevalError
from cultureval.samples.tiny_models.dual_encoder import build_tiny_dual_encoder
from cultureval.samples.tiny_models.language_models import build_tiny_vision_lm

ROOT = Path(__file__).parents[2]
FAMILIES = ("chinese_clip", "clip", "siglip", "siglip2", "altclip")
CAPTIONS = ["三个红灯笼", "一只猫", "两条龙舟在水面上，一红一蓝"]


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoders")
    return {family: build_tiny_dual_encoder(folder / family, family, CAPTIONS) for family in FAMILIES}


@pytest.mark.parametrize("family", FAMILIES)
def test_embeddings_are_those_of_the_whole_model(encoders, family, own_cache):
    """The model's own forward pass over texts and images together."""
    images = [str(path) for path in sorted((samples_root() / "cvlue" / "images").rglob("*.png"))]
    encoder = DualEncoder(EncoderSettings(str(encoders[family]), device="cpu", batch_size=2))
    opened = [Image.open(image).convert("RGB") for image in images]
    inputs = encoder.processor(text=CAPTIONS, images=opened, return_tensors="pt", **encoder.padding)
    with torch.inference_mode():
        whole = encoder.model(**inputs)
    for got, expected in (
        (encoder.encode_texts(CAPTIONS), whole.text_embeds),
        (encoder.encode_images(images), whole.image_embeds),
    ):
        assert got == pytest.approx(torch.nn.functional.normalize(expected, dim=-1).numpy(), abs=1e-5)
    assert encoder.truncated == 0
    encoder.encode_texts(["猫" * 500])
    assert encoder.truncated == 1


def test_a_device_that_is_not_here_is_one_error(encoders, own_cache):
    with pytest.raises(CulturevalError, match="no device 'gpu'"):
        DualEncoder(EncoderSettings(str(encoders["clip"]), device="gpu"))


def test_a_model_that_gives_nonsense_or_is_none_of_these_is_refused(encoders, own_cache, monkeypatch, tmp_path):
    encoder = DualEncoder(EncoderSettings(str(encoders["clip"]), device="cpu"))
    monkeypatch.setattr(encoder.model, "get_text_features", lambda **inputs: torch.full((3, 4), torch.nan))
    with pytest.raises(CulturevalError, match="not finite"):
        encoder.encode_texts(CAPTIONS)
    with pytest.raises(CulturevalError, match="cannot be loaded"):
        DualEncoder(EncoderSettings(str(tmp_path)))
    with pytest.raises(CulturevalError, match="cultureval eval MODEL cvlue_itr"):
        DualEncoder(EncoderSettings(str(build_tiny_vision_lm(tmp_path / "llava"))))
    partial = shutil.copytree(encoders["clip"], tmp_path / "partial")
    weights = load_file(partial / "model.safetensors")
    del weights["text_projection.weight"]
    save_file(weights, partial / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CulturevalError, match="lacks 1 of the weights of a CLIPModel.*text_projection.weight"):
        DualEncoder(EncoderSettings(str(partial)))


def test_both_directions_with_results_and_submissions(cultureval, encoders, tmp_path):
    options = ("--data", "samples", "--output-dir", "out", "--model-args", "device=cpu")
    run = cultureval("eval", encoders["chinese_clip"], "cvlue_itr", *options)
    assert run.returncode == 0, run.stderr
    scores = results_of(tmp_path / "out")["results"]["cvlue_itr|0"]
    assert (scores["gallery_images"], scores["gallery_captions"]) == (7, 35)
    assert all(f"{name}@{k}_stderr" in scores for name in ("TR", "IR") for k in (1, 5, 10))
    assert "7 images: no known split has this size" in run.stdout
    rows = details_of(tmp_path / "out")["cvlue_itr|0"]
    assert len(rows) == 42
    hits = [row["metric"]["IR@1"] for row in rows if row["doc"]["specific"]["direction"] == "IR"]
    assert len(hits) == 35 and np.mean(hits) == pytest.approx(scores["IR@1"])
    shown = cultureval("show", "out").stdout
    assert re.search(r"TR, recall .* 7\n", shown) and re.search(r"IR, recall .* 35\n", shown)
    assert "galleries of 7 images" not in shown
    shown = cultureval("show", "out", "cvlue_itr", "--limit", 42).stdout
    assert "A-1-3.png" in shown and "n/a" not in shown
    gold = samples_root() / "cvlue" / "IC" / "gold.json"
    lists = tmp_path / "out" / "submissions" / "cvlue_itr"
    files = (part for name in ("i2t", "t2i") for part in ("--pred", lists / f"{name}_submit.json"))
    run = cultureval("score", "cvlue-itr", "--gold", gold, *files)
    assert run.returncode == 0, run.stderr
    total = json.loads((tmp_path / "results/score/cvlue-itr.json").read_text(encoding="utf-8"))[0]
    for name in ("TR@1", "TR@5", "TR@10", "IR@1", "IR@5", "IR@10"):
        assert total[name] == pytest.approx(scores[name])


def test_the_english_task(cultureval, encoders, tmp_path):
    run = cultureval("eval", encoders["siglip"], "cvlue_en_itr", "--data", "samples", "--output-dir", "out")
    assert run.returncode == 0, run.stderr
    scores = results_of(tmp_path / "out")["results"]["cvlue_en_itr|0"]
    assert (scores["gallery_images"], scores["IR@10"]) == (4, 1)


def test_the_benchmark_says_time_and_memory():
    command = [sys.executable, "-m", "benchmarks", "retrieval", "--captions", "40000", "--images", "4000"]
    run = subprocess.run([*command, "--dimensions", "64"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "one dense matrix product" in run.stdout
    peak, embeddings, table = map(int, re.findall(r"(\d+) MiB", run.stdout))
    assert (embeddings, table) == (11, 610)
    assert 0 < peak < table / 3  # of recall alone: not the whole table, nor what the parent process held


def test_a_server_may_order_anew_too(tmp_path, own_cache):
    (tmp_path / "server.yaml").write_text("model: some-vlm\nbase_url: http://localhost:1/v1\n", encoding="utf-8")
    assert type(load_model(str(tmp_path / "server.yaml"))).__name__ == "OpenAIModel"
