"""The type of `rows_report`: what a results file says of the rows that a task read, in its `config_tasks`."""

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict

# Kind of a doc without a usable answer -> such rows in a summary. docs/failures.md says what becomes of each.
KINDS = {
    "server": "Prompts that the server refused",
    "image": "Images that the model's processor or its server refused",
    "filter": "Answers that the provider's filter stopped",
    "refusal": "Answers that the model refused",
    "no_answer": "Prompts to which no usable answer came",
    "undecided": "Scores that the likeliest first tokens do not decide",
}


class RowsReport(TypedDict, total=False):
    """Provenance and counts of a task's rows; files of earlier versions, and of other packages' tasks, lack some."""

    source: str  # hub id of the data that were read
    form: str  # "original", or "curated" for a copy that others cleaned
    revision: str  # commit on the hub, or "local"
    # Hash of the prepared rows, with few-shot examples also of these; the same in another format and in shards.
    fingerprint: str
    prompt: str  # hash of what the prompts are made of
    parity: str  # "paper" or "sound"; "" where the task has no choice
    rows: int  # prepared
    expected_rows: int | None  # how many the paper, or the source's card, gives; None where neither does
    few_shot_rows: int  # prepared examples
    skipped_rows: list[dict[str, Any]]  # broken rows that were left out: file, row, column, value and reason
    skipped_few_shot_rows: list[dict[str, Any]]  # the same of examples
    refused_rows: list[dict[str, Any]]  # without a usable answer, likewise, each with its `kind` of `KINDS`
    # Rows by what became of them: scored, few_shot, skipped, not_selected, discarded, refused, and, in a run's record,
    # not_asked (beyond a limit); `rows` is their sum.
    row_counts: Mapping[str, int]
    duplicate_rows: int  # that ask the same as an earlier one; they are one cluster of the standard errors
    notes: list[str]  # sentences on all rows together
    caveat: str  # a sentence on the source itself; "" without one
    other_data: str  # a sentence where the rows are not the published ones; "" where they are, or nobody knows
    manifest: Mapping[str, Any]  # the audits whose decisions left rows out: name, hash, discarded
    # Of generated code, as `cultureval score` reports them.
    signature: str
    tasks: int
    samples: int
    not_judged: list[str]
    canonical_failures: list[str]
