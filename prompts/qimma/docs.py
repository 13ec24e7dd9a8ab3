"""QIMMA's own prompt functions: from a prepared row (the schema of QIMMA's curated copies) to a LightEval Doc.

As in QIMMA's own task code, the query is the row's `prompt`; there is no instruction and no system prompt.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NotRequired

from typing_extensions import TypedDict

from cultureval.prompts.preparation import make_doc
from cultureval.runtime.doc_fields import DocSpecific, fields_of

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc


class GoldExplanation(TypedDict):
    """A verse and its explanation."""

    verse: str
    explanation: str


class PoemSpecific(DocSpecific):
    """A poem to be explained.

    Attributes:
        gold_explanations: Its verses with their explanations, in order.
    """

    gold_explanations: list[GoldExplanation]


class CodeSpecific(DocSpecific):
    """A code problem.

    Attributes:
        task_id: EvalPlus's id, as in "HumanEval/0".
        dataset: EvalPlus's name of the data set.
        problem: Name of the full problem in the store of problems.
        verdict: Once judged, the outcomes on `base` and `plus` inputs, and the `reason` with the failing input.
    """

    task_id: str
    dataset: Literal["humaneval", "mbpp"]
    problem: str
    verdict: NotRequired[dict[str, str]]


def answer_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a question-answering row; its choices are the reference answers.

    The stop string (a newline) does not apply to chat prompts: LightEval's backends, which QIMMA used, drop stop
    strings there.
    """
    references = list(row["choices"])
    specific = DocSpecific(**fields_of(row, DocSpecific), stop_in_chat=False)
    return make_doc(row, task_name, references, list(range(len(references))), specific)


def poem_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a FannOrFlop poem; the gold verses and explanations are in `specific["gold_explanations"]`.

    Models generate no reasoning (paper, section 5.2.1).
    """
    specific = PoemSpecific(**fields_of(row, PoemSpecific), thinking=False)
    gold = " ".join(pair["explanation"] for pair in specific["gold_explanations"])
    return make_doc(row, task_name, [gold], 0, specific)
