"""Rows of EvalPlus's data files: the fields of a problem, and its prompt for LightEval's models.

The chat prompt is evalplus-arabic's (3LM): its instruction, the problem in a code fence, and, where a backend can
prefill the answer, its response prefix and an open fence. A model without a chat template continues the problem.
"""

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.prompts.cells import cell, is_empty, readable
from cultureval.prompts.preparation import Preparation, PreparedRow, Row, make_doc
from cultureval.prompts.qimma.rows import CodeSpecific
from cultureval.prompts.templates import render
from cultureval.runtime.data.content_store import store_problem
from cultureval.runtime.doc_fields import fields_of
from cultureval.runtime.errors import BadRow

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

INSTRUCTION, RESPONSE = "qimma/templates/code_instruction", "qimma/templates/code_response"
# EvalPlus's stop strings: of every model, of models that continue a problem, of answers in a fence begun for them.
STOPS = ("<|endoftext|>", "<|endofmask|>", "</s>", "\nif __name__", "\ndef main(", "\nprint(")
CONTINUATION_STOPS = {
    "humaneval": (*STOPS, "\ndef ", "\nclass ", "\nimport ", "\nfrom ", "\nassert "),
    "mbpp": (*STOPS, '\n"""', "\nassert"),
}
FENCE_STOPS = (*STOPS, "\n```\n")
NEW_TOKENS = 768

# EvalPlus's completeness check also requires these, undocumented.
TEXT_COLUMNS = ("task_id", "prompt", "entry_point", "contract", "canonical_solution")
INPUT_COLUMNS = ("base_input", "plus_input")


def check_problem(row: Mapping[str, Any], prefix: str) -> None:
    """Checks one problem of HumanEval+ (prefix `HumanEval/`) or MBPP+ (prefix `Mbpp/`).

    Raises:
        MissingColumn: A column that EvalPlus needs is not there.
        BadRow: A cell does not hold what EvalPlus needs of it.
    """
    for column in TEXT_COLUMNS:
        value = cell(row, column)
        if not isinstance(value, str) or (is_empty(value) and column != "contract"):
            raise BadRow(column, value, "is not a non-empty text")
        readable(value, column)
    if not re.fullmatch(rf"{re.escape(prefix)}\d+", row["task_id"], flags=re.ASCII):
        raise BadRow("task_id", row["task_id"], f"is not {prefix} and a number")
    if not row["entry_point"].isidentifier():
        raise BadRow("entry_point", row["entry_point"], "is not a name of Python")
    for column in INPUT_COLUMNS:
        _check_inputs(cell(row, column), column)
    atol = cell(row, "atol")
    if isinstance(atol, bool) or not isinstance(atol, (int, float)) or not (math.isfinite(atol) and atol >= 0):
        raise BadRow("atol", atol, "is not a tolerance of 0 or more")


def _check_inputs(value: Any, column: str) -> None:
    if value == {} and column == "plus_input":
        return  # in MBPP+: the problem has no further tests
    if not isinstance(value, list) or not all(isinstance(arguments, list) for arguments in value):
        raise BadRow(column, value, "is not a list of argument lists")
    if column == "base_input" and not value:
        raise BadRow(column, value, "holds no test")


def prepare_problem(row: Row, preparation: Preparation, dataset: str, prefix: str) -> PreparedRow:
    """The prepared row of a problem of `humaneval` or `mbpp`: its prompt, and the name of its stored tests."""
    check_problem(row, prefix)
    return {
        "prompt": row["prompt"],
        "task_id": row["task_id"],
        "dataset": dataset,
        "problem": store_problem(row),
    }


def code_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a code problem; the tests of the answer are stored under `specific["problem"]`."""
    problem = row["prompt"].strip()
    specific = CodeSpecific(
        **fields_of(row, CodeSpecific),
        stop_in_chat=False,
        plain_query=f"{problem}\n",
        answer_prefix=f"{render(RESPONSE)}\n```python\n",
        prefixed_stops=list(FENCE_STOPS),
    )
    return make_doc(row, task_name, [""], 0, specific, f"{render(INSTRUCTION)}\n```\n{problem}\n```\n")


def generation_prompt(problem: Row, dataset: str, task_name: str, samples: int, thinking: bool, server: bool) -> "Doc":
    """Doc of a problem as EvalPlus's own generation asks it.

    Args:
        problem: A row of a data file.
        dataset: `humaneval` or `mbpp`.
        task_name: The task that it is of.
        samples: How many solutions are wanted.
        thinking: Whether the model reasons before its answer, which it then begins itself.
        server: Whether a server is asked, for which EvalPlus has words of its own.
    """
    doc = code_prompt({"prompt": problem["prompt"], "task_id": problem["task_id"], "dataset": dataset}, task_name)
    doc.id, doc.num_samples, doc.stop_sequences = problem["task_id"], samples, list(CONTINUATION_STOPS[dataset])
    own = {"thinking": thinking} | ({"answer_prefix": ""} if thinking else {})
    own |= {"chat_query": f"{render(INSTRUCTION)}\n```python\n{problem['prompt'].strip()}\n```"} if server else {}
    doc.specific = {**doc.specific, **own}
    return doc
