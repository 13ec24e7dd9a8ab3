"""`from cultureval import evaluate, load_results, score`, and the notebook about them."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace

import pytest

import cultureval
from cultureval import CulturevalError, evaluate, load_results, score
from cultureval.runs.recording import command_line
from cultureval.runtime.coroutines import run_coroutine
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.errors import BatchWritten

NOTEBOOK = Path(__file__).parents[2] / "docs" / "library.ipynb"
VARIABLE: ContextVar[str] = ContextVar("VARIABLE")


def test_the_notebook_runs_and_tells_what_it_says(tmp_path, monkeypatch):
    from nbclient import NotebookClient
    from nbformat import read

    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)  # the outputs are made here
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = ["".join(out.get("text", "") for out in cell.get("outputs", ())) for cell in notebook.cells]
    values = [out.data["text/plain"] for cell in notebook.cells for out in cell.get("outputs", ()) if "data" in out]
    assert any("qimma_aratrust|0   acc_norm" in text and " ± " in text for text in shown)
    assert any("Did you mean" in text or "nearest" in text or "qimma_aratrust" in text for text in shown[5:])
    assert "task:qimma_aratrust" in values[0] and "gold_probability_mass" in values[1]
    assert values[2] == "('my-model', 0.75)"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: evaluate("m", []), "name of a task"),
        (lambda: evaluate("m", None), "`tasks` is None"),
        (lambda: evaluate(None, "qimma_aratrust"), "`model` is None"),
        (lambda: evaluate("m", "qimma_aratrust", output_dir=None), "`output_dir` is None"),
        (lambda: evaluate("m", "qimma_aratrust", model_args=["dtype"]), "--model-args is of type list"),
        (lambda: evaluate("m", "qimma_aratrust", limit=0), "`limit` is 0"),
        (lambda: evaluate("m", "qimma_aratrust", num_fewshot=-1), "`num_fewshot` is -1"),
        (lambda: evaluate("m", "qimma_aratrust", dtype="bfloat16"), r'Write model_args=\{"dtype": \.\.\.\}'),
        (lambda: evaluate("m", "qimma_aratrust", parity="paper"), r'Write task_args=\{"parity": \.\.\.\}'),
        (lambda: evaluate("m", "qimma_aratrust", max_samples=3), r"Write limit=\.\.\."),
        (lambda: evaluate("m", "qimma_aratrust", cache="x"), "Set CULTUREVAL_CACHE"),
        (lambda: evaluate("m", "qimma_aratrust", task_args={"parityy": "paper"}), "Did you mean parity"),
        (lambda: evaluate("m", "qimma_aratrust", task_args="parity=papr"), "parity='papr' is not one of"),
        (lambda: evaluate("nowhere/model", "qimma_aratrst", data="samples"), "qimma_aratrust"),
        (lambda: evaluate("m", "qimma_aratrust", custom_suites=["a.py"]), "Set CULTUREVAL_CUSTOM_SUITES"),
        (lambda: evaluate("m", "qimma_aratrust", include_path="a.py"), "Set CULTUREVAL_CUSTOM_SUITES"),
        (lambda: evaluate("m", "qimma_aratrust", model_settings={}), "Write model_args"),
        (lambda: evaluate("m", "qimma_aratrust", model_args="api_key=x"), "api_key looks like a key"),
        (lambda: evaluate("m", "qimma_aratrust", manifest=["none.json"]), "none.json is not a file"),
        (lambda: load_results(None), "`path` is None"),
        (lambda: score(None, "a.json", gold="b.json"), "`name` is None"),
        (lambda: score("cvlue-vqa", [5], gold="b.json"), "`pred` is 5"),
        (lambda: score("cvlue-vqa", None, gold="b.json"), "`pred` is None"),
        (lambda: score("cvlue-vqa", "a.json", gold=5), "`gold` is 5"),
        (lambda: load_results("/no/such/folder"), "does not exist"),
        (lambda: score("cvlue-vqq", "a.json", gold="b.json"), "cvlue-vqa"),
        (lambda: score("cvlue-vqa", "a.json"), "needs the gold file"),
        (lambda: score("alqasida", "a.csv", gold="b.json"), "takes no gold file"),
        (lambda: score("humaneval", "a.jsonl"), "cultureval score humaneval --pred"),
        (lambda: score("cvlue-vqa", [], gold="b.json"), "`pred` is empty"),
        (lambda: score("cvlue-vqa", "a.json", gold="b.json"), "json"),
    ],
)
def test_errors_are_sentences(call, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CulturevalError, match=told):
        call()


def test_models_on_servers_are_evaluated_within_a_notebook_s_event_loop(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "requests.jsonl"
    settings = {"batch_out": str(file), "revision": "v1"}

    async def cell():
        options = {"data": "samples", "limit": 1, "output_dir": tmp_path / "out", "model_args": settings}
        evaluate("http://127.0.0.1:9/v1#own", "qimma_gen_aratrust", **options)

    with pytest.raises(BatchWritten):
        asyncio.run(cell())
    assert json.loads(file.read_text("utf-8"))["body"]["model"] == "own"


def test_a_second_evaluation_reads_data_that_have_changed(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    data = shutil.copytree(samples_root(), tmp_path / "data")
    rows = data / "qimma" / "MCQ_AraTrust" / "test.jsonl"
    all_rows = rows.read_text(encoding="utf-8").splitlines(keepends=True)
    asked = []
    for count in (3, 2):
        rows.write_text("".join(all_rows[:count]), encoding="utf-8")
        file = tmp_path / f"{count}.jsonl"
        settings = {"batch_out": str(file), "revision": "v1"}
        with pytest.raises(BatchWritten):
            evaluate(
                "http://127.0.0.1:9/v1#own",
                "qimma_gen_aratrust",
                data=data,
                output_dir=tmp_path / "out",
                model_args=settings,
            )
        asked.append(len(file.read_text("utf-8").splitlines()))
    assert asked == [3, 2]


def test_a_coroutine_within_an_event_loop_returns_fails_and_is_interrupted():
    ended = []

    async def waits(seconds, interrupts):
        try:
            if interrupts:
                os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(seconds)
            return VARIABLE.get()
        finally:
            ended.append(seconds)

    async def cell(seconds, interrupts=False):
        VARIABLE.set("seen")
        return run_coroutine(waits(seconds, interrupts))

    assert asyncio.run(cell(0)) == "seen"
    with pytest.raises(TypeError):
        asyncio.run(cell(None))
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with contextlib.suppress(KeyboardInterrupt), asyncio.Runner() as runner:
            signal.signal(signal.SIGINT, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))  # as in a notebook
            runner.run(cell(60, interrupts=True))
    finally:
        signal.signal(signal.SIGINT, handler)
    assert ended == [0, None, 60]


def test_arguments_of_a_program_that_uses_the_library_are_not_recorded(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/home/me/train.py", "--api-key", "hush-1947"])
    assert command_line() == ("python", "train.py")
    monkeypatch.setattr(sys, "argv", ["/env/bin/cultureval", "eval", "m", "jeem"])
    assert command_line() == ("cultureval", "eval", "m", "jeem")
    monkeypatch.setattr(sys, "argv", ["/home/me/cultureval-runs/lighteval/train.py", "--api-key", "hush-1947"])
    assert command_line() == ("python", "train.py")
    main = SimpleNamespace(__spec__=SimpleNamespace(name="cultureval.scripts.main"))  # of `python -m`
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(sys, "argv", ["/clone/scripts/main.py", "eval", "m", "jeem"])
    assert command_line() == ("cultureval", "eval", "m", "jeem")


def test_importing_the_package_loads_nothing_else():
    code = "import sys, cultureval; dir(cultureval); print(json.dumps([n for n in sys.modules if 'cultureval' in n]))"
    done = subprocess.run([sys.executable, "-c", f"import json; {code}"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["cultureval"]
    with pytest.raises(AttributeError, match="no attribute"):
        _ = cultureval.evalute
