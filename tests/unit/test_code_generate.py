"""Runs of code generation: settings, going on after a kill, EvalPlus reading our problems, vLLM's side."""

import json
import sys
from types import ModuleType, SimpleNamespace

import evalplus.codegen
import evalplus.data.mbpp
import pytest
from evalplus.provider.base import DecoderBase
from tiny_models import folder_of

from cultureval.metrics.code.solution_code import sanitize_solution
from cultureval.models.code.decoders import make_decoder
from cultureval.models.code.generation import (
    decoder_settings,
    describe,
    description_file,
    prepare_resume,
    samples_file,
)
from cultureval.models.code.settings import DecoderSettings
from cultureval.prompts.templates import render
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.evalplus import codegen_reads
from cultureval.tasks.qimma.code_data import load_problems


@pytest.fixture
def settings(monkeypatch, tmp_path):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    prefixes = {
        "instruction_prefix": render("qimma/templates/code_instruction"),
        "response_prefix": render("qimma/templates/code_response"),
    }
    return DecoderSettings("org/model", "openai", "mbpp", **prefixes, base_url="http://localhost:1/v1")


def test_files_are_named_as_evalplus_names_them(settings, tmp_path):
    assert samples_file(settings, tmp_path) == tmp_path / "mbpp" / "org--model_openai_temp_0.0.jsonl"


def test_a_killed_run_goes_on_and_other_settings_are_refused(settings, tmp_path):
    samples = samples_file(settings, tmp_path)
    described = describe(settings, load_problems("mbpp", "samples", limit=2), 1)
    prepare_resume(samples, described, resume=True)
    description_file(samples).write_text(json.dumps(described), encoding="utf-8")
    raw = samples.with_name(samples.name.replace(".jsonl", ".raw.jsonl"))
    for file in (samples, raw):
        file.write_text('{"task_id": "Mbpp/9001", "solution": "x"}\n{"task_id": "Mb')
    more = describe(settings, load_problems("mbpp", "samples"), 5)
    prepare_resume(samples, more, resume=True)
    for file in (samples, raw):
        assert file.read_text() == '{"task_id": "Mbpp/9001", "solution": "x"}\n'
    for name, value in (("temperature", 0.8), ("data_hash", "0"), ("model_hash", "0"), ("thinking", True)):
        with pytest.raises(CulturevalError, match=f"another {name}"):
            prepare_resume(samples, more | {name: value}, resume=True)
    prepare_resume(samples, more | {"thinking": True}, resume=False)
    assert not samples.exists() and samples.with_name(samples.name + ".bak").exists()


def test_a_file_names_a_servers_model(tmp_path, monkeypatch):
    file = tmp_path / "server.yaml"
    file.write_text("model: m\nbase_url: http://localhost:1/v1\napi_key_env: KEY\n", encoding="utf-8")
    monkeypatch.setenv("KEY", "k")
    others = {"dataset": "mbpp", "instruction_prefix": "i", "response_prefix": "r"}
    served = DecoderSettings("m", "openai", **others, base_url="http://localhost:2/v1", api_key_env="KEY")
    assert decoder_settings(str(file), base_url="http://localhost:2/v1", **others) == served
    several = ["http://localhost:1/v1", "http://localhost:2/v1"]
    file.write_text(f"model: m\nbase_url: {several}\n", encoding="utf-8")
    assert decoder_settings(str(file), **others).servers().base_urls == tuple(several)
    for wrong in ("[]", "5", "[5]"):
        file.write_text(f"model: m\nbase_url: {wrong}\n", encoding="utf-8")
        with pytest.raises(CulturevalError, match=r"base_url is .*an address or a list"):
            decoder_settings(str(file), **others)
    local = DecoderSettings("org/model", "hf", **others, dtype="float32")
    assert decoder_settings("org/model", dtype="float32", **others) == local
    file.write_text("model: m\nbase_ur: x\n", encoding="utf-8")
    with pytest.raises(CulturevalError, match="Did you mean base_url"):
        decoder_settings(str(file), **others)
    file.write_text("base_url: http://localhost:1/v1\n", encoding="utf-8")
    with pytest.raises(CulturevalError, match="name no model"):
        decoder_settings(str(file), **others)


class Writer(DecoderBase):
    """A decoder that writes what no sanitiser of EvalPlus 0.3.1 survives, and then a solution."""

    def __init__(self):
        super().__init__("writer")
        self.replies = iter(["\0", "(" * 5000, "\ud800", "-" * 100_000 + "1"])

    def is_direct_completion(self):
        return False

    def codegen(self, prompt, do_sample=True, num_samples=1):
        return [next(self.replies, "def f():\n    return 1")] * num_samples


def test_evalplus_reads_our_problems_and_survives_any_text(settings, tmp_path, capsys):
    problems = load_problems("mbpp", "samples")
    before = evalplus.data.mbpp.MBPP_OVERRIDE_PATH, evalplus.codegen.sanitize
    target = tmp_path / "out.jsonl"
    with codegen_reads("mbpp", problems.file, sanitize_solution):
        evalplus.codegen.codegen(str(target), Writer(), "mbpp", greedy=True)
    assert (evalplus.data.mbpp.MBPP_OVERRIDE_PATH, evalplus.codegen.sanitize) == before
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert [line["task_id"] for line in lines] == list(problems.rows)
    assert lines[-1]["solution"] == "def f():\n    return 1"


@pytest.mark.parametrize("thinking", [False, True])
def test_vllm_is_asked_with_the_arabic_prompt(settings, monkeypatch, thinking):
    """vLLM itself is not installed beside the tests: its two classes are stood in for."""
    asked = {}

    class LLM:
        def __init__(self, **options):
            asked["engine"] = options

        def generate(self, prompts, sampling, use_tqdm):
            asked.update(prompts=prompts, sampling=sampling)
            text = "فكرة</think>\n```python\ndef f():\n\treturn 1\n```" if thinking else "def f():\n\treturn 1"
            return [SimpleNamespace(outputs=[SimpleNamespace(text=text)]) for _ in prompts]

    vllm = ModuleType("vllm")
    vllm.LLM, vllm.SamplingParams, vllm.__spec__ = LLM, SimpleNamespace, SimpleNamespace(name="vllm")
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    for module in ("evalplus.provider.vllm", "cultureval.models.code.vllm_decoder"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    folder = str(folder_of("llama", True))
    changes = {"model": folder, "backend": "vllm", "base_url": None, "thinking": thinking, "max_new_tokens": 100}
    decoder = make_decoder(DecoderSettings(**vars(settings) | changes))
    (code,) = decoder.codegen("سؤال", do_sample=False, num_samples=1)
    assert code.strip() == "def f():\n    return 1"
    (prompt,) = asked["prompts"]
    assert f"{render('qimma/templates/code_instruction')}\n```\nسؤال\n```\n" in prompt
    assert prompt.endswith("```python\n") is not thinking
    assert asked["engine"]["max_model_len"] == (2148 if thinking else 2048)
    assert (asked["sampling"].temperature, asked["sampling"].max_tokens, asked["sampling"].top_p) == (0.0, 100, 1.0)
