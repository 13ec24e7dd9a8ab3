"""JEEM judged during a run: its samples, a tiny vision model, and the scripted judge."""

import csv
import json
import re

import yaml
from result_files import details_of
from typer.testing import CliRunner

from cultureval.runs.loading import load
from cultureval.runs.table import tables_of
from cultureval.samples.scripted_judge import MODEL, scripted_judge
from cultureval.samples.tiny_models.language_models import build_tiny_vision_lm
from cultureval.scripts.main import app


def test_criteria_per_dialect(cultureval, no_network, tiny_bert, tmp_path):
    no_network.clear()  # the judge's server is on this machine
    model = build_tiny_vision_lm(tmp_path / "tiny-llava", max_position_embeddings=2048)
    with scripted_judge() as url:
        (tmp_path / "judge.yaml").write_text(yaml.safe_dump({"name": "script", "model": MODEL, "base_url": url}))
        done = cultureval(
            *("eval", model, "jeem_caption:jo", "jeem_caption:msa", "jeem_vqa:eg", "--data", "samples", "--limit", 2),
            CULTUREVAL_JUDGE="judge.yaml",
            CULTUREVAL_CAPTION_BERTSCORE_MODEL=str(tiny_bert),
            CULTUREVAL_CAPTION_BERTSCORE_LAYER="1",
            CULTUREVAL_MODEL_SETTINGS=json.dumps({"generation_parameters": {"max_new_tokens": 4}}),
        )
        labelled = cultureval("judge", "results", "--label", "--judge", "judge.yaml")
    assert done.returncode == 0, done.stderr[-3000:]
    summary = min((tmp_path / "results").glob("results/**/summary_*.txt")).read_text(encoding="utf-8")
    assert re.search(r"judge_script_image_reference_consistency +1\.0000 +2$", summary, re.MULTILINE)
    assert "judges:judge(judge:script,model:scripted-judge,server:id=scripted-judge;root=scripted-judge" in summary
    files = sorted((tmp_path / "results" / "results").rglob("results_*.json"))
    scores = json.loads(files[0].read_text())["results"]
    authenticity = "judge_script_reference_dialect_authenticity"
    assert 1 <= scores["jeem_caption:jo|0"][authenticity] <= 5
    # MSA is not judged by it: it has no value, and the group's average is that of the dialects.
    assert scores["jeem_caption:msa|0"][authenticity] is None
    assert scores["jeem_caption:_average|0"][authenticity] == scores["jeem_caption:jo|0"][authenticity]
    assert 1 <= scores["jeem_vqa:eg|0"]["judge_script_vqa_fluency"] <= 5
    metrics, table = tables_of(load(files[0]).runs[0])
    assert metrics.rows == ["MSA", "Jordan", "Mean of MSA, Jordan"]
    captions = [f"{variety}, {shown}" for shown in ("with image", "reference only") for variety in ("MSA", "Jordan")]
    assert table.rows == [*captions, "Egypt, answers"] and table.cells["MSA, with image", "Dialect"].value is None
    assert table.cells["Jordan, reference only", "Dialect"].value == scores["jeem_caption:jo|0"][authenticity]
    assert table.judge == "script" and table.cells["Egypt, answers", "Fluency"].n == 2
    assert labelled.returncode == 0, labelled.stderr[-3000:]
    labels = json.loads(files[1].read_text())["results"]
    assert labels["jeem_vqa:eg|0"]["judge_script_question_type_unknown"] == 0
    assert labels["jeem_caption:msa|0"]["judge_script_topic_group_Others"] == 1
    assert agreement_of(tmp_path / "results") == {"judge_script_image_reference_mean", "judge_script_reference_mean"}


def agreement_of(results):
    """The judge's metrics that `cultureval judge --ratings` compares with ratings of the captions of Jordan."""
    rows = details_of(results)["jeem_caption:jo|0"]
    human = results / "human.csv"
    lines = ["country,image_id,caption,consistency,relevance,fluency,dialect_authenticity"]
    for place, row in enumerate(rows):
        caption = row["model_response"]["text"][0].replace('"', '""')
        lines.append(f'Jordan,{row["doc"]["specific"]["image_id"]},"{caption}",{place + 1},2,3,4')
    human.write_text("\n".join(lines), encoding="utf-8")
    arguments = ["judge", str(results), "--ratings", f"jeem={human}", "--output", str(results / "tau.csv")]
    shown = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert "2 rated texts, 2 ratings." in shown.output
    assert re.search(r"^Fluency +rounded mean of people and judge_script_reference ", shown.output, re.MULTILINE)
    cells = csv.DictReader((results / "tau.csv").read_text(encoding="utf-8").splitlines())
    return {cell["metric"] for cell in cells if cell["metric"].endswith("_mean")}
