"""The content of a results file as typed data: LightEval's scores and the section `cultureval` that we add.

docs/results.md describes the section; `SCHEMA` is its version, raised when a field changes its meaning or goes.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, model_validator

from cultureval.runtime.doc_fields import FIRST_TOKEN
from cultureval.tasks.catalogue import rows_per_item

SCHEMA = 1
SECTION = "cultureval"  # its key in a results file


class Record(BaseModel):
    """Base of the section's parts: not changed after reading; unknown fields of later versions are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)


class TaskRecord(Record):
    """What was asked and scored in one task.

    Attributes:
        task: Name with the number of few-shot examples, as the keys of the scores: `group:subset|0`.
        suite: Its suite; likewise `benchmark`, `group`, `subset`, `domain`, `task_type`, `language`,
            `register_` (MSA or dialectal) as in `cultureval tasks --json`.
        shots: Few-shot examples before each prompt.
        metrics: Names of its metrics, the headline first.
        rows: Rows that were answered: those that were asked, without the refused ones.
        items: Units that its standard errors count (rows, or clusters of rows).
        expected_rows: Rows of the original source's subset, where known.
        expected_group_rows: Rows of all subsets of its group in that form, where known.
        row_counts: Rows of its data files: what became of each, as in `RowsReport.row_counts`.
        not_selected: Rows of these files that its filter does not select, by reason.
        limit: At most this many rows were asked; None: all.
        form: "curated" or "original".
        source: Data set, folder or hub id; `revision` is its commit or "".
        rows_hash: Fingerprint of the prepared rows.
        content_hash: The same whatever the names of their files; "" in results from before it.
        prompt_hash: Hash of the prompts' template and labels, or what the prompts are ("curated", "published"); with
            `+paper` where `parity` asks for the paper's tokens.
        parity: How prompts became tokens, "paper" or "sound"; "" where the task has no choice; "first token" where the
            first token of a reply was scored in place of whole choices.
        duplicate_rows: Rows that ask the same as an earlier one.
        unread_files: Data files of its source that no task reads.
        skipped_rows: Broken rows that were left out; `skipped_few_shot_rows` are such examples.
        refused: Rows that the model, its server or a filter refused, which are unscored (`--on-refused unscored`).
        refused_by: Of these, how many by whom: `server` (the prompt), `filter` (of a provider), `refusal` (the model).
        bounds: Metric -> the lowest and the highest mean that the task could have with the refused rows; of means of
            rows' scores between known bounds.
        few_shot_rows: Few-shot examples that its data have; None where unknown.
        scored: Metric -> rows that it has a value for; a metric that scores all rows is left out.
        counted: Metric -> items that it is a rate over, where these are not all that have a score (CFHR is of those
            whose true statement was judged right); as the details have it.
        not_means: Metrics that are no means of the values that the details have of them.
        not_applicable: Metrics that have no meaning in this task of the group (dialectal fidelity of English text).
        left_out: Metrics that it has not, since their judge (`RunRecord.unjudged`) or model was not there.
        truncated: Answers that ended at the token limit.
        cut_prompts: Prompts of which the beginning was left out, since they are too long for the model.
        short_limits: Rows whose answers could have fewer tokens than the task allows, since prompt and answer have to
            fit the model's context; what these cut is in `truncated` too.
        unparsable: Answers that the metric could not read, where a metric counts them.
        reused: Answers that were taken from an earlier run; `reused_since` is the date of the oldest of them.
        verdicts_reused: Judges' verdicts that were taken from an earlier run; `verdicts_reused_since` is the date of
            the oldest of them.
        tokens_in: Tokens of its prompts, each counted once, reused answers included; `tokens_out` of its answers (or
            choices).
        routes: Route of answering -> rows: `packed` or `plain` for scored choices (`server` or `first token`
            for a server's), `queue`, `batches` or `one_by_one` for generated texts (`generation` for
            a server's); reused answers, and repeated prompts, are in none.
        other_data: A sentence where its rows are not the published ones, by their contents.
        notes: Sentences on the data.
    """

    task: str
    suite: str
    benchmark: str
    group: str
    subset: str
    domain: str = ""
    task_type: str = ""
    language: str = ""
    register_: str = Field(default="", alias="register")
    shots: NonNegativeInt = 0
    metrics: tuple[str, ...] = ()
    rows: NonNegativeInt = 0
    items: NonNegativeInt | None = None
    expected_rows: NonNegativeInt | None = None
    expected_group_rows: NonNegativeInt | None = None
    row_counts: dict[str, int] = {}
    not_selected: dict[str, NonNegativeInt] = {}
    limit: NonNegativeInt | None = None
    form: str = ""
    source: str = ""
    revision: str = ""
    rows_hash: str = ""
    content_hash: str = ""
    prompt_hash: str = ""
    parity: str = ""
    duplicate_rows: NonNegativeInt = 0
    unread_files: tuple[str, ...] = ()
    skipped_rows: NonNegativeInt = 0
    skipped_few_shot_rows: NonNegativeInt = 0
    refused: NonNegativeInt = 0
    refused_by: dict[str, NonNegativeInt] = {}
    bounds: dict[str, tuple[float, float]] = {}
    few_shot_rows: NonNegativeInt | None = None
    scored: dict[str, NonNegativeInt] = {}
    counted: dict[str, NonNegativeInt] = {}
    not_means: tuple[str, ...] = ()
    not_applicable: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    truncated: NonNegativeInt = 0
    cut_prompts: NonNegativeInt = 0
    short_limits: NonNegativeInt = 0
    unparsable: NonNegativeInt = 0
    reused: NonNegativeInt = 0
    reused_since: str | None = None
    verdicts_reused: NonNegativeInt = 0
    verdicts_reused_since: str | None = None
    tokens_in: NonNegativeInt | None = None
    tokens_out: NonNegativeInt | None = None
    routes: dict[str, NonNegativeInt] = {}
    other_data: str = ""
    notes: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _older(cls, values: Any) -> Any:
        """Files from before `parity` said so have the first tokens of replies as a route alone."""
        routes = values.get("routes") if isinstance(values, dict) else None
        return {**values, "parity": FIRST_TOKEN} if isinstance(routes, dict) and FIRST_TOKEN in routes else values

    @property
    def headline(self) -> str:
        """The metric that the task is known by, its first; "" where it has none."""
        return self.metrics[0] if self.metrics else ""

    def rows_with(self, metric: str) -> int:
        """How many rows a metric has a value for."""
        return self.scored.get(metric, self.rows)

    def n_of(self, metric: str) -> int:
        """How many items a metric is a mean of: rows, or items of several rows that are scored together."""
        return self.counted.get(metric, self.items_with(metric))

    def items_with(self, metric: str) -> int:
        """How many items a metric has a score of; of a rate, also those that it does not count."""
        return self.rows_with(metric) // rows_per_item(self.task)

    @property
    def n(self) -> int:
        """How many items were asked, the refused ones too, counted as by `n_of`."""
        return (self.rows + self.refused) // rows_per_item(self.task)


class SignatureRecord(Record):
    """The signature of a group of tasks: as data, and as the line that people quote.

    Attributes:
        group: Name of the group with the number of few-shot examples: `group|0`.
        fields: Everything that its scores depend on, by name.
        text: The same in one line.
    """

    group: str
    fields: dict[str, Any]
    text: str


class ModelRecord(Record):
    """The model and its backend as resolved, not as asked.

    Attributes:
        backend: `transformers`, `server`, `vllm`, `dual encoder`, `code files`, or the class of another backend.
        version: Commit on the hub, or fingerprint of a folder's files; of a server what the user says.
        model_class: Class of transformers.
        parameters: Their number.
        dtype: In which it computes: `float32`.
        quantisation: Such as `bitsandbytes`; "" for none.
        devices: On which its weights are.
        attention: Implementation of transformers: `sdpa`.
        processes: How many shared the run.
        max_length: Longest sequence in tokens.
        batch_size: Answers that were generated at once, at most.
        adds_bos: Whether BOS is added before prompts, but for tasks whose `parity` is "paper" (of LightEval's own
            backends, whether it is asked for).
        chat_template: Whether prompts are rendered by one; `chat_template_hash` is its hash.
        system_prompt_hash: Hash of the system prompt; "" for none.
        routes: Of scoring choices after prompts of `text` and with `images` (`packed` or `plain`), and of
            texts, `generated` and `generated images`.
        route_checks: What the choice of each route rests on: of scores, their `difference` from plain forward passes on
            probes, in nats (root mean square); the `reason` of a slower route.
        served_models: The model's name in servers' replies.
        server: Their entry of it in `/v1/models`: id, root, max_model_len, sizes of weights.
        settings: All settings that differ from their defaults, generation included.
        left_out: Request parameters that the model does not take, and that were not sent.
    """

    backend: str = ""
    version: str | None = None
    model_class: str = ""
    parameters: int | None = None
    dtype: str = ""
    quantisation: str = ""
    devices: tuple[str, ...] = ()
    attention: str = ""
    processes: int = 1
    max_length: int | None = None
    batch_size: int | None = None
    adds_bos: bool | None = None
    chat_template: bool | None = None
    chat_template_hash: str = ""
    system_prompt_hash: str = ""
    routes: dict[str, str] = {}
    route_checks: dict[str, dict[str, Any]] = {}
    served_models: tuple[str, ...] = ()
    server: dict[str, str | int] = {}
    settings: dict[str, Any] = {}
    left_out: tuple[str, ...] = ()


class MachineRecord(Record):
    """The machine of the run.

    Attributes:
        system: Operating system.
        cpu: Name of the processor.
        cores: That the run could use.
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
        load_data: Of it, reading data; likewise `load_model`, `answering` and `scoring` (judges included).
        computing: Of `answering`, what a transformers model took to compute choices: without prompts, tokenisation and
            the journal; of the first process.
        tokens_in: The sum of the tasks' `tokens_in`; `tokens_out` likewise.
        tokens_paid_in: Tokens of prompts that a server counted for all its answers, those of earlier runs included, and
            those that were filtered or refused; `tokens_paid_out` of the answers.
        tokens_cached: Of these, those of prompts that a server had cached; `tokens_reasoning` those of answers that are
            reasoning.
        cost: Of all answers of a server with prices, those of earlier runs included.
        missing_usage: Answers without token counts that can be read, which were estimated.
    """

    started: str = ""
    total: float | None = None
    load_data: float | None = None
    load_model: float | None = None
    answering: float | None = None
    scoring: float | None = None
    computing: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_paid_in: int | None = None
    tokens_paid_out: int | None = None
    tokens_cached: int | None = None
    tokens_reasoning: int | None = None
    cost: float | None = None
    missing_usage: int = 0


class RunRecord(Record):
    """The section `cultureval` of a results file.

    Attributes:
        schema_: Version of the section; 0 in files without it.
        command: The command line.
        tasks: By name with `|k`.
        missing: Requested tasks without data.
        unscorable: Requested tasks that were left out, since they cannot be scored, with the reason.
        unanswered: Those of them of which no row has an answer, with their counts; as `tasks`.
        unjudged: Judges whose scores were left out, since they could not be asked, with the reason.
        signatures: One per group of tasks.
        versions: Python, and the installed packages that answers and scores depend on.
        options: Options of reading data as resolved (data root, form, broken rows, those of suites), and whether
            answers were reused.
        instruments: Group of tasks -> what scored it besides arithmetic: models with fingerprints, judges, sandbox.
        seeds: Of the order of rows, of sampling.
        model: The model and its backend.
        machine: The hardware.
        timing: Wall time and tokens.
    """

    schema_: int = Field(default=SCHEMA, alias="schema")
    command: tuple[str, ...] = ()
    tasks: dict[str, TaskRecord] = {}
    missing: tuple[str, ...] = ()
    unscorable: dict[str, str] = {}
    unanswered: dict[str, TaskRecord] = {}
    unjudged: dict[str, str] = {}
    signatures: tuple[SignatureRecord, ...] = ()
    versions: dict[str, str] = {}
    options: dict[str, Any] = {}
    instruments: dict[str, str] = {}
    seeds: dict[str, int | None] = {}
    model: ModelRecord = ModelRecord()
    machine: MachineRecord = MachineRecord()
    timing: TimingRecord = TimingRecord()
