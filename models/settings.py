"""Settings of a model, from a YAML file and from the command line, checked before anything loads."""

import difflib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from lighteval.models.abstract_model import ModelConfig
from lighteval.models.model_input import GenerationParameters
from pydantic import BaseModel, Field, PositiveInt, ValidationError

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.user_cache import user_cache

OVERRIDES = "CULTUREVAL_MODEL_SETTINGS"
Switch = Literal["auto", "on", "off"]
Settings = TypeVar("Settings", bound=BaseModel)


class HFModelSettings(ModelConfig, extra="forbid"):
    """How a transformers model is loaded and asked.

    Attributes:
        model_name: Hub id or folder.
        revision: Branch, tag or commit on the hub.
        tokenizer: Hub id or folder of another tokenizer or processor than the model's own.
        dtype: A torch dtype by name, "auto" (the checkpoint's), or "4bit" and "8bit" (needs bitsandbytes).
        device: "auto" takes the first accelerator, else the CPU.
        device_map: Spreads one model over several devices, e.g. "auto"; takes the place of `device`.
        quantisation: Arguments of transformers' BitsAndBytesConfig, where "4bit" and "8bit" are not enough.
        trust_remote_code: Whether code in the model's repository may run.
        attn_implementation: Attention of transformers, e.g. "eager"; None leaves the choice to transformers.
        max_length: Longest sequence in tokens; None takes the model's own.
        batch_size: Prompts generated at once.
        token_budget: Tokens scored at once; None takes 1024 on a CPU, 8192 on an accelerator.
        chat_template: "auto" uses the tokenizer's if it has one.
        add_special_tokens: "auto" puts BOS before a prompt unless the chat template wrote it already; "on" always
            does, as LightEval (which then may put it twice).
        pairwise_tokenization: True encodes prompt and choice apart, as LightEval's transformers backend does whatever
            its setting says; False encodes them together and splits, as LightEval's vLLM backend does by default.
        generation_parameters: LightEval's; `max_new_tokens` and `stop_tokens` take precedence over the task's.
        reasoning_tags: Pairs of tags between which a model thinks.
        image_placement: Where images stand that the prompt does not place itself with `<image>` marks.
        image_max_pixels: Larger images are scaled down to so many pixels, keeping their proportions.
        image_min_pixels: Smaller images are scaled up likewise.
        resolved_revision: The commit that was loaded; filled in when the model loads.
        fingerprint: Hash of the loaded folder's files; filled in when the model loads.
    """

    model_name: str
    revision: str = "main"
    tokenizer: str | None = None
    dtype: str = "auto"
    device: str = "auto"
    device_map: str | dict[str, int | str] | None = None
    quantisation: dict[str, Any] | None = None
    trust_remote_code: bool = False
    attn_implementation: str | None = None
    max_length: PositiveInt | None = None
    batch_size: PositiveInt = 8
    token_budget: PositiveInt | None = None
    chat_template: Switch = "auto"
    add_special_tokens: Switch = "auto"
    pairwise_tokenization: bool = True
    reasoning_tags: list[tuple[str, str]] = Field(default_factory=lambda: [("<think>", "</think>")])
    image_placement: Literal["first", "last"] = "first"
    image_max_pixels: PositiveInt | None = None
    image_min_pixels: PositiveInt | None = None
    cache_dir: str = Field(default_factory=lambda: str(user_cache() / "lighteval"))
    resolved_revision: str | None = None
    fingerprint: str | None = None

    def display_name(self) -> str:
        """The name for results: a hub id as it is, of a folder only its last part."""
        return Path(self.model_name).resolve().name if is_local(self.model_name) else self.model_name

    def that_change_answers(self) -> dict[str, Any]:
        """The settings that belong into the key of an answer: all but those of speed, place and bookkeeping."""
        left_out = {"model_name", "revision", "device", "device_map", "batch_size", "token_budget", "cache_dir"}
        return self.model_dump(mode="json", exclude=left_out)


def read_settings(model: str, environment: Mapping[str, str] | None = None) -> HFModelSettings:
    """The settings that LightEval's model name stands for.

    Args:
        model: A hub id, a folder, or the path of a YAML file (keys at the top or below `model_parameters`).
        environment: Where CULTUREVAL_MODEL_SETTINGS is looked up, a JSON object that goes before the file.

    Raises:
        CulturevalError: No such file or folder, not YAML, an unknown key (the near ones are named), or a bad value.
    """
    values = read_yaml_settings(Path(model)) if model.endswith((".yaml", ".yml")) else {"model_name": model}
    values |= read_overrides(os.environ if environment is None else environment)
    source = model if model.endswith((".yaml", ".yml")) else "the model's settings"
    settings = checked(HFModelSettings, values, source)
    _require_model(settings.model_name)
    return settings


def read_yaml_settings(path: Path) -> dict[str, Any]:
    """The keys of a settings file; `model` is the same as `model_name`.

    Raises:
        CulturevalError: The file is not there, or does not hold a mapping.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CulturevalError(f"The settings file {path} cannot be read: {error}") from error
    if isinstance(content, dict) and isinstance(content.get("model_parameters"), dict):
        content = content["model_parameters"]
    if not isinstance(content, dict):
        raise CulturevalError(f"The settings file {path} must hold keys and values, e.g. `model_name: org/model`.")
    if "model" in content and "model_name" not in content:
        content["model_name"] = content.pop("model")
    return {str(key): value for key, value in content.items()}


def read_overrides(environment: Mapping[str, str]) -> dict[str, Any]:
    """The JSON object of CULTUREVAL_MODEL_SETTINGS, {} where it is not set.

    Raises:
        CulturevalError: It is not a JSON object.
    """
    text = environment.get(OVERRIDES) or "{}"
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise CulturevalError(f"{OVERRIDES} is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise CulturevalError(f'{OVERRIDES} must hold a JSON object, e.g. {{"dtype": "bfloat16"}}, not {text!r}.')
    return values


def checked(kind: type[Settings], values: Mapping[str, Any], source: str) -> Settings:
    """Build settings, with errors that people can act on.

    Args:
        kind: The pydantic model.
        values: Keys and values as a file or the environment states them.
        source: What to call their origin in an error.

    Raises:
        CulturevalError: An unknown key or a bad value, at the top or in the generation parameters.
    """
    _refuse_unknown(values, list(kind.model_fields), source)
    generation = values.get("generation_parameters")
    if isinstance(generation, Mapping):
        _refuse_unknown(generation, list(GenerationParameters.model_fields), f"generation_parameters of {source}")
    try:
        return kind(**values)
    except ValidationError as error:
        reasons = [
            f"{'.'.join(map(str, item['loc']))}: {item['msg']} (given: {item['input']!r})" for item in error.errors()
        ]
        raise CulturevalError(f"Bad settings in {source}: {'; '.join(reasons)}") from error


def _refuse_unknown(values: Mapping[str, Any], known: Sequence[str], source: str) -> None:
    for key in values:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else f"Known keys: {', '.join(sorted(known))}."
            raise CulturevalError(f"Unknown key {key!r} in {source}. {hint}")


def is_local(name: str) -> bool:
    """Whether a model's name is a folder here rather than a hub id."""
    return Path(name).expanduser().is_dir()


def _require_model(name: str) -> None:
    looks_like_path = name.startswith((".", "/", "~")) or name.count("/") > 1
    if looks_like_path and not is_local(name):
        raise CulturevalError(f"There is no model folder {name!r}. Give a folder, a hub id (org/name) or a YAML file.")
    if is_local(name) and not (Path(name).expanduser() / "config.json").is_file():
        raise CulturevalError(f"The folder {name!r} holds no config.json: it is not a transformers model.")
