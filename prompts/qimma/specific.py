"""The types of QIMMA's `Doc.specific`."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from cultureval.runtime.doc_fields import DocSpecific


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
