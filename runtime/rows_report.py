"""The type of `rows_report`: what a results file says of the rows that a task read, in its `config_tasks`."""

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict

# Kind of a doc without a usable answer -> such rows in a summary. docs/running.md says what becomes of each.
KINDS = {
    "server": "Prompts that the server refused",
    "image": "Images that the model's processor or its server refused",
    "filter": "Answers that the provider's filter stopped",
    "refusal": "Answers that the model refused",
    "no_answer": "Prompts to which no usable answer came",
    "undecided": "Scores that the likeliest first tokens do not decide",
}
# What asks the rows of which kinds again; an image would be refused again.
AGAIN = {
    "running again asks those again that are not in the journal": {"server", "no_answer"},
    "--no-resume asks those again that the journal has": {"filter", "refusal", "undecided"},
}


class RowsReport(TypedDict, total=False):
    """Provenance and counts of a task's rows. Files of earlier versions, and runs of other packages' tasks, lack some.

    Attributes:
        source: Hub id of the data that were read.
        form: "original", or "curated" for a copy that others cleaned.
        revision: Commit on the hub, or "local".
        fingerprint: Hash of the prepared rows; with few-shot examples also of these.
        content: The same without the names of files: rows in another format or in shards have the same.
        prompt: Hash of what the prompts are made of.
        parity: "paper" or "sound"; "" where the task has no choice.
        rows: Prepared rows.
        expected_rows: How many the paper, or the source's card, gives; None where neither does.
        expected_group_rows: The same for all tasks of the group together.
        few_shot_rows: Prepared examples.
        skipped_rows: Broken rows that were left out: file, row, column, value and reason.
        skipped_few_shot_rows: The same of examples.
        refused_rows: Rows without a usable answer, likewise, each with its `kind` of `KINDS`.
        row_counts: Rows by what became of them: scored, few_shot, skipped, not_selected, discarded, refused, and,
            in a run's record, not_asked (beyond a limit); `rows` is their sum.
        duplicate_rows: Prepared rows that ask the same as an earlier one; they are one cluster of the standard errors.
        unread_files: Data files of the source's folder that none of its tasks reads, below that folder.
        sources: `FILE@hash` of `--sources` where that gave the source; else "".
        not_selected: Why rows of the same files are not the task's -> how many.
        notes: Sentences on all rows together.
        caveat: A sentence on the source itself; "" without one.
        other_data: A sentence where the rows are not the published ones; "" where they are, or nobody knows.
        manifest: The audits whose decisions left rows out: name, hash, discarded, for_review.
        signature: Of generated code: the run's signature.
        tasks: Of generated code: the number of problems; `samples`: of solutions.
        bounds, not_judged, differs_from_evalplus, canonical_failures, sandboxed: Of generated code, as
            `cultureval code evaluate` reports them.
    """

    source: str
    form: str
    revision: str
    fingerprint: str
    content: str
    prompt: str
    parity: str
    rows: int
    expected_rows: int | None
    expected_group_rows: int | None
    few_shot_rows: int
    skipped_rows: list[dict[str, Any]]
    skipped_few_shot_rows: list[dict[str, Any]]
    refused_rows: list[dict[str, Any]]
    row_counts: Mapping[str, int]
    duplicate_rows: int
    unread_files: list[str]
    sources: str
    not_selected: Mapping[str, int]
    notes: list[str]
    caveat: str
    other_data: str
    manifest: Mapping[str, Any]
    signature: str
    tasks: int
    samples: int
    bounds: Mapping[str, Any]
    not_judged: list[str]
    differs_from_evalplus: list[str]
    canonical_failures: list[str]
    sandboxed: bool
