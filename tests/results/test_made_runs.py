"""Runs that LightEval's pipeline does not make: retrieval, submissions, judged code, judged answers."""

import json

import numpy as np
import pytest
from planted import plant, text_row

from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.reports.cvlue.official_scores import score_all, score_task
from cultureval.reports.cvlue.retrieval import evaluate_retrieval
from cultureval.reports.judging import estimates, judge_and_save, saved_jobs
from cultureval.reports.submissions import save_submissions
from cultureval.runs.loading import load
from cultureval.runs.table import tables_of
from cultureval.runtime.errors import CulturevalError
from cultureval.samples.scripted_judge import MODEL, scripted_judge
from cultureval.tasks.cvlue.gallery import Gallery


class Random:
    """An encoder that knows nothing."""

    identity, truncated = {"name": "lab/encoder", "version": "0" * 8, "dtype": "float32"}, 0

    def encode_images(self, paths):
        vectors = np.random.default_rng(len(paths)).normal(size=(len(paths), 8))
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    encode_texts = encode_images


def test_a_recall_is_of_its_direction_s_queries(tmp_path):
    names = [f"{number}.png" for number in range(7)]
    owners = [number // 5 for number in range(35)]
    of_images = [[place for place, owner in enumerate(owners) if owner == image] for image in range(7)]
    texts, report = [f"text {place}" for place in range(35)], {"notes": [], "source": "cvlue", "fingerprint": "a" * 16}
    gallery = Gallery(names, names, texts, of_images, [[owner] for owner in owners], report)
    text, _ = evaluate_retrieval({"cvlue_itr": gallery}, Random(), tmp_path)
    (run,) = load(tmp_path).runs
    scores = run.scores["cvlue_itr|0"]
    assert {name: scores[name].n for name in ("TR@1", "TR@10", "IR@1", "IR@10")} == {
        "TR@1": 7,
        "TR@10": 7,
        "IR@1": 35,
        "IR@10": 35,
    }
    assert (scores["gallery_images"].value, scores["gallery_captions"].value) == (7, 35)
    assert not run.differs and not run.unverified
    (table,) = tables_of(run)
    assert [table.cells[f"{side}, recall", "@1"].n for side in ("TR", "IR")] == [7, 35]
    assert f"IR@10  {scores['IR@10'].value:.4f} ± {scores['IR@10'].error:.4f}" in text
    with pytest.raises(CulturevalError, match="no answers that a judge can score"):
        saved_jobs([tmp_path], label=False, sample=1, seed=0)


def test_a_submission_is_a_run_whose_scores_are_those_of_its_table(tmp_path):
    gold = [
        {
            "image": f"images/val/A/{number // 3 + 1}-x/{number}.png",
            "question_id": number,
            "question": "?",
            "answer": "猫",
        }
        for number in range(12)
    ]
    replies = [one | {"answer": "猫" if one["question_id"] % 4 else "狗"} for one in gold]
    for name, content in (("gold", gold), ("pred", replies)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    found = score_task("vqa", tmp_path / "gold.json", [tmp_path / "pred.json"], tmp_path / "out")
    (file,) = save_submissions(found, tmp_path / "gold.json", tmp_path / "out", 0.0, "../me")
    (run,) = load(file).runs
    score = run.score("cvlue_vqa|0", "accuracy_loose")
    assert (run.model, score.value, score.n) == ("me", 0.75, 12) and not run.unverified and not run.differs
    table = json.loads((tmp_path / "out" / "cvlue-vqa.json").read_text(encoding="utf-8"))
    columns = ("accuracy_loose", "accuracy_loose_stderr", "accuracy_loose_low", "accuracy_loose_high")
    assert [table[0][name] for name in columns] == pytest.approx([score.value, score.error, score.low, score.high])
    assert {row["level"] for row in table} == {"all", "field", "category"} and table[0]["items"] == 12
    assert sum(row["items"] for row in table if row["level"] == "category") == 12
    with pytest.raises(CulturevalError, match="names one submission"):
        save_submissions(type(found)("", found.submissions * 2), tmp_path / "gold.json", tmp_path, 0.0, "me")


def test_captions_count_in_retrieval_and_one_direction_alone_is_told(tmp_path):
    (tmp_path / "gold" / "IC").mkdir(parents=True)
    gold = [{"image": "a.png", "caption": ["1", "2", "3"]}, {"image": "b.png", "caption": ["4"]}]
    (tmp_path / "gold" / "IC" / "gold.json").write_text(json.dumps(gold))
    (tmp_path / "pred" / "IC").mkdir(parents=True)
    ranked = {"1": ["a.png"], "2": ["b.png", "a.png"], "3": ["a.png"], "4": ["b.png"]}
    (tmp_path / "pred" / "IC" / "t2i_submit.json").write_text(json.dumps(ranked))
    found = score_all(tmp_path / "gold", [tmp_path / "pred"], tmp_path / "out")
    assert "Only one of the two directions" in found.text and "No macro-average: 8 of 11" in found.text
    (file,) = save_submissions(found, tmp_path / "gold", tmp_path / "out", 0.0)
    (run,) = load(file).runs
    assert run.value("cvlue_itr|0", "IR@1") == 0.75 and run.value("cvlue_itr|0", "IR@5") == 1.0
    assert run.score("cvlue_itr|0", "TR@1") is None


def judged_rows(*replies):
    return [
        text_row(
            number,
            {"bleu": 0.5},
            reply,
            judge={"templates": ["jeem_caption_reference"], "slots": {"country": "Jordan", "reference": "قلعة"}},
            cluster=f"image {number // 2}",
        )
        for number, reply in enumerate(replies)
    ]


def test_saved_answers_are_judged_and_the_verdicts_belong_to_their_run(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_JOURNAL", str(tmp_path / "journal"))
    plant(
        tmp_path / "out",
        {"jeem_caption:jo|0": judged_rows("قلعة", "", "جبل"), "jeem_caption:eg|0": judged_rows("قلعة")},
    )
    with scripted_judge() as url:
        judge = JudgeSettings(name="x", model=MODEL, base_url=url)
        work = saved_jobs([tmp_path / "out"], label=False, sample=None, seed=0)
        assert "x  total: 3 calls (0 more are in the journal); " in estimates([judge], work)
        report, path, stopped = judge_and_save([judge], work, {"sample": None, "seed": None})
    assert path.read_text(encoding="utf-8") == report + "\n" and not stopped and "Signatures:" in report
    results = load(tmp_path / "out")
    (run,) = results.runs
    assert not results.left_out and run.value("jeem_caption:jo|0", "bleu") == 0.5
    name = "judge_x_reference_fluency"
    score = run.score("jeem_caption:jo|0", name)
    assert (score.n, score.asked) == (2, 3) and "2 of 3" in report and f"{score.value:.2f}" in report
    items = run.items[(run.items["metric"] == name) & run.items["num"].isna()]
    assert [*items["reason"]] == ["unusable"]
    assert any("judge:x|" in one.text for one in run.record.signatures)
