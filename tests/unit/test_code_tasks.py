"""The code tasks as LightEval sees them: prompts, wishes, stop strings, and scores of judged and unjudged replies."""

import copy
import json

import pytest
from evalplus.provider.utility import extra_eos_for_direct_completion
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc
from tiny_models import folder_of

import cultureval.tasks
from cultureval.metrics.code import judging
from cultureval.metrics.code import lighteval as code_metrics
from cultureval.metrics.code.judging import SolutionVerdict
from cultureval.models.hf import HFModel
from cultureval.models.settings import HFModelSettings
from cultureval.prompts.qimma.code_problems import STOPS, code_prompt
from cultureval.prompts.templates import render
from cultureval.runtime.data.content_store import store_problem, stored_problem
from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.generation_hints import stop_strings
from cultureval.tasks.qimma.code_data import REPO

PROBLEM = {"task_id": "Mbpp/9001", "prompt": '"""\nاجمع\n"""', "source_row": "x:0", "form": "original"}


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CULTUREVAL_JOURNAL", str(tmp_path / "journal"))
    monkeypatch.setenv("CULTUREVAL_DATA", "samples")


@pytest.fixture
def doc():
    return code_prompt(PROBLEM | {"dataset": "mbpp", "problem": "0" * 64}, "qimma_code:mbpp_plus|0")


def test_stop_strings_and_limits_are_evalpluss():
    table = {config.name: config for config in cultureval.tasks.TASKS_TABLE}
    for name, dataset in (("humaneval_plus", "humaneval"), ("mbpp_plus", "mbpp")):
        config = table[f"qimma_code:{name}"]
        assert list(config.stop_sequence) == [*STOPS, *extra_eos_for_direct_completion(dataset)]
        assert config.generation_size == 768


def sample_rows():
    config = copy.deepcopy(next(item for item in cultureval.tasks.TASKS_TABLE if item.name == "qimma_code:mbpp_plus"))
    with open(f"{config.hf_repo}/test.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_rows_name_their_stored_problems():
    rows = sample_rows()
    assert [row["task_id"] for row in rows] == [f"Mbpp/900{number}" for number in range(1, 7)]
    for row in rows:
        assert stored_problem(row["problem"])["prompt"] == row["prompt"]
        assert "canonical_solution" not in row and "canonical_solution" not in str(code_prompt(row).specific)


def test_no_launcher_generates_what_cannot_be_judged(monkeypatch):
    """Stock LightEval reads a task's rows before it asks the model."""
    config = copy.deepcopy(next(item for item in cultureval.tasks.TASKS_TABLE if item.name == "qimma_code:mbpp_plus"))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CulturevalError, match="apt-get install bubblewrap"):
        _ = config.hf_repo


def test_other_problems_than_the_published_ones_are_marked(monkeypatch, tmp_path):
    config = copy.deepcopy(next(item for item in cultureval.tasks.TASKS_TABLE if item.name == "qimma_code:mbpp_plus"))
    row = json.loads((samples_root() / REPO / "MBPPPlus.jsonl").read_text(encoding="utf-8").splitlines()[0])
    (tmp_path / REPO).mkdir(parents=True)
    changed = row | {"task_id": "Mbpp/2", "plus_input": []}
    (tmp_path / REPO / "MBPPPlus.jsonl").write_text(json.dumps(changed), encoding="utf-8")
    monkeypatch.setenv("CULTUREVAL_DATA", str(tmp_path))
    assert config.hf_repo and "not comparable" in config.rows_report["other_data"]


def test_a_stored_problem_that_was_changed_is_not_used():
    name = store_problem({"task_id": "Mbpp/1"})
    (user_cache() / "code_problems" / f"{name}.json").write_text('{"task_id": "Mbpp/2"}')
    for wrong in (name, "1" * 64, "../../etc/passwd"):
        with pytest.raises(CulturevalError, match="is damaged|is missing|does not name"):
            stored_problem(wrong)


@pytest.mark.parametrize("chat", [False, True])
def test_models_read_the_problem_as_evalplus_shows_it(doc, chat):
    model = HFModel(HFModelSettings(model_name=str(folder_of("llama", chat))))
    prompt = model.renderer.text(doc)
    if chat:
        assert f"<|user|>\n{render('qimma/templates/code_instruction')}\n```\n{PROBLEM['prompt']}\n```\n" in prompt
        assert prompt.endswith(f"<|assistant|>\n{render('qimma/templates/code_response')}\n```python\n")
        assert model.renderer.begins_answer(doc)
        assert "\n```\n" in stop_strings(doc, chat=True, prefixed=True)
        model.renderer.knows_thinking = True  # a model that may think begins its answer itself, and ends it
        assert model.renderer.text(doc).endswith("<|assistant|>\n")
        assert stop_strings(doc, chat=True, prefixed=model.renderer.begins_answer(doc)) == []
    else:
        assert prompt == PROBLEM["prompt"] + "\n"
        doc.stop_sequences = ["\nassert"]
        assert stop_strings(doc, chat=False) == ["\nassert"]


def test_metrics_take_their_scores_of_one_pass(monkeypatch):
    doc = code_prompt(sample_rows()[0], "qimma_code:mbpp_plus|0")
    passes = []

    def judge_solutions(problems, solutions, dataset, **_):
        passes.append([solution.code for solution in solutions[1:]])  # after the canonical one
        return [SolutionVerdict(one.task_id, one.sample_index, "pass", "fail") for one in solutions]

    monkeypatch.setattr(judging, "judge_solutions", judge_solutions)
    responses = [ModelResponse(text=["code = 1"])]
    metrics = code_metrics.code_metrics()
    scores = {metric.metric_name: metric.sample_level_fn.compute([doc], responses) for metric in metrics}
    assert scores == {"plus_pass@1": [0.0], "base_pass@1": [1.0], "not_judged": [0.0]}
    assert [len(solutions) for solutions in passes] == [1] and "code = 1" in passes[0][0]
    assert isinstance(doc, Doc)
