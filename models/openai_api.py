"""Any OpenAI-compatible server as a LightEval model: `lighteval custom SETTINGS.yaml openai_api.py TASKS`.

SETTINGS.yaml, all but the first two optional:

    model: Qwen/Qwen2.5-VL-7B-Instruct      # its id on the server
    base_url: http://localhost:8000/v1      # or a list: requests go to the least busy server
    api_key_env: MY_KEY                     # name of the environment variable with the key
    system_prompt: ...
    generation_parameters: {temperature: 0.7, max_new_tokens: 256}
    tokenizer: /models/qwen                 # for log-likelihoods; default: the model's id

The other settings and their defaults are the fields of `ServerModelConfig` and `ServedModel`. The environment variable
CULTUREVAL_MODEL_SETTINGS (a JSON object) overrides the file.
"""

import logging
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lighteval.models.abstract_model import LightevalModel
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.prompt_manager import PromptManager
from lighteval.tasks.requests import Doc
from lighteval.utils.cache_management import SampleCache

from cultureval.models.answer_log import AnswerLog
from cultureval.models.generation.rendering import Renderer, all_images
from cultureval.models.server import scoring as server_scoring
from cultureval.models.server.chat import (
    as_data_url,
    as_hash,
    generation_arguments,
    image_form,
    in_parts,
    without,
)
from cultureval.models.server.first_token import ask_first_token, first_token_response, require_labels
from cultureval.models.server.plan import Plan
from cultureval.models.server.settings import load_tokenizer, read_config
from cultureval.models.tokens import Encoder, encoder_of, prompts_with_choices, require_whole_letters
from cultureval.runtime import processes
from cultureval.runtime.coroutines import run_coroutine
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import GOES_ON, BatchWritten, CulturevalError
from cultureval.runtime.generation_hints import ImagePart, chat_messages, cut, stop_strings, with_plain_query
from cultureval.runtime.journal import answer_key, open_journal
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse, name_of
from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.servers.ask import Asking, Question, Respondent, ask_all
from cultureval.runtime.servers.batch_files import Recorder, read_answers, write_requests
from cultureval.runtime.servers.client import OpenAIClient
from cultureval.runtime.servers.costs import Budget, BudgetSpent, RequestSize, text_tokens
from cultureval.runtime.servers.errors import RowError
from cultureval.runtime.servers.identity import ServerIdentity, identity_of_loaded
from cultureval.runtime.servers.replies import Answer, why_refused
from cultureval.runtime.servers.settings import ServerSettings
from cultureval.runtime.settings import current_settings
from cultureval.runtime.signatures import changed_settings, changed_values, text_hash

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

logger = logging.getLogger(__name__)

# Settings without effect on answers, or in other fields of a signature.
LEFT_OUT_OF_SIGNATURES = {"model", "model_name", "revision", "base_url", "api_key_env", "cache_dir", "concurrency", "n"}
LEFT_OUT_OF_SIGNATURES |= {"timeout_s", "max_retries", "max_tokens_name", "batch_out", "batch_in", "top_logprobs"}
LEFT_OUT_OF_SIGNATURES |= {"chat_template", "provider", "leave_out", "dry_run", "budget", "image_tokens"}
LEFT_OUT_OF_SIGNATURES |= {"input_token_price", "cached_token_price", "output_token_price", "batch_price"}
LEFT_OUT_OF_SIGNATURES |= {"most_images", "image_mib", "request_mib"}
UNSCORED = "pass --model-args on_refused=unscored to leave such rows unscored, count them, and bound the scores"


class OpenAIModel(LightevalModel):
    """A text or vision model on OpenAI-compatible servers."""

    def __init__(self, config: Any) -> None:
        """Reads the settings; no request is sent before the first prompt.

        Args:
            config: LightEval's; its `model_name` is the YAML file.

        Raises:
            CulturevalError: The settings are wrong.
        """
        self.config = read_config(config.model_name)
        self._prepare(self.config.servers())

    def _prepare(self, servers: ServerSettings) -> None:
        """The part of the set-up that does not depend on the source of the settings."""
        if processes.process_count() > 1:
            raise CulturevalError("A model on a server is asked by one process: start it without a launcher.")
        self._servers = servers
        self._generation = generation_arguments(self.config)
        self.log = AnswerLog()
        self.of_first_tokens: set[str] = set()  # tasks with `|k` that were scored by first tokens
        self._server_identity: ServerIdentity | None = None
        self._plan = Plan(self.config)
        self._cache = SampleCache(self.config)

    def identify(self) -> ServerIdentity | None:
        """The model identity of the servers, asked once, before any answer is looked up.

        Raises:
            CulturevalError: No server answers, or they serve different models.
        """
        config = self.config
        if self._server_identity is None:
            if config.batch or config.provided_by is not None:
                self._server_identity = ServerIdentity(config.model, root=config.provider)
            else:
                self._server_identity = identity_of_loaded(config.model, config)
        return self._server_identity

    @cached_property
    def _identity(self) -> dict[str, Any]:
        """The model identity in keys of answers: revision, extra_body, and the servers' entry of the model."""
        identity, config = self.identify(), self.config
        known = identity.known if identity else None
        return {"revision": config.revision, "extra_body": config.extra_body, "server": known}

    @cached_property
    def _asking(self) -> Asking:
        config, journal = self.config, open_journal(self.config.model, **self._identity)
        if config.batch_in:
            batch = read_answers([Path(file).expanduser() for file in config.batch_in])
            journal.append({key: answer for key, answer in batch.answers.items() if key not in journal})
            for problem in batch.problems:
                logger.warning("batch: %s", problem)
        budget = Budget(config, config.batch_price)
        return Asking(self._servers, journal, budget, Respondent(config.model))

    @cached_property
    def tokenizer(self) -> "PreTrainedTokenizerBase":
        """The model's tokenizer, loaded on first use (log-likelihoods only); a CulturevalError if that fails."""
        return load_tokenizer(self.config)

    @property
    def add_special_tokens(self) -> bool:
        """Whether BOS is added to a prompt: not if the chat template adds it, unless the setting is "on"."""
        return self._encoder().add_special_tokens

    def _encoder(self, doc: Doc | None = None) -> Encoder:
        """The encoder of a doc's prompt and choices."""
        parity = specific_of(doc).get("parity") if doc else None
        return encoder_of(self.tokenizer, self.config, self._renderer.writes_bos, parity)

    @property
    def max_length(self) -> int | None:
        """Longest prompt with choice, in tokens; None if unknown."""
        served = self._server_identity and self._server_identity.max_model_len
        limits = [limit for limit in (self.config.max_length, served and served - 1) if limit]
        return min(limits, default=None)

    def signature_fields(self) -> dict[str, str]:
        """The properties of this backend that a score depends on, for its signature."""
        revision = f"@{self.config.revision}" if self.config.revision else ""
        chat = "on" if self._uses_chat else "off"
        settings = changed_settings(self.config, LEFT_OUT_OF_SIGNATURES)
        fields = {"model": f"{self.config.model}{revision}", "backend": "server", "chat": chat, "settings": settings}
        fields |= {"without": "+".join(self.config.left_out)} if self.config.left_out else {}
        return fields | ({"server": str(self._server_identity)} if self._server_identity else {})

    def signature_fields_of(self, generated: bool) -> dict[str, str]:
        """The signature fields of generated texts or of scored choices, which may differ in `chat`."""
        by_template = not generated and self.config.scoring == "full"
        chat = self._renderer.uses_chat_template if by_template else not generated or self._uses_chat
        return self.signature_fields() | {"chat": "on" if chat else "off"}

    def run_record(self) -> dict[str, Any]:
        """Fields for the run's record: `model`, `tasks` (counts by task) and `tokens`."""
        return {
            "model": {
                "backend": "server",
                "version": self.config.revision,
                "max_length": self.max_length,
                "chat_template": self._uses_chat,
                "chat_template_hash": self._renderer.template_hash if self.config.tokenizer else "",
                "system_prompt_hash": text_hash(self.config.system_prompt),
                "served_models": sorted(filter(None, {self._asking.respondent.served})),
                "server": self._server_identity.known if self._server_identity else {},
                "settings": changed_values(self.config, LEFT_OUT_OF_SIGNATURES),
                "left_out": list(self.config.left_out),
            },
            "tasks": self.log.tasks(),
            "tokens": dict(self.log.spent),
        }

    def cleanup(self) -> None:
        """Ends a dry run with its plan; called after the last answer, before the metrics."""
        if self.config.dry_run:
            self._plan.finish(self._asking.budget.spent)

    @property
    def _uses_chat(self) -> bool:
        if self.config.chat_template == "auto":
            return self.config.tokenizer is None or self._renderer.uses_chat_template
        return self.config.chat_template == "on"

    @cached_property
    def _renderer(self) -> Renderer:
        """Renders prompts for log-likelihoods, as for transformers models."""
        return Renderer(self.tokenizer, None, self.config)

    def _messages(self, doc: Doc, image_part: ImagePart = as_hash) -> list[dict[str, Any]]:
        return chat_messages(doc, self.config.system_prompt, image_part, self.config.image_placement)

    # --- asking ---

    def _ask(
        self, docs: Sequence[Doc], asked: Sequence[Mapping[str, Question]], description: str
    ) -> tuple[dict[str, Answer], dict[int, ModelResponse]]:
        """The answers to the questions of docs, and by place the responses of docs without a usable answer."""
        asking, refused = self._asking, dict[str, RefusedResponse]()
        doc_of = {key: doc for doc, of_doc in zip(docs, asked, strict=True) for key in of_doc}
        questions = {key: question for of_doc in asked for key, question in of_doc.items()}

        def on_row_error(key: str, error: RowError) -> None:
            if current_settings().on_refused != "unscored":
                raise CulturevalError(f"{name_of(doc_of[key])}: {error} {GOES_ON} Or {UNSCORED}.")
            refused[key] = RefusedResponse(reason=error.reason, kind=error.kind)

        if self.config.dry_run:
            planned = RefusedResponse(reason="nothing is asked in a dry run")
            answers = asking.known(questions)
            refused = dict.fromkeys(self._plan.add(asking.sizes, docs, asked, answers), planned)
        elif self.config.batch_out and (missing := questions.keys() - asking.known(questions).keys()):
            raise self._batch_written({key: questions[key] for key in questions if key in missing})
        else:
            try:
                answers = ask_all(asking, questions, description, on_row_error)
            except BudgetSpent as error:
                raise CulturevalError(f"{self.config.model}: {error}. {GOES_ON} Raise --budget.") from error
        for key, answer in answers.items():
            if "completions" in answer and (why := why_refused(answer)):
                on_row_error(key, why)
        places = {place: [refused[key] for key in of_doc if key in refused] for place, of_doc in enumerate(asked)}
        return answers, {place: found[0] for place, found in places.items() if found}

    def _batch_written(self, questions: Mapping[str, Question]) -> BatchWritten:
        """The exception that ends a run after its requests were written to files."""

        async def take_down() -> list[tuple[str, Answer]]:
            recorder: Any = Recorder()
            return [(key, await question(recorder)) for key, question in questions.items()]

        file = Path(self.config.batch_out or "").expanduser()
        return BatchWritten(write_requests(file, run_coroutine(take_down())), len(questions))

    def _log(
        self,
        docs: Sequence[Doc],
        keys: Sequence[Iterable[str]],
        answers: Mapping[str, Answer],
        route: str,
        unscored: Container[int],
    ) -> None:
        """Logs the origin of the answers to scored docs, and their tokens.

        `unscored` are the places of docs without a score.
        """
        asking, counted = self._asking, set[str]()
        for place, (doc, of_doc) in enumerate(zip(docs, keys, strict=True)):
            used = [key for key in of_doc if key in answers and place not in unscored]
            if used and not self.log.look_up(doc.task_name, asking.journal, used):
                self.log.answered(doc.task_name, route)
            for key in used:
                if key not in counted and route != "server":  # of scores LightEval counts the tokens
                    self.log.used(doc.task_name, asking.pay(key, answers[key]))
                counted.add(key)
        self.log.spent = Counter(asking.budget.totals())

    def _key(self, size: RequestSize, **parts: Any) -> str:
        """The key of an answer, also in batch files; stores the size of its request."""
        key = answer_key(model=self.config.model, identity=self._identity, **parts)
        self._asking.sizes[key] = size
        return key

    # --- generation ---

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """Generates `num_samples` answers to each Doc.

        The Doc's `specific` gets the finish reasons ("stop", "length", "content_filter"...) and refusals of its
        answers; LightEval saves it in the details.

        Raises:
            ServerError: The servers stop the run; all answers so far are in the journal.
            CulturevalError: A row has no answer, or several samples are requested at temperature 0.
        """
        asked = [self._generations(doc) for doc in docs]
        answers, refused = self._ask(docs, asked, "generating")
        self._log(docs, asked, answers, "generation", refused)
        responses: list[ModelResponse] = []
        for place, (doc, keys) in enumerate(zip(docs, asked, strict=True)):
            if place in refused:
                responses.append(refused[place])
                continue
            response, added = self._generated(doc, [answers[key] for key in keys])
            responses.append(response)
            doc.specific = {**specific_of(doc), **added}
            self.log.short[doc.task_name] += any("limit" in answers[key] for key in keys)
        return responses

    def _generations(self, doc: Doc) -> dict[str, Question]:
        """The requests for a Doc's samples, `n` samples each: key -> question."""
        require_whole_letters(doc, doc.query)
        if doc.num_samples > 1 and not self._generation.get("temperature", "temperature" in self.config.left_out):
            raise CulturevalError(f"{doc.task_name} wants several samples: set a temperature above 0.")
        arguments = {**self._generation, "stop": self._stops_to_send(doc) or None}
        first_seed = self._generation.get("seed") if self.config.seed is None else self.config.seed
        limit = self.config.generation_parameters.max_new_tokens or doc.generation_size
        arguments |= {self.config.max_tokens_name: limit} if limit else {}
        prompt, questions = self._prompt(doc), {}
        for start in range(0, doc.num_samples, self.config.n):
            count = min(self.config.n, doc.num_samples - start)
            seed = None if first_seed is None else first_seed + start
            request = {"model": self.config.model, **arguments, "seed": seed, "n": count if count > 1 else None}
            request = {name: value for name, value in request.items() if value is not None}
            parts = {"request": request, "prompt": prompt, "images": self._image_key(doc), "sampling_index": start}
            key = self._key(self._size(prompt, request), kind="generation", **parts)
            questions[key] = self._generation_question(doc, request)
        return questions

    def _size(self, prompt: str | Sequence[dict[str, Any]], request: Mapping[str, Any]) -> RequestSize:
        """The size of a request, from its text or chat messages and its limit of tokens."""
        messages = [{"content": prompt}] if isinstance(prompt, str) else prompt
        parts = [part for message in in_parts(messages) for part in message["content"]]
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
        most = request.get(self.config.max_tokens_name)
        limit = most * (request.get("n") or 1) if most else None
        return RequestSize(text_tokens(text), sum(part["type"] != "text" for part in parts), limit)

    def _image_key(self, doc: Doc) -> list[Any] | None:
        """The form of a doc's images in requests, for its answer's key; None without images."""
        return image_form(doc, self.config)

    def _stops_to_send(self, doc: Doc) -> list[str]:
        """The stop strings in the request; our code cuts answers at all stop strings."""
        left_out = self.config.left_out
        stops = [] if "stop" in left_out else self._stops(doc)
        return [stop for stop in stops if stop.strip()] if "blank_stop" in left_out else stops

    def _stops(self, doc: Doc) -> list[str]:
        return sorted(
            {text for text in [*self._generation.get("stop", []), *stop_strings(doc, self._uses_chat)] if text}
        )

    def _generation_question(self, doc: Doc, request: dict[str, Any]) -> Question:
        async def ask(client: OpenAIClient) -> Answer:
            # Images are encoded here, so that only those of requests in flight are in memory.
            if self._uses_chat:
                return await client.chat(messages=self._messages(doc, as_data_url(doc, self.config)), **request)
            return await client.complete(prompt=self._plain(doc), **request)

        return ask

    def _prompt(self, doc: Doc) -> str | list[dict[str, Any]]:
        """The prompt of a generation: text, or chat messages with hashes in place of images."""
        return self._messages(doc) if self._uses_chat else self._plain(doc)

    def _plain(self, doc: Doc) -> str:
        if specific_of(doc).get("verbatim"):
            return doc.query
        if all_images(doc):
            raise CulturevalError(f"{doc.task_name} has images, which need chat messages: set chat_template to on.")
        manager = PromptManager(use_chat_template=False, system_prompt=self.config.system_prompt)
        return manager.prepare_prompt(with_plain_query(doc))

    def _generated(self, doc: Doc, answers: list[Answer]) -> tuple[ModelResponse, dict[str, Any]]:
        completions = [completion for answer in answers for completion in answer["completions"]]
        if len(completions) != doc.num_samples:
            problem = f"it has {len(completions)} answers instead of {doc.num_samples}"
            raise CulturevalError(f"{name_of(doc)}: {problem}; --no-resume asks again.")
        added = {
            "finish_reasons": [completion["finish_reason"] for completion in completions],
            "refusals": [completion["refusal"] for completion in completions],
        }
        prompt = self._prompt(doc)
        # The text includes reasoning if the server has no parser for it; stop strings apply to the answer.
        split = [self._split(prompt, completion) for completion in completions]
        response = ModelResponse(
            input=prompt if isinstance(prompt, str) else in_parts(prompt),
            text=[cut(text, self._stops(doc)) for text, _ in split],
            reasonings=[
                completion["reasoning"] or reasoning
                for completion, (_, reasoning) in zip(completions, split, strict=True)
            ],
        )
        return response, added

    def _split(self, prompt: str | list[dict[str, Any]], completion: Answer) -> tuple[str, str | None]:
        """The text of an answer and its reasoning."""
        return split_reasoning(completion["text"], self.config.reasoning_tags)

    # --- scoring ---

    def loglikelihood(self, docs: list[Doc]) -> list[ModelResponse]:
        """Scores the choices of each Doc: the sum of the log-probabilities of a choice's tokens after the prompt.

        With `scoring: first_token`, the first token of a chat reply scores labels.

        Raises:
            ServerError: The server has no prompt log-probabilities, or stops the run otherwise.
            CulturevalError: A row has no answer.
        """
        if self.config.scoring == "full":
            self.identify()  # gives the longest sequence
            return self._score([*map(self._prompts, docs)])
        for doc in docs:
            require_labels(doc)
        self.of_first_tokens |= {doc.task_name for doc in docs}
        asked = [self._first_token_questions(doc) for doc in docs]
        answers, refused = self._ask(docs, asked, "scoring first tokens")
        responses = [
            refused.get(place) or first_token_response(doc, in_parts(self._messages(doc)), answers[key])
            for place, (doc, (key,)) in enumerate(zip(docs, asked, strict=True))
        ]
        unscored = {place for place, response in enumerate(responses) if isinstance(response, RefusedResponse)}
        self._log(docs, asked, answers, "first token", unscored)
        return responses

    def _first_token_questions(self, doc: Doc) -> dict[str, Question]:
        limits = {self.config.max_tokens_name: 1, "top_logprobs": self.config.top_logprobs}
        sent = without({**limits, "temperature": 0}, self.config.left_out, user_set=())
        request = sent | {"model": self.config.model, "extra_body": self.config.extra_body}
        parts = {"request": sent, "prompt": self._messages(doc), "images": self._image_key(doc)}
        key = self._key(self._size(parts["prompt"], limits), kind="first token", **parts)

        async def ask(client: OpenAIClient) -> Answer:
            messages = self._messages(doc, as_data_url(doc, self.config))
            return await ask_first_token(client, {**request, "messages": messages})

        return {key: ask}

    def _prompts(self, doc: Doc) -> server_scoring.Prompt:
        if not doc.choices:
            raise CulturevalError(f"{doc.task_name} needs choices to score, but doc {doc.id!r} has none.")
        messages = self._messages(doc) if all_images(doc) else None
        text = self._chat_text(doc) if messages else self._renderer.text(doc, scoring=True)
        require_whole_letters(doc, text, *doc.choices)
        encoder = self._encoder(doc)
        apart = encoder.apart or messages is not None  # the server tokenizes a chat with images
        parts = [
            encoder.tok_encode_pair(*pair, pairwise=apart) for pair in prompts_with_choices(doc, text, doc.choices)
        ]
        contexts, choices = ([tokens for part in column for tokens in part] for column in zip(*parts, strict=True))
        contexts = [context or [self._first_token] for context in contexts]
        longest = max(map(len, contexts))
        if self.max_length is not None and messages is None:
            limits = [max(1, self.max_length - len(choice)) for choice in choices]
            contexts = [context[-limit:] for context, limit in zip(contexts, limits, strict=True)]
        truncated = longest - max(map(len, contexts))
        return server_scoring.Prompt(doc, text, messages, contexts, choices, truncated)

    def _chat_text(self, doc: Doc) -> str:
        """A prompt with images as the server's chat template renders it."""
        if not self._renderer.uses_chat_template:
            raise CulturevalError(
                f"{doc.task_name} has images, which a server scores only as chat messages: use a chat template."
            )
        thinking = {"enable_thinking": False} if self._renderer.knows_thinking else {}
        messages = self._messages(doc, lambda _: {"type": "image"})
        return self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **thinking)

    @property
    def _first_token(self) -> int:
        """The token before a text without a prompt: BOS, else EOS."""
        bos = self.tokenizer.bos_token_id
        return self.tokenizer.eos_token_id if bos is None else bos

    def loglikelihood_rolling(self, docs: list[Doc]) -> list[ModelResponse]:
        """Refuses perplexities of whole texts, which none of our tasks needs."""
        raise CulturevalError(f"{docs[0].task_name} asks for perplexity: run it with `lighteval accelerate`.")

    def _score(self, prompts: list[server_scoring.Prompt]) -> list[ModelResponse]:
        thinking = self._renderer.knows_thinking
        scorer = server_scoring.Scorer(self.config, self._key, self.add_special_tokens, thinking)
        questions = [scorer.questions(prompt) for prompt in prompts]
        asked = [*map(dict, questions)]
        docs = [prompt.doc for prompt in prompts]
        answers, refused = self._ask(docs, asked, "scoring")
        self._log(docs, asked, answers, "server", refused)
        return [
            refused.get(place) or server_scoring.response(prompt, [answers[key] for key, _ in of_prompt])
            for place, (prompt, of_prompt) in enumerate(zip(prompts, questions, strict=True))
        ]
