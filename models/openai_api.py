"""Any OpenAI-compatible server as a LightEval model: `lighteval custom SETTINGS.yaml openai_api.py TASKS`.

SETTINGS.yaml, all but the first two optional:

    model: Qwen/Qwen2.5-VL-7B-Instruct      # the id under which the server serves it
    base_url: http://localhost:8000/v1      # or a list: load is balanced, failing servers are skipped until they answer
    api_key_env: MY_KEY                     # name of the environment variable with the key
    system_prompt: ...
    generation_parameters: {temperature: 0.7, max_new_tokens: 256}
    tokenizer: /models/qwen                 # for log-likelihoods; default: the model's id

The other settings and their defaults are the fields of `ServerModelConfig` and `ServedModel`. The environment variable
CULTUREVAL_MODEL_SETTINGS (a JSON object) overrides the file.
"""

import logging
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from lighteval.models.abstract_model import LightevalModel
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.prompt_manager import PromptManager
from lighteval.tasks.requests import Doc
from lighteval.utils.cache_management import SampleCache

from cultureval.models.answer_log import AnswerLog
from cultureval.models.generation.rendering import Renderer, all_images
from cultureval.models.server import scoring as server_scoring
from cultureval.models.server.abilities import scoring_of
from cultureval.models.server.batches import RunBatch
from cultureval.models.server.chat import (
    as_data_url,
    as_hash,
    generation_arguments,
    image_form,
    in_parts,
    without,
)
from cultureval.models.server.first_token import ask_first_token, first_token_response, require_labels
from cultureval.models.server.long_prompts import ask_to_fit
from cultureval.models.server.refused_answers import naming, refused_answers, skipping
from cultureval.models.server.settings import (
    identity_question,
    load_tokenizer,
    model_identity,
    read_config,
    short_question,
)
from cultureval.models.server.spending import Spending
from cultureval.models.tokens import Encoder, encoder_of, require_whole_letters, rolling_windows
from cultureval.runtime import processes
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError, counted
from cultureval.runtime.generation_hints import ImagePart, chat_messages, cut, stop_strings, with_plain_query
from cultureval.runtime.journal import answer_key, open_journal
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse
from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.servers.answers import Answer
from cultureval.runtime.servers.costs import BudgetSpent, RequestSize
from cultureval.runtime.servers.identity import ServerIdentity
from cultureval.runtime.servers.identity_watch import IdentityWatch
from cultureval.runtime.servers.journalled_answers import First, OnFailure, Question, answer_all, earlier_answers
from cultureval.runtime.servers.openai_client import OpenAIClient
from cultureval.runtime.servers.providers import aliases_of
from cultureval.runtime.servers.settings import ServerSettings
from cultureval.runtime.settings import current_settings
from cultureval.runtime.signatures import changed_settings, changed_values, text_hash

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

logger = logging.getLogger(__name__)

# Settings that answers do not depend on, or that a signature shows in other fields.
LEFT_OUT_OF_SIGNATURES = {"model", "model_name", "revision", "base_url", "api_key_env", "cache_dir", "concurrency", "n"}
LEFT_OUT_OF_SIGNATURES |= {"timeout_s", "max_retries", "give_up_s", "backoff_s", "max_tokens_name"}
LEFT_OUT_OF_SIGNATURES |= {"batch_out", "batch_in", "batch_missing", "batch_requests", "batch_mib"}
LEFT_OUT_OF_SIGNATURES |= {"top_logprobs"}
LEFT_OUT_OF_SIGNATURES |= {"chat_template", "identify", "provider", "leave_out", "dry_run", "budget", "image_tokens"}
LEFT_OUT_OF_SIGNATURES |= {"input_token_price", "cached_token_price", "output_token_price", "batch_price"}
LEFT_OUT_OF_SIGNATURES |= {"most_images", "image_mib", "request_mib"}


class OpenAIModel(LightevalModel):
    """A text or vision model on OpenAI-compatible servers."""

    def __init__(self, config: Any) -> None:
        """Read the settings; no request is sent before the first prompt.

        Args:
            config: LightEval's, whose `model_name` is the YAML file.

        Raises:
            CulturevalError: The settings are wrong.
        """
        processes.connect()
        self.config = read_config(config.model_name)
        self._prepare(self.config.servers())
        self._batch = RunBatch(self.config) if self.config.batch and not self.config.dry_run else None

    def _prepare(self, servers: ServerSettings) -> None:
        """What does not depend on where the settings come from; several processes share the requests in flight."""
        shared = max(1, servers.concurrency // processes.process_count())
        self._servers = replace(servers, concurrency=shared)
        self._generation = generation_arguments(self.config)
        self._journal = open_journal(of=self.config.model)
        self.log = AnswerLog()
        self.of_first_tokens: set[str] = set()  # tasks with `|k` whose labels were scored so
        self._served: set[str] = set()
        self._server_identity: ServerIdentity | None = None
        self._watch: IdentityWatch | None = None
        self._counted: set[str] = set()
        self._keys: dict[str, Callable[[Mapping[str, Any]], str]] = {}
        self._batch: RunBatch | None = None
        self._spending = Spending(self.config, self._journal)
        self._cache = SampleCache(self.config)

    def identify(self) -> None:
        """Learn who the servers are, once, before any answer is looked up; the first process asks for all.

        Raises:
            CulturevalError: None of them answers, or they serve different models.
        """
        if self._server_identity is None and self.config.batch:
            self._server_identity = ServerIdentity(id=self.config.model)  # who answers a batch is not there to be asked
            self._watch = IdentityWatch(self._server_identity, None, current_settings().on_change == "continue")
        if self._server_identity is None:
            asked = model_identity(self.config) if processes.process_rank() == 0 else None
            self._server_identity = processes.gather(asked)[0]
            goes_on = current_settings().on_change == "continue"
            self._watch = IdentityWatch(self._server_identity, identity_question(self.config), goes_on)

    @cached_property
    def tokenizer(self) -> "PreTrainedTokenizerBase":
        """The model's tokenizer, loaded on first use (log-likelihoods only).

        Raises:
            CulturevalError: It cannot be loaded.
        """
        return load_tokenizer(self.config)

    @property
    def add_special_tokens(self) -> bool:
        """Whether BOS is added to a prompt: not if the chat template already adds it, unless the settings say "on"."""
        return self._encoder().add_special_tokens

    def _encoder(self, doc: Doc | None = None) -> Encoder:
        """The encoder of a doc's prompt and choices."""
        parity = specific_of(doc).get("parity") if doc else None
        return encoder_of(self.tokenizer, self.config, self._renderer.writes_bos, parity)

    @property
    def max_length(self) -> int | None:
        """Longest prompt with choice, in tokens; None if only the server knows it."""
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
        whose = list(dict.fromkeys([str(self._server_identity), *self._other_models.values()]))
        return fields | ({"server": " and ".join(whose)} if self._server_identity else {})

    @property
    def _other_models(self) -> dict[str, str]:
        """Key of an answer that another model than the run's gave, or may have given -> that model."""
        return self._watch.others if self._watch else {}

    def others_of(self, doc: Doc) -> list[str]:
        """The other models than the run's that wrote answers to a doc, or may have."""
        return [self._other_models[key] for key in self._generations(doc) if key in self._other_models]

    def run_record(self) -> dict[str, Any]:
        """What a run's record says of this model: `model`, what is known of the server; `tasks`, counts; `tokens`."""
        return {
            "model": {
                "backend": "server",
                "version": self.config.revision,
                "processes": processes.process_count(),
                "max_length": self.max_length,
                "chat_template": self._uses_chat,
                "chat_template_hash": self._renderer.template_hash if self.config.tokenizer else "",
                "system_prompt_hash": text_hash(self.config.system_prompt),
                "served_models": sorted(self._served),
                "server": self._server_identity.known if self._server_identity else {},
                "other_models": dict(Counter(self._other_models.values())),
                "settings": changed_values(self.config, LEFT_OUT_OF_SIGNATURES),
                "left_out": list(self.config.left_out),
            },
            "tasks": self.log.tasks(),
            "tokens": dict(self.log.spent),
        }

    @property
    def disable_tqdm(self) -> bool:
        """Progress is shown by the first process only."""
        return processes.process_rank() > 0

    def cleanup(self) -> None:
        """Called by LightEval after the last answer and before the metrics: all processes but the first end here."""
        self._spending.finish()
        if self._batch:
            self._batch.finish()
        logs = processes.gather((self.log, self._served, self._other_models))
        self.log = AnswerLog()
        for log, served, others in logs:
            self.log.add(log)
            self._served |= served
            self._other_models.update(others)
        processes.answered()

    @property
    def _identity(self) -> dict[str, Any]:
        return self._identity_of(self._server_identity.known if self._server_identity else None)

    def _identity_of(self, server: Mapping[str, Any] | None) -> dict[str, Any]:
        """What identifies the model in the journal's keys, with what its servers say of themselves."""
        named = {name: getattr(self.config, name) for name in ("model", "revision", "extra_body")}
        return {**named, "server": server}

    @property
    def _uses_chat(self) -> bool:
        if self.config.chat_template == "auto":
            return self.config.tokenizer is None or self._renderer.uses_chat_template
        return self.config.chat_template == "on"

    @cached_property
    def _renderer(self) -> Renderer:
        """Renders prompts for log-likelihoods as the transformers models do."""
        return Renderer(self.tokenizer, None, self.config)

    def _messages(self, doc: Doc, image_part: ImagePart = as_hash) -> list[dict[str, Any]]:
        return chat_messages(doc, self.config.system_prompt, image_part, self.config.image_placement)

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """Generate an answer (or `num_samples` of them) to each Doc.

        The finish reasons ("stop", "length", "content_filter"...) and refusals of a Doc's answers are added to its
        `specific`, which LightEval saves in the details.

        Raises:
            ServerError: A prompt was rejected or timed out; all answers so far are in the journal.
            CulturevalError: Several samples are requested at temperature 0.
        """
        self.identify()
        shares = processes.split_round_robin(range(len(docs)))
        answered = processes.answer_and_gather(docs, shares, self._generate)
        for doc, (_, added) in zip(docs, answered, strict=True):
            doc.specific = {**specific_of(doc), **added}
        return [response for response, _ in answered]

    def _generate(self, docs: Sequence[Doc]) -> list[tuple[ModelResponse, dict[str, Any]]]:
        """The responses of this process's share of docs, and what each adds to its doc's `specific`."""
        asked = [self._generations(doc) for doc in docs]
        answers, refused = self._ask(docs, asked, "generating")
        self._log(docs, asked, answers, "generation", refused)
        responses: list[tuple[ModelResponse, dict[str, Any]]] = []
        for place, (doc, keys) in enumerate(zip(docs, asked, strict=True)):
            if place in refused:
                responses.append((refused[place], {}))
                continue
            response, added = self._generated(doc, [answers[key] for key in keys])
            self.log.short[doc.task_name] += any("limit" in answers[key] for key in keys)
            responses.append((response, added))
        _tell_of_cut(docs, [response for response, _ in responses])
        return responses

    def _ask(
        self,
        docs: Sequence[Doc],
        asked: Sequence[Mapping[str, Question]],
        description: str,
        first: First | None = None,
    ) -> tuple[dict[str, Answer], dict[int, ModelResponse]]:
        """The answers to the questions of docs, and by place what stands for docs without one that can be used."""
        reasons: dict[str, RefusedResponse] = {}
        short = short_question(self.config, self._servers)
        keys = [key for own in asked for key in own]
        waiting: list[Doc] | None = None if any(key in self._journal for key in keys) else []
        questions = {
            key: naming(doc, question, self._watch, short, waiting)
            for doc, own in zip(docs, asked, strict=True)
            for key, question in own.items()
        }
        if self.config.dry_run or self._batch:
            known, _ = earlier_answers(self._journal, keys, self._watch)
        if self.config.dry_run:
            reasons |= self._spending.plan(docs, asked, known)
        elif self._batch:
            file = partial(self._file_batch, known)
            reasons |= self._batch.answer(docs, asked, known, self._other_models, file, self._waste)
        questions = {key: question for key, question in questions.items() if key not in reasons}
        answers = self._answered(questions, description, first, skipping(reasons))
        found: dict[int, ModelResponse] = {**refused_answers(docs, asked, answers)}
        for place, own in enumerate(asked):
            if why := [reasons[key] for key in own if key in reasons]:
                found[place] = why[0]
        return answers, found

    def _waste(self, key: str, answers: Sequence[Answer]) -> None:
        """Keeps what a batch's answers to a question cost that are of no use."""
        for answer in answers:
            self._journal.take_back(key, answer | {"batch": True})

    def _file_batch(self, known: Mapping[str, Answer], found: Mapping[str, Answer]) -> None:
        """Puts the answers of a batch into the journal, each under the identity of its model."""
        assert self._watch is not None
        self._watch.expect([*known.values(), *found.values()])
        own = {key: answer for key, answer in found.items() if self._watch.is_own(answer)}
        others = {key: answer for key, answer in found.items() if key not in own and key not in known}
        who = {key: replace(self._watch.first, served=answer["model"]) for key, answer in others.items()}
        places = {key: (self._keys[key](one.known), str(one)) for key, one in who.items()}
        self._journal.append(own | {places[key][0]: answer for key, answer in others.items()})
        self._journal.withdraw(others, places)
        for key in own:
            self._watch.others.pop(key, None)

    def _answered(
        self, questions: Mapping[str, Question], description: str, first: First | None, skip: OnFailure
    ) -> dict[str, Answer]:
        """The answers to questions, within the budget if there is one."""
        spending, budget = self._spending, self._spending.budget
        spending.begin(list(questions))
        try:
            return answer_all(
                self._servers,
                {key: spending.guarded(key, question) for key, question in questions.items()},
                self._journal,
                spending.pay,
                description,
                first,
                on_failure=skip,
                note=(lambda: str(budget)) if self.config.budget is not None else None,
                silent=self.disable_tqdm,
                watch=self._watch,
                key_under=lambda key, server: self._keys[key](server),
                again=spending.again,
            )
        except BudgetSpent as error:
            answered = sum(key in self._journal for key in questions)
            raise spending.explain(error, answered, len(questions)) from None

    def _log(
        self,
        docs: Sequence[Doc],
        keys: Sequence[Iterable[str]],
        answers: Mapping[str, Answer],
        route: str,
        unscored: Container[int],
    ) -> None:
        """Notes where the answers to scored docs came from, and what the servers count and say of themselves.

        `unscored` are the places of docs without a score; what they cost is counted too.
        """
        for place, (doc, of_doc) in enumerate(zip(docs, keys, strict=True)):
            own = [key for key in of_doc if key in answers and place not in unscored]
            if any(key in self._other_models for key in own):
                self.log.answered_by_another(doc.task_name)
            if own and not self.log.look_up(doc.task_name, self._journal, own):
                self.log.answered(doc.task_name, route)
            for key in of_doc:
                if key not in self._counted:
                    self._counted.add(key)
                    used = self._spending.pay(key, answers.get(key), filed=True)
                    if key in own and route != "server":  # whose own tokens are known better
                        self.log.used(doc.task_name, used)
        for answer in answers.values():
            self._served |= {answer["model"]} if answer.get("model") else set()
        self.log.spent = Counter(self._spending.budget.totals())

    def _generations(self, doc: Doc) -> dict[str, Question]:
        """The requests for a Doc's samples, `n` at a time: key -> question."""
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
            key = self._key(self._spending.size(prompt, request), kind="generation", **parts)
            questions[key] = self._generation_question(doc, request)
        return questions

    def _key(self, size: RequestSize, **parts: Any) -> str:
        """The key of an answer in the journal; the size of its request is noted, and its key under other identities."""
        key = answer_key(identity=self._identity, **parts)
        if key not in self._journal:
            key = self._key_under_alias(parts) or key
        self._keys[key] = lambda server: answer_key(identity=self._identity_of(server), **parts)
        self._spending.sizes[key] = size
        return key

    def _key_under_alias(self, parts: Mapping[str, Any]) -> str | None:
        """The key of an answer to a name that led to the model, from the first or after a change; None without one."""
        if self._watch is None or self._watch.question is not None:  # servers say themselves who they are
            return None
        for alias in aliases_of(self.config.model):
            request = parts.get("request", {})
            named = {**parts, "request": {**request, "model": alias}} if "model" in request else parts
            server = self._watch.first.known | {"id": alias}
            for one in (server, server | {"served": self.config.model}):
                key = answer_key(identity=self._identity_of(one) | {"model": alias}, **named)
                if (self._journal.get(key) or {}).get("model") == self.config.model:
                    return key
        return None

    def _image_key(self, doc: Doc) -> list[Any] | None:
        """How a doc's images are sent, as a part of its answer's key; None without images."""
        return image_form(doc, self.config) if all_images(doc) else None

    def _stops_to_send(self, doc: Doc) -> list[str]:
        """The stop strings that the server is told; answers are cut at all of them here."""
        left_out = self.config.left_out
        stops = [] if "stop" in left_out else self._stops(doc)
        return [stop for stop in stops if stop.strip()] if "blank_stop" in left_out else stops

    def _stops(self, doc: Doc) -> list[str]:
        return sorted(
            {text for text in [*self._generation.get("stop", []), *stop_strings(doc, self._uses_chat)] if text}
        )

    def _generation_question(self, doc: Doc, request: dict[str, Any]) -> Question:
        async def ask(client: OpenAIClient) -> Answer:
            # Encoded here, so that only the images of requests in flight are in memory.
            part = as_data_url(doc, self.config)
            prompt = {"messages": self._messages(doc, part)} if self._uses_chat else {"prompt": self._plain(doc)}
            if self.config.provided_by is None and not all_images(doc):
                return await ask_to_fit(client, prompt, request, self.config.max_tokens_name)
            return await (client.chat if self._uses_chat else client.complete)(**prompt, **request)

        return ask

    def _prompt(self, doc: Doc) -> str | list[dict[str, Any]]:
        """The prompt of a generation: text, or chat messages with hashes in place of images."""
        return self._messages(doc) if self._uses_chat else self._plain(doc)

    def _plain(self, doc: Doc) -> str:
        if all_images(doc):
            raise CulturevalError(f"{doc.task_name} has images, which need chat messages: set chat_template to on.")
        manager = PromptManager(use_chat_template=False, system_prompt=self.config.system_prompt)
        return manager.prepare_prompt(with_plain_query(doc))

    def _generated(self, doc: Doc, answers: list[Answer]) -> tuple[ModelResponse, dict[str, Any]]:
        completions = [completion for answer in answers for completion in answer["completions"]]
        added = {
            "finish_reasons": [completion["finish_reason"] for completion in completions],
            "refusals": [completion["refusal"] for completion in completions],
        }
        prompt = self._prompt(doc)
        # Without a reasoning parser on the server, the text includes reasoning; stop strings apply to the answer.
        split = [self._split(prompt, completion) for completion in completions]
        response = ModelResponse(
            input=prompt if isinstance(prompt, str) else in_parts(prompt),
            text=[cut(text, self._stops(doc)) for text, _ in split],
            reasonings=[
                completion["reasoning"] or reasoning
                for completion, (_, reasoning) in zip(completions, split, strict=True)
            ],
            truncated_tokens_count=max(answer.get("truncated", 0) for answer in answers),
        )
        return response, added

    def _split(self, prompt: str | list[dict[str, Any]], completion: Answer) -> tuple[str, str | None]:
        """The text of an answer and its reasoning."""
        return split_reasoning(completion["text"], self.config.reasoning_tags)

    def loglikelihood(self, docs: list[Doc]) -> list[ModelResponse]:
        """Score the choices of each Doc: the sum of the log-probabilities of a choice's tokens after the prompt.

        Raises:
            ServerError: The server has no prompt log-probabilities, or they depend on the order of requests; or a
                prompt was rejected or timed out.
        """
        if scoring_of(self.config, [choice.strip() for choice in docs[0].choices]) == "first_token":
            self.config = self.config.model_copy(update={"scoring": "first_token"})  # for the signature
            return self._score_first_tokens(docs)
        return self._score_together(docs, self._prompts)

    def _score_first_tokens(self, docs: Sequence[Doc]) -> list[ModelResponse]:
        """Score labels by the first token of a chat reply."""
        for doc in docs:
            require_labels(doc)
        self.of_first_tokens |= {doc.task_name for doc in docs}
        self.identify()
        return processes.answer_and_gather(docs, processes.split_round_robin(range(len(docs))), self._first_tokens)

    def _first_tokens(self, docs: Sequence[Doc]) -> list[ModelResponse]:
        asked = [self._first_token_questions(doc) for doc in docs]
        answers, refused = self._ask(docs, asked, "scoring first tokens")
        responses = [
            refused.get(place) or first_token_response(doc, in_parts(self._messages(doc)), answers[key])
            for place, (doc, (key,)) in enumerate(zip(docs, asked, strict=True))
        ]
        unscored = {place for place, one in enumerate(responses) if isinstance(one, RefusedResponse)}
        self._log(docs, asked, answers, "first token", unscored)
        return responses

    def _first_token_questions(self, doc: Doc) -> dict[str, Question]:
        limits = {self.config.max_tokens_name: 1, "top_logprobs": self.config.top_logprobs}
        sent = without({**limits, "temperature": 0}, self.config.left_out, given=())
        request = sent | {"model": self.config.model, "extra_body": self.config.extra_body}
        parts = {"request": sent, "prompt": self._messages(doc), "images": self._image_key(doc)}
        key = self._key(self._spending.size(parts["prompt"], limits), kind="first token", **parts)

        async def ask(client: OpenAIClient) -> Answer:
            messages = self._messages(doc, as_data_url(doc, self.config))
            return await ask_first_token(client, {**request, "messages": messages})

        return {key: ask}

    def _score_together(
        self, docs: Sequence[Doc], prompt_of: Callable[[Doc], server_scoring.Prompt]
    ) -> list[ModelResponse]:
        """Score docs in all processes, each a share of adjacent ones, whose prompts may begin alike."""
        self.identify()
        shares = processes.split_contiguous(range(len(docs)), [1.0] * len(docs))
        return processes.answer_and_gather(docs, shares, lambda share: self._score([*map(prompt_of, share)]))

    def _prompts(self, doc: Doc) -> server_scoring.Prompt:
        if not doc.choices:
            raise CulturevalError(f"{doc.task_name} needs choices to score, but doc {doc.id!r} has none.")
        messages = self._messages(doc) if all_images(doc) else None
        text = self._chat_text(doc) if messages else self._renderer.text(doc, scoring=True)
        require_whole_letters(doc, text, *doc.choices)
        encoder = self._encoder(doc)
        apart = encoder.apart or messages is not None  # the server encodes a chat with images
        contexts, choices = encoder.tok_encode_pair(text, doc.choices, pairwise=apart)
        contexts = [context or [self._first_token] for context in contexts]
        longest = max(map(len, contexts))
        if self.max_length is not None and messages is None:
            limits = [max(1, self.max_length - len(choice)) for choice in choices]
            contexts = [context[-limit:] for context, limit in zip(contexts, limits, strict=True)]
        truncated = longest - max(map(len, contexts))
        if truncated:
            logger.warning(
                "%s %s: the first %d tokens of the prompt were cut to keep max_length", doc.task_name, doc.id, truncated
            )
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
        """Score each Doc's query after BOS (or EOS, without a BOS), in windows of `max_length`; raises as others do."""
        responses = self._score_together(docs, self._rolling_prompt)
        for response in responses:
            if len(response.logprobs) > 1:
                response.logprobs = [sum(response.logprobs)]
                response.argmax_logits_eq_gold = [all(response.argmax_logits_eq_gold)]
                response.output_tokens = [list(chain(*response.output_tokens))]
        return responses

    def _rolling_prompt(self, doc: Doc) -> server_scoring.Prompt:
        require_whole_letters(doc, doc.query)
        tokens = self.tok_encode(doc.query, add_special_tokens=False)
        windows = rolling_windows([self._first_token], tokens, self.max_length or len(tokens) + 1)
        return server_scoring.Prompt(doc, doc.query, None, *([list(part) for part in zip(*windows, strict=True)]))

    def _score(self, prompts: list[server_scoring.Prompt]) -> list[ModelResponse]:
        thinking = self._renderer.knows_thinking
        scorer = server_scoring.Scorer(self.config, self._key, self.add_special_tokens, thinking)
        questions = [scorer.questions(prompt) for prompt in prompts]
        asked = [*map(dict, questions)]
        docs = [prompt.doc for prompt in prompts]
        probe = partial(server_scoring.parity_probe, tolerance=self.config.parity_tolerance)
        answers, refused = self._ask(docs, asked, "scoring", probe)
        self._log(docs, asked, answers, "server", refused)
        return [
            refused.get(place) or server_scoring.response(prompt, [answers[key] for key, _ in own])
            for place, (prompt, own) in enumerate(zip(prompts, questions, strict=True))
        ]


def _tell_of_cut(docs: Sequence[Doc], responses: Sequence[ModelResponse]) -> None:
    """Says whose prompts were shortened for an answer; what their answers lost is told at the end."""
    pairs = zip(docs, responses, strict=True)
    cut = Counter(doc.task_name for doc, response in pairs if response.truncated_tokens_count)
    for task, count in sorted(cut.items()):
        told = counted(count, "prompt")
        logger.warning(
            "%s: the beginning of %s was cut, since more is too long for the model. Kept answers stay so: if it is "
            "served with a longer context, --no-resume asks anew.",
            task,
            told,
        )
