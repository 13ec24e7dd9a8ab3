"""`code_prompt=evalplus`: what is asked is what EvalPlus asks, and answered as by its own decoder; refined prompts."""

import json
from types import SimpleNamespace

import pytest
import yaml
from evalplus.gen.util.openai_request import make_request
from evalplus.provider.hf import HuggingFaceDecoder
from evalplus.provider.utility import EOS, make_raw_chat_prompt
from faulty_server import MODEL, FaultyServer
from tiny_models import folder_of

from cultureval.models.generation.rendering import Renderer
from cultureval.models.hf import HFModel
from cultureval.models.openai_api import OpenAIModel
from cultureval.models.settings import HFModelSettings
from cultureval.prompts.qimma.code_problems import CONTINUATION_STOPS, INSTRUCTION, code_prompt
from cultureval.prompts.templates import render, template_hash
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.qimma.code_data import CODE_DATASETS, load_problems
from cultureval.tasks.reading import prepare_subset

PREFIXES = render("qimma/templates/code_instruction"), render("qimma/templates/code_response")

pytestmark = pytest.mark.usefixtures("own_cache")


def prepared(dataset, **options):
    return prepare_subset(all_tasks()[CODE_DATASETS[dataset].task], DataOptions(root=samples_root(), suite=options))


def docs_of(dataset, limit, **options):
    docs = [code_prompt(row, CODE_DATASETS[dataset].task) for row in prepared(dataset, **options).rows()[:limit]]
    for doc in docs:
        doc.stop_sequences, doc.generation_size = list(CONTINUATION_STOPS[dataset]), 12
    return docs


@pytest.mark.slow
@pytest.mark.parametrize(("chat", "dataset"), [(True, "humaneval"), (False, "humaneval"), (False, "mbpp")])
def test_answers_are_those_of_evalpluss_own_decoder(chat, dataset):
    """Of a new one for each problem: it keeps the stop strings of earlier prompts, which end later answers at once."""
    settings = {"dtype": "float32", "attn_implementation": "eager", "add_special_tokens": "on", "reasoning_tags": []}
    folder, docs = str(folder_of("llama", chat)), docs_of(dataset, 3, code_prompt="evalplus")
    model = HFModel(HFModelSettings(model_name=folder, **settings))
    ours = [response.text[0].replace("\t", "    ") for response in model.greedy_until(docs)]
    theirs, shared = [], list(EOS)
    for doc in docs:
        named = dict(zip(("instruction_prefix", "response_prefix"), PREFIXES, strict=True))
        decoder = HuggingFaceDecoder(folder, dataset, max_new_tokens=12, temperature=0, dtype="float32", **named)
        EOS[:] = shared
        theirs += decoder.codegen(doc.specific["plain_query"], do_sample=False, num_samples=1)
    assert ours == theirs


def test_a_chat_is_evalpluss_also_where_the_model_could_reason():
    ours, usual = (docs_of("humaneval", 1, code_prompt=value)[0] for value in ("evalplus", "auto"))
    model = HFModel(HFModelSettings(model_name=str(folder_of("llama", True))))
    theirs = make_raw_chat_prompt(ours.specific["plain_query"], *PREFIXES, model.tokenizer)
    assert model.renderer.text(ours) == model.renderer.text(usual) == theirs
    model.tokenizer.chat_template = "{{ enable_thinking }}|{{ messages[-1]['content'] }}"
    renderer = Renderer(model.tokenizer, None, HFModelSettings(model_name="m"))
    asked = renderer.text(ours)
    assert asked.startswith("False|") and asked.endswith("```python\n")
    assert not renderer.text(usual).endswith("```python\n"), "a model that may reason begins its answer itself"


def test_a_server_is_asked_as_evalplus_asks(tmp_path):
    (doc,) = docs_of("mbpp", 1, code_prompt="evalplus")
    doc.generation_size = 768
    settings = {"model": MODEL, "system_prompt": "You are a helpful assistant good at coding."}
    settings |= {"generation_parameters": {"temperature": 0.0, "top_p": 0.95}}
    with FaultyServer() as server:
        (tmp_path / "server.yaml").write_text(yaml.safe_dump(settings | {"base_url": server.url}), encoding="utf-8")
        OpenAIModel(SimpleNamespace(model_name=str(tmp_path / "server.yaml"))).greedy_until([doc])
        (body,) = [one for one in server.requests if PREFIXES[0] in str(one)]
    words = f"{PREFIXES[0]}\n```python\n{doc.specific['plain_query'].strip()}\n```"
    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=dict)))
    theirs = make_request(client, words, MODEL, max_tokens=768, temperature=0.0, n=1)
    assert body | {"n": 1} == theirs


def test_refined_prompts_are_asked_and_shown_by_the_signature(tmp_path):
    row = next(iter(load_problems("humaneval", "samples").rows.values()))
    refined = row["prompt"].replace("إذا بلغ", "إذا وصل")
    file = tmp_path / "humaneval.jsonl"
    file.write_text(json.dumps({"task_id": row["task_id"], "prompt": refined}), encoding="utf-8")
    for path in (file, tmp_path):
        found = prepared("humaneval", refined_prompts=str(path))
        assert found.rows()[0]["prompt"] == refined != row["prompt"]
        assert found.report["prompt"] == f"{template_hash(INSTRUCTION)}+refined"
    usual = prepared("humaneval")
    assert usual.report["prompt"] == template_hash(INSTRUCTION) and not {"refined", "code_prompt"} & {*usual.rows()[0]}
    assert prepared("humaneval", code_prompt="evalplus").report["prompt"].endswith("+evalplus")
    with pytest.raises(CulturevalError, match=r"humaneval.jsonl, row 1: 'HumanEval/9001' is no task_id of Mbpp"):
        prepared("mbpp", refined_prompts=str(file))
    with pytest.raises(CulturevalError, match=r"mbpp.jsonl cannot be read"):
        prepared("mbpp", refined_prompts=str(tmp_path))
