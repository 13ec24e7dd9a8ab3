"""Generated answers of many docs: from the journal, else from the queue, else from `generate`."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, groupby
from random import Random
from typing import Any, Protocol

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.models.answer_log import AnswerLog
from cultureval.models.generation.batch_size import BatchSize
from cultureval.models.generation.choosing import TokenChooser
from cultureval.models.generation.generation import Generation, Sampling, generate, pad_left
from cultureval.models.generation.queue import GenerationQueue
from cultureval.models.generation.route import (
    BATCHES,
    ONE_BY_ONE,
    QUEUE,
    choose_generation_route,
    never_queued,
    told,
)
from cultureval.models.generation.rows import DecodingRow
from cultureval.models.jobs import GenerationJob, JobModel, in_windows
from cultureval.models.loading import LoadedModel
from cultureval.models.memory import failures_named, is_out_of_memory, recover
from cultureval.models.refused_images import ImagesRefused, reason_to_skip
from cultureval.models.scoring.packed import images_end
from cultureval.models.scoring.prefix_cache import longest_reusable
from cultureval.models.scoring.route_check import RouteCheck
from cultureval.runtime.progress import Progress

Answer = tuple[ModelResponse, list[str | None]]  # and why each text ended


class GeneratingModel(JobModel, Protocol):
    """What generation needs of its model (`models/hf.py`)."""

    loaded: LoadedModel
    log: AnswerLog


@dataclass(eq=False)
class Asked:
    """A prompt that is being answered.

    Attributes:
        job: What is asked.
        docs: The docs with this very prompt: their places and jobs.
        answers: By number of the sample.
        ended: Whether all of them are there, or none will be.
    """

    job: GenerationJob
    docs: list[tuple[int, GenerationJob]]
    answers: dict[int, Generation] = field(default_factory=dict)
    ended: bool = False


class Generator:
    """Answers docs with one model.

    Attributes:
        size: How many answers are generated at once.
        checks: The route of prompts without (False) and with images (True), once chosen, and what that rests on.
    """

    def __init__(self, lm: GeneratingModel) -> None:
        """Prepare to answer."""
        self.lm, self.loaded = lm, lm.loaded
        self.size = BatchSize(lm.config.batch_size, lm.loaded.model, lm.config.model_name)
        self.checks: dict[bool, RouteCheck] = {}
        self._settings = lm.config.generation_parameters.to_transformers_dict()
        for name in ("max_new_tokens", "stop_strings", "output_scores", "return_dict_in_generate"):
            self._settings.pop(name, None)

    def answer_all(self, docs: Sequence[Doc], bar: Progress) -> list[Answer]:
        """Answer docs; what is finished is in the journal at once.

        Args:
            docs: Those that may share a beginning or images next to each other.

        Raises:
            CulturevalError: A prompt, an image or the model's output is at fault, or memory does not suffice.
        """
        self._bar = bar
        self._answers: dict[int, Answer] = {}
        self._asked: dict[str, Asked] = {}
        bar.most_tokens = sum(map(self._most, docs))
        windows = self._windows(docs)
        if (first := next(windows, None)) is not None:
            self._answer_rows(chain([first], windows))
        return [self._answers.pop(place) for place in range(len(docs))]

    def _most(self, doc: Doc) -> int:
        """Tokens of a doc's answers at most."""
        given = self.lm.config.generation_parameters.max_new_tokens
        return (given or doc.generation_size or self.lm.max_length) * doc.num_samples

    def _answer_rows(self, windows: Iterator[list[DecodingRow]]) -> None:
        queue = GenerationQueue(self.loaded, self._chooser, self.size, self.lm.config.reasoning_tags)
        queue.count_tokens = self._bar.count_tokens
        try:
            queue.answer(windows, self._load, self._finished)
        except (RuntimeError, IndexError) as error:
            if not queue.rows:
                raise
            with failures_named(self.lm.config.model_name, [row.owner.job.doc for row in queue.rows]):
                raise error

    @cached_property
    def _chooser(self) -> TokenChooser:
        return TokenChooser(self.loaded, self._settings)

    def _windows(self, docs: Sequence[Doc]) -> Iterator[list[DecodingRow]]:
        """Rows for the queue, some docs at a time; what the journal has, or the queue cannot answer, is done here."""
        for window in in_windows(enumerate(docs)):
            fresh = [asked for place, doc in window if (asked := self._asked_for(place, GenerationJob(self.lm, doc)))]
            texts = [asked for asked in fresh if not asked.job.images]
            route = self._route_of_texts(texts)
            beyond = [asked for asked in texts if route != QUEUE or self._turns(asked.job)]
            for same in _alike(beyond):
                self._generate(same, 1 if route != BATCHES else self.size.most)
            rows = [row for asked in fresh if asked not in beyond for row in self._rows(asked)]
            if rows:
                yield rows

    def _asked_for(self, place: int, job: GenerationJob) -> Asked | None:
        """What must be generated for a doc; None where its answer is there, or is being generated already."""
        if same := self._asked.get(job.key):
            same.docs.append((place, job))
            return None
        job.look_up()
        self.lm.log.look_up(job.doc.task_name, self.lm.journal, [job.key])
        asked = Asked(job, [(place, job)])
        if job.answers:
            self._bar.most_tokens -= self._most(job.doc)
            self._respond(asked, self._bar.reuse)
            return None
        self._asked[job.key] = asked
        return asked

    def _route_of_texts(self, texts: Sequence[Asked]) -> str:
        if texts and False not in self.checks:
            rows = [row for asked in texts for row in self._rows(asked)[:1]]
            with failures_named(self.lm.config.model_name, [asked.job.doc for asked in texts]):
                self._check(rows, self._chooser.refused)
        return self.checks[False].route if texts else QUEUE

    def _turns(self, job: GenerationJob) -> bool:
        """Whether the answer may become so long that the keys of all earlier tokens change."""
        longest = longest_reusable(self.loaded.model)
        return bool(longest) and len(job.tokens) + self._limit(job) > longest

    def _limit(self, job: GenerationJob) -> int:
        room = self.lm.max_length - len(job.tokens)
        return max(1, min(job.max_new_tokens or room, room))

    def _rows(self, asked: Asked) -> list[DecodingRow]:
        job, seed = asked.job, self.lm.config.generation_parameters.seed or 0
        return [
            DecodingRow(
                owner=asked,
                number=number,
                prompt=job.tokens,
                limit=self._limit(job),
                numbers=Random(f"{job.key} {number} {seed}"),
                stops=job.stops,
                opened=job.opened,
                images=" ".join(job.image_keys),
            )
            for number in range(job.doc.num_samples)
        ]

    def _load(self, row: DecodingRow) -> bool:
        """Processes a row's images; tells whether the queue can answer it (else it is answered, or refused, here)."""
        asked: Asked = row.owner
        if not row.images or asked.ended:
            row.ended = asked.ended
            return not asked.ended
        try:
            inputs = self.lm.with_images([asked.job.prompt], [asked.job.doc], self.lm.max_length - 1)
        except ImagesRefused as error:
            asked.job.refused = reason_to_skip(error)
            self._respond(asked)
            row.ended = True
            return False
        row.prompt = asked.job.tokens = inputs["input_ids"][0].tolist()
        row.limit = self._limit(asked.job)
        row.vision = {name: value for name, value in inputs.items() if name not in ("input_ids", "attention_mask")}
        row.images_end = images_end(self.loaded.model, row.prompt)
        if self._route_of_image(row) == QUEUE and not self._turns(asked.job):
            return True
        self._generate([asked], 1)
        row.ended = True
        return False

    def _route_of_image(self, row: DecodingRow) -> str:
        never = self._chooser.refused or never_queued(row, self.loaded.model.config.model_type)
        if never:
            self.checks.setdefault(True, RouteCheck(ONE_BY_ONE, 0.0, never))
            return ONE_BY_ONE
        if True not in self.checks:
            self._check([row], "")
        return self.checks[True].route

    def _check(self, rows: Sequence[DecodingRow], refused: str) -> None:
        images = bool(rows[0].images)
        self.checks[images] = told(choose_generation_route(self.loaded, rows, refused))

    # --- answers ---

    def _finished(self, ended: Sequence[tuple[DecodingRow, Generation]]) -> None:
        """Notes answers of the queue; a doc is finished with the last of its samples."""
        complete = []
        for row, answer in ended:
            asked: Asked = row.owner
            asked.answers[row.number] = answer
            if len(asked.answers) == asked.job.doc.num_samples:
                asked.job.answers = [asked.answers[number] for number in sorted(asked.answers)]
                complete.append(asked)
        self._keep(complete, QUEUE)

    def _keep(self, complete: Sequence[Asked], route: str) -> None:
        """Writes answers to the journal, and responds to their docs."""
        self.lm.journal.append({asked.job.key: asked.job.record() for asked in complete})
        for asked in complete:
            self.lm.log.answered(asked.job.doc.task_name, route)
            self._respond(asked)

    def _respond(self, asked: Asked, count: Callable[[int], None] | None = None) -> None:
        asked.ended = True
        self._asked.pop(asked.job.key, None)
        for place, job in asked.docs:
            job.answers, job.refused, job.tokens = asked.job.answers, asked.job.refused, asked.job.tokens
            self._answers[place] = (job.response(), job.finish_reasons())
            self.lm.log.short[job.doc.task_name] += (job.max_new_tokens or 0) > self._limit(job)
        (count or self._bar.update)(len(asked.docs))

    # --- the routes without the queue ---

    def _generate(self, same: Sequence[Asked], at_once: int) -> None:
        """Answer jobs with as many tokens and samples by `generate`, in batches; halves them where memory is short."""
        waiting = sorted(same, key=lambda asked: -len(asked.job.tokens))
        while waiting:
            count = min(at_once, self.size.most)
            batch, waiting = waiting[:count], waiting[count:]
            while batch:
                try:
                    self._generate_batch(batch)
                    batch = []
                except (RuntimeError, MemoryError) as error:
                    if not is_out_of_memory(error):
                        raise
                    self.size.halve(len(batch), error)
                    batch, waiting = batch[: self.size.most], [*batch[self.size.most :], *waiting]
                    recover(self.loaded.model.device, error)

    def _generate_batch(self, batch: Sequence[Asked]) -> None:
        jobs = [asked.job for asked in batch]
        inputs = self._inputs(jobs)
        room = self.lm.max_length - inputs["input_ids"].shape[1]
        wanted = jobs[0].max_new_tokens
        if wanted and room < wanted and len(batch) > 1:  # a long prompt would shorten the other answers
            for asked in batch:
                self._generate_batch([asked])
            return
        parameters = self.lm.config.generation_parameters
        digest = hashlib.sha256("".join(job.key for job in jobs).encode()).digest()
        seed = int.from_bytes(digest[:4]) ^ (parameters.seed or 0)
        with failures_named(self.lm.config.model_name, [job.doc for job in jobs]):
            answers = generate(
                self.loaded,
                inputs,
                [job.stops for job in jobs],
                [job.opened for job in jobs],
                max_new_tokens=max(1, min(wanted or room, room)),
                sampling=Sampling(jobs[0].doc.num_samples, self._settings, seed),
                tags=self.lm.config.reasoning_tags,
            )
        for job, answer in zip(jobs, answers, strict=True):
            job.answers = answer
        self._keep(batch, BATCHES if len(batch) > 1 else ONE_BY_ONE)

    def _inputs(self, jobs: Sequence[GenerationJob]) -> Mapping[str, Any]:
        if jobs[0].images:
            return self.lm.with_images([job.prompt for job in jobs], [job.doc for job in jobs], self.lm.max_length - 1)
        return pad_left([job.tokens for job in jobs], self.loaded.tokenizer.pad_token_id)


def _alike(several: Sequence[Asked]) -> Iterator[list[Asked]]:
    """Jobs with as many tokens and samples, which `generate` can answer together."""

    def kind(asked: Asked) -> tuple[int, int]:
        return asked.job.max_new_tokens or 0, asked.job.doc.num_samples

    for _, same in groupby(sorted(several, key=kind), key=kind):
        yield list(same)
