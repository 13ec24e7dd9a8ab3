"""The type of `rows_report`: the rows that a task read, in `config_tasks` of a results file."""

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict

# Kind of a doc without a usable answer -> such rows in a summary. docs/failures.md says what becomes of each.
KINDS = {
    "server": "Prompts that the server refused",
    "image": "Images that the model's processor or its server refused",
    "filter": "Answers that the provider's filter stopped",
    "refusal": "Answers that the model refused",
    "no_answer": "Prompts without a usable answer",
    "undecided": "Scores that the likeliest first tokens do not decide",
}


class RowsReport(TypedDict, total=False):
    """Provenance and counts of a task's rows; older files and tasks of other packages have only some fields."""

    source: str  # hub id of the data that were read
    form: str  # "original", or "curated" for a cleaned copy
    revision: str  # commit on the hub, or "local"
    # Hash of the prepared rows and few-shot examples, the same for every file format and number of shards.
    fingerprint: str
    prompt: str  # hash of the prompts' templates and labels
    parity: str  # "paper" or "sound"; "" for tasks without the option `parity` (always sound)
    rows: int  # prepared
    expected_rows: int | None  # by the paper or the source's card; None where neither says
    few_shot_rows: int  # prepared examples
    skipped_rows: list[dict[str, Any]]  # broken rows that were left out: file, row, column, value and reason
    skipped_few_shot_rows: list[dict[str, Any]]  # likewise of few-shot examples
    refused_rows: list[dict[str, Any]]  # rows without a usable answer, each with its `kind` of `KINDS`
    # Rows by what became of them: scored, few_shot, skipped, not_selected, discarded, refused, and, in a run's record,
    # not_asked (beyond a limit); `rows` is their sum.
    row_counts: Mapping[str, int]
    duplicate_rows: int  # repeats of an earlier question; one cluster in standard errors
    notes: list[str]  # sentences about the rows
    caveat: str  # a sentence about the source; "" without one
    other_data: str  # a sentence where the rows differ from the published ones; "" where they do not, or it is unknown
    manifest: Mapping[str, Any]  # the audits that left rows out: name, hash, discarded
    # Of generated code, as `cultureval score` reports them.
    signature: str
    tasks: int
    samples: int
    not_judged: list[str]
    canonical_failures: list[str]
