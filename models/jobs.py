"""One doc and its answer: rendered prompt, journal key, requests to the model, response."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, TypeVar

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.models.generation.generation import Generation
from cultureval.models.generation.rendering import all_images
from cultureval.models.scoring.choice_scores import ChoiceScore, ScoringRequest
from cultureval.models.tokens import encode_pairs, kept, prompts_with_choices, require_whole_letters, tokens_read
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.generation_hints import stop_strings
from cultureval.runtime.journal import answer_key
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse
from cultureval.runtime.servers.data_urls import image_hash

if TYPE_CHECKING:
    from cultureval.models.hf import HFModel

WINDOW = 256  # docs that are encoded together: a long run starts quickly and needs little memory
Item = TypeVar("Item")


class ImagesRefused(Exception):
    """The processor refuses the images of a prompt, or they need more tokens than the model reads.

    Attributes:
        reason: A clause.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AskedDoc:
    """One doc to be answered.

    Attributes:
        prompt: Its rendered text.
        image_keys: Hashes of its images.
        key: In the journal; covers tokens, prompt, images and all else that the answer depends on.
        truncated: Number of prompt tokens that the model does not read.
        refused: Why it cannot be answered; "" if it can.
    """

    def __init__(self, lm: "HFModel", doc: Doc, kind: str, prompt: str, **parts: Any) -> None:
        self.lm, self.doc, self.prompt = lm, doc, prompt
        require_whole_letters(doc, prompt, *parts.get("choices", ()))
        self.image_keys = [image_hash(image) for image in all_images(doc)]
        self.encoder = lm.encoder(doc)
        self.key = answer_key(
            kind=kind,
            pairwise_tokenization=self.encoder.apart,
            special_tokens=self.encoder.add_special_tokens,
            prompt=prompt,
            images=self.image_keys,
            **parts,
        )
        self.truncated, self.refused = 0, ""


class ScoringJob(AskedDoc):
    """A doc with choices to score: its requests and the scores so far."""

    def __init__(self, lm: "HFModel", doc: Doc) -> None:
        """Renders a doc and looks up its answer; `encode_together` sets its tokens.

        Raises:
            CulturevalError: No choices.
        """
        self.ending = bool(specific_of(doc).get("end_logprob"))
        self.choices = [lm.renderer.literal(text) for text in doc.choices]
        if not self.choices:
            raise CulturevalError(f"{doc.task_name} needs choices to score, but doc {doc.id!r} has none.")
        prompt = lm.renderer.text(doc, scoring=True)
        self.pairs = prompts_with_choices(doc, prompt, self.choices)
        parts = {"contexts": [prompt for prompt, _ in self.pairs]} if len(self.pairs) > 1 else {}
        super().__init__(lm, doc, "loglikelihood", prompt, choices=self.choices, ending=self.ending, **parts)
        self.apart = self.encoder.apart or bool(self.image_keys)
        self.record: dict[str, Any] = lm.journal.get(self.key) or {}
        self.done = bool(self.record)
        self.contexts: list[list[int]] = []
        self.continuations: list[list[int]] = []
        self._scores: list[ChoiceScore | None] = [None] * len(self.choices)
        self._members: list[list[int]] = []

    def requests(self) -> list[ScoringRequest]:
        """One request per distinct context: usually one; more if a choice merges with the end of the prompt.

        [] if the processor refuses the doc's images.
        """
        try:
            return self._requests()
        except ImagesRefused as error:
            self.refused = error.reason
            return []

    def _requests(self) -> list[ScoringRequest]:
        vision = None
        if self.image_keys:
            # As in `tok_encode_pair`, spaces at the prompt's end go to the choices.
            inputs = self.lm.with_images([self.prompt.rstrip()], [self.doc], self.lm.max_length)
            ids = inputs.pop("input_ids")[0].tolist()
            inputs.pop("attention_mask", None)
            vision = {name: value.to(self.lm.loaded.model.device) for name, value in inputs.items()}
            self.encode_after_images(ids)
        groups: dict[tuple[int, ...], list[int]] = {}
        for index, context in enumerate(self.contexts):
            groups.setdefault(tuple(context), []).append(index)
        self._members = list(groups.values())
        asked = [(context, [self.continuations[index] for index in members]) for context, members in groups.items()]
        return [ScoringRequest(*pair, self.ending, vision, " ".join(self.image_keys)) for pair in asked]

    def encode_after_images(self, prompt: Sequence[int]) -> None:
        """Tokenizes the choices after a prompt with images, given the processor's tokens of the prompt."""
        _, continuations = self.encoder.tok_encode_pair(self.prompt, self.choices, pairwise=True)
        self.take_tokens([list(prompt)] * len(self.choices), continuations)

    def take_tokens(self, contexts: list[list[int]], continuations: list[list[int]]) -> None:
        """Sets the tokens of each choice and before it, cut on the left to the model's longest sequence."""
        lm, self.contexts, self.continuations = self.lm, contexts, continuations
        for index, (context, choice) in enumerate(zip(contexts, continuations, strict=True)):
            room = lm.max_length - len(choice)
            if room < (len(context) if self.image_keys else 1):
                raise CulturevalError(
                    f"A choice of {self.doc.task_name} has {len(choice)} tokens"
                    f"{' after a prompt with images' if self.image_keys else ''}; the model takes {lm.max_length}."
                )
            self.truncated = max(self.truncated, len(context) - room)
            self.contexts[index] = (context or lm.loaded.start_ids())[-room:]

    def add_scores(self, number: int, scores: Sequence[ChoiceScore]) -> bool:
        """Adds the scores of a request; returns whether the doc is complete, with its answer in `record`."""
        for index, score in zip(self._members[number], scores, strict=True):
            if math.isnan(score.logprob):
                raise self.lm.loaded.not_numbers()
            self._scores[index] = score
        if any(score is None for score in self._scores):
            return False
        self.record = {
            "logprobs": [score.logprob for score in self._scores],
            "greedy": [score.is_greedy for score in self._scores],
            "end_logprobs": [score.end_logprob for score in self._scores] if self.ending else None,
            # The processor's tokens are kept; text can be encoded again.
            **({"image_prompt": in_runs(self.contexts[0])} if self.image_keys else {}),
        }
        self.done = True
        return True

    def _prompt_tokens(self) -> list[Any]:
        """The prompt's tokens; a list for each choice if a choice has merged with the end of the prompt."""
        if not self.contexts:  # a journalled answer: images were not processed
            self.encode_after_images(out_of_runs(self.record["image_prompt"]))
        differ = not self.apart and any(context != self.contexts[0] for context in self.contexts)
        return [kept(context) for context in self.contexts] if differ else kept(self.contexts[0])

    def response(self) -> ModelResponse:
        """The answer as LightEval's response."""
        if self.refused:
            return RefusedResponse(reason=self.refused, kind="image")
        ends, prompt = self.record["end_logprobs"], self._prompt_tokens()
        each = not self.apart and not isinstance(prompt[0], list)  # a column of details has one type
        return ModelResponse(
            input=self.prompt,
            input_tokens=[prompt] * len(self.choices) if each else prompt,
            output_tokens=list(map(kept, self.continuations)),
            logprobs=self.record["logprobs"],
            argmax_logits_eq_gold=self.record["greedy"],
            logits=None if ends is None else [[end] for end in ends],
            truncated_tokens_count=self.truncated,
        )


def encode_together(jobs: Sequence[ScoringJob]) -> None:
    """Tokenizes jobs as LightEval does, except jobs with images, which `requests` tokenizes.

    Raises:
        CulturevalError: A choice is longer than the model's longest sequence.
    """
    texts = [job for job in jobs if not job.image_keys]
    encoded = iter(encode_pairs((job.encoder, *pair) for job in texts for pair in job.pairs))
    for job in texts:
        parts = [next(encoded) for _ in job.pairs]
        job.take_tokens([each for before, _ in parts for each in before], [each for _, end in parts for each in end])


class GenerationJob(AskedDoc):
    """One prompt to be answered by generation.

    Attributes:
        docs: The docs with this prompt, each with its place in the run.
        samples: Answers by number, until all are complete.
        ended: Whether it is answered or refused.
    """

    def __init__(self, lm: "HFModel", doc: Doc) -> None:
        """Render and encode a doc for a model."""
        prompt, parameters = lm.renderer.text(doc), lm.config.generation_parameters
        task_stops = stop_strings(doc, lm.renderer.uses_chat_template, lm.renderer.begins_answer(doc))
        # If the template writes the start tag of reasoning, the answer does not have it.
        starts = (start for start, _ in lm.config.reasoning_tags)
        self.opened = next((start for start in starts if prompt.rstrip().endswith(start)), "")
        self.stops = [*task_stops, *filter(None, parameters.stop_tokens or []), *lm.loaded.stops]
        self.max_new_tokens = length = parameters.max_new_tokens or doc.generation_size
        super().__init__(lm, doc, "generation", prompt, stops=self.stops, length=length, samples=doc.num_samples)
        self.images = bool(self.image_keys)
        self.tokens: list[int] = [] if self.images else self._encode()
        self.docs: list[tuple[int, Doc]] = []
        self.samples: dict[int, Generation] = {}
        self.answers: list[Generation] = []
        self.ended = False

    def _encode(self) -> list[int]:
        """Prompt tokens, at least one, truncated on the left if no further token would fit."""
        tokens = self.encoder.tok_encode(self.prompt) or self.lm.loaded.start_ids()
        self.truncated = len(tokens) - tokens_read(len(tokens), self.lm.max_length, self.max_new_tokens)
        return tokens[self.truncated :]

    def look_up(self) -> None:
        """Read the answers of an earlier run from the journal."""
        record = self.lm.journal.get(self.key)
        if record:
            self.answers = [Generation(**answer) for answer in record["answers"]]
            if "image_prompt" in record:
                self.tokens = out_of_runs(record["image_prompt"])

    def record(self) -> dict[str, Any]:
        """The answers for the journal; with images also the processor's tokens of the prompt."""
        record: dict[str, Any] = {"answers": [vars(answer) for answer in self.answers]}
        return record | ({"image_prompt": in_runs(self.tokens)} if self.images else {})

    def response(self) -> ModelResponse:
        """The answers as LightEval's response."""
        if self.refused:
            return RefusedResponse(reason=self.refused, kind="image")
        return ModelResponse(
            input=self.prompt,
            input_tokens=kept(self.tokens),
            text=[answer.text for answer in self.answers],
            reasonings=[answer.reasoning for answer in self.answers],
            output_tokens=[kept(answer.tokens) for answer in self.answers],
            truncated_tokens_count=self.truncated,
        )


def in_windows(items: Iterable[Item]) -> Iterator[list[Item]]:
    """The items in lists of `WINDOW`."""
    rest = iter(items)
    while window := list(islice(rest, WINDOW)):
        yield window


def in_runs(tokens: Sequence[int]) -> list[int]:
    """Tokens as token, count, token, count...: an image is hundreds of equal tokens."""
    return [number for token, run in groupby(tokens) for number in (token, sum(1 for _ in run))]


def out_of_runs(runs: Sequence[int]) -> list[int]:
    """The tokens of `in_runs`."""
    return [token for token, count in zip(runs[::2], runs[1::2], strict=True) for _ in range(count)]
