"""Settings of a model on an OpenAI-compatible server, and its tokenizer, with checks before a run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from cultureval.models.settings import ModelConfig, Switch, Tag, with_generation_parameters
from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.errors import CulturevalError, ProblemList, wrong_settings
from cultureval.runtime.generation_hints import Placement
from cultureval.runtime.model_settings import read_model_settings, refuse_unknown
from cultureval.runtime.reasoning import THINK_TAGS
from cultureval.runtime.servers.identity import identify
from cultureval.runtime.servers.providers import Provider, provider_at, providers
from cultureval.runtime.servers.settings import ServedModel, ServerSettings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class ServerModelConfig(ModelConfig, ServedModel):
    """Settings of a model on a server, beside `ServedModel`; LightEval writes them to the results.

    Attributes:
        model_name: The model's id as a relative path, the name of its results folder.
        chat_template: Whether prompts are chat messages; auto: yes, unless `tokenizer` is set and has no template.
        reasoning_tags: Pairs of tags around reasoning, if the server leaves it in the text.
        image_placement: Position of images in prompts without `<image>` marks.
        tokenizer: Folder or hub id of the tokenizer for log-likelihoods; default: `model`.
        add_special_tokens: For log-likelihoods: "auto" adds BOS to a prompt unless the chat template adds it, or as the
            task's parity says (QIMMA's `parity`).
        pairwise_tokenization: True tokenizes prompt and choice separately, as `lighteval accelerate` does; False
            together; None: separately, or as the task's parity says.
        max_length: For log-likelihoods, longer prompts are truncated on the left. At most the server's `max_model_len`
            less 1, since each request generates a token.
        scoring: full: log-probabilities of whole choices, from vLLM; first_token: of labels, from the `top_logprobs` of
            a chat reply's first token (`models/server/first_token.py`); reasoned: of choices after reasoning, with
            `tokenizer`, else the label is generated (`models/reasoned.py`).
        provider: The model's provider (`runtime/servers/providers.yaml`); set by MODEL, or by base_url.
        leave_out: Request parameters that the model refuses; None: by the provider's documentation.
        batch_price: Price of a batch as a share of the prices.
        most_images: Most images in a request; docs with more are refused without asking.
        image_mib: Most MiB of an image in base64; larger ones are sent as JPEG, scaled down until they fit.
        request_mib: Likewise for all images of a request together.
        dry_run: Sends nothing and reports the cost (`--dry-run`).
        batch_out: File for the requests of a batch, in place of sending them (`--batch-out`).
        batch_in: Files with the answers of a batch (`--batch-in`).
    """

    model_name: str
    chat_template: Switch = "auto"
    reasoning_tags: list[tuple[Tag, Tag]] = list(THINK_TAGS)
    image_placement: Placement = "first"
    tokenizer: str | None = None
    add_special_tokens: Switch = "auto"
    pairwise_tokenization: bool | None = None
    max_length: int | None = Field(None, ge=2)
    scoring: Literal["full", "first_token", "reasoned"] = "full"
    provider: str | None = None
    leave_out: list[str] | None = None
    batch_price: float = Field(1.0, gt=0, le=1)
    most_images: int | None = Field(None, ge=1)
    image_mib: float | None = Field(None, gt=0)
    request_mib: float | None = Field(None, gt=0)
    dry_run: bool = False
    batch_out: str | None = None
    batch_in: list[str] = []

    @property
    def batch(self) -> bool:
        """Whether the run has batch files."""
        return bool(self.batch_out or self.batch_in)

    @property
    def provided_by(self) -> Provider | None:
        """The model's provider, if any."""
        return providers().get(self.provider or "")

    @property
    def left_out(self) -> tuple[str, ...]:
        """The request parameters that are not sent."""
        if self.leave_out is not None:
            return tuple(self.leave_out)
        return self.provided_by.left_out(self.model) if self.provided_by else ()

    def bytes_for_images(self, count: int) -> int | None:
        """Most bytes in base64 of each of `count` images of a request; None: no limit."""
        request = self.request_mib / max(1, count) if self.request_mib else None
        limits = [limit for limit in (self.image_mib, request) if limit]
        return int(min(limits) * 2**20) if limits else None

    @field_validator("provider")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        if name is not None and name not in providers():
            raise ValueError(f"must be one of {', '.join(providers())}")
        return name

    @model_validator(mode="after")
    def _fits_the_provider(self) -> "ServerModelConfig":
        if self.budget is not None and not self.has_prices:
            raise ValueError(
                f"a budget needs prices, and none is known for {self.model}: set input_token_price and "
                "output_token_price (of one token) in the model's YAML file"
            )
        return self

    def servers(self, **changed: Any) -> ServerSettings:
        """The settings of the client, without a key where nothing is sent."""
        asks_nothing = bool(self.provider) and (self.dry_run or bool(self.batch_out))
        return super().servers(**({"api_key_env": None} if asks_nothing else {}) | changed)

    @property
    def scores_prompts(self) -> bool:
        """Whether choices are scored by log-probabilities of prompts, which need the tokenizer."""
        return self.scoring == "full" or (self.scoring == "reasoned" and self.tokenizer is not None)

    def why_no_likelihoods(self) -> str | None:
        """A sentence on why the model cannot score choices; None if it may be able to."""
        generated, no_top = "QIMMA's choices have a generated form, qimma_gen.", "top_logprobs" in self.left_out
        if self.scoring == "reasoned" and not self.scores_prompts:
            return None
        if self.batch:
            return f"Batch files hold generated answers, not log-probabilities. {generated}"
        if self.scoring == "first_token":
            return f"{self.model} gives no top_logprobs of first tokens. {generated}" if no_top else None
        if self.provided_by is None:
            return None
        first = "" if no_top else " `scoring: first_token` scores labels."
        return f"{self.provided_by.title} gives no log-probabilities of prompts. {generated}{first}"


def read_config(model: str) -> ServerModelConfig:
    """Reads the settings of a model on a server.

    Args:
        model: A YAML file, or the model's id with the other settings in CULTUREVAL_MODEL_SETTINGS.

    Raises:
        CulturevalError: A setting is unknown, missing or has a wrong value.
    """
    problems = ProblemList()
    known = set(ServerModelConfig.model_fields) - {"model_name", "cache_dir"}
    settings: Mapping[str, Any] = with_generation_parameters(with_provider(read_model_settings(model)), known)
    with problems.collecting():
        refuse_unknown(settings, known, "A model on a server")
    name = "/".join(str(settings[part]) for part in ("provider", "model") if settings.get(part))
    folder = "/".join(part for part in name.split("/") if part not in {"", ".", ".."})
    values = {name: value for name, value in settings.items() if name in known}
    with problems.collecting():
        try:
            config = ServerModelConfig(**values, model_name=folder, cache_dir=str(user_cache() / "lighteval"))
        except ValidationError as error:
            raise CulturevalError(f"Wrong model settings: {wrong_settings(error)}.") from None
    problems.raise_if_any()
    return config


def check_server(model: str, likelihoods: bool) -> str | None:
    """Checks a model on a server before a run: settings, key, and (except for providers) that its servers answer.

    Returns:
        A sentence on why it cannot score choices; None if it can, or without `likelihoods`.

    Raises:
        CulturevalError: A setting is wrong, or no server answers.
    """
    config = read_config(model)
    config.servers()  # raises for a missing key
    if config.provided_by is None and not config.batch and not config.dry_run:
        identify(config.model, config)
    why = config.why_no_likelihoods()
    if likelihoods and why is None and config.scores_prompts:
        try:
            load_tokenizer(config)
        except CulturevalError as error:
            why = str(error)
    return why if likelihoods else None


def with_provider(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a model on a server, with defaults of its provider: limits, prices, names of parameters."""
    urls = settings.get("base_url") or []
    found = provider_at([urls] if isinstance(urls, str) else [url for url in urls if isinstance(url, str)])
    provider = providers().get(str(settings.get("provider"))) or (None if "provider" in settings else found)
    if provider is None:
        return dict(settings)
    images = provider.images
    known = {
        "provider": provider.id,
        "max_tokens_name": provider.token_limit,
        "batch_price": provider.batch_price,
        "image_max_side": images.side,
        "most_images": images.count,
        "image_mib": images.image_mib,
        "request_mib": images.request_mib,
    } | provider.token_prices(str(settings.get("model")))
    return {name: value for name, value in known.items() if value is not None} | dict(settings)


def load_tokenizer(config: ServerModelConfig) -> "PreTrainedTokenizerBase":
    """The tokenizer of a model on a server, for log-likelihoods; a CulturevalError if it cannot be loaded."""
    from transformers import AutoTokenizer

    name = config.tokenizer or config.model
    try:
        found = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise CulturevalError(
            f"Log-likelihoods need the model's tokenizer, but {name!r} cannot be loaded: set `tokenizer` to the "
            f"model's folder or hub id. ({error})"
        ) from error
    return found
