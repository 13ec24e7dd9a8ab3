"""Choices without the question: planted shortcuts are found, preferences of place are not, chance is exact."""

import re
from itertools import product

import numpy as np
import pytest
from lighteval.models.model_output import ModelResponse

from cultureval.audit.items import AuditItem
from cultureval.audit.shortcuts import (
    answer_blindly,
    blind_questions,
    by_chance,
    named_items,
    shortcut_rows,
    shortcut_signature,
    shortcuts_of,
)
from cultureval.runtime.errors import CulturevalError


def items_of(subset, count, longest, options=4, images=False, split="test"):
    """Items of which the gold, at a random place, is the longest option, or only as often as by chance."""
    random = np.random.default_rng(len(subset))
    items = []
    for number in range(count):
        gold, long = random.integers(0, options, 2)
        long = gold if longest else long
        texts = tuple(f"خيار {subset} {place}" + " طويل جدا" * int(place == long) for place in range(options))
        items.append(
            AuditItem(
                *("org/data", "local", subset, f"{subset}.csv:{number}", f"{number:064x}", split, "mcq"),
                f"سؤال سري رقم {number}؟",
                texts,
                (int(gold),),
                language="ar",
                images=images,
            )
        )
    return items


class Scorer:
    """Prefers an option by a rule; keeps the prompts."""

    def __init__(self, rule):
        self.rule, self.prompts = rule, []

    def __call__(self, docs):
        responses = []
        for doc in docs:
            self.prompts.append(doc.query)
            listed = re.findall(r"^(\S+)\. (.*)$", doc.query, re.M)
            assert [label for label, _ in listed] == [label.strip() for label in doc.choices]
            best = self.rule([text for _, text in listed])
            logs = [-1.0 if place == best else -3.0 for place in range(len(listed))]
            responses.append(ModelResponse(logprobs=logs, output_tokens=[[1]] * len(logs)))
        return responses


def longest(texts):
    return max(range(len(texts)), key=lambda place: len(texts[place]))


def test_a_planted_shortcut_is_found_and_the_question_is_never_shown():
    items = items_of("easy", 60, True) + items_of("fair", 60, False) + items_of("shots", 5, True, split="few_shot")
    scorer = Scorer(longest)
    answers = answer_blindly(blind_questions(items), scorer)
    assert len(scorer.prompts) == 4 * 120 and not any("سري" in prompt for prompt in scorer.prompts)
    first, second = shortcuts_of(answers)
    assert (first.subset, first.named, first.right, first.chance) == ("easy", True, 60, 0.25)
    assert (second.subset, second.named) == ("fair", False) and second.low < 0.25 < second.high
    named = named_items(answers, [first, second])
    assert len(named) == 60 and all(one.always and one.item.subset == "easy" for one in named)
    rows = shortcut_rows(named)
    assert {row.decision for row in rows} == {"review"} and rows[0].reasons == ["shortcuts:no_question"]
    line = shortcut_signature(answers, 4, {"model": "m@1"})
    assert "prompt:no_question_ar-" in line and "rotations:4" in line and "model:m@1" in line


def test_a_preference_of_a_place_is_no_shortcut():
    items = [item for item in items_of("place", 200, False) if item.gold == (0,)]  # the gold is always the first
    (found,) = shortcuts_of(answer_blindly(blind_questions(items), Scorer(lambda texts: 0)))
    assert found.right == 0 and not found.named  # all options are equally likely over the rotations
    (one,) = shortcuts_of(answer_blindly(blind_questions(items), Scorer(lambda texts: 0), rotations=1))
    assert one.right == one.items and one.named


@pytest.mark.slow
@pytest.mark.parametrize("options", [2, 3, 4, 5])
def test_probabilities_of_places_alone_tie_whatever_the_rounding(options):
    """Sums of the same numbers in another order differ in their last digit, and gave one option the lead."""

    def by_place(docs):
        return [
            ModelResponse(logprobs=logs[: len(doc.choices)], output_tokens=[[1]] * len(doc.choices)) for doc in docs
        ]

    asked = blind_questions(items_of("place", 40, False, options))
    for seed in range(40):
        logs = np.log(np.random.default_rng(seed).dirichlet([1] * options)).tolist()
        assert not any(one.right for one in answer_blindly(asked, by_place))


def test_questions_on_images_are_also_asked_without_the_image_alone():
    asked = blind_questions(items_of("images", 6, True, images=True))
    scorer = Scorer(longest)
    found = shortcuts_of(answer_blindly(asked, scorer))
    assert {(one.without, one.items) for one in found} == {("question", 6), ("image", 6)}
    assert sum("سري" in prompt for prompt in scorer.prompts) == 24 and "صورة حُذفت" in scorer.prompts[-1]
    with pytest.raises(CulturevalError, match="nothing to choose"):
        blind_questions(items_of("one", 3, True, options=1))


def test_chance_is_exact_where_items_have_different_numbers_of_options():
    options = [2, 3, 5]
    total = [0.0] * 4
    for hits in product((0, 1), repeat=3):
        chance = np.prod([1 / n if hit else 1 - 1 / n for hit, n in zip(hits, options, strict=True)])
        total[sum(hits)] += chance
    for right in range(4):
        assert by_chance(options, right) == pytest.approx(sum(total[right:]))
    noise = [
        shortcuts_of(answer_blindly(blind_questions(items_of("n" * size, 80, False)), Scorer(longest)))[0].named
        for size in range(1, 21)
    ]
    assert sum(noise) <= 3
