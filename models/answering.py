"""Generated answers of many docs: from the journal, else from the queue, else from transformers' `generate`.

`generate` answers prompts with images, and models or settings that the queue does not support.
"""

import hashlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, groupby
from random import Random
from typing import TYPE_CHECKING, Any

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.models.generation.check import why_not_queued
from cultureval.models.generation.choosing import TokenChooser
from cultureval.models.generation.generation import Generation, generate, pad_left, sampling_arguments
from cultureval.models.generation.queue import GenerationQueue
from cultureval.models.generation.rows import AnswerRow
from cultureval.models.jobs import GenerationJob, ImagesRefused, in_windows
from cultureval.models.memory import BatchSize, failures_named, is_out_of_memory
from cultureval.models.scoring.prefix_cache import longest_reusable
from cultureval.runtime.progress import Progress

if TYPE_CHECKING:
    from cultureval.models.hf import HFModel

logger = logging.getLogger(__name__)

Answer = tuple[ModelResponse, list[str]]  # with the finish reason of each text
QUEUE, BATCHES, ONE_BY_ONE = "queue", "batches", "one_by_one"
IMAGES_AT_ONCE_CPU, IMAGES_AT_ONCE_ACCELERATOR = 8, 32  # prompts with images: patches take much memory
PROBED = 8  # tokens that must be equal in a batch and alone


class Generator:
    """Answers docs with one model.

    Attributes:
        size: Number of answers that are generated at once.
        routes: The chosen route of `generated` texts and of `generated images` (prompts with images).
        reason: Why the queue does not answer texts; "" if it does.
        seconds: Time of generating; `tokens`: of the answers generated in it.
    """

    def __init__(self, lm: "HFModel") -> None:
        """Prepares to answer."""
        self.lm, self.loaded = lm, lm.loaded
        self.size = BatchSize(lm.config.batch_size, lm.loaded.model, lm.config.model_name)
        self.routes: dict[str, str] = {}
        self.reason = ""
        self.seconds, self.tokens = 0.0, 0
        self._padding: dict[bool, bool] = {}  # with images or not -> whether prompts may be padded
        self._settings = lm.config.generation_parameters.to_transformers_dict()
        for name in ("max_new_tokens", "stop_strings", "output_scores", "return_dict_in_generate"):
            self._settings.pop(name, None)

    def answer_all(self, docs: Sequence[Doc], bar: Progress) -> list[Answer]:
        """Answers docs; docs with a common beginning should be adjacent. Finished answers are journalled at once.

        Raises:
            CulturevalError: A prompt or the model's output is wrong, or memory is too small.
        """
        self._bar = bar
        self._answers: dict[int, Answer] = {}
        self._asked: dict[str, GenerationJob] = {}
        start = time.perf_counter()
        windows = self._windows(docs)
        if (first := next(windows, None)) is not None:
            self._answer_rows(chain([first], windows))
        self.seconds += time.perf_counter() - start if self.tokens else 0.0
        return [self._answers.pop(place) for place in range(len(docs))]

    def _answer_rows(self, windows: Iterator[list[AnswerRow]]) -> None:
        queue = GenerationQueue(self.loaded, self._chooser, self.size, self.lm.config.reasoning_tags)
        queue.count_tokens = self._bar.count_tokens
        try:
            queue.answer(windows, self._finished)
        except (RuntimeError, IndexError) as error:
            if not queue.rows:
                raise
            with failures_named(self.lm.config.model_name, [row.owner.doc for row in queue.rows]):
                raise error

    @cached_property
    def _chooser(self) -> TokenChooser:
        return TokenChooser(self.loaded, self._settings)

    def _windows(self, docs: Sequence[Doc]) -> Iterator[list[AnswerRow]]:
        """Rows for the queue, some docs at a time; answers all other docs, from the journal or by `generate`."""
        for window in in_windows(enumerate(docs)):
            fresh = [job for place, doc in window if (job := self._fresh(place, doc))]
            texts = [job for job in fresh if not job.images]
            queued = [job for job in texts if self._is_queued(texts) and not self._outgrows_keys(job)]
            for same in _alike([row for job in fresh if job not in queued for row in self._rows(job)]):
                self._generate(same)
            if rows := [row for job in queued for row in self._rows(job)]:
                yield rows

    def _fresh(self, place: int, doc: Doc) -> GenerationJob | None:
        """The job of a doc; None where its answer is in the journal, or is being generated already."""
        job = GenerationJob(self.lm, doc)
        if same := self._asked.get(job.key):
            same.docs.append((place, doc))
            return None
        job.look_up()
        job.docs.append((place, doc))
        self.lm.log.look_up(doc.task_name, self.lm.journal, [job.key])
        if job.answers:
            self._respond(job, self._bar.reuse)
            return None
        self._asked[job.key] = job
        return job

    def _is_queued(self, texts: Sequence[GenerationJob]) -> bool:
        """Whether the queue may answer; checked once, on the first texts."""
        if "generated" not in self.routes:
            with failures_named(self.lm.config.model_name, [job.doc for job in texts]):
                self.reason = self._chooser.refused or why_not_queued(self.loaded, [job.tokens for job in texts])
            self.routes["generated"] = BATCHES if self.reason else QUEUE
            if self.reason:
                logger.warning("%s; answers are generated by transformers' `generate`, slower", self.reason)
        return not self.reason

    def _outgrows_keys(self, job: GenerationJob) -> bool:
        """Whether the answer may become so long that the rotary embedding of earlier keys changes."""
        longest = longest_reusable(self.loaded.model)
        return bool(longest) and len(job.tokens) + self._limit(job) > longest

    def _limit(self, job: GenerationJob) -> int:
        room = self.lm.max_length - len(job.tokens)
        return max(1, min(job.max_new_tokens or room, room))

    def _rows(self, job: GenerationJob) -> list[AnswerRow]:
        seed = self.lm.config.generation_parameters.seed or 0
        return [
            AnswerRow(
                owner=job,
                prompt=job.tokens,
                limit=self._limit(job),
                numbers=Random(f"{job.key} {number} {seed}"),
                number=number,
                stops=job.stops,
                opened=job.opened,
            )
            for number in range(job.doc.num_samples)
        ]

    # --- answers ---

    def _finished(self, ended: Sequence[tuple[AnswerRow, Generation]], route: str = QUEUE) -> None:
        """Takes answers; a doc with all its samples is journalled and gets its response."""
        complete = []
        for row, answer in ended:
            job: GenerationJob = row.owner
            job.samples[row.number] = answer
            self.tokens += len(answer.tokens)
            if len(job.samples) == job.doc.num_samples:
                job.answers = [job.samples[number] for number in sorted(job.samples)]
                complete.append(job)
        if complete:
            self.lm.journal.append({job.key: job.record() for job in complete})
        for job in complete:
            self.lm.log.answered(job.doc.task_name, route)
            self._respond(job, self._bar.update)

    def _respond(self, job: GenerationJob, count: Callable[[int], None]) -> None:
        job.ended = True
        self._asked.pop(job.key, None)
        for place, doc in job.docs:
            self._answers[place] = (job.response(), [answer.finish_reason for answer in job.answers])
            self.lm.log.short[doc.task_name] += (job.max_new_tokens or 0) > self._limit(job)
        count(len(job.docs))

    # --- by `generate` ---

    def _generate(self, waiting: list[AnswerRow]) -> None:
        """Answers rows with equal limits in batches, the longest first; halves batches if memory is too small."""
        waiting.sort(key=lambda row: -len(row.prompt or row.owner.prompt))
        while waiting := [row for row in waiting if not (row.ended or row.owner.ended)]:
            batch = waiting[:2]
            try:
                batch = waiting[: self._at_once(waiting)]
                self._generate_batch(batch)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                self.size.halve(len(batch), error)

    def _at_once(self, waiting: Sequence[AnswerRow]) -> int:
        """The size of a batch; 1 if two padded probe rows get other answers than alone."""
        images = waiting[0].owner.images
        most = self.size.most
        if images:
            on_cpu = self.loaded.model.device.type == "cpu"
            most = min(most, IMAGES_AT_ONCE_CPU if on_cpu else IMAGES_AT_ONCE_ACCELERATOR)
        if most == 1 or len(waiting) == 1 or longest_reusable(self.loaded.model):
            return 1
        if images not in self._padding:
            try:
                self._padding[images] = self._agree([waiting[0], waiting[-1]])
            except ImagesRefused:  # find the doc by single answers
                return 1
            self.routes["generated images" if images else "generated"] = (
                BATCHES if self._padding[images] else ONE_BY_ONE
            )
        return most if self._padding[images] else 1

    def _agree(self, pair: list[AnswerRow]) -> bool:
        """Whether two rows get the same tokens together as alone; they differ if a model ignores padding."""
        together, *alone = (self._answered(rows, self._inputs(rows), PROBED, {}) for rows in (pair, pair[:1], pair[1:]))
        return [answer.tokens for answer in together] == [answer.tokens for (answer,) in alone]

    def _generate_batch(self, batch: list[AnswerRow]) -> None:
        job: GenerationJob = batch[0].owner
        try:
            inputs = self._inputs(batch)
            room = self.lm.max_length - inputs["input_ids"].shape[1]
        except ImagesRefused as error:
            room, job.refused = 0, error.reason if len(batch) == 1 else ""
        if job.refused:
            self._respond(job, self._bar.update)
            return
        if len(batch) > 1 and room < (job.max_new_tokens or 1):  # refused, or a long prompt would shorten other answers
            for row in batch:
                if not row.owner.ended:
                    self._generate_batch([row])
            return
        answers = self._answered(batch, inputs, max(1, min(job.max_new_tokens or room, room)), self._settings)
        for row in batch:
            row.ended = True
        self._finished(list(zip(batch, answers, strict=True)), BATCHES if len(batch) > 1 else ONE_BY_ONE)

    def _answered(
        self, rows: Sequence[AnswerRow], inputs: Mapping[str, Any], limit: int, settings: Mapping[str, Any]
    ) -> list[Generation]:
        names = "".join(f"{row.owner.key} {row.number}" for row in rows)
        digest = hashlib.sha256(names.encode()).digest()
        with failures_named(self.lm.config.model_name, [row.owner.doc for row in rows]):
            return generate(
                self.loaded,
                inputs,
                [row.stops for row in rows],
                [row.opened for row in rows],
                sampling_arguments(settings) | {"max_new_tokens": limit},
                int.from_bytes(digest[:4]) ^ (self.lm.config.generation_parameters.seed or 0),
                self.lm.config.reasoning_tags,
            )

    def _inputs(self, rows: Sequence[AnswerRow]) -> Mapping[str, Any]:
        """Padded prompts; with images the processor's outputs, from which jobs get their tokens."""
        jobs: list[GenerationJob] = [row.owner for row in rows]
        if not jobs[0].images:
            return pad_left([job.tokens for job in jobs], self.loaded.tokenizer.pad_token_id)
        inputs = self.lm.with_images([job.prompt for job in jobs], [job.doc for job in jobs], self.lm.max_length - 1)
        for job, ids, mask in zip(jobs, inputs["input_ids"], inputs["attention_mask"], strict=True):
            job.tokens = ids[mask.bool()].tolist()
        return inputs


def _alike(rows: Sequence[AnswerRow]) -> Iterator[list[AnswerRow]]:
    """Groups of rows that `generate` can answer together: all with or without images, with one limit of tokens."""

    def kind(row: AnswerRow) -> tuple[bool, int]:
        return row.owner.images, row.owner.max_new_tokens or 0

    for _, same in groupby(sorted(rows, key=kind), key=kind):
        yield list(same)
