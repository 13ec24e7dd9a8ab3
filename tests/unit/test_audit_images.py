"""Items about images: shown to vision judges and on the review page, copied by exports; paths in data open nothing."""

import csv
import io
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from faulty_server import MODEL, FaultyServer
from PIL import Image
from starlette.testclient import TestClient

from cultureval.audit.judging import Rule, audit_items, auditing, estimates
from cultureval.audit.review import server
from cultureval.audit.review.formats import write_export
from cultureval.audit.review.server import Review, new_desk, review_app
from cultureval.audit.sources import read_items
from cultureval.judge_prompts.templates import judge_template
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.reports.audit.report import judging_text
from cultureval.runtime.data.image_store import store_image
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import CulturevalError

TEAPOT = Path(__file__).parents[2] / "samples" / "QCRI" / "M2CQA" / "images" / "teapot.png"
GOOD = json.dumps({"scores": dict.fromkeys(judge_template("audit_mcq").criteria, 1), "issues": []})


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Seven questions: two sound images, one large, four that must open nothing."""
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data" / "pictures").mkdir(parents=True)
    shutil.copyfile(TEAPOT, tmp_path / "data" / "pictures" / "teapot.png")
    shutil.copyfile(TEAPOT, tmp_path / "secret.png")
    noise = np.random.default_rng(0).integers(0, 256, (300, 650, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "data" / "pictures" / "large.png", compress_level=0)
    Image.new("RGB", (9, 9), "red").save(tmp_path / "data" / "red.png")
    (tmp_path / "data" / "broken.png").write_bytes(b"\x89PNG no image")
    stored = store_image(TEAPOT.read_bytes())  # a name of our store is no path either
    named = (
        "pictures/teapot.png",
        "red.png",
        "pictures/large.png",
        "../secret.png",
        "/etc/passwd",
        "broken.png",
        stored,
    )
    with (tmp_path / "data" / "items.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "A", "B", "answer", "image"])
        writer.writerows(
            [f"ما هذا الشيء رقم {number}؟", "إبريق", "كأس", "A", name] for number, name in enumerate(named)
        )
    return tmp_path / "data" / "items.csv"


def test_the_page_and_exports_show_stored_images_alone(table, tmp_path, monkeypatch):
    monkeypatch.setattr(server, "MOST_IMAGE", 200_000)
    monkeypatch.setattr(server, "LONGEST_SIDE", 500)
    items = read_items([str(table)], DataOptions())
    assert [bool(item.image_problem) for item in items] == [False] * 3 + [True] * 4
    desk = new_desk(tmp_path, "amal")
    app = review_app(Review([(item, ()) for item in items], [desk], True), 8080)
    client = TestClient(app, base_url="http://127.0.0.1:8080")
    shown = [client.get(f"/{desk.token}/items/{place}").json() for place in range(7)]
    assert [one["image"] for one in shown] == [True] * 3 + [False] * 4
    assert [one["image_missing"] for one in shown] == [False] * 3 + [True] * 4
    got = [client.get(f"/{desk.token}/items/{place}/image") for place in range(7)]
    assert [one.status_code for one in got] == [200] * 3 + [404] * 4
    assert got[0].content == TEAPOT.read_bytes() and got[0].headers["content-type"] == "image/png"
    assert Image.open(io.BytesIO(got[2].content)).size == (500, 231)
    assert client.get(f"/x{desk.token}/items/0/image").status_code == 404
    for form, name in (("csv", "review.csv"), ("label-studio", "tasks.json"), ("argilla", "records.json")):
        write_export([(item, ()) for item in items], form, tmp_path / form)
        text = (tmp_path / form / name).read_text(encoding="utf-8-sig")
        copied = sorted(re.findall(r"images/[0-9a-f]{64}\.png", text))
        assert copied == sorted(f"images/{file.name}" for file in (tmp_path / form / "images").iterdir())
        assert len(copied) == 3 and "secret" not in text and "passwd" not in text
    labelling = (tmp_path / "label-studio" / "labelling.xml").read_text(encoding="utf-8")
    assert '<Image name="image" value="$image"/>' in labelling


def test_vision_judges_see_the_image_and_others_have_no_verdict(table):
    items = read_items([str(table)], DataOptions())
    with FaultyServer(reply=lambda prompt, index: GOOD) as asked_server:
        judges = [
            JudgeSettings(name=name, model=MODEL, base_url=asked_server.url, image_max_side=64, revision=name)
            for name in ("one", "two")
        ]
        both = audit_items(auditing(judges), items, Rule())
        blind = [judges[0], judges[1].with_(images=False)]
        found = estimates(auditing(blind), items)
        alone = audit_items(auditing(blind), items, Rule())
        with pytest.raises(CulturevalError, match="no judge takes images"):
            audit_items(auditing([one.with_(images=False) for one in judges]), items, Rule())
    asked = {int(re.search(r"رقم (\d)", prompt)[1]): prompt for prompt in asked_server.answered}
    assert sorted(asked) == [0, 1, 2] and all(prompt.startswith("[image image/png ") for prompt in asked.values())
    assert len({prompt.partition("]")[0] for prompt in asked.values()}) == 3
    assert [one.decision for one in both.items] == ["keep"] * 3 + ["review"] * 4
    assert [one.decision for one in alone.items] == ["review"] * 7
    assert "two: unusable, the judge takes no images" in judging_text(alone)
    assert [(one.known, one.calls, one.unusable) for one in found.values()] == [(3, 0, 4), (0, 0, 7)]
