"""`lm-eval:NAME` and `lighteval:NAME` on our models equal the harnesses' own runs, item by item, on made rows."""

import importlib
import json
from pathlib import Path

import datasets
import pytest
from result_files import details_of, results_of

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


def _tydiqa(n):
    return {
        "question": f"ما اسم {n}؟",
        "context": f"اسمه {WORDS[n % 10]}",
        "answers": {"text": [WORDS[n % 10]], "answer_start": [5]},
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
    ("google-research-datasets/tydiqa", "secondary_task"): (_tydiqa, ["train", "validation"]),
    ("allenai/openbookqa", "main"): (_openbookqa, ["validation", "test"]),
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
}
LIGHTEVAL = {  # task -> its module and few-shot examples
    "arabic_mmlu:Driving Test": ("multilingual.tasks.arabic", 2),
    "cmmlu_zho_mcf:anatomy": ("multilingual.tasks.cmmlu", 0),
    "cmmlu_zho_cf:anatomy": ("multilingual.tasks.cmmlu", 0),
    "xcopa_zho_mcf": ("multilingual.tasks.xcopa", 1),
    "tydiqa_ara": ("multilingual.tasks.tydiqa", 1),
    "winogrande": ("tasks.winogrande", 0),
    "openbookqa": ("tasks.openbookqa", 0),
}


def _splits(repo, config):
    row, names = ROWS[repo, config]
    return {split: [row(n + 7 * place) for n in range(6)] for place, split in enumerate(names)}


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """A data root with the made rows, which `datasets.load_dataset` also returns."""
    for repo, config in ROWS:
        for split, made in _splits(repo, config).items():
            file = tmp_path / "root" / repo / (config or "") / f"{split}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")

    def load_dataset(path, name=None, **_):
        made = _splits(path, name)
        return datasets.DatasetDict({split: datasets.Dataset.from_list(rows) for split, rows in made.items()})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return tmp_path / "root"


def _ours(cultureval, rows, model, names):
    """Task -> `file:number` of a row -> its details; and the results."""
    settings = json.dumps({"generation_parameters": {"max_new_tokens": SHORT}})
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
    ours, results = _ours(cultureval, rows, tiny_lm, names)
    folders = ("arabicmmlu", "cmmlu", "ceval", "gsm8k", "winogrande", "hellaswag", "xcopa", "lambada")
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
    from lighteval.metrics import apply_metric
    from lighteval.models.transformers.transformers_model import TransformersModel, TransformersModelConfig
    from lighteval.tasks.lighteval_task import LightevalTask

    names = [f"lighteval:{name}|{shots}" for name, (_, shots) in LIGHTEVAL.items()]
    ours, results = _ours(cultureval, rows, tiny_lm, names)
    parameters = {"max_new_tokens": SHORT}
    config = TransformersModelConfig(
        model_name=str(tiny_lm), dtype="float32", device="cpu", batch_size=2, generation_parameters=parameters
    )
    model = TransformersModel(config)
    for name, (module, shots) in LIGHTEVAL.items():
        table = importlib.import_module(f"lighteval.tasks.{module}").TASKS_TABLE
        config = next(config for config in table if config.name == name)
        config.num_fewshots, config.full_name = shots, f"{name}|{shots}"
        config.few_shots_split = "dev" if config.few_shots_split == ["dev"] else config.few_shots_split
        stock = LightevalTask(config)
        of_task = ours[f"lighteval:{name}|{shots}"]
        stock.metrics = [
            metric for metric in stock.metrics if metric.metric_name in next(iter(of_task.values()))["metric"]
        ]
        stock.dataset = datasets.load_dataset(config.hf_repo, config.hf_subset)
        docs = stock.get_docs()
        ask = model.loglikelihood if stock.metrics[0].category.name == "LOGPROBS" else model.greedy_until
        responses = ask(docs)
        values = apply_metric(responses, docs, stock.metrics)
        assert len(of_task) == len(docs)
        rest = list(of_task.values())
        for doc, response, scores in zip(docs, responses, values, strict=True):
            row = next(row for row in rest if row["doc"]["query"] == doc.query and row["doc"]["id"] == doc.id)
            assert row["doc"]["choices"] == doc.choices and row["metric"] == pytest.approx(scores), (name, doc.query)
            logprobs = row["model_response"]["logprobs"]
            assert (
                logprobs == pytest.approx(response.logprobs, abs=1e-4) or row["model_response"]["text"] == response.text
            )
        for metric, function in stock.aggregation().items():
            mean = function([scores[metric] for scores in values])
            assert results[f"lighteval:{name}|{shots}"][metric] == pytest.approx(mean), (name, metric)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("lm-eval:humaneval", "hub"),
        ("lm-eval:gsm8k_cot_self_consistency", "samples several answers"),
        ("lm-eval:wikitext", "loglikelihood_rolling"),
        ("lm-eval:mmmu_val_accounting", "images"),
        ("lm-eval:no_such_task", "no task"),
        ("lighteval:lcb:codegeneration", "outside a sandbox"),
        ("lighteval:simpleqa", "judge"),
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
