"""Settings of a model, from a YAML file and from the command line, checked before anything loads."""

import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from lighteval.models.model_input import GenerationParameters
from pydantic import BaseModel, BeforeValidator, Field, PositiveInt, ValidationError, field_validator, model_validator

from cultureval.models.adapters import with_base_model
from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.errors import CulturevalError, ProblemList, wrong_settings
from cultureval.runtime.generation_hints import Placement
from cultureval.runtime.model_settings import read_model_settings, refuse_unknown
from cultureval.runtime.reasoning import THINK_TAGS

# YAML reads a bare on or off as true or false.
Switch = Annotated[
    Literal["auto", "on", "off"],
    BeforeValidator(lambda value: ("on" if value else "off") if isinstance(value, bool) else value),
]
Tag = Annotated[str, Field(min_length=1)]

# Settings without effect on an answer, or in other fields of its key and signature.
NOT_IN_ANSWER_KEY = {"model_name", "adapter", "revision", "device", "device_map", "batch_size", "token_budget"}
NOT_IN_ANSWER_KEY |= {"cache_dir", "backend", "vllm_args", "scoring"}
# LightEval's generation parameters for other backends, or rejected by `generate`.
NOT_IN_TRANSFORMERS = ("frequency_penalty", "presence_penalty", "response_format", "truncate_prompt")
NOT_IN_TRANSFORMERS += ("num_blocks", "block_size")


class ModelConfig(BaseModel, extra="forbid"):
    """The fields of LightEval's `ModelConfig`; its module would load torch, transformers and Inspect."""

    model_name: str
    generation_parameters: GenerationParameters = GenerationParameters()
    system_prompt: str | None = None
    cache_dir: str = "~/.cache/huggingface/lighteval"


class HFModelSettings(ModelConfig):
    """Settings of a transformers model.

    Attributes:
        model_name: Hub id or folder.
        revision: Branch, tag or commit on the hub.
        tokenizer: Hub id or folder of a tokenizer or processor in place of the model's.
        adapter: Folder of a PEFT adapter (LoRA and its like); set automatically if MODEL is an adapter's folder.
        dtype: "auto" is the checkpoint's; "4bit" and "8bit" need bitsandbytes.
        device: "auto" takes the first accelerator, else the CPU.
        device_map: Spreads the model over several devices, e.g. "auto"; replaces `device`.
        trust_remote_code: Whether code in the model's repository may run.
        attn_implementation: Attention of transformers, e.g. "eager"; None: transformers chooses.
        max_length: Longest sequence in tokens; None: the model's own.
        batch_size: Answers that are generated at once. "auto": as many as fit the free memory, at most 32 on a CPU and
            256 on an accelerator. It is halved if memory is too small.
        token_budget: Tokens per scoring batch beyond the shared prefix; None: 1024 on a CPU, 2048 on an accelerator.
            It is halved if memory is too small.
        chat_template: "auto" uses the tokenizer's if it has one.
        add_special_tokens: "on" adds BOS to a prompt, as LightEval does, even if the chat template has added it. "auto"
            adds it unless the template does, or as the task's parity says (QIMMA's `parity`).
        pairwise_tokenization: True tokenizes prompt and choice separately, as LightEval's transformers backend does;
            False tokenizes them together and splits, as its vLLM backend does by default; None: separately, or as the
            task's parity says.
        scoring: full: choices are scored after their prompt; reasoned: after the model's reasoning, of at most
            `max_new_tokens` (default 4096) tokens (`models/reasoned.py`).
        generation_parameters: LightEval's; each is also a setting of its own (`temperature`). `max_new_tokens` and
            `stop_tokens` take precedence over the task's.
        reasoning_tags: Pairs of tags around reasoning.
        image_placement: Position of images in prompts without `<image>` marks.
        image_max_pixels: Larger images are scaled down to this many pixels, keeping the aspect ratio.
        backend: "transformers", or "vllm" (in a separate environment).
        vllm_args: Further arguments of `vllm serve`; a text is split as a shell does.
        resolved_revision: The commit that was loaded; set when the model loads.
        fingerprint: Hash of the loaded folder's files; set when the model loads.
    """

    model_name: str
    revision: str = "main"
    tokenizer: str | None = None
    adapter: str | None = None
    dtype: Literal["auto", "float32", "bfloat16", "float16", "float64", "4bit", "8bit"] = "auto"
    device: str = "auto"
    device_map: str | dict[str, int | str] | None = None
    trust_remote_code: bool = False
    attn_implementation: str | None = None
    max_length: PositiveInt | None = None
    batch_size: PositiveInt | Literal["auto"] = "auto"
    token_budget: PositiveInt | None = None
    chat_template: Switch = "auto"
    add_special_tokens: Switch = "auto"
    pairwise_tokenization: bool | None = None
    scoring: Literal["full", "reasoned"] = "full"
    reasoning_tags: list[tuple[Tag, Tag]] = Field(default_factory=lambda: list(THINK_TAGS))
    image_placement: Placement = "first"
    image_max_pixels: PositiveInt | None = None
    backend: Literal["transformers", "vllm"] = "transformers"
    vllm_args: list[str] = Field(default_factory=list)
    cache_dir: str = Field(default_factory=lambda: str(user_cache() / "lighteval"))
    resolved_revision: str | None = None
    fingerprint: str | None = None

    @field_validator("vllm_args", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return shlex.split(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _refuse_arguments_without_vllm(self) -> "HFModelSettings":
        if self.vllm_args and self.backend != "vllm":
            raise ValueError("vllm_args are of vLLM, which this run does not use; add backend=vllm")
        return self

    @field_validator("generation_parameters")
    @classmethod
    def _refuse_unsupported(cls, value: GenerationParameters) -> GenerationParameters:
        unsupported = [name for name in NOT_IN_TRANSFORMERS if getattr(value, name) is not None]
        if unsupported:
            raise ValueError(f"these have no effect in transformers, leave them out: {', '.join(unsupported)}")
        return value

    def display_name(self) -> str:
        """The name in results: a hub id, or the last part of a folder's path; `+ADAPTER` follows an adapter's model."""
        name = Path(self.model_name).resolve().name if is_local(self.model_name) else self.model_name
        return f"{name}+{Path(self.adapter).expanduser().resolve().name}" if self.adapter else name

    def answer_key_settings(self) -> dict[str, Any]:
        """The settings that an answer depends on, for its journal key."""
        return self.model_dump(mode="json", exclude=NOT_IN_ANSWER_KEY)


def read_settings(model: str) -> HFModelSettings:
    """Read the settings of a model from LightEval's model name.

    Args:
        model: A hub id, a folder, or the path of a YAML file (keys at the top or below `model_parameters`);
            CULTUREVAL_MODEL_SETTINGS, a JSON object, overrides the file.

    Raises:
        CulturevalError: No such file, not YAML, an unknown key (similar names are suggested), or a bad value.
    """
    values = with_generation_parameters(with_base_model(read_model_settings(model)), HFModelSettings.model_fields)
    if "model" in values and "model_name" not in values:
        values["model_name"] = values.pop("model")
    source, problems = f"The model {model!r}", ProblemList()
    with problems.collecting():
        # A misspelt `base_url` leads here, so it is among the suggestions.
        refuse_unknown(values, HFModelSettings.model_fields, source, elsewhere={"base_url"})
    with problems.collecting():
        try:
            settings = HFModelSettings(
                **{name: values[name] for name in values if name in HFModelSettings.model_fields}
            )
        except ValidationError as error:
            raise CulturevalError(f"{source} has wrong settings: {wrong_settings(error, values=True)}.") from error
    problems.raise_if_any()
    return settings


def with_generation_parameters(settings: Mapping[str, Any], own: Collection[str]) -> dict[str, Any]:
    """The settings with `temperature` and its like below `generation_parameters`, unless a name is the class's own."""
    sampling = {
        name: settings[name] for name in settings if name in GenerationParameters.model_fields and name not in own
    }
    if not sampling:
        return dict(settings)
    below = settings.get("generation_parameters") or {}
    others = {name: value for name, value in settings.items() if name not in sampling}
    return others | {"generation_parameters": {**below, **sampling}} if isinstance(below, Mapping) else others


def is_local(name: str) -> bool:
    """Whether a model's name is a folder here rather than a hub id."""
    return Path(name).expanduser().is_dir()
