"""Code generation: what is asked is what EvalPlus asks, and answered as by its own decoder; files, settings."""

import json
from types import SimpleNamespace

import pytest
from evalplus.gen.util.openai_request import make_request
from evalplus.provider.hf import HuggingFaceDecoder
from evalplus.provider.utility import EOS, make_raw_chat_prompt
from faulty_server import MODEL, FaultyServer
from tiny_models import folder_of

from cultureval.models.code_generation import (
    CodeSettings,
    describe,
    description_file,
    generate_solutions,
    require_same_settings,
    samples_file,
    solutions,
)
from cultureval.models.generation.rendering import Renderer
from cultureval.models.hf import HFModel
from cultureval.models.settings import HFModelSettings
from cultureval.prompts.templates import render
from cultureval.runtime.errors import CulturevalError, DryRun
from cultureval.tasks.qimma.code_data import load_problems

PREFIXES = render("qimma/templates/code_instruction"), render("qimma/templates/code_response")
SMALL = {"dtype": "float32", "max_new_tokens": 12}

pytestmark = pytest.mark.usefixtures("own_cache")


def generated(settings, folder, limit=3, samples=1, resume=True):
    problems = load_problems(settings.dataset, "samples", limit=limit)
    docs = problems.docs(samples, settings.thinking, settings.resolved_backend() == "openai")
    asked = settings, docs, problems.description(), folder, resume
    file, refused = generate_solutions(*asked, lambda given: [text for _, text in given])
    assert not refused
    return file, [json.loads(line)["solution"] for line in file.read_text("utf-8").splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(("chat", "dataset"), [(True, "humaneval"), (False, "humaneval"), (False, "mbpp")])
def test_answers_are_those_of_evalpluss_own_decoder(tmp_path, chat, dataset):
    """Of a new one for each problem: it keeps the stop strings of earlier prompts, which end later answers at once."""
    settings = CodeSettings(str(folder_of("llama", chat)), dataset, **SMALL)
    file, ours = generated(settings, tmp_path)
    theirs, shared = [], list(EOS)
    for row in load_problems(dataset, "samples", limit=3).rows.values():
        named = dict(zip(("instruction_prefix", "response_prefix"), PREFIXES, strict=True))
        decoder = HuggingFaceDecoder(
            settings.model, dataset, max_new_tokens=12, temperature=0, dtype="float32", **named
        )
        EOS[:] = shared
        prompt = row["prompt"].strip() + "\n"
        (text,) = decoder.codegen(prompt, do_sample=False, num_samples=1)
        theirs.append(prompt + text if decoder.is_direct_completion() else text)
    assert ours == theirs
    made = json.loads(description_file(file).read_text("utf-8"))
    assert (
        made["prompt"] == ("chat, response prefix" if chat else "completion") and made["loaded"]["attention"] == "eager"
    )


@pytest.mark.parametrize("thinking", [False, True])
def test_a_chat_is_evalpluss_and_templates_hear_whether_to_think(thinking):
    model = HFModel(HFModelSettings(model_name=str(folder_of("llama", True))))
    (doc,) = load_problems("humaneval", "samples", limit=1).docs(1, thinking, server=False)
    asked = model.renderer.text(doc)
    theirs = make_raw_chat_prompt(doc.specific["plain_query"], *PREFIXES, model.tokenizer)
    assert asked == (theirs.removesuffix(f"{PREFIXES[1]}\n```python\n") if thinking else theirs)
    model.tokenizer.chat_template = "{{ enable_thinking }}|{{ messages[-1]['content'] }}"
    heard = Renderer(model.tokenizer, None, HFModelSettings(model_name="m")).text(doc)
    assert heard.startswith(f"{thinking}|") and heard.endswith("```python\n") is not thinking


@pytest.mark.parametrize("samples", [1, 3])
def test_a_server_is_asked_as_evalplus_asks(tmp_path, samples):
    with FaultyServer() as server:
        settings = CodeSettings(MODEL, "mbpp", base_url=server.url, temperature=0.5 if samples > 1 else 0.0)
        _, found = generated(settings, tmp_path, limit=1, samples=samples)
        assert len(found) == samples
        (body,) = [one for one in server.requests if PREFIXES[0] in str(one)]
    (row,) = load_problems("mbpp", "samples", limit=1).rows.values()
    words = f"{PREFIXES[0]}\n```python\n{row['prompt'].strip()}\n```"
    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=dict)))
    theirs = make_request(client, words, MODEL, max_tokens=768, temperature=settings.temperature, n=samples)
    assert body | {"n": samples} == theirs


def test_a_dry_run_tells_what_solutions_would_cost_and_leaves_earlier_ones_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_MODEL_SETTINGS", '{"dry_run": true}')
    with FaultyServer() as server:
        settings = CodeSettings(MODEL, "mbpp", base_url=server.url)
        earlier = samples_file(settings, tmp_path)
        earlier.parent.mkdir()
        earlier.write_text("{}\n", "utf-8")
        with pytest.raises(DryRun, match="3 requests"):
            generated(settings, tmp_path, resume=False)
        assert not server.asked and [*earlier.parent.iterdir()] == [earlier]


def test_the_program_of_a_reply():
    (doc,) = load_problems("humaneval", "samples", limit=1).docs(1, False, server=False)
    here, there = CodeSettings("m", "humaneval"), CodeSettings("m", "humaneval", base_url="http://x/v1")
    assert solutions(here, doc, ["\treturn 1"], "completion") == [doc.specific["plain_query"] + "    return 1"]
    assert solutions(here, doc, ["\treturn 1\n"], "chat, response prefix") == ["    return 1\n"]
    assert solutions(there, doc, [" ```python\n\tx\n``` "], "chat, no response prefix") == ["```python\n\tx\n```"]
    thinks = CodeSettings("m", "humaneval", thinking=True)
    replies = ["قل:\n```python\ndef f(x):\n\treturn x\n```\n", ""]
    assert solutions(thinks, doc, replies, "chat, thinking, no response prefix") == ["def f(x):\n    return x\n", ""]


def test_reasoning_needs_a_chat_template():
    model = HFModel(HFModelSettings(model_name=str(folder_of("llama", False))))
    with pytest.raises(CulturevalError, match="no chat template"):
        describe(CodeSettings("m", "mbpp", thinking=True), model)


def test_files_of_other_settings_are_not_written_over(tmp_path):
    settings = CodeSettings("org/model", "mbpp", "openai")
    samples = samples_file(settings, tmp_path)
    assert samples == tmp_path / "mbpp" / "org--model_openai_temp_0.0.jsonl"
    made = {"temperature": 0.0, "data_hash": "1", "server": {"id": "m"}, "n_samples": 1, "thinking": False}
    require_same_settings(samples, made)
    samples.parent.mkdir()
    samples.write_text("{}\n", "utf-8")
    description_file(samples).write_text(json.dumps(made), "utf-8")
    require_same_settings(samples, made | {"n_samples": 5})
    for name, value in (("temperature", 0.8), ("data_hash", "0"), ("server", {"id": "o"}), ("thinking", True)):
        with pytest.raises(CulturevalError, match=f"another {name}"):
            require_same_settings(samples, made | {name: value})


def test_options_stand_above_the_models_file_and_evalpluss_values_below(tmp_path):
    file = tmp_path / "server.yaml"
    file.write_text("model: m\nbase_url: http://localhost:1/v1\nsystem_prompt: s\n", "utf-8")
    served = CodeSettings(str(file), "mbpp").of_model(1)
    assert (served["generation_parameters"]["top_p"], served["n"]) == (0.95, 1)
    assert not {"base_url", "system_prompt"} & served.keys(), "they are the file's"
    assert CodeSettings(str(file), "mbpp", base_url="http://localhost:2/v1").of_model(1)["base_url"].endswith(":2/v1")
    assert CodeSettings("openai/o4-mini", "mbpp").of_model(3)["generation_parameters"] == {"max_new_tokens": 768}
    here = CodeSettings("org/model", "mbpp", temperature=0.3).of_model(1)
    assert (here["dtype"], here["attn_implementation"], here["backend"]) == ("bfloat16", "eager", "transformers")
    assert here["generation_parameters"] == {"temperature": 0.3, "top_p": 0.95, "max_new_tokens": 768}
    assert CodeSettings("org/model", "mbpp", dtype="float32").of_model(1)["dtype"] == "float32"
    assert "attn_implementation" not in CodeSettings("org/model", "mbpp", "vllm").of_model(1)
    file.write_text("base_url: http://localhost:1/v1\n", encoding="utf-8")
    with pytest.raises(CulturevalError, match="name no model"):
        samples_file(CodeSettings(str(file), "mbpp"), tmp_path)
