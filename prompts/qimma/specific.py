"""The types of QIMMA's `Doc.specific`."""

from typing_extensions import TypedDict

from cultureval.runtime.doc_specific import DocSpecific


class ChoiceSpecific(DocSpecific, total=False):
    """A multiple-choice or multi-select question.

    Attributes:
        permutation: The order of the source's options, for sources whose options are shuffled.
        options: The options' texts; the Doc's choices are their labels.
    """

    permutation: list[int]
    options: list[str]


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
        dataset: "humaneval" or "mbpp".
        problem: Name of the full problem in the store of problems.
    """

    task_id: str
    dataset: str
    problem: str
