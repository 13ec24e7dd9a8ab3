"""What is wrong with a checkpoint, a template or a text is one sentence; adapters; long texts in windows."""

import json
import pickle
import shutil

import pytest
import torch
from lighteval.tasks.requests import Doc
from tiny_models import folder_of, picture, plain_scores
from transformers import AutoModelForCausalLM

from cultureval.models.choice import check_model
from cultureval.models.hf import HFModel
from cultureval.models.settings import HFModelSettings, read_settings
from cultureval.runtime.errors import CulturevalError

pytestmark = pytest.mark.usefixtures("own_cache")


def doc(query="وش هذا؟", choices=("نعم", "لا أدري")):
    return Doc(query=query, choices=list(choices), gold_index=0, task_name="t", id="7", generation_size=4)


def model(folder, **settings):
    return HFModel(HFModelSettings(model_name=str(folder), device="cpu", dtype="float32", **settings))


class Planted:
    def __reduce__(self):
        return (print, ("run",))


def test_a_pickle_that_is_no_checkpoint_is_never_run(tmp_path, capsys):
    folder = shutil.copytree(folder_of("llama"), tmp_path / "model")
    (folder / "model.safetensors").unlink()
    for content in (pickle.dumps({"a": Planted()}), b"\x80\x02"):
        (folder / "pytorch_model.bin").write_bytes(content)
        with pytest.raises(CulturevalError, match="safetensors"):
            model(folder)
    assert "run" not in capsys.readouterr().out


@pytest.mark.parametrize("body", ["{{ 1 / 0 }}", "{{ messages[5].x.y }}", "{{ 'a' * 'b' }}", "{{ [].pop() }}"])
def test_a_template_that_fails_is_a_sentence(tmp_path, body):
    folder = shutil.copytree(folder_of("llama"), tmp_path / "model")
    (folder / "chat_template.jinja").write_text(body)
    with pytest.raises(CulturevalError, match=r"chat template of .* rejects a prompt of t: .*chat_template: off"):
        model(folder).greedy_until([doc()])


def test_half_a_letter_and_weights_that_do_not_fit_are_sentences_with_the_item(monkeypatch):
    tiny = model(folder_of("llama"))
    for answer in (tiny.loglikelihood, tiny.greedy_until):
        with pytest.raises(CulturevalError, match=r"t, item 7: its text holds half of a letter \(U\+D83D"):
            answer([doc("a\ud83d")])
    layer = tiny.loaded.model.model.layers[1].mlp
    monkeypatch.setattr(layer.down_proj, "weight", torch.nn.Parameter(torch.zeros(64, 3)))
    for answer in (tiny.loglikelihood, tiny.greedy_until):
        with pytest.raises(CulturevalError, match=r"fails on a prompt of t \(item 7\): RuntimeError.*config.json"):
            answer([doc()])


def test_perplexity_is_refused():
    with pytest.raises(CulturevalError, match="t asks for perplexity.*lighteval accelerate"):
        model(folder_of("llama")).loglikelihood_rolling([doc()])


@pytest.mark.slow
def test_a_literal_image_mark_in_a_row_is_text():
    tiny = model(folder_of("llava", True))
    asked = doc("هل <image> أم <image> أم <image>؟", ("<image>", "لا"))
    for images in ([], [picture(40, 40)]):
        asked.images = images
        for answer in (tiny.loglikelihood, tiny.greedy_until):
            (response,) = answer([asked])
            assert response.input.count("<image>") == len(images) and response.input.count("< image>") == 3
    assert len(response.text) == 1


@pytest.fixture
def adapter(tmp_path):
    from peft import LoraConfig, get_peft_model  # which loads PyTorch's compiler for seconds

    base = AutoModelForCausalLM.from_pretrained(folder_of("llama"))
    torch.manual_seed(5)
    config = LoraConfig(r=2, target_modules=["q_proj", "down_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    get_peft_model(base, config).save_pretrained(tmp_path / "my-lora")
    return tmp_path / "my-lora"


@pytest.mark.slow
def test_an_adapter_is_put_on_its_base_model_and_named(adapter, tmp_path):
    from peft import PeftModel

    assert json.loads((adapter / "adapter_config.json").read_text())["base_model_name_or_path"] == str(
        folder_of("llama")
    )
    stock = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(folder_of("llama")), adapter).eval()
    check_model(str(adapter), images=False, likelihoods=True)
    loaded = HFModel(read_settings(str(adapter)).model_copy(update={"device": "cpu", "dtype": "float32"}))
    (response,) = loaded.loglikelihood([doc()])
    expected = plain_scores(stock, response.input_tokens, response.output_tokens)
    assert response.logprobs == pytest.approx([total for total, _ in expected], abs=1e-4)
    assert loaded.scorer.routes == {False: "packed"}
    assert loaded.config.model_name.endswith("+my-lora") and "my-lora@" in loaded.signature_fields()["model"]
    plain = model(folder_of("llama")).loglikelihood([doc()])[0]
    assert plain.logprobs != pytest.approx(response.logprobs, abs=1e-3)


def test_adapters_that_do_not_fit_are_sentences(adapter, tmp_path):
    config = json.loads((adapter / "adapter_config.json").read_text())

    def refused(**changes):
        (adapter / "adapter_config.json").write_text(json.dumps(config | changes))
        with pytest.raises(CulturevalError) as caught:
            check_model(str(adapter), images=False, likelihoods=True)
            HFModel(read_settings(str(adapter)))
        return str(caught.value)

    assert "adapter: " in refused(base_model_name_or_path=None)
    assert "no model folder '/nowhere/x'" in refused(base_model_name_or_path="/nowhere/x")
    assert "cannot be put on" in refused(target_modules=["no_such_layer"])
    assert "does not fit" in refused(target_modules=["q_proj", "down_proj", "up_proj"])
    (adapter / "adapter_model.safetensors").unlink()
    assert "cannot be put on" in refused()
