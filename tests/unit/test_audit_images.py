"""Items about images: shown to vision judges, copied for people; paths in data open nothing."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
from faulty_server import MODEL, FaultyServer
from PIL import Image

from cultureval.audit.checks import run_checks
from cultureval.audit.judging import audit_items, audit_judges, estimates
from cultureval.audit.review import write_review
from cultureval.audit.sources import read_columns, read_items
from cultureval.judge_prompts.templates import judge_template
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.reports.audit import judging_text
from cultureval.runtime.data.image_store import store_image
from cultureval.runtime.data_options import DataOptions

TEAPOT = Path(__file__).parents[2] / "samples" / "QCRI" / "M2CQA" / "images" / "teapot.png"
COLUMNS = read_columns("question=question,options=A+B,gold=answer,image=image")
GOOD = json.dumps({"scores": dict.fromkeys(judge_template("audit_mcq").criteria, 1), "issues": []})


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Six questions: two sound images, four that must open nothing."""
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data" / "pictures").mkdir(parents=True)
    shutil.copyfile(TEAPOT, tmp_path / "data" / "pictures" / "teapot.png")
    shutil.copyfile(TEAPOT, tmp_path / "secret.png")
    Image.new("RGB", (9, 9), "red").save(tmp_path / "data" / "red.png")
    (tmp_path / "data" / "broken.png").write_bytes(b"\x89PNG no image")
    stored = store_image(TEAPOT.read_bytes())  # a name of our store is no path either
    named = (
        "pictures/teapot.png",
        "red.png",
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


def test_files_for_people_hold_stored_images_alone(table, tmp_path):
    items = read_items([str(table)], DataOptions(), COLUMNS)
    assert [bool(item.image_problem) for item in items] == [False] * 2 + [True] * 4
    rows = [row.model_copy(update={"decision": "review"}) for row in run_checks(items).rows]
    assert write_review(items, rows, tmp_path / "out") == 6
    copied = sorted(f"images/{file.name}" for file in (tmp_path / "out" / "images").iterdir())
    for name in ("review.csv", "tasks.json"):
        text = (tmp_path / "out" / name).read_text(encoding="utf-8-sig")
        texts = "".join(line for line in text.splitlines() if "absent_reference" not in line)
        assert sorted(re.findall(r"images/[0-9a-f]{64}\.png", text)) == copied and len(copied) == 2
        assert "secret" not in texts and "passwd" not in texts
    assert '<Image name="image" value="$image"/>' in (tmp_path / "out" / "labelling.xml").read_text(encoding="utf-8")


def test_vision_judges_see_the_image_and_others_have_no_verdict(table):
    items = read_items([str(table)], DataOptions(), COLUMNS)
    with FaultyServer(reply=lambda prompt, index: GOOD) as asked_server:
        judges = [
            JudgeSettings(name=name, model=MODEL, base_url=asked_server.url, image_max_side=64, revision=name)
            for name in ("one", "two")
        ]
        both = audit_items(audit_judges(judges), items, "blog")
        blind = [judges[0], judges[1].with_(images=False)]
        found = estimates(audit_judges(blind), items)
        alone = audit_items(audit_judges(blind), items, "blog")
    asked = {int(re.search(r"رقم (\d)", prompt)[1]): prompt for prompt in asked_server.answered}
    assert sorted(asked) == [0, 1] and all(prompt.startswith("[image image/png ") for prompt in asked.values())
    assert len({prompt.partition("]")[0] for prompt in asked.values()}) == 2
    assert [one.decision for one in both.items] == ["keep"] * 2 + ["review"] * 4
    assert [one.decision for one in alone.items] == ["review"] * 6
    assert "two: unusable, the judge takes no images" in judging_text(alone)
    assert [(one.known, one.calls, one.unusable) for one in found.values()] == [(2, 0, 4), (0, 0, 6)]
