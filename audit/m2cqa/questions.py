"""Steps 2 to 4: a question for each image, the image-blind filter, and translations.

The prompt of the questions is the paper's (Appendix A.2.1); those of the image-blind models and of translators are
ours, as the paper prints none, and so are shuffled options and the closed list of rules for a question.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cultureval.audit.m2cqa.items import (
    LANGUAGES,
    ChoiceQuestion,
    Item,
    Outcome,
    Rejected,
    Unfit,
    json_object,
    rejection,
    share_of_arabic,
    text_of,
    texts_of,
)
from cultureval.metrics.judges.asking import Asker, ModelQuestion, ModelReply
from cultureval.prompts.cells import comparable
from cultureval.prompts.options import label_index, split_label
from cultureval.runtime.data.image_store import stored_image
from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.text_templates import TextTemplate

FOLDER = Path(__file__).parent / "prompts"
MCQ, MCQ_INPUT = TextTemplate(FOLDER / "mcq.txt"), TextTemplate(FOLDER / "mcq_input.txt")
BLIND, TRANSLATE = TextTemplate(FOLDER / "blind.txt"), TextTemplate(FOLDER / "translate.txt")
COGNITIVE = ("knowledge-based", "common sense-based")
SEMANTIC = tuple(line[5:] for line in MCQ.file_text.splitlines() if line.startswith("   - "))[:11]
OPTIONS = 3
LETTERS = "ABC"
LEAST_ARABIC = 0.5  # share of Arabic letters in a translated question and in its options together


def mcq_questions(items: Sequence[Item]) -> list[ModelQuestion]:
    """What the writer is asked about each image."""
    return [
        ModelQuestion(
            item.id,
            MCQ_INPUT.render(
                **{
                    name: item.about[name] or "unknown"
                    for name in ("description", "country", "category", "subcategory")
                }
            ),
            MCQ.template.template,
            (stored_image(item.image),),
        )
        for item in items
    ]


def write_questions(items: Sequence[Item], writer: Asker) -> Outcome:
    """One question with three options for each image, from the image and its metadata."""
    replies = writer.ask(mcq_questions(items), lambda _, text: read_mcq(text), "questions")
    return outcome_of(
        items, replies, lambda item, found: item.with_(questions={"en": found[0]}, notes=found[1]), writer
    )


def outcome_of(
    items: Sequence[Item],
    replies: Mapping[str, ModelReply],
    join: Callable[[Item, Any], Item],
    asker: Asker,
    variety: str = "",
) -> Outcome:
    """Items with what was read for them; those without are rejected, or wait where the model stopped."""
    kept = [join(item, replies[item.id].value) for item in items if replies[item.id].value is not None]
    missing = [replies[item.id] for item in items if replies[item.id].value is None]
    waiting = next((one.problem for one in missing if one.outcome == "not_asked"), "")
    rejected = [rejection(one.id, one, variety) for one in missing if one.outcome != "not_asked"]
    return Outcome(tuple(kept), tuple(rejected), f"{asker.settings.name} stopped ({waiting})" if waiting else "")


def read_mcq(text: str) -> tuple[ChoiceQuestion, dict[str, Any]]:
    """A question and its notes, from the paper's JSON.

    Raises:
        Unfit: It has another form, options that are not distinct, an answer that is none of them or stands in the
            question.
    """
    found = json_object(text)
    inner = found.get("multiple-choice", found)
    if not isinstance(inner, dict):
        raise Unfit("unreadable_reply", "multiple-choice is no object")
    question, options = text_of(inner, "question_en"), texts_of(inner, "options_en", OPTIONS)
    correct = text_of(inner, "correct_answer_en")
    seen = [comparable(option).casefold() for option in options]
    if len(set(seen)) < OPTIONS:
        raise Unfit("options_not_distinct", "two options are the same")
    if seen.count(comparable(correct).casefold()) != 1:
        raise Unfit("answer_not_an_option", "the correct answer is none of the options")
    answer = seen.index(comparable(correct).casefold())
    if [option in question.casefold() for option in seen] == [place == answer for place in range(OPTIONS)]:
        raise Unfit("answer_in_question", "the question names its answer")
    focus = inner.get("semantic_focus")
    notes = {
        "rationale": str(inner.get("rationale") or "")[:2000],
        "cognitive_focus": inner.get("cognitive_focus") if inner.get("cognitive_focus") in COGNITIVE else "",
        "semantic_focus": [one for one in focus if one in SEMANTIC] if isinstance(focus, list) else [],
    }
    return ChoiceQuestion(question, options, answer), notes


def blind_questions(items: Sequence[Item], seed: int) -> dict[str, tuple[ModelQuestion, str]]:
    """Id -> what an image-blind model is asked, and the letter of the right option, which are shuffled."""
    found = {}
    for item in items:
        asked = item.questions["en"]
        order = random.Random(f"{seed}/{item.id}").sample(range(OPTIONS), OPTIONS)
        lines = [f"{letter}. {asked.options[place]}" for letter, place in zip(LETTERS, order, strict=True)]
        text = BLIND.render(question=asked.question, options="\n".join(lines))
        found[item.id] = ModelQuestion(item.id, text), LETTERS[order.index(asked.answer)]
    return found


def read_letter(text: str) -> str:
    """The letter of a reply that names one option and no more; raises Unfit where it names none, or several."""
    line = split_reasoning(text)[0].strip().strip("*").strip()
    place = label_index(line) if line else None
    if place is None:
        place = split_label(line.partition("\n")[0])[0]  # "B. the option's text"
    if place is None or place >= OPTIONS:
        raise Unfit("unreadable_reply", "it is not one letter")
    return LETTERS[place]


def filter_blind(items: Sequence[Item], models: Sequence[Asker], seed: int) -> Outcome:
    """Leaves out the questions that all models answer rightly without the image.

    A reply without a letter is no right answer. That two guessers of three options are both right has chance 1/9.
    """
    asked = blind_questions(items, seed)
    answers: dict[str, Mapping[str, ModelReply[str]]] = {}
    for model in models:
        questions = [question for question, _ in asked.values()]
        answers[model.settings.name] = model.ask(questions, lambda _, text: read_letter(text), "blind answers")
        if model.stopped:
            return Outcome((), (), f"{model.settings.name} stopped ({model.stopped})")
    kept, rejected = [], []
    for item in items:
        right = {name: replies[item.id].value == asked[item.id][1] for name, replies in answers.items()}
        if all(right.values()):
            rejected.append(Rejected(item.id, "answered_blind", f"{' and '.join(right)} are right without the image"))
        else:
            kept.append(item.with_(notes={"blind_right": right}))
    return Outcome(tuple(kept), tuple(rejected))


def translation_questions(items: Sequence[Item], variety: str) -> list[ModelQuestion]:
    """What a translator is asked about each question."""
    system = TRANSLATE.render(language=LANGUAGES[variety])
    asked = []
    for item in items:
        one = item.questions["en"]
        lines = [f"Question: {one.question}", *(f"Option {n}: {text}" for n, text in enumerate(one.options, start=1))]
        asked.append(ModelQuestion(item.id, "\n".join(lines), system))
    return asked


def translate(items: Sequence[Item], variety: str, translator: Asker) -> Outcome:
    """Questions and options in a variety."""

    def join(item: Item, found: tuple[str, tuple[str, ...]]) -> Item:
        asked = ChoiceQuestion(found[0], found[1], item.questions["en"].answer)
        return item.with_(questions={**item.questions, variety: asked})

    asked = translation_questions(items, variety)
    replies = translator.ask(asked, lambda _, text: read_translation(json_object(text)), f"{variety} translations")
    return outcome_of(items, replies, join, translator, variety)


def read_translation(found: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The question and the options of a translation, in Arabic script, with options that are distinct."""
    question, options = text_of(found, "question"), texts_of(found, "options", OPTIONS)
    if len({comparable(option) for option in options}) < OPTIONS:
        raise Unfit("options_not_distinct", "two translated options are the same")
    if min(share_of_arabic(question), share_of_arabic(" ".join(options))) < LEAST_ARABIC:
        raise Unfit("not_arabic", "the translation is not in Arabic script")
    return question, options
