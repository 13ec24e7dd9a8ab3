"""One doc on its way through a model: its prompt and key, what is asked of the model, and the answer."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.models.generation.generation import Generation
from cultureval.models.generation.hints import stop_strings
from cultureval.models.generation.rendering import Renderer, all_images
from cultureval.models.loading import LoadedModel
from cultureval.models.scoring.packed import ChoiceScore, ScoringRequest
from cultureval.models.settings import HFModelSettings
from cultureval.runtime.doc_specific import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import Journal
from cultureval.runtime.servers.data_urls import image_hash


class Owner(Protocol):
    """What a job needs of its model (`models/hf.py`)."""

    config: HFModelSettings
    loaded: LoadedModel
    renderer: Renderer
    journal: Journal

    @property
    def max_length(self) -> int:
        """Longest sequence in tokens."""

    def key(self, kind: str, images: Sequence[str], prompt: str, **parts: Any) -> str:
        """The name of an answer in the journal."""

    def with_images(self, prompts: list[str], docs: Sequence[Doc], limit: int) -> dict[str, Any]:
        """What the processor makes of prompts with images."""

    def tok_encode(self, text: str) -> list[int]:
        """The tokens of a prompt."""

    def tok_encode_pair(
        self, context: str, continuations: list[str], pairwise: bool
    ) -> tuple[list[list[int]], list[list[int]]]:
        """The tokens of a prompt and its choices, as LightEval cuts them."""


class ScoringJob:
    """One doc whose choices are to be scored: its key, its requests, and its scores as they come in."""

    def __init__(self, owner: Owner, doc: Doc, rolling: bool) -> None:
        """Render and encode a doc, and look its answer up.

        Args:
            owner: The model.
            doc: With choices.
            rolling: Whether the doc's query itself is scored instead, behind nothing.

        Raises:
            CulturevalError: No choices, or one that is longer than the model's longest sequence.
        """
        self.owner, self.doc, self.rolling = owner, doc, rolling
        self.image_keys = [image_hash(image) for image in all_images(doc)]
        self.ending = bool(specific_of(doc).get("end_logprob"))
        self.prompt = "" if rolling else owner.renderer.text(doc, scoring=True)
        self.choices = [doc.query] if rolling else list(doc.choices)
        if not self.choices:
            raise CulturevalError(f"{doc.task_name} asks to score the choices of doc {doc.id!r}, which has none.")
        kind = "rolling" if rolling else "loglikelihood"
        self.key = owner.key(kind, self.image_keys, self.prompt, choices=self.choices, ending=self.ending)
        self.record: dict[str, Any] = owner.journal.get(self.key) or {}
        self.done = bool(self.record)
        self.contexts: list[list[int]] = []
        self.continuations: list[list[int]] = []
        self._scores: list[ChoiceScore | None] = [None] * len(self.choices)
        self._members: list[list[int]] = []
        self.truncated = 0
        if not self.image_keys:
            self._encode()

    def requests(self) -> list[ScoringRequest]:
        """One request for each different context: mostly one, more where a choice merges with the prompt's end."""
        vision = None
        if self.image_keys:
            inputs = self.owner.with_images([self.prompt_without_spaces()], [self.doc], self.owner.max_length)
            ids = inputs.pop("input_ids")[0].tolist()
            inputs.pop("attention_mask", None)
            vision = {name: value.to(self.owner.loaded.model.device) for name, value in inputs.items()}
            self._encode(ids)
        groups: dict[tuple[int, ...], list[int]] = {}
        for index, context in enumerate(self.contexts):
            groups.setdefault(tuple(context), []).append(index)
        self._members = list(groups.values())
        return [
            ScoringRequest(context, [self.continuations[index] for index in members], self.ending, vision)
            for context, members in groups.items()
        ]

    def prompt_without_spaces(self) -> str:
        """The prompt as `tok_encode_pair` encodes it: spaces at its end go to the choices."""
        return self.prompt.rstrip()

    def _encode(self, image_prompt: Sequence[int] | None = None) -> None:
        """Token ids as LightEval makes them, cut on the left to the model's longest sequence."""
        owner = self.owner
        pairwise = owner.config.pairwise_tokenization or bool(self.image_keys) or self.rolling
        self.contexts, self.continuations = owner.tok_encode_pair(self.prompt, self.choices, pairwise=pairwise)
        if image_prompt is not None:
            self.contexts = [list(image_prompt)] * len(self.choices)
        for index, (context, choice) in enumerate(zip(self.contexts, self.continuations, strict=True)):
            room = owner.max_length - len(choice)
            if room < (len(context) if self.image_keys else 1):
                raise CulturevalError(
                    f"A choice of {self.doc.task_name} has {len(choice)} tokens"
                    f"{' behind a prompt with images' if self.image_keys else ''}; the model takes {owner.max_length}."
                )
            self.truncated = max(self.truncated, len(context) - room)
            self.contexts[index] = (context or owner.loaded.first_ids())[-room:]

    def take(self, number: int, scores: Sequence[ChoiceScore]) -> bool:
        """Take the scores of one request; True when the doc is complete, and then `record` holds its answer.

        Raises:
            CulturevalError: A score is not a number.
        """
        for index, score in zip(self._members[number], scores, strict=True):
            if math.isnan(score.logprob):
                model = self.owner.loaded.model
                raise CulturevalError(
                    f"{self.owner.config.model_name} gives a log-probability that is not a number for doc "
                    f"{self.doc.id} of {self.doc.task_name}: its weights hold such values, or {model.dtype} is too "
                    "small for it; try dtype: bfloat16 or float32."
                )
            self._scores[index] = score
        if any(score is None for score in self._scores):
            return False
        self.record = {
            "logprobs": [score.logprob for score in self._scores],
            "greedy": [score.is_greedy for score in self._scores],
            "end_logprobs": [score.end_logprob for score in self._scores] if self.ending else None,
            "prompt_tokens": list(self.contexts[0]),
            "choice_tokens": [list(choice) for choice in self.continuations],
        }
        self.done = True
        return True

    def response(self) -> ModelResponse:
        """The answer in LightEval's terms."""
        ends = self.record["end_logprobs"]
        return ModelResponse(
            input=self.prompt,
            input_tokens=self.record["prompt_tokens"],
            output_tokens=self.record["choice_tokens"],
            logprobs=self.record["logprobs"],
            argmax_logits_eq_gold=self.record["greedy"],
            logits=None if ends is None else [[end] for end in ends],
            truncated_tokens_count=self.truncated,
        )


class GenerationJob:
    """One doc to be answered in text."""

    def __init__(self, owner: Owner, doc: Doc) -> None:
        """Render and encode a doc for a model."""
        self.owner, self.doc = owner, doc
        parameters = owner.config.generation_parameters
        self.image_keys = [image_hash(image) for image in all_images(doc)]
        self.images = bool(self.image_keys)
        self.prompt = owner.renderer.text(doc)
        asked = stop_strings(doc, owner.renderer.uses_chat_template, owner.renderer.begins_answer(doc))
        # Some templates open the reasoning themselves: it has no start tag then, and if it is cut off no end tag.
        starts = (start for start, _ in owner.config.reasoning_tags)
        self.opened = next((start for start in starts if self.prompt.rstrip().endswith(start)), "")
        self.stops = [*asked, *filter(None, parameters.stop_tokens or [])]
        self.max_new_tokens = parameters.max_new_tokens or doc.generation_size
        self.group = (self.images, -(self.max_new_tokens or 0), doc.num_samples)
        self.key = owner.key(
            "generation",
            self.image_keys,
            self.prompt,
            stops=self.stops,
            length=self.max_new_tokens,
            samples=doc.num_samples,
        )
        self.truncated = 0
        self.tokens: list[int] = [] if self.images else self._encode()
        self.answers: list[Generation] = []

    def _encode(self) -> list[int]:
        """Prompt tokens, cut on the left where not even one token more would fit."""
        tokens = self.owner.tok_encode(self.prompt)
        longest = self.owner.max_length
        if len(tokens) >= longest:
            kept = longest - min(self.max_new_tokens or 1, max(longest // 2, 1))
            self.truncated = len(tokens) - kept
            tokens = tokens[-kept:]
        return tokens

    def look_up(self) -> None:
        """Take the answers of an earlier run from the journal."""
        record = self.owner.journal.get(self.key)
        if record:
            self.answers = [Generation(**answer) for answer in record["answers"]]
            self.tokens = record.get("input_tokens", self.tokens)

    def record(self) -> dict[str, Any]:
        """The answers for the journal; with images also the prompt's tokens, which only the processor knows."""
        record: dict[str, Any] = {"answers": [vars(answer) for answer in self.answers]}
        return record | ({"input_tokens": self.tokens} if self.images else {})

    def response(self) -> ModelResponse:
        """The answers in LightEval's terms."""
        return ModelResponse(
            input=self.prompt,
            input_tokens=self.tokens,
            text=[answer.text for answer in self.answers],
            reasonings=[answer.reasoning for answer in self.answers],
            output_tokens=[answer.tokens for answer in self.answers],
            truncated_tokens_count=self.truncated,
        )
