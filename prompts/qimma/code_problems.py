"""Rows of EvalPlus's data files: the fields of a problem, and its prompt for LightEval's models.

The chat prompt is evalplus-arabic's (3LM): its instruction, the problem in a code fence, and, where a backend can
prefill the answer, its response prefix and an open fence. A model without a chat template continues the problem.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cultureval.prompts.cells import cell, is_empty, readable
from cultureval.prompts.preparation import Preparation, PreparedRow, Row, make_doc
from cultureval.prompts.qimma.refined_prompts import refined_prompt
from cultureval.prompts.qimma.rows import CodeSpecific
from cultureval.prompts.templates import render, template_hash
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
EVALPLUS = "evalplus"  # the value of the option `code_prompt` that asks as EvalPlus's own program does

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
    """The prepared row of a problem of `humaneval` or `mbpp`: its prompt, and the name of its stored tests.

    Raises:
        BadRow, MissingColumn: The row is not what EvalPlus needs (see `check_problem`).
        CulturevalError: The refined prompts are unusable (see `refined_prompt`).
    """
    check_problem(row, prefix)
    options = preparation.options.suite
    prompt = refined_prompt(options["refined_prompts"], dataset, row)
    prepared = {"prompt": prompt, "task_id": row["task_id"], "dataset": dataset, "problem": store_problem(row)}
    prepared |= {"refined": prompt != row["prompt"]} if options["refined_prompts"] else {}
    return prepared | ({"code_prompt": EVALPLUS} if options["code_prompt"] == EVALPLUS else {})


def prompts_of(rows: Sequence[PreparedRow]) -> str:
    """The prompts as signatures name them: the template's hash, whether EvalPlus's prompt, whether refined ones."""
    marks = f"+{EVALPLUS}" * any("code_prompt" in row for row in rows)
    return template_hash(INSTRUCTION) + marks + "+refined" * any(row.get("refined") for row in rows)


def code_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a code problem; the tests of the answer are stored under `specific["problem"]`.

    With the suite option `code_prompt=evalplus` it is asked exactly as by EvalPlus's own program: the chat template
    turns reasoning off, the answer begins with the response prefix, and a server gets EvalPlus's words for servers.
    """
    problem = row["prompt"].strip()
    specific = CodeSpecific(
        **fields_of(row, CodeSpecific),
        stop_in_chat=False,
        plain_query=f"{problem}\n",
        answer_prefix=f"{render(RESPONSE)}\n```python\n",
        prefixed_stops=list(FENCE_STOPS),
    )
    if row.get("code_prompt") == EVALPLUS:
        specific["thinking"] = False
        specific["server_query"] = f"{render(INSTRUCTION)}\n```python\n{problem}\n```"
    return make_doc(row, task_name, [""], 0, specific, f"{render(INSTRUCTION)}\n```\n{problem}\n```\n")
