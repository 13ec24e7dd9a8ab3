"""JEEM as people type it: shipped samples, a tiny vision model, no network."""

import numpy as np
import pytest
from caption_scores import corpus_scores
from result_files import details_of, results_of, summary_of

from cultureval.tasks.catalogue import all_tasks


@pytest.mark.slow
def test_captions_and_questions_from_the_command_line(cultureval, tiny_vlm, tmp_path):
    tasks = ["jeem_caption", "jeem_vqa:ma"]
    run = cultureval(*("eval", tiny_vlm, *tasks, "--data", "samples", "--limit", 3, "--output-dir", "out"))
    assert run.returncode == 0, run.stderr
    results, details = results_of(tmp_path / "out"), details_of(tmp_path / "out")
    assert len(details) == 6
    for name, rows in details.items():
        scores = results["results"][name]
        metrics = all_tasks()[name.partition("|")[0]].metrics
        assert {*metrics, *(f"{metric}_stderr" for metric in metrics)} == set(scores)
        assert len(rows) == 3 and all(row["doc"]["images"] for row in rows)
        replies = [row["model_response"]["text"][0] for row in rows]
        references = [row["doc"]["choices"] for row in rows]
        expected = corpus_scores(replies, references)
        for metric in ("bleu_1", "bleu_4", "rouge_l"):
            assert scores[metric] == pytest.approx(expected[metric])
        assert scores["bertscore_recall"] == pytest.approx(np.mean([row["metric"]["bertscore_recall"] for row in rows]))
        assert 0 < scores["bertscore_recall"] <= 100
    average = results["results"]["jeem_caption:_average|0"]
    captions = [scores for name, scores in results["results"].items() if name.startswith("jeem_caption:")]
    captions.remove(average)
    assert average["bertscore_f1"] == pytest.approx(np.mean([scores["bertscore_f1"] for scores in captions]))
    summary = summary_of(tmp_path / "out")
    assert "scorer:BERTScore(" in summary and ",layer 2," in summary


@pytest.mark.slow
def test_none_leaves_bertscore_out_and_a_model_that_is_lacking_stops(cultureval, tiny_vlm, tmp_path):
    command = ("eval", tiny_vlm, "jeem_vqa:ma", "--data", "samples", "--limit", 3, "--output-dir", "out")
    run = cultureval(*command, CULTUREVAL_CAPTION_BERTSCORE_MODEL="none")
    assert run.returncode == 0, run.stderr
    scores = results_of(tmp_path / "out")["results"]["jeem_vqa:ma|0"]
    assert "cider" in scores and not [name for name in scores if name.startswith("bertscore")]
    assert "no BERTScore" in cultureval("show", "out", "--full").stdout
    for model in ("/no/such/model", ""):
        refused = cultureval(*command, CULTUREVAL_CAPTION_BERTSCORE_MODEL=model)
        assert refused.returncode == 2 and "CULTUREVAL_CAPTION_BERTSCORE_MODEL=none" in refused.stderr
