"""The content of a results file as typed data: LightEval's scores and the section `cultureval` that we add.

`SCHEMA` is the section's version: raised when a field changes its meaning or is removed.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

from cultureval.runtime.rows_report import RowsReport
from cultureval.tasks import catalogue
from cultureval.tasks.catalogue import all_tasks, name_and_shots

SCHEMA = 2
SECTION = "cultureval"  # key of the section in a results file
OF_REPORT = {  # field of a task's record -> field of its `RowsReport`
    **{name: name for name in ("form", "source", "revision", "parity", "other_data")},
    **{"rows_hash": "fingerprint", "prompt_hash": "prompt"},
}
SAMPLE_ROWS = Path(catalogue.__file__).with_name("sample_rows.txt")  # made by tests/unit/test_sample_rows.py


class Record(BaseModel):
    """Base of the section's parts: frozen; unknown fields of other versions are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)


OF_CATALOGUE = ("suite", "benchmark", "group", "subset", "domain", "metrics", "by_size", "lower", "generates")


class TaskRecord(Record):
    """A task of a run; its scores are in the results and details files.

    Attributes:
        task: Name with the number of few-shot examples, as the keys of the scores: `group:subset|0`.
        suite: Its suite; likewise `benchmark`, `group`, `subset`, `domain` as in `cultureval tasks --json`.
        by_size: Whether the average of its group weights tasks by their rows.
        lower: Names of its metrics for which lower is better.
        generates: Whether the model generates text.
        shots: Few-shot examples before each prompt.
        metrics: Names of its metrics, the headline first.
        rows: Rows that were answered.
        refused: Rows without a usable answer; in the details they have no scores.
        expected_rows: Rows of the original source's subset, where known.
        limit: At most this many rows were asked; None: all.
        form: "curated" or "original".
        source: Data set, folder or hub id; `revision` is its commit or "".
        rows_hash: Fingerprint of the prepared rows, independent of file names.
        prompt_hash: Hash of the prompts' template and labels, or a word for given prompts ("curated", "published");
            `+paper` is added where `parity` is "paper".
        parity: Tokenization of prompts, "paper" or "sound"; "" for tasks without the option `parity` (always sound);
            "first token" where the first token of a reply was scored in place of whole choices, "reasoned" where
            choices were scored after the model's reasoning.
        skipped_rows: Broken rows that were left out.
        left_out: Missing metrics: their judge (`RunRecord.unjudged`) or model was not available.
        truncated: Answers that ended at the token limit.
        cut_prompts: Prompts that were cut at the beginning, since they are too long for the model.
        reused: Answers that were taken from an earlier run.
        tokens_in: Tokens of its prompts, each counted once, reused answers included; `tokens_out`: of answers or
            choices.
        other_data: A sentence where its rows differ from the published ones.
        notes: Sentences about the data.
    """

    task: str
    suite: str
    benchmark: str
    group: str
    subset: str
    domain: str = ""
    by_size: bool = False
    lower: tuple[str, ...] = ()
    generates: bool = False
    shots: NonNegativeInt = 0
    metrics: tuple[str, ...] = ()
    rows: NonNegativeInt = 0
    refused: NonNegativeInt = 0
    expected_rows: NonNegativeInt | None = None
    limit: NonNegativeInt | None = None
    form: str = ""
    source: str = ""
    revision: str = ""
    rows_hash: str = ""
    prompt_hash: str = ""
    parity: str = ""
    skipped_rows: NonNegativeInt = 0
    left_out: tuple[str, ...] = ()
    truncated: NonNegativeInt = 0
    cut_prompts: NonNegativeInt = 0
    reused: NonNegativeInt = 0
    tokens_in: NonNegativeInt | None = None
    tokens_out: NonNegativeInt | None = None
    other_data: str = ""
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The task's main metric, the first; "" where it has none."""
        return self.metrics[0] if self.metrics else ""


class SignatureRecord(Record):
    """The signature of a group of tasks, as data and as the line that people quote.

    Attributes:
        group: Name of the group with the number of few-shot examples: `group|0`.
        fields: All that its scores depend on, by name.
        text: The same in one line.
    """

    group: str
    fields: dict[str, Any]
    text: str


class ModelRecord(Record):
    """The model and its backend as loaded, with defaults resolved.

    Attributes:
        backend: `transformers`, `server`, `vllm`, `dual encoder`, `code files`, or the class of another backend.
        version: Commit on the hub, or fingerprint of a folder's files; for a server the setting `revision`.
        parameters: Number of parameters.
        dtype: Of the computation: `float32`.
        quantisation: For example `bitsandbytes`; "" for none.
        devices: Of the weights.
        max_length: Longest sequence in tokens.
        batch_size: Most answers that were generated at once.
        adds_bos: Whether BOS is added before prompts (for LightEval's own backends: whether it is requested). Tasks
            with `parity` "paper" do not follow it.
        chat_template: Whether prompts are rendered by one; `chat_template_hash` is its hash.
        system_prompt_hash: Hash of the system prompt; "" for none.
        served_models: The model's name in servers' replies.
        settings: All settings that differ from their defaults, generation included.
        left_out: Request parameters that were not sent, since the model does not take them.
    """

    backend: str = ""
    version: str | None = None
    parameters: int | None = None
    dtype: str = ""
    quantisation: str = ""
    devices: tuple[str, ...] = ()
    max_length: int | None = None
    batch_size: int | None = None
    adds_bos: bool | None = None
    chat_template: bool | None = None
    chat_template_hash: str = ""
    system_prompt_hash: str = ""
    served_models: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    left_out: tuple[str, ...] = ()


class MachineRecord(Record):
    """The machine of the run.

    Attributes:
        system: Operating system.
        cpu: Name of the processor.
        cores: Cores that the run could use.
        memory_gib: Main memory.
        gpus: Their names.
    """

    system: str = ""
    cpu: str = ""
    cores: int | None = None
    memory_gib: float | None = None
    gpus: tuple[str, ...] = ()


class TimingRecord(Record):
    """Wall time in seconds, and tokens.

    Attributes:
        started: Date and time in UTC, ISO 8601.
        total: From the start of the command (less its imports) to the writing of the record.
        load_data: Reading data; likewise `load_model`, `answering` and `scoring` (judges included).
        computing: Part of `answering` in which a transformers model computed choices, in the first process; likewise
            `generating`.
        tokens_computed: In `computing`; `tokens_generated`: of answers, in `generating`.
        tokens_without_sharing: Tokens that one pass per choice would have computed in `computing`.
        peak_share: Share of the card's peak in `computing`, 0 to 1; None for an unknown card.
        tokens_in: The sum of the tasks' `tokens_in`; `tokens_out` likewise.
        tokens_paid_in: Prompt tokens by the server's count, with answers of earlier runs and filtered or refused ones;
            `tokens_paid_out`: of the answers.
        cost: Of all answers of a server with prices, answers of earlier runs included.
    """

    started: str = ""
    total: float | None = None
    load_data: float | None = None
    load_model: float | None = None
    answering: float | None = None
    scoring: float | None = None
    computing: float | None = None
    generating: float | None = None
    tokens_computed: int | None = None
    tokens_generated: int | None = None
    tokens_without_sharing: int | None = None
    peak_share: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_paid_in: int | None = None
    tokens_paid_out: int | None = None
    cost: float | None = None


def weights_of(records: Sequence[TaskRecord | None]) -> list[float]:
    """The weights of tasks in the average of their group: by rows where lm-eval's group says so, else equal."""
    sizes = [record.rows if record and record.by_size else 0 for record in records]
    return [size / sum(sizes) for size in sizes] if all(sizes) else [1 / len(records)] * len(records)


class RunRecord(Record):
    """The section `cultureval` of a results file.

    Attributes:
        schema_: Version of the section; 0 in files without it.
        command: The command line.
        tasks: By name with `|k`.
        missing: Requested tasks without data.
        unscorable: Requested tasks that cannot be scored or have no answer -> the reason.
        unjudged: Judges that could not be asked -> the reason.
        signatures: One per group of tasks.
        versions: Python, and the installed packages that answers and scores depend on.
        options: Options of reading data with defaults resolved (data root, form, options of suites), and whether
            answers were reused.
        seeds: Of the order of rows, and of sampling.
        model: The model and its backend.
        machine: The hardware.
        timing: Wall time and tokens.
    """

    schema_: int = Field(default=SCHEMA, alias="schema")
    command: tuple[str, ...] = ()
    tasks: dict[str, TaskRecord] = {}
    missing: tuple[str, ...] = ()
    unscorable: dict[str, str] = {}
    unjudged: dict[str, str] = {}
    signatures: tuple[SignatureRecord, ...] = ()
    versions: dict[str, str] = {}
    options: dict[str, Any] = {}
    seeds: dict[str, int | None] = {}
    model: ModelRecord = ModelRecord()
    machine: MachineRecord = MachineRecord()
    timing: TimingRecord = TimingRecord()


def is_sample(record: TaskRecord) -> bool:
    """Whether a task's rows are the shipped samples, in any folder."""
    return record.rows_hash in _sample_rows()


@cache
def _sample_rows() -> frozenset[str]:
    """The hashes of the shipped samples' rows, alone and with their few-shot examples."""
    return frozenset(SAMPLE_ROWS.read_text(encoding="utf-8").split())


def task_records(configs: Mapping[str, Any], limit: int | None) -> dict[str, TaskRecord]:
    """The records of the tasks in the catalogue, without fields that need a run.

    Args:
        configs: Task with `|k` -> its configuration, as `config_tasks` of a results file.
        limit: At most this many rows per task were asked; None: all.

    Returns:
        By name with `|k`, in the catalogue's order (LightEval's order differs between processes); tasks of other
        packages are left out.
    """
    known = [name for name in in_order(configs) if name_and_shots(name)[0] in all_tasks()]
    return {name: _task_record(name, configs[name], limit) for name in known}


def in_order(names: Iterable[str]) -> list[str]:
    """Tasks with `|k` in the catalogue's order, then tasks of other packages."""
    places = {name: place for place, name in enumerate(all_tasks())}
    return sorted(names, key=lambda name: (places.get(name_and_shots(name)[0], len(places)), name))


def _task_record(name: str, config: Mapping[str, Any], limit: int | None) -> TaskRecord:
    bare, shots = name_and_shots(name)
    task = all_tasks()[bare]
    report: RowsReport = config.get("rows_report") or RowsReport()
    rows = config.get("effective_num_docs")  # as LightEval counts them
    reported: dict[str, Any] = {field: str(report.get(name) or "") for field, name in OF_REPORT.items()}
    return TaskRecord(
        task=name,
        **{field: getattr(task, field) for field in OF_CATALOGUE},
        **reported,
        shots=int(shots) if shots.isdigit() else 0,
        rows=rows if isinstance(rows, int) and rows > 0 else 0,
        expected_rows=report.get("expected_rows", task.expected_rows),
        limit=limit,
        skipped_rows=len(report.get("skipped_rows", ())),
        refused=len(report.get("refused_rows", ())),
        notes=(*report.get("notes", ()), *filter(None, [report.get("caveat")])),
    )
