"""Steps 2 to 5: questions on images, the image-blind filter, translations, and statements with their rules.

The prompts of questions and statements are the paper's (Appendix A.2.1 and A.2.2); the last line of the latter, that
statements be in the question's language, is ours. The paper prints no prompt for the image-blind models and
translators: these are ours, and so are shuffled options. The paper states that statements are declarative and
distinct, avoid explicit negation and differ minimally; how we check this is ours. A reply that breaks a rule is asked
for once more; then its item is rejected.
"""

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cultureval.audit.m2cqa.items import (
    LANGUAGES,
    ChoiceQuestion,
    Item,
    Outcome,
    QuestionReply,
    Rejected,
    Statements,
    StatementsReply,
    TranslationReply,
    Unfit,
    outcome_of,
    read_json,
    share_of_arabic,
)
from cultureval.metrics.judges.asking import Asker, ModelQuestion
from cultureval.prompts.cells import comparable
from cultureval.runtime.data.image_store import stored_image
from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.text_templates import TextTemplate

FOLDER = Path(__file__).parent / "prompts"
MCQ, MCQ_INPUT = TextTemplate(FOLDER / "mcq.txt"), TextTemplate(FOLDER / "mcq_input.txt")
BLIND, TRANSLATE = TextTemplate(FOLDER / "blind.txt"), TextTemplate(FOLDER / "translate.txt")
SYSTEM, INPUT = TextTemplate(FOLDER / "statements.txt"), TextTemplate(FOLDER / "statements_input.txt")
METADATA = ("description", "country", "category", "subcategory")  # that the prompt of the questions shows
OPTIONS = 3
LETTERS = "ABC"
LETTER = re.compile(r"[*(\s]*([A-C])[*).:\s]*(?:[.):]\s.*)?", re.IGNORECASE)  # alone, or before its option's text
LEAST_ARABIC = 0.5  # share of Arabic letters in a translated question and in its options together
MOST_LONGER = 2.0  # times as many words as the other statement
LEAST_SHARED = 0.25  # of the words of the shorter statement

ENGLISH_NEGATIONS = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|nowhere|neither|nor|without|cannot|lacks?|lacking|isnt|arent|wasnt)\b"
    r"|n['\u2019]t\b"
)
_PREFIX = r"(?<!\w)[وف]?"
_OF_ALL = rf"{_PREFIX}(?:لا|ليس(?:ت|وا|ا)?|لست|لسنا|لم|لن|غير|[بل]?دون|بلا|[بل]?عدم)(?!\w)"
# Dialects: mish, mu, ma before a verb, and the suffix -sh of a verb after it.
_OF_DIALECTS = rf"{_PREFIX}(?:مش|مو|مب|مهو|ما|مفيش|مافيش|مفيهاش|مفيهوش|مكانش|ماكانش|معندوش|معندهاش|م\w{{3,}}ش)(?!\w)"
_DIALECT = re.compile(f"{_OF_ALL}|{_OF_DIALECTS}")
NEGATIONS = {"en": ENGLISH_NEGATIONS, "msa": re.compile(_OF_ALL), "ajp": _DIALECT, "arz": _DIALECT}
_JUDGEMENT = re.compile(
    r"\b(?:true or false|true/false)\b|(?:صح|صحيح|صحيحة)\s*(?:أم|أو|ام|او|ولا|/)\s*(?:خطأ|خطا|خاطئة|غلط)"
)
_ASKS = re.compile(r"[?؟]|^\s*(?:هل|what|which|who|where|is it|are there)\b", re.IGNORECASE)


def write_questions(items: Sequence[Item], writer: Asker) -> Outcome:
    """The writer makes a question with three options from each image and its metadata."""
    asked = []
    for item in items:
        text = MCQ_INPUT.render(**{name: item.about[name] or "unknown" for name in METADATA})
        asked.append(ModelQuestion(item.id, text, MCQ.template.template, (stored_image(item.image),)))
    replies = writer.ask(asked, lambda _, text: read_question(text), "questions")
    return outcome_of(items, replies, lambda item, question: replace(item, questions={"en": question}))


def read_question(text: str) -> ChoiceQuestion:
    """The question of the paper's JSON.

    Raises:
        Unfit: The reply has another form, two options are equal, or the answer is no option or stands in the question.
    """
    reply = read_json(QuestionReply, text, "multiple-choice")
    options = [comparable(option).casefold() for option in reply.options_en]
    correct = comparable(reply.correct_answer_en).casefold()
    if len(set(options)) < OPTIONS:
        raise Unfit("options_not_distinct: two options are the same")
    if correct not in options:
        raise Unfit("answer_not_an_option: the correct answer is none of the options")
    answer = options.index(correct)
    if [option in reply.question_en.casefold() for option in options] == [option == correct for option in options]:
        raise Unfit("answer_in_question: the question names its answer")
    return ChoiceQuestion(reply.question_en, reply.options_en, answer)


def read_letter(text: str) -> str:
    """The letter of a reply that names one option; raises Unfit where it names none or several."""
    found = LETTER.fullmatch(split_reasoning(text)[0].strip().partition("\n")[0])
    if found is None:
        raise Unfit("unreadable_reply: it is not one letter")
    return found[1].upper()


def filter_blind(items: Sequence[Item], models: Sequence[Asker]) -> Outcome:
    """Rejects the questions that all models answer rightly without the image; options are shuffled.

    A reply without a letter is no right answer. Two models that guess are both right with a probability of 1/9.
    """
    asked, right = [], {}
    for item in items:
        english = item.questions["en"]
        order = random.Random(f"0/{item.id}").sample(range(OPTIONS), OPTIONS)
        lines = [f"{letter}. {english.options[place]}" for letter, place in zip(LETTERS, order, strict=True)]
        asked.append(ModelQuestion(item.id, BLIND.render(question=english.question, options="\n".join(lines))))
        right[item.id] = LETTERS[order.index(english.answer)]
    replies = [model.ask(asked, lambda _, text: read_letter(text), "blind answers") for model in models]
    names = " and ".join(model.settings.name for model in models)
    kept, rejected = [], []
    for item in items:
        if all(some[item.id].value == right[item.id] for some in replies):
            rejected.append(Rejected(item.id, "answered_blind", f"right without the image: {names}"))
        else:
            kept.append(item)
    return Outcome(tuple(kept), tuple(rejected))


def translate(items: Sequence[Item], variety: str, translator: Asker) -> Outcome:
    """The translator puts questions and options into a variety."""
    system = TRANSLATE.render(language=LANGUAGES[variety])
    asked = []
    for item in items:
        english = item.questions["en"]
        options = [f"Option {number}: {text}" for number, text in enumerate(english.options, start=1)]
        asked.append(ModelQuestion(item.id, "\n".join([f"Question: {english.question}", *options]), system))

    def add(item: Item, reply: TranslationReply) -> Item:
        translated = ChoiceQuestion(reply.question, reply.options, item.questions["en"].answer)
        return replace(item, questions={**item.questions, variety: translated})

    replies = translator.ask(asked, lambda _, text: read_translation(text), f"{variety} translations")
    return outcome_of(items, replies, add, variety)


def read_translation(text: str) -> TranslationReply:
    """A translated question with distinct options in Arabic script; raises Unfit for another reply."""
    reply = read_json(TranslationReply, text)
    if len({comparable(option) for option in reply.options}) < OPTIONS:
        raise Unfit("options_not_distinct: two translated options are the same")
    if min(share_of_arabic(reply.question), share_of_arabic(" ".join(reply.options))) < LEAST_ARABIC:
        raise Unfit("not_arabic: the translation is not in Arabic script")
    return reply


def write_statements(items: Sequence[Item], variety: str, writer: Asker) -> Outcome:
    """The writer makes the statements of each item in a variety; statements that break a rule are rejected."""
    by_id = {item.id: item for item in items}
    asked = []
    for item in items:
        own = item.questions[variety]
        slots = {f"option_{place}": text for place, text in enumerate(own.options, start=1)}
        text = INPUT.render(question=own.question, correct=own.options[own.answer], **slots)
        asked.append(ModelQuestion(item.id, text, SYSTEM.template.template))

    def read(question: ModelQuestion, text: str) -> Statements:
        reply = read_json(StatementsReply, text)
        statements = Statements(reply.Q_plus, reply.Q_minus)
        check_statements(statements, by_id[question.id].questions[variety], variety)
        return statements

    def add(item: Item, statements: Statements) -> Item:
        return replace(item, statements={**item.statements, variety: statements})

    return outcome_of(items, writer.ask(asked, read, f"{variety} statements"), add, variety)


def check_statements(statements: Statements, asked: ChoiceQuestion, variety: str) -> None:
    """Checks all rules, in this order.

    Raises:
        Unfit: With the rule's word: `not_distinct`, `not_declarative`, `wrong_language`, `new_negation`,
            `swapped_roles`, `not_parallel`.
    """
    texts = statements.texts
    if len({" ".join(words_of(text)) for text in texts}) < len(texts):
        raise Unfit("not_distinct: two statements have the same words")
    for text in texts:
        if _ASKS.search(text) or _JUDGEMENT.search(text.casefold()):
            raise Unfit(f"not_declarative: a statement asks: {text[:100]}")
        if (share_of_arabic(text) < 0.5) != (variety == "en"):
            raise Unfit(f"wrong_language: a statement is not in the script of {variety}: {text[:100]}")
    for text in statements.q_minus:
        if new := new_negations(statements.q_plus, text, variety):
            raise Unfit(f"new_negation: a counterfactual says {new[0]!r}, which the true statement does not")
    _check_roles(statements, asked)
    for text in statements.q_minus:
        _check_parallel(statements.q_plus, text)


def new_negations(q_plus: str, q_minus: str, variety: str) -> list[str]:
    """The negating words of a counterfactual beyond those of the true statement.

    Words and not meanings are compared: `ما` counts in dialects alone, where it negates verbs, and "no" in "No. 5"
    counts too. A statement that is refused wrongly is only asked again.
    """
    texts = map(_plain, (q_plus, q_minus))
    true, counterfactual = (Counter(word.lstrip("وف") for word in NEGATIONS[variety].findall(text)) for text in texts)
    return list((counterfactual - true).elements())


def words_of(text: str) -> list[str]:
    """Words in lower case, without marks of vowels and punctuation."""
    return re.findall(r"[^\W_]+", _plain(text))


def _plain(text: str) -> str:
    letters = unicodedata.normalize("NFC", comparable(text)).replace("\u0640", "")
    return re.sub(r"[\u064b-\u0652\u0670]", "", letters).casefold()


def _check_roles(statements: Statements, asked: ChoiceQuestion) -> None:
    """Each statement must be as near to its own option as to any other one, by the share of the option's words."""
    correct = asked.options[asked.answer]
    wrong = [option for option in asked.options if option != correct]
    shares = [[_share(option, text) for option in (correct, *wrong)] for text in statements.texts]
    if shares[0][0] < max(shares[0][1:]):
        raise Unfit("swapped_roles: the true statement is nearer to a wrong option")
    if any(share[0] > max(share[1:]) for share in shares[1:]):
        raise Unfit("swapped_roles: a counterfactual is nearer to the correct option")


def _share(option: str, text: str) -> float:
    words, found = set(words_of(option)), set(words_of(text))
    return len(words & found) / len(words) if words else 0.0


def _check_parallel(true: str, counterfactual: str) -> None:
    shorter, longer = sorted((words_of(true), words_of(counterfactual)), key=len)
    if len(longer) > MOST_LONGER * len(shorter):
        raise Unfit(f"not_parallel: a statement has {len(longer)} words and another {len(shorter)}")
    if len(set(shorter) & set(longer)) < LEAST_SHARED * len(set(shorter)):
        raise Unfit("not_parallel: two statements share hardly a word")
