"""`cultureval lighteval` beside stock `lighteval`: same options, same results, without the network."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from forked_commands import own_variables, run_forked
from network import without_network
from stock_lighteval import ANSWER_404

LIGHTEVAL = Path(importlib.util.find_spec("lighteval").origin).parent

TASKS = """
from lighteval.metrics.metrics import Metrics
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc

def prompt(line, task_name=None):
    return Doc(task_name=task_name, query=line["question"], choices=line["choices"], gold_index=line["gold"])

# The error of F1 is bootstrapped, in a pool of processes that takes seconds: once here.
METRICS = {
    "one": [Metrics.loglikelihood_acc, Metrics.loglikelihood_f1],
    "two": [Metrics.loglikelihood_acc, Metrics.mrr],
}
TASKS_TABLE = [
    LightevalTaskConfig(name=f"local:{name}", prompt_function=prompt, hf_repo=DATA, hf_subset="default",
        hf_avail_splits=["test"], evaluation_splits=["test"], metrics=metrics)
    for name, metrics in METRICS.items()
]
"""
MODEL = """
from lighteval.models.abstract_model import LightevalModel
from lighteval.models.model_output import ModelResponse
from lighteval.utils.cache_management import SampleCache

class Local(LightevalModel):
    tokenizer, add_special_tokens, max_length = None, False, 100

    def __init__(self, config):
        self.config = config
        self._cache = SampleCache(config)

    def loglikelihood(self, docs):
        return [ModelResponse(logprobs=[-float(len(choice)) for choice in doc.choices],
                              argmax_logits_eq_gold=[False] * len(doc.choices)) for doc in docs]

    def greedy_until(self, docs):
        raise RuntimeError("these tasks generate nothing")

    loglikelihood_rolling = greedy_until
"""
# The model above prefers the shorter choice: right three times out of four.
ROWS = [
    {"question": "ما عاصمة مصر؟", "choices": ["القاهرة", "الإسكندرية"], "gold": 0},
    {"question": "ما عاصمة المغرب؟", "choices": ["الرباط", "فاس"], "gold": 0},
    {"question": "كم ضلعًا للمثلث؟", "choices": ["ثلاثة", "خمسة عشر"], "gold": 0},
    {"question": "ما لون السماء نهارًا؟", "choices": ["أخضر فاتح", "أزرق"], "gold": 1},
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A folder with data, tasks, a model file, and a `sitecustomize` for either command line."""
    folder = tmp_path_factory.mktemp("lighteval")
    (folder / "data").mkdir()
    (folder / "data" / "test.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    (folder / "local_tasks.py").write_text(f"DATA = {str(folder / 'data')!r}\n{TASKS}")
    (folder / "local_model.py").write_text(MODEL)
    for name, code in (("stock", ANSWER_404), ("ours", "")):
        (folder / name).mkdir()
        (folder / name / "sitecustomize.py").write_text(code)
    return folder


def run_stock(bench, *args):
    return run_without_network(bench, ["lighteval", *args], "stock")


def run_ours(bench, *args, **more):
    return run_without_network(bench, ["cultureval.scripts.main", "lighteval", *args], "ours", **more)


def run_without_network(bench, command, site, from_scratch=False, **more):
    """Runs `python -m COMMAND` with the network cut and `site/sitecustomize.py` in effect."""
    variables = own_variables(bench) | {"PYTHONPATH": str(bench / site)} | more
    if not from_scratch:
        return run_forked(command[0], command[1:], bench, variables, loaded=site)
    command = [*without_network(), sys.executable, "-m", *command]
    return subprocess.run(command, cwd=bench, env=variables, capture_output=True, text=True, timeout=300)


def custom(output, tasks="local"):
    local = ["--custom-tasks", "local_tasks.py"] if "local" in tasks else []
    return ["custom", "tiny", "local_model.py", tasks, *local, "--output-dir", output, "--save-details"]


def files_of_lighteval():
    return {path: path.stat().st_mtime_ns for path in LIGHTEVAL.rglob("*") if path.suffix != ".pyc" and path.is_file()}


def results_of(folder):
    """Results without what differs from run to run, and the details of each task."""
    from datasets import load_dataset

    (file,) = folder.glob("results/**/*.json")
    results = json.loads(re.sub(r"object at 0x[0-9a-f]+", "object", file.read_text()))
    volatile = {"start_time", "end_time", "total_evaluation_time_secondes"}
    results["config_general"] = {k: v for k, v in results["config_general"].items() if k not in volatile}
    details = {}
    for path in sorted(folder.glob("details/**/*.parquet")):
        rows = load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(folder / "cache"))
        details[path.name.rpartition("_")[0]] = list(rows)
    return results, details


@pytest.mark.slow
def test_offline_custom_run_writes_what_stock_lighteval_writes(bench):
    before = files_of_lighteval()
    stock = run_stock(bench, *custom("stock_results"))
    ours = run_ours(bench, *custom("our_results"), from_scratch=True)
    assert stock.returncode == 0, stock.stderr
    assert ours.returncode == 0, ours.stderr
    stock_results, stock_details = results_of(bench / "stock_results")
    our_results, our_details = results_of(bench / "our_results")
    assert our_results == stock_results
    assert our_results["results"]["local:one|0"]["acc"] == 0.75
    assert our_details == stock_details and sorted(our_details) == ["details_local:one|0", "details_local:two|0"]
    table = [line for line in ours.stdout.splitlines() if line.startswith("|")]
    assert table and table == [line for line in stock.stdout.splitlines() if line.startswith("|")]
    assert files_of_lighteval() == before


def test_accelerate_scores_as_stock_with_a_local_model_and_few_shot(bench):
    from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm

    build_tiny_causal_lm(bench / "tiny_model")
    arguments = ["accelerate", "model_name=tiny_model,dtype=float32,device=cpu,batch_size=2", "local:two|1"]
    arguments += ["--custom-tasks", "local_tasks.py", "--save-details", "--output-dir"]
    stock = run_stock(bench, *arguments, "stock_accelerate")
    shutil.rmtree(bench / "hf" / "lighteval", ignore_errors=True)  # its cache of answers
    ours = run_ours(bench, *arguments, "our_accelerate")
    assert (stock.returncode, ours.returncode) == (0, 0), ours.stderr
    our_results, our_details = results_of(bench / "our_accelerate")
    stock_results, stock_details = results_of(bench / "stock_accelerate")
    assert our_results["results"] == stock_results["results"]
    assert our_details == stock_details and list(our_details) == ["details_local:two|1"]
    assert our_results["config_general"] == stock_results["config_general"]


@pytest.mark.parametrize(
    ("tasks", "module", "told"),
    [
        ("qimma_aratrusst", "cultureval.tasks", "Cannot find task qimma_aratrusst"),
        ("gsm8k", "clashing.py", "conflict with built-in tasks"),
    ],
)
def test_an_unknown_task_and_a_builtin_name_end_with_one_sentence(bench, tasks, module, told):
    text = (bench / "local_tasks.py").read_text()
    (bench / "clashing.py").write_text(text.replace('f"local:{name}"', '"gsm8k"'))
    done = run_ours(bench, "custom", "tiny", "local_model.py", tasks, "--custom-tasks", module)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert told in done.stderr.splitlines()[-1]


def test_our_tasks_need_no_custom_tasks_option(bench):
    arguments = ["tasks", "inspect", "qimma_aratrust", "--num-samples", "1"]
    done = run_ours(bench, *arguments, CULTUREVAL_DATA="samples")
    assert done.returncode == 0, done.stderr
    assert "qimma_aratrust|0" in done.stdout and "'task_name'" in done.stdout
