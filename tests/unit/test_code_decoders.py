"""EvalPlus's decoders with Arabic prefixes: one prompt after the other, several in one process, thinking, servers."""

import dataclasses
import json
import traceback

import pytest
import torch
from evalplus.provider import utility
from loopback import Handler, LoopbackServer
from tiny_models import folder_of

from cultureval.models.code.decoders import make_decoder, prompt_mode
from cultureval.models.code.settings import DecoderSettings
from cultureval.prompts.templates import render
from cultureval.runtime.errors import CulturevalError

SHORT = 'def f(x):\n    """ سؤال """\n'
LONG = SHORT.replace("سؤال", "سؤال أطول بكثير " * 8)


def settings(chat=True, **changes):
    given = {
        "model": str(folder_of("llama", chat)),
        "backend": "hf",
        "dataset": "humaneval",
        "instruction_prefix": render("qimma/templates/code_instruction"),
        "response_prefix": render("qimma/templates/code_response"),
        "dtype": "float32",
        "max_new_tokens": 12,
    }
    return DecoderSettings(**given | changes)


def asked_of(decoder, prompt=SHORT, monkeypatch=None):
    """The text of the prompt that a decoder gives to its model."""
    seen = []
    generate = decoder.model.generate
    decoder.model.generate = lambda *ids, **options: (
        seen.append(ids or options["input_ids"]) or generate(*ids, **options)
    )
    decoder.codegen(prompt, do_sample=False, num_samples=1)
    decoder.model.generate = generate
    ids = seen[0][0]
    return decoder.tokenizer.decode(ids[0] if ids.ndim == 2 else ids)


def test_an_answer_does_not_depend_on_the_prompts_before():
    """EvalPlus 0.3.1 stops a later, longer prompt's answer at once: at a fence of the prompt itself."""
    fresh, used = make_decoder(settings()), make_decoder(settings())
    (wanted,) = fresh.codegen(LONG, do_sample=False, num_samples=1)
    used.codegen(SHORT, do_sample=False, num_samples=1)
    assert used.codegen(LONG, do_sample=False, num_samples=1) == [wanted]
    assert len(fresh.tokenizer.encode(wanted)) > 5


def test_a_decoder_leaves_no_stop_strings_to_the_next():
    before = list(utility.EOS)
    human, mbpp = make_decoder(settings(chat=False)), make_decoder(settings(chat=False, dataset="mbpp"))
    assert utility.EOS == before
    assert "\ndef " in human.eos and "\ndef " not in mbpp.eos and '\n"""' in mbpp.eos
    assert human.is_direct_completion() and prompt_mode(human, settings(chat=False)) == "completion"


def test_a_chat_model_reads_the_arabic_prefixes():
    decoder = make_decoder(settings())
    prompt = asked_of(decoder)
    assert f"{render('qimma/templates/code_instruction')}\n```\n{SHORT.strip()}\n```\n" in prompt
    assert prompt.endswith(f"<|assistant|>\n{render('qimma/templates/code_response')}\n```python\n")
    assert prompt_mode(decoder, settings()) == "chat, response prefix"


def test_a_thinking_model_begins_its_answer_itself(monkeypatch):
    decoder = make_decoder(settings(thinking=True))
    prompt = asked_of(decoder)
    assert prompt.endswith("<|assistant|>\n") and render("qimma/templates/code_response") not in prompt
    replies = ["<think>```python\nno\n```</think>هذا:\n```python\ndef f(x):\n\treturn x\n```\n", "<think>بلا نهاية"]
    written = decoder.tokenizer(replies, return_tensors="pt", padding=True, add_special_tokens=False)["input_ids"]
    monkeypatch.setattr(
        decoder.model, "generate", lambda input_ids, **_: torch.cat([input_ids.expand(2, -1), written], 1)
    )
    assert decoder.codegen(SHORT) == ["def f(x):\n    return x\n", ""]
    with pytest.raises(CulturevalError, match="no chat template"):
        make_decoder(settings(chat=False, thinking=True))


@pytest.mark.parametrize("thinking", [False, True])
def test_templates_hear_whether_to_think(thinking):
    decoder = make_decoder(settings(thinking=thinking))
    decoder.tokenizer.chat_template = "{{ enable_thinking }}|{{ messages[-1]['content'] }}"
    assert asked_of(decoder).removeprefix("<s>").startswith(f"{thinking}|")


def test_models_that_cannot_be_loaded_and_backends_that_are_not_here():
    for changes, named in (({"model": "/no/such"}, "/no/such"), ({"backend": "vllm"}, "--backend openai --base-url")):
        with pytest.raises(CulturevalError, match=named):
            make_decoder(settings(**changes))


@pytest.fixture
def server(monkeypatch, tmp_path):
    """An OpenAI-compatible server that keeps its requests and gives the answers it is told to."""
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    asked, answers = [], []

    class Answering(Handler):
        def do_POST(self):
            asked.append(json.loads(self.asked()))
            status, content = answers.pop(0) if len(answers) > 1 else answers[0]
            choices = [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}]
            body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": choices}
            self.reply(status, body if status == 200 else {"error": {"message": content}})

    with LoopbackServer(Answering, "/v1") as server:
        yield server.url, asked, answers


def test_a_server_is_asked_as_evalplus_asks_and_again_when_it_is_busy(server):
    url, asked, answers = server
    answers += [(429, "busy"), (200, "<think>لا</think>```python\ncode\n```"), (200, None)]
    wanted = settings(model="m", backend="openai", base_url=url)
    decoder = make_decoder(wanted)
    assert decoder.codegen(SHORT, do_sample=False, num_samples=1) == ["```python\ncode\n```"]
    assert asked[0] == asked[1]
    assert (
        asked[0]["messages"][1]["content"]
        == f"{render('qimma/templates/code_instruction')}\n```python\n{SHORT.strip()}\n```"
    )
    assert (asked[0]["temperature"], asked[0]["max_tokens"]) == (0.0, 12)
    assert decoder.codegen(LONG, do_sample=False, num_samples=1) == [""]
    answers[:] = [(200, "<think>لا</think>قل:\n```python\ncode\n```")]
    thinker = make_decoder(dataclasses.replace(wanted, thinking=True))
    assert thinker.codegen(SHORT * 2, do_sample=False, num_samples=1) == ["code\n"]


def test_a_server_is_asked_for_all_problems_at_once_and_for_none_again(server):
    url, asked, answers = server
    answers += [(200, f"```python\n{number}\n```") for number in range(41)]
    wanted = settings(model="m", backend="openai", base_url=url, temperature=0.5)
    prompts = [f"{SHORT}{number}\n" for number in range(40)]
    decoder = make_decoder(wanted)
    calls = {(prompt, 1): "t" for prompt in prompts}
    decoder.ask_all(calls, 1, None)
    sent = [request["messages"][1]["content"] for request in asked]
    wrapped = [f"{render('qimma/templates/code_instruction')}\n```python\n{prompt.strip()}\n```" for prompt in prompts]
    assert sorted(sent) == sorted(wrapped)
    first = [decoder.codegen(prompt, num_samples=1) for prompt in prompts]
    again = make_decoder(wanted)
    again.ask_all(calls, 1, None)
    assert [again.codegen(prompt, num_samples=1) for prompt in prompts] == first and len(asked) == 40
    again.ask_all({(prompts[0], 1): "t"}, 2, None)  # the second of two samples is another one
    assert again.codegen(prompts[0], num_samples=1) == ["```python\n40\n```"] and len(asked) == 41
    make_decoder(dataclasses.replace(wanted, revision="other")).ask_all({(prompts[1], 1): "t"}, 1, None)
    assert len(asked) == 42


def test_a_server_that_refuses_ends_the_run_with_its_words(server):
    """EvalPlus 0.3.1 asks for ever."""
    url, asked, answers = server

    def ours():  # without the short question whether it refuses every request
        return sum(SHORT.strip() in str(one["messages"][-1]["content"]) for one in asked if "messages" in one)

    answers += [(404, "no model m here")]
    decoder = make_decoder(settings(model="m", backend="openai", base_url=url))
    with pytest.raises(CulturevalError, match="no model m here"):
        decoder.codegen(SHORT, do_sample=False, num_samples=1)
    assert ours() == 1
    decoder.servers = dataclasses.replace(decoder.servers, max_retries=1, backoff_s=0.01)
    answers[:] = [(503, "down")]
    with pytest.raises(CulturevalError, match="down"):
        decoder.codegen(SHORT, do_sample=False, num_samples=1)
    assert ours() == 3


def test_a_key_stands_in_no_error(server, monkeypatch):
    url, _, answers = server
    monkeypatch.setenv("CODE_KEY", "sk-never-to-be-seen")
    wanted = settings(model="m", backend="openai", base_url=url, api_key_env="CODE_KEY")
    answers += [(401, "wrong key sk-never-to-be-seen")]
    with pytest.raises(CulturevalError, match="wrong key") as refused:
        make_decoder(wanted).codegen(SHORT, do_sample=False, num_samples=1)
    assert "sk-never" not in "".join(traceback.format_exception(refused.value))
    with pytest.raises(CulturevalError, match="password") as refused:
        make_decoder(dataclasses.replace(wanted, base_url="http://me:sk-never@x/v1"))
    assert "sk-never" not in str(refused.value)


def test_a_key_that_is_not_set_is_named(monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(CulturevalError, match="NO_SUCH_KEY"):
        make_decoder(settings(model="m", backend="openai", base_url="http://x/v1", api_key_env="NO_SUCH_KEY"))
