"""Saved answers as Inspect's logs: what each kind of answer becomes, once each, and what is left out of a bundle."""

import json
import re
from pathlib import Path

import pytest
from inspect_ai.log import list_eval_logs, read_eval_log
from viewer_runs import ARABIC, DATE, row, save, save_all

from cultureval.reports.viewer.bundle import MARK, check_bundle, serve, write_bundle
from cultureval.reports.viewer.logs import write_logs
from cultureval.reports.viewer.samples import markdown_text, plain_text
from cultureval.runs import load_runs
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.interruption import Interrupted


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with an answer of each kind, its results, and its logs by task."""
    root = tmp_path_factory.mktemp("run")
    save_all(root)
    results = root / "results" / "lab" / "model" / f"results_{DATE}.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    scores = {"qimma_aratrust|0": {"acc": 0.25, "acc_norm": 0.5, "acc_norm_stderr": 0.1}}
    results.write_text(json.dumps({"config_general": {"model_name": "lab/model"}, "results": scores}))
    return root, write_logs([root])


def sample_of(logs, task, place=0):
    (log,) = [log for log in logs if log.task == f"{task}|0"]
    return read_eval_log(str(log.file), resolve_attachments=True).samples[place]


def test_a_run_is_read_once_whatever_the_number_of_its_tasks(run, monkeypatch):
    read, before = [], load_runs.read_run
    monkeypatch.setattr(load_runs, "read_run", lambda file: read.append(file) or before(file))
    assert len(write_logs([run[0]])) == len(run[1]) > len(read) == len({*read})


def test_choices_have_probabilities_and_gold(run):
    root, logs = run
    sample = sample_of(logs, "qimma_aratrust")
    assert [message.text for message in sample.messages] == [ARABIC, "ب"]
    assert list(sample.scores) == ["acc_norm", "acc"] and sample.target == "أ"
    lines = sample.scores["acc_norm"].explanation.splitlines()
    assert len(lines) == 3
    shares = [float(line.split()[1]) for line in lines]
    assert sum(shares) == pytest.approx(1, abs=2e-3) and shares == sorted(shares, reverse=True)
    assert lines[0].endswith("ب") and "gold  أ" in lines[1] and "ordered by -1.000" in lines[1]
    several = sample_of(logs, "qimma_medarabiq_multi")
    assert several.target == "أ | ج" and several.scores["acc"].explanation.count("gold") == 2
    dialogue = sample_of(logs, "cvlue_visdial").scores["mrr"].explanation.splitlines()
    assert len(dialogue) == 100 and "gold  候选7" in dialogue[7]
    header = read_eval_log(str(next(log.file for log in logs if log.task == "qimma_aratrust|0")), header_only=True)
    (first, second) = header.results.scores
    assert first.name == "acc_norm" and first.metrics["stderr"].value == 0.1 and second.metrics["mean"].value == 0.25


def test_texts_code_and_stock_lighteval(run):
    _, logs = run
    text = sample_of(logs, "qimma_arablegalqa")
    assert text.messages[1].content[0].reasoning == "أفكر أولاً." and text.messages[1].text == "الرباط هي العاصمة."
    assert {name: score.value for name, score in text.scores.items()} == {"BERTScore-F": 0.712346}
    code = sample_of(logs, "qimma_code:mbpp_plus")
    assert "    return x" in code.messages[1].text
    assert "base tests: fail" in code.scores["plus_pass@1"].explanation
    assert "input (2750)" in code.scores["plus_pass@1"].explanation
    stock = sample_of(logs, "arc_of_stock_lighteval")
    assert stock.target == "4" and stock.scores["em"].value == 1 and stock.scores["em"].answer == "4"


def test_images_are_data_urls_of_bounded_size_and_judgements_join_their_answer(run):
    root, logs = run
    (log,) = [log for log in logs if log.task == "jeem_caption:ae|0"]
    content = read_eval_log(str(log.file), resolve_attachments=True)
    assert len(content.samples) == 2 and content.eval.viewer.trust_content is None
    assert [sample.id for sample in content.samples] == ["ae_palm", "ae_palm-2"], "one name in the data, two answers"
    images = [part.image for part in content.samples[0].messages[0].content if part.type == "image"]
    assert len(images) == 1 and images[0].startswith("data:image/jpeg;base64,") and len(images[0]) < 800_000
    assert content.samples[0].messages[1].text == "\u2067نخلة عند بيت\\.\u2069"
    plain, judged = content.samples
    assert list(plain.scores) == ["cider"] and list(judged.scores) == [
        "cider",
        "judge_gpt_vqa",
        "judge_gpt_vqa_fluency",
    ]
    assert (
        "Consistency" in judged.scores["judge_gpt_vqa"].explanation
        and judged.scores["judge_gpt_vqa_fluency"].value == 5
    )
    drawn = sample_of(logs, "cvlue_vg").messages[1].content
    assert [part.type for part in drawn] == ["text", "image"], "the boxes on the image"
    for other in logs:
        log_of_task = read_eval_log(str(other.file), header_only=True)
        pictured = other.task.startswith(("jeem", "cvlue_vg"))
        assert (log_of_task.eval.viewer.trust_content is None) == pictured, other.task
    assert len(list_eval_logs(str(root))) == len(logs) == 8


def test_logs_stay_until_what_they_are_made_of_changes(run):
    root, logs = run
    before = {log.file: log.file.stat().st_mtime_ns for log in logs}
    (file,) = root.rglob("details_qimma_arablegalqa*.parquet")
    save(root, "qimma_arablegalqa", [row(n, "س", {"BERTScore-F": 0.5}, answer="ج", choices=["ج"]) for n in (1, 2, 3)])
    again = write_logs([root])
    changed = [log.task for log in again if log.file.stat().st_mtime_ns != before[log.file]]
    assert changed == ["qimma_arablegalqa|0"]
    assert [log.task for log in write_logs([root], "qimma_code")] == ["qimma_code:mbpp_plus|0"]
    with pytest.raises(CulturevalError, match=r"no details of nothing; it has arc_of_stock_lighteval\|0, cvlue"):
        write_logs([root], "nothing")
    (root / "inspect").rename(root / "elsewhere")
    (root / "inspect").symlink_to(root / "elsewhere")
    (file,) = root.rglob("details_qimma_arablegalqa*.parquet")
    file.touch()
    with pytest.raises(CulturevalError, match=r"inspect is a link"):
        write_logs([file])
    (root / "inspect").unlink()
    (root / "elsewhere").rename(root / "inspect")
    file.write_bytes(b"PAR1")
    with pytest.raises(CulturevalError, match="cannot be read as details"):
        write_logs([file])


def test_bundles_leave_gated_data_out_and_replace_no_folder_of_others(run, tmp_path, monkeypatch):
    _, logs = run
    left_out = write_bundle(logs, tmp_path / "site")
    assert [log.task for log in left_out] == ["cvlue_vg|0", "jeem_caption:ae|0"]
    names = json.loads((tmp_path / "site" / MARK).read_text())["logs"]
    assert len(names) == 6 and all(re.fullmatch(r"[\w./-]+", name) for name in names)
    assert all((tmp_path / "site" / "logs" / name).is_file() for name in names)
    assert "default-src 'none'" in (tmp_path / "site" / "index.html").read_text()
    write_bundle(left_out, tmp_path / "site", gated=True)
    assert len(list((tmp_path / "site" / "logs").rglob("*.eval"))) == 2
    with pytest.raises(CulturevalError, match="--gated"):
        write_bundle(left_out, tmp_path / "other")
    monkeypatch.chdir(tmp_path)
    write_bundle(left_out, Path("hf", "lab", "site"), gated=True)
    assert (tmp_path / "hf" / "lab" / "site" / "index.html").is_file(), "a folder, and no Space to upload to"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(CulturevalError, match="holds files of others"):
        check_bundle(tmp_path / "mine")


def test_broken_letters_are_shown_and_markup_is_not_obeyed():
    assert plain_text("a\ud800b\x00\x1b[31m\u202ec\u200bd") == "a\\ud800b\\x00\\x1b[31m\\u202ec\\u200bd"
    assert plain_text("x" * 150_000).endswith("… 50,000 more letters: cultureval show")
    assert markdown_text("  # a_b\n> c\nنص.") == "\u00a0\u00a0\\# a\\_b\n\u00a0> c\n\u2067نص\\.\u2069"
    assert markdown_text("[a](https://b.c)") == "\\[a\\]\\(https\\://b\\.c\\)"


@pytest.mark.parametrize(
    "error, raised",
    [(Interrupted(15), Interrupted), (SystemExit(3), CulturevalError), (OSError("of a task"), ExceptionGroup)],
)
def test_an_end_of_the_viewer_is_no_traceback_of_a_group_and_other_errors_stay(monkeypatch, error, raised):
    def view(**options):
        raise BaseExceptionGroup("of tasks", [BaseExceptionGroup("of a task", [error])])

    monkeypatch.setattr("inspect_ai.view", view)
    with pytest.raises(raised):
        serve([], 7575)
