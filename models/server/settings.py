"""Settings of a model on an OpenAI-compatible server, and its tokenizer; checked before anything else loads."""

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
    """Settings of a model on a server, beside those of `ServedModel`; LightEval writes them to the results.

    Attributes:
        model_name: The model's id as a relative path, which names the results folder.
        chat_template: Whether prompts are chat messages; auto: yes, unless `tokenizer` is given and has no template.
        seed: Of sampling; overrides that of `generation_parameters`. Sample i of a Doc gets seed + i.
        n: Samples per request.
        reasoning_tags: Pairs of tags around reasoning, if the server leaves it in the text.
        image_placement: Position of images that the prompt does not place with `<image>` marks.
        tokenizer: Folder or hub id of the tokenizer for log-likelihoods; default: `model`.
        add_special_tokens: For log-likelihoods: "auto" adds BOS to a prompt unless the chat template already does, or
            as the task says (QIMMA's `parity`).
        pairwise_tokenization: True tokenizes prompt and choice separately, as `lighteval accelerate` does whatever its
            setting; False together; None: separately, or as the task says.
        max_length: Longer prompts are truncated on the left, for log-likelihoods; where the server lists a
            `max_model_len`, at most one token less, since each request generates one.
        scoring: full: the log-probabilities of whole choices, which vLLM gives; first_token: those of labels, from
            the `top_logprobs` of a chat reply's first token (`models/server/first_token.py`).
        top_logprobs: How many a server gives at most.
        provider: The provider whose model it is (`runtime/servers/providers.yaml`); set by MODEL, or by base_url.
        leave_out: Request parameters that the model refuses; None: as the provider's documentation says.
        batch_price: Price of a batch as a share of these.
        most_images: More images in one request are refused without asking.
        image_mib: An image that is larger in base64 is sent as JPEG, and scaled down as far as it must be.
        request_mib: Likewise for all images of a request together.
        dry_run: Ask nothing, and tell what it would cost (`--dry-run`).
        batch_out: File for the requests of a batch, which are then not sent (`--batch-out`).
        batch_in: Files with the answers of a batch (`--batch-in`).
    """

    model_name: str
    chat_template: Switch = "auto"
    seed: int | None = Field(None, ge=0)
    n: int = Field(1, ge=1)
    reasoning_tags: list[tuple[Tag, Tag]] = list(THINK_TAGS)
    image_placement: Placement = "first"
    tokenizer: str | None = None
    add_special_tokens: Switch = "auto"
    pairwise_tokenization: bool | None = None
    max_length: int | None = Field(None, ge=2)
    scoring: Literal["full", "first_token"] = "full"
    top_logprobs: int = Field(20, ge=1)
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
        """The provider whose model it is."""
        return providers().get(self.provider or "")

    @property
    def left_out(self) -> tuple[str, ...]:
        """The request parameters that are not sent."""
        if self.leave_out is not None:
            return tuple(self.leave_out)
        return self.provided_by.left_out(self.model) if self.provided_by else ()

    def bytes_for_images(self, count: int) -> int | None:
        """How many bytes each of so many images of a request may have in base64; None: any number."""
        request = self.request_mib / max(1, count) if self.request_mib else None
        limits = [limit for limit in (self.image_mib, request) if limit]
        return int(min(limits) * 2**20) if limits else None

    @field_validator("provider")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        if name is not None and name not in providers():
            raise ValueError(f"there are {', '.join(providers())}")
        return name

    @model_validator(mode="after")
    def _fits_the_provider(self) -> "ServerModelConfig":
        if self.budget is not None and not self.has_prices:
            raise ValueError(
                f"a budget needs prices, and none is known of {self.model}: set input_token_price and "
                "output_token_price (of one token) in the model's YAML file"
            )
        sampling = {"n": self.n > 1, "seed": self.seed is not None}
        if wrong := [name for name, given in sampling.items() if given and name in self.left_out]:
            raise ValueError(f"{self.model} takes no {', '.join(wrong)}: leave it out")
        return self

    def servers(self, **given: Any) -> ServerSettings:
        """The settings of the client; without a key where nothing will be asked."""
        asks_nothing = bool(self.provider) and (self.dry_run or bool(self.batch_out))
        return super().servers(**({"api_key_env": None} if asks_nothing else {}) | given)

    def why_no_likelihoods(self) -> str | None:
        """Why choices cannot be scored, as a sentence; None where the server may be able to."""
        generated = "QIMMA's choices have a generated form, qimma_gen"
        if self.batch:
            return f"Batch files hold generated answers, not log-probabilities. {generated}."
        if self.scoring == "first_token":
            lacks = "top_logprobs" in self.left_out
            return f"{self.model} gives no top_logprobs of first tokens. {generated}." if lacks else None
        if self.provided_by is not None:
            first = "" if "top_logprobs" in self.left_out else "; `scoring: first_token` scores labels"
            return f"{self.provided_by.title} gives no log-probabilities of prompts. {generated}{first}."
        return None


def read_config(model: str) -> ServerModelConfig:
    """Read the settings of a model on a server.

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
    """Checks a model on a server before a run: its settings, its key, and that its own servers are there.

    Returns:
        Why tasks that score choices cannot be run, as a sentence; None where they can, or none is wanted.

    Raises:
        CulturevalError: A setting is wrong, or no server answers.
    """
    config = read_config(model)
    config.servers()  # raises for a missing key
    if config.provided_by is None and not config.batch and not config.dry_run:
        identify(config.model, config)
    why = config.why_no_likelihoods()
    if likelihoods and why is None and config.scoring == "full":
        try:
            load_tokenizer(config)
        except CulturevalError as error:
            why = str(error)
    return why if likelihoods else None


def with_provider(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a model on a server over what is known of its provider: limits, prices, names of parameters."""
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
    """The tokenizer of a model on a server, which log-likelihoods need.

    Raises:
        CulturevalError: It cannot be loaded, or its chat template cannot be used.
    """
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
