"""Saved answers as Inspect's logs: what each kind of answer becomes, once each, and what is left out of a bundle."""

import json
import os
import re
import socket
from pathlib import Path

import pytest
from inspect_ai.log import list_eval_logs, read_eval_log
from viewer_runs import ARABIC, plant_all

from cultureval.reports.viewer.bundle import serve, write_bundle
from cultureval.reports.viewer.logs import write_logs
from cultureval.reports.viewer.samples import markdown_text, plain_text
from cultureval.reports.viewer_links import MARK
from cultureval.runtime.errors import CulturevalError


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with an answer of each kind, the folder of its logs, and the files of these by task."""
    root = tmp_path_factory.mktemp("run")
    plant_all(root)
    logs = write_logs([root], root / "inspect")
    return root, root / "inspect", {log.task.partition("|")[0]: root / "inspect" / log.name for log in logs}


def sample_of(run, task, place=0):
    return read_eval_log(str(run[2][task]), resolve_attachments=True).samples[place]


def test_choices_have_probabilities_and_gold(run):
    sample = sample_of(run, "qimma_aratrust")
    assert [message.text for message in sample.messages] == [ARABIC, "ب"]
    assert list(sample.scores) == ["acc_norm", "acc"] and sample.target == "أ"
    lines = sample.scores["acc_norm"].explanation.splitlines()
    assert len(lines) == 3
    shares = [float(line.split()[1]) for line in lines]
    assert sum(shares) == pytest.approx(1, abs=2e-3) and shares == sorted(shares, reverse=True)
    assert lines[0].endswith("ب") and "gold  أ" in lines[1] and "ordered by -1.000" in lines[1]
    several = sample_of(run, "qimma_medarabiq_multi")
    assert several.target == "أ | ج" and several.scores["acc"].explanation.count("gold") == 2
    dialogue = sample_of(run, "cvlue_visdial").scores["mrr"].explanation.splitlines()
    assert len(dialogue) == 100 and "gold  候选7" in dialogue[7]
    first, second = read_eval_log(str(run[2]["qimma_aratrust"]), header_only=True).results.scores
    assert (first.name, first.metrics["mean"].value, second.name) == ("acc_norm", 0, "acc")
    assert (first.scored_samples, first.unscored_samples) == (1, 1)


def test_texts_code_and_stock_lighteval(run):
    text = sample_of(run, "qimma_arablegalqa")
    assert text.messages[1].content[0].reasoning == "أفكر أولاً." and text.messages[1].text == "الرباط هي العاصمة."
    assert {name: score.value for name, score in text.scores.items()} == {"BERTScore-F": 0.712346}
    code = sample_of(run, "qimma_code:mbpp_plus")
    assert "    return x" in code.messages[1].text
    assert "base tests: fail" in code.scores["plus_pass@1"].explanation
    assert "input (2750)" in code.scores["plus_pass@1"].explanation
    stock = sample_of(run, "arc_of_stock_lighteval")
    assert stock.target == "4" and stock.scores["em"].value == 1 and stock.scores["em"].answer == "4"


def test_images_are_data_urls_of_bounded_size_and_judgements_join_their_answer(run):
    content = read_eval_log(str(run[2]["jeem_caption:ae"]), resolve_attachments=True)
    assert [sample.id for sample in content.samples] == ["ae_palm", "ae_palm-2"], "one name in the data, two answers"
    images = [part.image for part in content.samples[0].messages[0].content if part.type == "image"]
    assert len(images) == 1 and images[0].startswith("data:image/jpeg;base64,") and len(images[0]) < 800_000
    plain, judged = content.samples
    assert plain.messages[1].text == "\u2068نخلة عند بيت\\.\u2069"
    assert list(judged.scores) == ["cider", "judge_gpt_vqa", "judge_gpt_vqa_fluency"]
    assert plain.scores["judge_gpt_vqa"].value == "not_asked" and "judge_gpt_vqa_fluency" not in plain.scores
    assert "Consistency" in judged.scores["judge_gpt_vqa"].explanation
    assert judged.scores["judge_gpt_vqa_fluency"].value == 5
    for task, file in run[2].items():
        trusted = read_eval_log(str(file), header_only=True).eval.viewer.trust_content is None
        assert trusted == task.startswith(("jeem", "cvlue_vg")), task
    assert len(list_eval_logs(str(run[1]))) == len(run[2]) == 8


def test_logs_stay_until_what_they_are_made_of_changes(run):
    root, folder, files = run
    before = {task: file.stat().st_mtime_ns for task, file in files.items()}
    (details,) = root.rglob("details_qimma_arablegalqa*.parquet")
    later = max(before.values()) // 10**9 + 1
    os.utime(details, (later, later))
    write_logs([root], folder)
    assert [task for task, file in files.items() if file.stat().st_mtime_ns != before[task]] == ["qimma_arablegalqa"]
    assert [log.task for log in write_logs([root], folder, "qimma_code")] == ["qimma_code:mbpp_plus|0"]
    with pytest.raises(CulturevalError, match=r"no details of nothing. It has arc_of_stock_lighteval, cvlue"):
        write_logs([root], folder, "nothing")
    (root / "linked").symlink_to(root / "details")
    with pytest.raises(CulturevalError, match=r"is, or lies in, a symbolic link"):
        write_logs([root], root / "linked", "qimma_code")
    assert not list((root / "details").rglob("*.eval"))


def test_bundles_leave_gated_data_out_and_replace_no_folder_of_others(run, tmp_path, monkeypatch):
    root, site = run[0], tmp_path / "site"
    logs = write_bundle([root], site)
    assert [log.task for log in logs if not log.written] == ["jeem_caption:ae|0", "cvlue_vg|0"]
    names = json.loads((site / MARK).read_text())["logs"]
    assert len(names) == 6 and all(re.fullmatch(r"[\w./-]+", name) for name in names)
    assert sorted(str(file.relative_to(site / "logs")) for file in site.rglob("*.eval")) == sorted(names)
    assert "default-src 'none'" in (site / "index.html").read_text()
    monkeypatch.chdir(tmp_path)
    write_bundle([root], Path("hf", "lab", "site"), "jeem_caption", gated=True)
    assert len(list(Path("hf", "lab", "site").rglob("*.eval"))) == 1, "a folder, and no Space to upload to"
    with pytest.raises(CulturevalError, match="--gated"):
        write_bundle([root], tmp_path / "other", "jeem_caption")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(CulturevalError, match="has other files"):
        write_bundle([root], tmp_path / "mine")


def test_broken_letters_are_shown_and_markup_is_not_obeyed():
    assert plain_text("a\ud800b\x00\x1b[31m\u202ec\u200bd") == "a\\ud800b\\x00\\x1b[31m\\u202ec\\u200bd"
    assert plain_text("x" * 150_000).endswith("… 50,000 more letters: cultureval show")
    assert markdown_text("  # a_b\n> c\nنص.") == "\u00a0\u00a0\\# a\\_b\n\u00a0> c\n\u2068نص\\.\u2069"
    assert markdown_text("[a](https://b.c)") == "\\[a\\]\\(https\\://b\\.c\\)"


def test_a_viewer_that_does_not_start_is_one_sentence(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(CulturevalError, match="did not start on port"):
            serve(tmp_path, taken.getsockname()[1])
