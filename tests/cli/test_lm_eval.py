"""Our tasks in lm-evaluation-harness: prompts, log-probabilities, replies, scores and averages as everywhere else.

The same model and rows in `lighteval accelerate`, `cultureval eval` and `lm_eval`; docs/evidence/harnesses.md
has the lines of its table from these runs.
"""

import json
import math
from pathlib import Path

import pytest
import yaml
from harness_runs import Runs
from lm_eval.models.api_models import JsonChatStr

from cultureval.runtime.errors import CulturevalError
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm, build_tiny_vision_lm
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.harnesses.lm_eval_files import harness_name, task_files
from cultureval.tasks.harnesses.lm_eval_tasks import SuiteTask

DOCS = Path(__file__).parents[2] / "docs" / "evidence" / "harnesses.md"
CHOICES = ("qimma_aratrust", "qimma_mizanqa", "qimma_arabicmmlu:Driving Test")
GROUP = "qimma_aradice"
ANSWERS = ("qimma_arablegalqa", "alqasida_mono:habibi_egy", "alqasida_cross:okapi_egy", "alqasida_mt:btec_eng_to_egy")
LONG = ("qimma_fannorflop", "qimma_code:humaneval_plus")  # answers cut off here; LightEval's own backend cuts prompts
IMAGES = ("jeem_caption:msa", "jeem_vqa:eg", "m2cqa:tf_en", "m2cqa_aynvqa_joint:en", "cvlue_vqa", "cvlue_vg")


class _WithoutFunctions(yaml.SafeLoader):
    """Reads `!function` as text."""


_WithoutFunctions.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


@pytest.fixture(scope="module")
def variables(instrument_variables, encoder_variables):
    return instrument_variables | encoder_variables | {"CULTUREVAL_DATA": "samples"}


def prompt_of(sample):
    return sample["arguments"]["gen_args_0"]["arg_0"]


def compare(tasks, ours, others, shots=0):
    """Compares details of ours with LightEval's details, or lm-eval's samples; the rows of the table."""
    lines = []
    for task in tasks:
        rows = ours[f"{task}|{shots}"]
        other = others.get(task) or others[f"{task}|{shots}"]
        assert len(rows) == len(other)
        furthest = 0.0
        for row, found in zip(rows, other, strict=True):
            answer, scores = row["model_response"], found.get("metric", found)
            stock = found.get("model_response")
            if stock is None:
                assert prompt_of(found) == answer["input"]
            if answer["logprobs"]:
                theirs = stock["logprobs"] if stock else [float(value) for value, _ in found["filtered_resps"]]
                furthest = max(furthest, *(abs(a - b) for a, b in zip(answer["logprobs"], theirs, strict=True)))
            else:
                assert answer["text"][0] == (stock["text"][0] if stock else found["filtered_resps"][0])
            kept = {name for name in row["metric"] if name.endswith(("_den", "_sums")) or "verdict" in name}
            for name in row["metric"].keys() - (set() if stock else kept):
                value = row["metric"][name]
                same = scores[name] == value or (value != value and math.isnan(float(scores[name])))
                assert same or scores[name] == pytest.approx(value, abs=1e-4), (task, name)
                if all_tasks()[task].kind.name in ("multiple_choice",):
                    assert scores[name] == value  # verdicts are exactly the same
        assert furthest < 1e-4
        lines.append(len(rows))
    return lines


def documented(tasks, counts, stock=False):
    """Requires the table of docs/evidence/harnesses.md to say what was found equal."""
    text, missing = DOCS.read_text(encoding="utf-8"), []
    for task, count in zip(tasks, counts, strict=True):
        name, _, shots = task.partition("|")
        asked = f"`{name}` ({shots}-shot)" if shots else f"`{name}`"
        same = f"equal, {count}/{count}"
        line = f"| {asked} | {all_tasks()[name].kind.name} | {same if stock else 'not compared'} | {same} |"
        missing += [] if line in text else [line]
    assert not missing, "\n" + "\n".join(missing)


def same_totals(tasks, ours, theirs, shots=0):
    """Scores, standard errors, and the averages of groups."""
    for task in tasks:
        results = theirs["results"][harness_name(task)]
        for name, value in ours[f"{task}|{shots}"].items():
            other = results[f"{name},none"]
            assert other == pytest.approx(math.nan if value is None else value, abs=1e-4, nan_ok=True), (task, name)


def test_every_text_task_has_a_file():
    files = task_files()
    for task in all_tasks().values():
        there = f"{task.suite}/{harness_name(task.task)}.yaml" in files
        assert there == (not task.images or task.kind.generation_size > 0), task.task
    assert "metric: score" in files["qimma/qimma.yaml"] and "- qimma_stem" in files["qimma/qimma.yaml"]


@pytest.fixture(scope="module")
def text_runs(variables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    model = build_tiny_causal_lm(folder / "llama", max_position_embeddings=2048)
    runs, tasks = Runs(folder, model, variables, length=None), [*CHOICES, *ANSWERS]
    ours = runs.ours([*tasks, GROUP])
    return ours, runs.lighteval(tasks), runs.lm_eval(tasks, group=GROUP)


@pytest.mark.slow
def test_text_tasks_are_the_same_in_three_harnesses(text_runs):
    (scores, details), (_, stock), (results, samples) = text_runs
    tasks = [*CHOICES, *ANSWERS]
    counts = compare(tasks, details, samples)
    assert counts == compare(tasks, details, stock)
    documented(tasks, counts, stock=True)
    same_totals(tasks, scores, results)
    average, group = scores[f"{GROUP}:_average|0"], results["groups"][GROUP]
    for name in ("acc_norm", "acc"):
        assert group[f"{name},none"] == pytest.approx(average[name])
        assert group[f"{name}_stderr,none"] == pytest.approx(average[f"{name}_stderr"])


@pytest.mark.slow
def test_few_shot_examples_chats_and_cut_answers(variables, tmp_path):
    model = build_tiny_causal_lm(tmp_path / "chat", max_position_embeddings=2048, chat_template=True)
    runs, chat = Runs(tmp_path, model, variables), ["--apply_chat_template", "--fewshot_as_multiturn", "true"]
    limit = ["--limit", "3"]
    for name, tasks, shots, ours, theirs in (
        ("turns", ["alqasida_mono:btec_syr"], 5, [], chat),
        ("plain", ["alqasida_mono:btec_syr"], 5, ["--model-args", "device=cpu,dtype=float32,chat_template=off"], []),
        ("cut", list(LONG), 0, [], chat),
    ):
        _, details = runs.ours([f"{task}|{shots}" for task in tasks], *limit, *ours, out=f"ours_{name}")
        _, samples = runs.lm_eval(tasks, *limit, "--num_fewshot", str(shots), *theirs, out=f"lm_eval_{name}")
        assert compare(tasks, details, samples, shots) == [3] * len(tasks)
    documented(["alqasida_mono:btec_syr|5", *LONG], [3] * 3)


@pytest.mark.slow
def test_vision_tasks_under_hf_multimodal(variables, tmp_path):
    model = build_tiny_vision_lm(tmp_path / "llava", max_position_embeddings=2048, chat_template=True)
    runs = Runs(tmp_path, model, variables)
    scores, details = runs.ours(list(IMAGES), "--limit", "3")
    results, samples = runs.lm_eval(list(IMAGES), "--limit", "3", "--apply_chat_template", kind="hf-multimodal")
    assert compare(IMAGES, details, samples) == [3] * len(IMAGES)
    same_totals(IMAGES, scores, results)
    documented(IMAGES, [3] * len(IMAGES))


def test_vision_tasks_are_refused_where_lm_eval_would_send_a_server_some_of_the_images(monkeypatch):
    monkeypatch.setenv("CULTUREVAL_DATA", "samples")
    task = SuiteTask(yaml.load(task_files()["cvlue/cvlue_vqa.yaml"], Loader=_WithoutFunctions))
    chat = {"apply_chat_template": True, "chat_template": lambda messages: JsonChatStr(json.dumps(messages))}
    with pytest.raises(CulturevalError, match="hf-multimodal"):
        task.build_all_requests(limit=1, rank=0, world_size=1, **chat)
