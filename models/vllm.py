"""A model that a vLLM server of our own answers for: `cultureval eval MODEL TASKS --model-args backend=vllm`.

MODEL and its settings are as for transformers (`cultureval.models.settings`). vLLM starts at the first answer that is
not in the journal. Text prompts are rendered and tokenized here, so that both backends get the same tokens. Prompts
with images are chat messages, which the server renders.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.models import openai_api
from cultureval.models.generation.rendering import all_images
from cultureval.models.loading import (
    configured_stop_strings,
    longest_sequence,
    model_identity,
    read_config,
    read_generation_config,
    read_tokenizer,
)
from cultureval.models.server.settings import ServerModelConfig
from cultureval.models.settings import NOT_IN_ANSWER_KEY, HFModelSettings, is_local, read_settings
from cultureval.models.tokens import tokens_read
from cultureval.runtime.doc_fields import REASONED
from cultureval.runtime.errors import GOES_ON, CulturevalError
from cultureval.runtime.generation_hints import stop_strings, wanted_reasoning
from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.servers.ask import Question
from cultureval.runtime.servers.client import OpenAIClient
from cultureval.runtime.servers.errors import ServerError
from cultureval.runtime.servers.replies import Answer
from cultureval.runtime.servers.settings import ServerSettings
from cultureval.runtime.servers.vllm_process import VLLMServer, require_vllm, vllm_version
from cultureval.runtime.signatures import changed_settings, changed_values

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CONCURRENCY = 256  # requests in flight; vLLM batches them
TIMEOUT_S = 3600.0  # of a request, with its time in vLLM's queue; an end of vLLM is noticed at once
RETRIES = 2
NOT_SETTINGS = {"model_name", "cache_dir", "resolved_revision", "fingerprint", "backend", "batch_size"}
CPU_CACHE = "VLLM_CPU_KVCACHE_SPACE"  # GiB; without it vLLM takes 92 % of the memory
# vLLM's prompt log-probabilities can depend on the order of requests with prefix caching (vllm#42019).
FOR_SCORING = "--no-enable-prefix-caching"
NOT_IN_VLLM = ("adapter", "device_map", "attn_implementation", "token_budget", "image_max_pixels")
# Arguments of `vllm serve` that our settings determine, or that would break the connection.
NOT_IN_ARGUMENTS = {"--model", "--served-model-name", "--chat-template", "--dtype", "--revision", "--tokenizer"}
NOT_IN_ARGUMENTS |= {"--max-model-len", "--trust-remote-code", "--host", "--port", "--uds", "--api-key", "--headless"}
NOT_IN_ARGUMENTS |= {"--nnodes", "--ssl-keyfile", "--hf-token"}  # results would hold the token


def require_vllm_settings(settings: HFModelSettings) -> None:
    """Raises CulturevalError on settings that vLLM does not have."""
    names = [name for name in NOT_IN_VLLM if getattr(settings, name) is not None]
    what = "give vllm_args in their place, and merge an adapter by PEFT's merge_and_unload"
    wrong = [f"Settings of transformers, not of vLLM, are {', '.join(names)}: {what}."] if names else []
    if settings.dtype == "8bit":
        wrong.append("vLLM quantises to 4 bits as it loads, not to 8: set dtype: 4bit, or bfloat16.")
    if ":" in settings.device:
        wrong.append(f"vLLM takes no device: {settings.device}: choose the devices by CUDA_VISIBLE_DEVICES.")
    given = {argument.partition("=")[0].replace("_", "-") for argument in settings.vllm_args}
    if own := ", ".join(sorted(given & NOT_IN_ARGUMENTS)):
        wrong.append(f"vllm_args must not contain {own}: use MODEL's settings, HF_TOKEN, or a server's URL as MODEL.")
    if wrong:
        raise CulturevalError(" ".join(wrong))


def serve_options(settings: HFModelSettings) -> list[str]:
    """The arguments of `vllm serve` after the model; ours come last, so that they take precedence."""
    quantised = settings.dtype == "4bit"
    options = [*settings.vllm_args, "--dtype", "auto" if quantised else settings.dtype]
    options += ["--quantization", "bitsandbytes"] if quantised else []
    options += ["--revision", settings.revision] if settings.revision != "main" else []
    options += ["--tokenizer", settings.tokenizer] if settings.tokenizer else []
    options += ["--max-model-len", str(settings.max_length)] if settings.max_length else []
    return options + (["--trust-remote-code"] if settings.trust_remote_code else [])


class VLLMModel(openai_api.OpenAIModel):
    """A text or vision model on a vLLM server that we start."""

    def __init__(self, config: Any) -> None:
        """Reads the settings, LightEval's or ours, and the tokenizer; the server starts with the first request.

        Raises:
            CulturevalError: The settings are wrong, vLLM is not found, or several processes would each start it.
        """
        self.settings = config if isinstance(config, HFModelSettings) else read_settings(config.model_name)
        require_vllm_settings(self.settings)
        program, name = require_vllm(), self.settings.model_name
        self._hf_config = read_config(self.settings)  # first, since it resolves the revision
        self._facts = model_identity(self.settings)
        self._version = vllm_version(program)
        self.config = self._server_config()
        self._server = VLLMServer(
            program,
            str(Path(name).expanduser().absolute()) if is_local(name) else name,
            self.config.model,
            serve_options(self.settings),
            {CPU_CACHE: os.environ.get(CPU_CACHE, "4")}
            | ({"CUDA_VISIBLE_DEVICES": ""} if self.settings.device == "cpu" else {}),
        )
        self._prepare(ServerSettings(("http://127.0.0.1/v1",), key=self._server.key))  # the port is known at its start

    def _server_config(self) -> ServerModelConfig:
        """The settings as settings of a model on a server."""
        settings, tokenizer = self.settings, self.tokenizer
        special = set(tokenizer.all_special_tokens)
        # Tags that are special tokens are needed to split off the reasoning.
        self._keeps_special = any(tag in special for pair in settings.reasoning_tags for tag in pair)
        shared = ("system_prompt", "generation_parameters", "chat_template", "add_special_tokens", "cache_dir")
        shared += ("pairwise_tokenization", "reasoning_tags", "image_placement")
        return ServerModelConfig(
            **{name: getattr(settings, name) for name in shared},
            model=settings.display_name(),
            model_name=settings.display_name(),
            base_url=[],
            scoring=settings.scoring,
            revision=settings.resolved_revision or settings.fingerprint,
            tokenizer=settings.tokenizer or settings.model_name,
            # Every request generates a token, even for log-probabilities of its prompt.
            max_length=(settings.max_length or longest_sequence(self._hf_config)) - 1,
            concurrency=CONCURRENCY,
            timeout_s=TIMEOUT_S,
            max_retries=RETRIES,
            extra_body={"skip_special_tokens": False} if self._keeps_special else {},
        )

    @cached_property
    def tokenizer(self) -> "PreTrainedTokenizerBase":
        """The model's tokenizer."""
        reader = read_tokenizer(self.settings, self._hf_config)
        found: PreTrainedTokenizerBase = getattr(reader, "tokenizer", reader)
        if not found.chat_template:
            found.chat_template = getattr(reader, "chat_template", None)
        return found

    def signature_fields(self) -> dict[str, str]:
        """The properties of this backend that a score depends on, for its signature."""
        version = self.config.revision or "?"
        stated = {"dtype", "chat_template", "resolved_revision", "fingerprint"}
        more = f",vllm_args={' '.join(self.settings.vllm_args)}" if self.settings.vllm_args else ""
        return {
            "model": f"{self.config.model}@{version[:8]}",
            "backend": f"vllm {self._version}",
            "dtype": self.settings.dtype,
            "chat": "on" if self._uses_chat else "off",
            "settings": changed_settings(self.settings, NOT_IN_ANSWER_KEY | stated) + more,
        }

    def run_record(self) -> dict[str, Any]:
        """Fields for the run's record; see `OpenAIModel.run_record`."""
        record = super().run_record()
        settings = {**changed_values(self.settings, NOT_SETTINGS), "vllm_version": self._version}
        record["model"] |= {"backend": "vllm", "dtype": self.settings.dtype, "settings": settings}
        return record

    def identify(self) -> None:
        """None: the model's files and settings identify it, not the server."""

    @cached_property
    def _identity(self) -> dict[str, Any]:
        settings = self.settings
        weights = {name: self._facts[name] for name in ("name", "revision", "fingerprint", "tokenizer")}
        how = {name: getattr(settings, name) for name in ("dtype", "vllm_args", "max_length", "add_special_tokens")}
        return {"backend": "vllm", "vllm": self._version, "weights": weights, **how}

    # --- generation ---

    def _prompt(self, doc: Doc) -> str | list[dict[str, Any]]:
        return super()._prompt(doc) if all_images(doc) else self._renderer.text(doc)

    def _stops(self, doc: Doc) -> list[str]:
        if all_images(doc):
            return sorted({*super()._stops(doc), *self._model_stops})
        of_task = stop_strings(doc, self._uses_chat, self._renderer.begins_answer(doc))
        return sorted({text for text in [*self._generation.get("stop", []), *of_task, *self._model_stops] if text})

    @cached_property
    def _model_stops(self) -> list[str]:
        """The stop strings of the model's generation config, which vLLM does not read."""
        return configured_stop_strings(read_generation_config(self.settings))

    def _image_key(self, doc: Doc) -> list[Any] | None:
        key = super()._image_key(doc)
        return key and [*key, self._chat_body(doc)]

    def _chat_body(self, doc: Doc) -> dict[str, Any]:
        """Fields of a request for rendering a chat with images as for transformers: BOS, no reasoning."""
        silent = self._renderer.knows_thinking and wanted_reasoning(doc) is False
        thinking = {"chat_template_kwargs": {"enable_thinking": False}} if silent else {}
        return {"add_special_tokens": self._encoder(doc).add_special_tokens, **thinking}

    def _tokens(self, doc: Doc, wanted: int | None) -> tuple[list[int], int]:
        """The tokens of a text prompt, cut on the left if no further token would fit, and the number of cut ones."""
        tokens: list[int] = self._encoder(doc).tok_encode(self._prompt(doc))
        cut = len(tokens) - tokens_read(len(tokens), self.max_length + 1, wanted)
        return tokens[cut:], cut

    def _generation_question(self, doc: Doc, request: dict[str, Any]) -> Question:
        if all_images(doc):
            rendered = {**request.get("extra_body", {}), **self._chat_body(doc)}
            return super()._generation_question(doc, {**request, "extra_body": rendered})
        wanted = request.get(self.config.max_tokens_name)
        sent = {**request, "extra_body": {**request.get("extra_body", {}), "return_token_ids": True}}
        if self._renderer.knows_thinking and wanted_reasoning(doc) is not False:
            sent.pop("stop", None)  # it would end the reasoning; `_generated` cuts the answer

        async def ask(client: OpenAIClient) -> Answer:
            tokens, _ = self._tokens(doc, wanted)  # not before: journalled answers need no tokens
            room = self.max_length + 1 - len(tokens)
            limit = min(wanted or room, room)
            found = await client.complete(**{**sent, "prompt": tokens, self.config.max_tokens_name: limit})
            return found | ({"limit": limit} if wanted is not None and limit < wanted else {})

        return ask

    def _generated(self, doc: Doc, answers: list[Answer]) -> tuple[ModelResponse, dict[str, Any]]:
        response, added = super()._generated(doc, answers)
        if not all_images(doc):
            wanted = self.config.generation_parameters.max_new_tokens or doc.generation_size
            response.input_tokens, response.truncated_tokens_count = self._tokens(doc, wanted)
            completions = [completion for answer in answers for completion in answer["completions"]]
            response.output_tokens = [completion.get("tokens", []) for completion in completions]
        return response, added

    def _split(self, prompt: str | list[dict[str, Any]], completion: Answer) -> tuple[str, str | None]:
        """The text of an answer and its reasoning; the chat template may have written its start tag."""
        text, tags = completion["text"], self.config.reasoning_tags
        if "tokens" in completion:  # vLLM's text may end before an incomplete character
            text = self.tokenizer.decode(completion["tokens"], skip_special_tokens=not self._keeps_special)
        opened = next((tag for tag, _ in tags if isinstance(prompt, str) and prompt.rstrip().endswith(tag)), "")
        answer, reasoning = split_reasoning(opened + text, tags)
        for token in self.tokenizer.all_special_tokens if self._keeps_special else ():
            answer = answer.replace(token, "")
        return answer, reasoning

    # --- the server ---

    def _ask(
        self, docs: Sequence[Doc], asked: Sequence[Mapping[str, Question]], description: str
    ) -> tuple[dict[str, Answer], dict[int, ModelResponse]]:
        if any(key not in self._asking.journal for of_doc in asked for key in of_doc):
            is_scored = description == "scoring" or self.config.scoring == REASONED
            if is_scored and not self._server.runs:
                self._server.options = [*self._server.options, FOR_SCORING]
            self._server.start()
            self._asking.servers = replace(self._servers, base_urls=(self._server.url,))
        try:
            return super()._ask(docs, asked, description)
        except ServerError as error:
            if why := self._server.why_it_ended():
                raise CulturevalError(f"{why}\n{GOES_ON}") from error
            raise

    def cleanup(self) -> None:
        """Ends the server, which frees its device; called after the last answer, before the metrics."""
        self._server.stop()
        super().cleanup()
