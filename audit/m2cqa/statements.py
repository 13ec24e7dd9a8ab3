"""Step 5: one true and two counterfactual statements a question, and the rules that they must keep.

The prompt is the paper's (Appendix A.2.2), sent once for each variety with the question in that variety; its last line,
that the statements be in the question's language, is ours. Of the rules the paper states that statements are
declarative, distinct, avoid explicit negation and differ minimally; how that is checked is ours. A set that breaks one
is asked again, once; then its item is left out, with the rule.
"""

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from cultureval.audit.m2cqa.items import (
    ChoiceQuestion,
    Item,
    Outcome,
    Statements,
    Unfit,
    json_object,
    share_of_arabic,
    text_of,
    texts_of,
)
from cultureval.audit.m2cqa.questions import outcome_of
from cultureval.metrics.judges.asking import Asker, ModelQuestion
from cultureval.prompts.cells import comparable
from cultureval.runtime.text_templates import TextTemplate

FOLDER = Path(__file__).parent / "prompts"
SYSTEM, INPUT = TextTemplate(FOLDER / "statements.txt"), TextTemplate(FOLDER / "statements_input.txt")
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
NEGATIONS = {
    "en": ENGLISH_NEGATIONS,
    "msa": re.compile(_OF_ALL),
    "ajp": re.compile(f"{_OF_ALL}|{_OF_DIALECTS}"),
    "arz": re.compile(f"{_OF_ALL}|{_OF_DIALECTS}"),
}
_JUDGEMENT = re.compile(
    r"\b(?:true or false|true/false)\b|(?:صح|صحيح|صحيحة)\s*(?:أم|أو|ام|او|ولا|/)\s*(?:خطأ|خطا|خاطئة|غلط)"
)
_ASKS = re.compile(r"[?؟]|^\s*(?:هل|what|which|who|where|is it|are there)\b", re.IGNORECASE)


def statement_questions(items: Sequence[Item], variety: str) -> list[ModelQuestion]:
    """What the writer is asked about each question."""
    found = []
    for item in items:
        asked = item.questions[variety]
        slots = {f"option_{place}": text for place, text in enumerate(asked.options, start=1)}
        text = INPUT.render(question=asked.question, correct=asked.options[asked.answer], **slots)
        found.append(ModelQuestion(item.id, text, SYSTEM.template.template))
    return found


def write_statements(items: Sequence[Item], variety: str, writer: Asker) -> Outcome:
    """The statements of each item in a variety; those that break a rule are left out."""
    by_id = {item.id: item for item in items}

    def read(question: ModelQuestion, text: str) -> Statements:
        return read_statements(text, by_id[question.id].questions[variety], variety)

    replies = writer.ask(statement_questions(items, variety), read, f"{variety} statements")

    def join(item: Item, found: Statements) -> Item:
        return item.with_(statements={**item.statements, variety: found})

    return outcome_of(items, replies, join, writer, variety)


def read_statements(text: str, asked: ChoiceQuestion, variety: str) -> Statements:
    """The statements of a reply; Unfit where it has another form, or they break a rule."""
    found = json_object(text)
    statements = Statements(text_of(found, "Q_plus"), texts_of(found, "Q_minus", 2))
    check_statements(statements, asked, variety)
    return statements


def check_statements(statements: Statements, asked: ChoiceQuestion, variety: str) -> None:
    """Checks all rules, in this order.

    Raises:
        Unfit: With the rule's word: `not_distinct`, `not_declarative`, `wrong_language`, `new_negation`,
            `swapped_roles`, `not_parallel`.
    """
    texts = statements.texts
    if len({" ".join(words_of(text)) for text in texts}) < len(texts):
        raise Unfit("not_distinct", "two statements have the same words")
    for text in texts:
        if _ASKS.search(text) or _JUDGEMENT.search(text.casefold()):
            raise Unfit("not_declarative", f"a statement asks: {text[:100]}")
        if (share_of_arabic(text) < 0.5) != (variety == "en"):
            raise Unfit("wrong_language", f"a statement is not in the script of {variety}: {text[:100]}")
    for text in statements.q_minus:
        if new := new_negations(statements.q_plus, text, variety):
            raise Unfit("new_negation", f"a counterfactual says {new[0]!r}, which the true statement does not")
    _check_roles(statements, asked)
    for text in statements.q_minus:
        _check_parallel(statements.q_plus, text)


def new_negations(q_plus: str, q_minus: str, variety: str) -> list[str]:
    """The negating words of a counterfactual beyond those of the true statement.

    Words and not meanings are compared: `ما` counts in dialects alone, where it negates verbs, and "no" in "No. 5"
    counts too. A statement that is refused wrongly is only asked again.
    """
    pattern = NEGATIONS[variety]
    known = [match[0].lstrip("وف") for match in pattern.finditer(_plain(q_plus))]
    new = []
    for match in pattern.finditer(_plain(q_minus)):
        word = match[0].lstrip("وف")
        if word in known:
            known.remove(word)
        else:
            new.append(word)
    return new


def words_of(text: str) -> list[str]:
    """Words in lower case, without marks of vowels and punctuation."""
    return re.findall(r"[^\W_]+", _plain(text))


def _plain(text: str) -> str:
    letters = unicodedata.normalize("NFC", comparable(text)).replace("\u0640", "")
    return re.sub(r"[\u064b-\u0652\u0670]", "", letters).casefold()


def _check_roles(statements: Statements, asked: ChoiceQuestion) -> None:
    """Each statement must be as near to its own option as to any other one, by the share of the option's words."""
    correct = asked.options[asked.answer]
    wrong = [option for place, option in enumerate(asked.options) if place != asked.answer]
    shares = [[_share(option, text) for option in (correct, *wrong)] for text in statements.texts]
    if shares[0][0] < max(shares[0][1:]):
        raise Unfit("swapped_roles", "the true statement is nearer to a wrong option")
    if any(one[0] > max(one[1:]) for one in shares[1:]):
        raise Unfit("swapped_roles", "a counterfactual is nearer to the correct option")


def _share(option: str, text: str) -> float:
    words, there = set(words_of(option)), set(words_of(text))
    return len(words & there) / len(words) if words else 0.0


def _check_parallel(one: str, other: str) -> None:
    words = sorted((words_of(one), words_of(other)), key=len)
    if len(words[1]) > MOST_LONGER * len(words[0]):
        raise Unfit("not_parallel", f"a statement has {len(words[1])} words and another {len(words[0])}")
    if len(set(words[0]) & set(words[1])) < LEAST_SHARED * len(set(words[0])):
        raise Unfit("not_parallel", "two statements share hardly a word")
