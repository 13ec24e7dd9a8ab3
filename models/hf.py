"""`lighteval custom MODEL .../cultureval/models/hf.py TASKS`: any causal or image-text-to-text model of transformers.

MODEL is a hub id, a folder, or a YAML file with the settings of `cultureval.models.settings`. Finished answers are
written to the journal, and a resumed run reads them. Under `accelerate launch` or `torchrun` every process
answers its share and the first one computes the metrics.
"""

import inspect
import logging
import os
import time
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from lighteval.models.abstract_model import LightevalModel
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc
from lighteval.utils.cache_management import SampleCache

from cultureval.models.answer_log import AnswerLog
from cultureval.models.answering import Answer, Generator
from cultureval.models.generation.rendering import Renderer, all_images, open_images
from cultureval.models.jobs import ImagesRefused, ScoringJob, encode_together, in_windows
from cultureval.models.loading import BITS, LoadedModel, load
from cultureval.models.memory import failures_named, is_out_of_memory
from cultureval.models.scoring.packed import ChoiceScorer, ScoringRequest
from cultureval.models.settings import NOT_IN_ANSWER_KEY, HFModelSettings, read_settings
from cultureval.models.tokens import Encoder, encoder_of
from cultureval.runtime import processes
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import open_journal
from cultureval.runtime.patches.transformers import loaded_facts
from cultureval.runtime.progress import Progress, working
from cultureval.runtime.servers.data_urls import image_hash
from cultureval.runtime.signatures import changed_settings, changed_values, text_hash

logger = logging.getLogger(__name__)
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

IMAGE_CHARACTERS = 1000  # of text that cost about as much as an image
# Not settings: names, places, and results of loading.
NOT_SETTINGS = {"model_name", "cache_dir", "resolved_revision", "fingerprint"}


class HFModel(LightevalModel):
    """A transformers model with LightEval's interface.

    Attributes:
        config: The settings, as written to the results.
        seconds: Time of computing log-probabilities of choices.
        log: The origin of answers; of all processes after `cleanup`.
    """

    def __init__(self, config: Any) -> None:
        """Load the model of LightEval's CustomModelConfig, or of our settings.

        Raises:
            CulturevalError: The settings or the model cannot be read.
        """
        processes.connect()
        settings = config if isinstance(config, HFModelSettings) else read_settings(config.model_name)
        with working(f"Loading {settings.display_name()}"):
            self.loaded: LoadedModel = load(settings)
        self.config = settings.model_copy(update={"model_name": settings.display_name()})
        self.renderer = Renderer(self.loaded.tokenizer, self.loaded.processor, settings)
        self.scorer = ChoiceScorer(self.loaded.model, self.loaded.end_ids(), settings.token_budget)
        self.journal = open_journal(
            self.config.model_name, model=self.loaded.identity, settings=settings.answer_key_settings()
        )
        self.log = AnswerLog()
        self.seconds = 0.0
        self.generator = Generator(self)
        self._cache = SampleCache(self.config)  # LightEval's pipeline gives it the task registry

    @property
    def tokenizer(self) -> Any:
        """The tokenizer, padding and truncating on the left."""
        return self.loaded.tokenizer

    @property
    def add_special_tokens(self) -> bool:
        """Whether BOS is added to a prompt: not if the chat template adds it, unless the setting is "on"."""
        return self.encoder().add_special_tokens

    def encoder(self, doc: Doc | None = None) -> Encoder:
        """The encoder of a doc's prompt and choices; None: of a doc without `parity`."""
        parity = specific_of(doc).get("parity") if doc else None
        return encoder_of(self.tokenizer, self.config, self.renderer.writes_bos, parity)

    @property
    def max_length(self) -> int:
        """Longest sequence in tokens."""
        return self.loaded.max_length

    @property
    def disable_tqdm(self) -> bool:
        """Whether progress is hidden: in all processes but the first."""
        return processes.process_rank() > 0

    def signature_fields(self) -> dict[str, str]:
        """The properties of this backend that a score depends on, for its signature."""
        version = self.config.resolved_revision or self.config.fingerprint or "?"
        computed_in = str(self.loaded.model.dtype).removeprefix("torch.")
        stated = {"dtype", "chat_template", "resolved_revision", "fingerprint"}
        adapter = self.loaded.identity.get("adapter")
        return {
            "model": f"{self.config.model_name}@{version[:8]}{f'+{adapter}' if adapter else ''}",
            "backend": "transformers",
            "dtype": self.config.dtype if self.config.dtype in BITS else computed_in,
            "chat": "on" if self.renderer.uses_chat_template else "off",
            "settings": changed_settings(self.config, NOT_IN_ANSWER_KEY | stated),
        }

    def cleanup(self) -> None:
        """Ends all processes but the first; LightEval calls it after the last answer, before the metrics."""
        logs = processes.gather(self.log)
        self.log = AnswerLog()
        for log in logs:
            self.log.add(log)
        processes.finish()

    def run_record(self) -> dict[str, Any]:
        """Fields for the run's record: `model`, `tasks` (counts by task) and `seconds`."""
        model, reason = self.loaded.model, self.generator.reason
        checks = {"images" if images else "text": check for images, check in self.scorer.checks.items()}
        return {
            "model": {
                "backend": "transformers",
                "version": self.config.resolved_revision or self.config.fingerprint,
                **loaded_facts(model),
                "processes": processes.process_count(),
                "max_length": self.max_length,
                "batch_size": self.generator.size.most,
                "adds_bos": self.encoder().adds_bos,
                "chat_template": self.renderer.uses_chat_template,
                "chat_template_hash": self.renderer.template_hash,
                "system_prompt_hash": text_hash(self.config.system_prompt),
                "routes": {kind: check.route for kind, check in checks.items()} | self.generator.routes,
                "route_checks": {kind: check._asdict() for kind, check in checks.items()}
                | ({"generated": {"reason": reason}} if reason else {}),
                "settings": changed_values(self.config, NOT_SETTINGS),
            },
            "tasks": self.log.tasks(),
            "seconds": {"computing": self.seconds} if self.seconds else {},
        }

    # --- log-likelihood ---

    def loglikelihood(self, docs: list[Doc]) -> list[ModelResponse]:
        """Score the choices of each doc after its prompt.

        Returns:
            For each doc `logprobs` (nats, a sum over each choice's tokens), `argmax_logits_eq_gold`, `input_tokens`
            (the prompt's; a list for each choice if both are encoded together) and `output_tokens` (each choice's).
            Where `doc.specific["end_logprob"]` is true, `logits` holds [log-probability of the end] for each choice.

        Raises:
            CulturevalError: A choice is longer than the model's longest sequence.
        """
        # Docs that may share images or text are scored next to each other.
        keys = [(doc.task_name, [_image_key(image) for image in all_images(doc)], doc.query) for doc in docs]
        order = sorted(range(len(docs)), key=keys.__getitem__)
        sizes = [
            len(doc.query) + sum(map(len, doc.choices or [])) + IMAGE_CHARACTERS * len(all_images(doc)) for doc in docs
        ]
        try:
            shares = processes.split_contiguous(order, sizes)
            responses = processes.answer_and_gather(docs, shares, self._score_all)
            return self._warn_if_truncated(docs, responses)
        finally:
            self.scorer.clear_cache()

    def loglikelihood_rolling(self, docs: list[Doc]) -> list[ModelResponse]:
        """Refuses perplexities of whole texts, which none of our tasks needs."""
        raise CulturevalError(f"{docs[0].task_name} asks for perplexity: run it with `lighteval accelerate`.")

    def _score_all(self, docs: Sequence[Doc]) -> list[ModelResponse]:
        """Scores docs in order, window by window, and journals each batch of answers."""
        responses: list[ModelResponse] = []
        with Progress(len(docs), "Scoring choices", "doc", silent=self.disable_tqdm) as bar:
            for window in in_windows(docs):
                jobs = [ScoringJob(self, doc) for doc in window]
                encode_together(jobs)
                for job in jobs:
                    self.log.look_up(job.doc.task_name, self.journal, [job.key])
                bar.reuse(sum(job.done for job in jobs))
                first = {job.key: job for job in reversed(jobs)}  # equal prompts of several tasks are asked once
                for group in _groups([job for job in jobs if job is first[job.key]]):
                    asked = [(job, *item) for job in group for item in enumerate(job.requests())]
                    for batch in self.scorer.batches([request for *_, request in asked]):
                        bar.update(self._score_batch([asked[index] for index in batch]))
                for job in jobs:
                    if job is not (same := first[job.key]) and not job.done:
                        job.record, job.done, job.refused = same.record, same.done, same.refused
                        self.log.answered(job.doc.task_name, self.scorer.last_route)
                        bar.update(int(job.done))
                responses += [job.response() for job in jobs]
        return responses

    def _score_batch(self, batch: Sequence[tuple[ScoringJob, int, ScoringRequest]]) -> int:
        """Scores the missing requests of a batch, journals completed docs and counts them."""
        needed = [item for item in batch if not item[0].done]
        finished = {}
        try:
            with failures_named(self.config.model_name, [item[0].doc for item in needed]):
                start = time.perf_counter()
                found = self.scorer.score([item[2] for item in needed])
                self.seconds += time.perf_counter() - start
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            self.scorer.halve(self.config.model_name, error)
            parts = self.scorer.batches([item[2] for item in needed])
            return sum(self._score_batch([needed[index] for index in part]) for part in parts)
        for (job, number, _), scores in zip(needed, found, strict=True):
            if job.add_scores(number, scores):
                finished[job.key] = job.record
                self.log.answered(job.doc.task_name, self.scorer.last_route)
        self.journal.append(finished)
        return len(finished)

    # --- generation ---

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """Generates answers: greedy, or sampled if a temperature is set.

        Returns:
            For each doc `text` (num_samples strings without reasoning, cut at stop strings), `reasonings` and
            `output_tokens`. The doc's `specific` gets `finish_reasons`, one for each answer.

        Raises:
            CulturevalError: Several samples are requested at temperature 0.
        """
        if any(doc.num_samples > 1 for doc in docs) and not self.config.generation_parameters.temperature:
            raise CulturevalError(
                "Several samples at temperature 0 would all be the same: set generation_parameters.temperature."
            )
        order = sorted(range(len(docs)), key=lambda index: self._order_of(docs[index]))
        count = processes.process_count()  # dealing sorted prompts in turn makes equal shares
        shares = [order[rank::count] for rank in range(count)]
        answered = processes.answer_and_gather(docs, shares, self._generate_all)
        for doc, (_, reasons) in zip(docs, answered, strict=True):
            doc.specific = {**specific_of(doc), "finish_reasons": reasons}
        return self._warn_if_truncated(docs, [response for response, _ in answered])

    def _order_of(self, doc: Doc) -> tuple[Any, ...]:
        """The sort key of docs: texts first, long answers and prompts before short ones, docs of a task adjacent."""
        length = self.config.generation_parameters.max_new_tokens or doc.generation_size or 0
        texts = (text for part in (*doc.fewshot_samples, doc) for text in (part.query, part.instruction) if text)
        return bool(all_images(doc)), -length, doc.task_name, -sum(map(len, texts))

    def _generate_all(self, docs: Sequence[Doc]) -> list[Answer]:
        with Progress(len(docs), "Generating", "doc", silent=self.disable_tqdm) as bar:
            return self.generator.answer_all(docs, bar)

    # --- shared ---

    def _warn_if_truncated(self, docs: Sequence[Doc], responses: list[ModelResponse]) -> list[ModelResponse]:
        """Returns the responses unchanged; warns about prompts that were cut."""
        pairs = zip(docs, responses, strict=True)
        cut = Counter(doc.task_name for doc, response in pairs if response.truncated_tokens_count)
        for task, count in sorted(cut.items()) if not self.disable_tqdm else ():
            logger.warning("%s: %d prompts were cut on the left to %d tokens", task, count, self.max_length)
        return responses

    def with_images(self, prompts: list[str], docs: Sequence[Doc], limit: int) -> dict[str, Any]:
        """The processor's outputs that the model takes, for prompts with images, padded on the left.

        Raises:
            ImagesRefused: A prompt with its images has more than `limit` tokens, or the processor rejects it.
        """
        images = [open_images(doc, self.config) for doc in docs]
        try:
            inputs = self.loaded.processor(
                text=prompts,
                images=images,
                return_tensors="pt",
                padding=True,
                padding_side="left",
                add_special_tokens=self.encoder(docs[0]).add_special_tokens,
            )
        except (ArithmeticError, IndexError, StopIteration, ValueError) as error:  # for example an image of one pixel
            raise ImagesRefused(f"the model's processor refuses it: {str(error).rstrip('.')}") from error
        width = inputs["input_ids"].shape[1]
        if width > limit:
            size = f"its prompt has {width} tokens with images, more than {limit}"
            raise ImagesRefused(f"{size}: lower image_max_pixels or raise max_length")
        taken = inspect.signature(self.loaded.model.forward).parameters
        return {
            name: value.to(self.loaded.model.dtype) if value.is_floating_point() else value
            for name, value in inputs.items()
            if name in taken
        }


def _image_key(image: Any) -> str:
    return str(image) if isinstance(image, str | Path) else image_hash(image)


def _groups(jobs: Sequence[ScoringJob]) -> list[list[ScoringJob]]:
    """Groups of jobs: all jobs without images, and the unanswered jobs of each set of images."""
    with_images = sorted((job for job in jobs if job.image_keys and not job.done), key=lambda job: job.image_keys)
    same_images = groupby(with_images, key=lambda job: job.image_keys)
    return [[job for job in jobs if not job.image_keys], *(list(group) for _, group in same_images)]
