"""The types of a suite of benchmarks: validated plain data without LightEval or torch."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict
from pydantic.dataclasses import dataclass

from cultureval.metrics.declared import Metrics
from cultureval.prompts.cells import image_cell
from cultureval.prompts.preparation import Preparation, Prepare, PreparedRow, Row
from cultureval.runtime.data.row_files import PlacedRow
from cultureval.runtime.dotted_names import load_attribute
from cultureval.runtime.errors import BadRow, CulturevalError, MissingColumn, described
from cultureval.runtime.settings import Option

STRICT = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
NAME = re.compile(r"(?!all$)[^\W_][\w\u200c &()+.-]*(?<! )")
Function = str | Callable[..., Any] | None


def _name(text: str) -> str:
    if not NAME.fullmatch(text) or ".." in text:
        raise ValueError(f"{text!r} is no name: write letters, digits, spaces and & ( ) + . - _, but not `all`")
    return text


def _repository(text: str) -> str:
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)*", text) or ".." in text.split("/"):
        raise ValueError(f"{text!r} is not of the form organisation/name")
    return text


def _language(code: str) -> str:
    if not re.fullmatch("[a-z]{2,3}", code):
        raise ValueError(f"{code!r} is no ISO 639 code such as fa or arz")
    return code


Name = Annotated[str, AfterValidator(_name)]  # it becomes part of file names
Repository = Annotated[str, AfterValidator(_repository)]


@dataclass(frozen=True, config=STRICT)
class Instrument:
    """A part that scoring needs: a model, a judge, a sandbox.

    Attributes:
        name: Returns its name for the signature of the scores.
        check: Tries it before any answer is generated; raises CulturevalError if it cannot be used.
        before_generation: Whether it is also checked in runs of stock LightEval.
        sources: Returns hub ids of models and addresses of files for `cultureval fetch`.
        needs: Its name in `cultureval tasks`, such as "BERTScore model"; "": it needs nothing.
    """

    name: Callable[[], str]
    check: Callable[[], None] = lambda: None
    before_generation: bool = False
    sources: Callable[[], tuple[str, ...]] = tuple
    needs: str = ""


@dataclass(frozen=True, config=STRICT)
class Kind:
    """The prompt and the scoring of a benchmark's tasks.

    Attributes:
        name: Such as "multiple_choice".
        task_type: Such as "MCQ".
        declared: Its metrics, as `metrics.declared.declare` returns them, the headline first.
        prompt: From a prepared row to a Doc of LightEval.
        metrics: Makes the LightEval metrics.
        generation_size: Maximum of new tokens; -1: nothing is generated.
        stop_sequence: Stop strings of the generation.
        instrument: The instrument of the metrics, if any.
        rows_per_item: Rows that are scored together as one item; a limit does not cut them.
        few_shot_prompt: As `prompt`, if the prompt differs after few-shot examples.
        judge_templates: Templates for the judges of CULTUREVAL_JUDGE.
        parity: Tokenisation of prompts: "paper", as in `lighteval vllm`, or "sound"; `{name}` is replaced by the value
            of that option of a suite. "": sound, and results have no parity.
        instruction: The template that the kind adds to every prompt, for signatures.
        template: The text of the prompt's template, for benchmarks in one file; `row` returns its slots.
        rows: From the result of a benchmark's function `row` to a prepared row.
        load: Of a task of another harness: from a number of few-shot examples to a task object of LightEval.
    """

    name: str
    task_type: str
    declared: Metrics = field(hash=False)
    prompt: Callable[..., Any]
    metrics: Callable[[], Sequence[Any]]
    generation_size: int = -1
    stop_sequence: tuple[str, ...] = ()
    instrument: Instrument | None = None
    rows_per_item: int = 1
    few_shot_prompt: Callable[..., Any] | None = None
    judge_templates: tuple[str, ...] = ()
    parity: str = ""
    instruction: str = ""
    template: str = ""
    rows: Callable[[Mapping[str, Any], Preparation], PreparedRow] | None = None
    load: Callable[[int], Any] | None = None


@dataclass(frozen=True, config=STRICT)
class Source:
    """One copy of a benchmark's data.

    Attributes:
        repo: `org/name`: the folder below a data root and, if `on_hub`, the hub's data set.
        form: "curated" (QIMMA's own copy, with prompts) or "original".
        prepare: Converts a row to the suite's schema.
        as_curated: Whether an original with the curated copy's rows may replace a missing curated copy.
        splits: Names of the evaluated split, the preferred first; with `pool_splits` all of them together.
        few_shot_splits: Names of the split of few-shot examples, the preferred first.
        pool_configs: Whether a subset is the whole source, with all its configs.
        files: Glob patterns of the data files if the folder declares no config; `{subset}` is the subset's name.
        columns: Columns that `--columns` may rename, for sources with unpublished column names.
        subset_of: The subset of a row, for tables of several subsets.
        find: Finds a task's files (evaluated, few-shot) below the folder, instead of splits and patterns.
        read: Builds a task's rows from its files, if a row is not one record of one file (joins, sampling).
        complete: Adds facts from all rows to each row; takes the rows, the task, the source's folder.
        check: Raises CulturevalError if the prepared rows are wrong together (a duplicated id).
        notes: Returns sentences about all prepared rows for the results.
        other_data: Returns a sentence if the prepared rows are not the published ones; else "".
        prompts: Returns the prompts' name in signatures, if the template's hash is not enough.
        caveat: A note for readers of the scores, printed below the table of a run.
        reorder: Sorts all prepared rows before they are written.
        on_hub: Whether the hub has it; else it is an `archive`, or users get it by hand.
        archive: A public .tar.gz for `cultureval fetch`; `archive_files` are `fnmatch` patterns of its files.
        revision: Branch, tag or commit; None is the hub's default branch.
        unreadable: Numbers, from 0, of broken published rows; they are left out and listed, and stop no run.
        licence: As its card or paper states it.
        how_to_get: How users get it if it is gated or not on the hub.
        gated: Whether users must accept terms; then its texts are never uploaded.
    """

    repo: Repository
    form: Literal["curated", "original"]
    prepare: Prepare
    as_curated: bool = False
    splits: tuple[str, ...] = ("test",)
    few_shot_splits: tuple[str, ...] = ("validation", "dev")
    pool_splits: bool = False
    pool_configs: bool = False
    files: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    subset_of: Callable[[Mapping[str, Any]], str | None] | None = None
    find: Callable[..., tuple[list[Path], list[Path]]] | None = None
    read: Callable[..., Iterable[PlacedRow]] | None = None
    complete: Callable[[list[PlacedRow], Any, Path], Iterable[PlacedRow]] | None = None
    check: Callable[[Sequence[PreparedRow]], None] | None = None
    notes: Callable[[Sequence[PreparedRow]], list[str]] | None = None
    other_data: Callable[[Sequence[PreparedRow]], str] | None = None
    prompts: Callable[[Sequence[PreparedRow]], str] | None = None
    caveat: str = ""
    reorder: Callable[[list[PreparedRow]], list[PreparedRow]] | None = None
    on_hub: bool = True
    archive: str | None = None
    archive_files: tuple[str, ...] = ("*",)
    revision: str | None = None
    unreadable: frozenset[int] = frozenset()
    licence: str = "not declared"
    how_to_get: str = ""
    gated: bool = False


@dataclass(frozen=True, config=STRICT)
class Subset:
    """One row of a suite's table.

    Attributes:
        name: The subset's name in the paper.
        key: Its name after the group's colon; None: the paper's name; "": the group is one task.
        rows: Rows of the original source's subset, if known.
        aliases: Its further names in sources.
        template: Prompt template, if it differs from the benchmark's.
        sources: Copies of its data, if they differ from the benchmark's.
        register: "MSA", "dialectal", or "standard" for languages without this distinction.
        mean: A further mean of the paper that includes the subset: `<group>:_<name>`.
    """

    name: str
    key: Name | Literal[""] | None = None
    rows: int | None = None
    aliases: tuple[str, ...] = ()
    template: str | None = None
    sources: tuple[Source, ...] | None = None
    register: str = "MSA"
    mean: str | None = None


@dataclass(frozen=True, config=STRICT)
class Benchmark:
    """A benchmark: its data, the conversion of rows, its prompt and scoring.

    A benchmark in one file has `repo`, `row` and a kind of `tasks.kinds`; benchmarks of a suite have tables of sources
    and subsets.

    Attributes:
        name: Its name in tables and, without `group`, in commands.
        kind: Its prompt and scoring.
        repo: The hub's data set `org/name`, also the folder below a data root.
        split: Its evaluated split.
        few_shot_split: Its split of few-shot examples; "": none.
        config: Its configuration on the hub; "": all of them.
        row: From a row of the source to the slots of the prompt and the gold, as the kind needs them.
        language: ISO 639 code.
        domain: The paper's domain, for averages.
        group: LightEval's group; its subsets are averaged with equal weights; "": the name.
        sources: The copies of its data, the preferred first; with `repo` that data set.
        subsets: Its subsets; with `repo` one with the benchmark's name.
        template: Prompt template of original rows (named as in `prompts.templates`), if the kind has none; `{name}` is
            replaced by the value of that option of a suite.
        images: Whether its prompts have images; then only vision-language models can run it.
        shared_items: Name of items that other tasks share in other languages or forms; "": not shared.
        group_rows: Form ("curated" or "original") -> rows of all subsets of its group, with or without examples, if
            their sum is known.
    """

    name: Name
    kind: Kind
    repo: Repository | Literal[""] = ""
    split: str = "test"
    few_shot_split: str = ""
    config: str = ""
    row: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    language: Annotated[str, AfterValidator(_language)] = "ar"
    domain: str = ""
    group: Name | Literal[""] = ""
    sources: tuple[Source, ...] = ()
    subsets: tuple[Subset, ...] = ()
    template: str = ""
    images: bool = False
    shared_items: str = ""
    group_rows: Mapping[str, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Makes the source and the subset of a benchmark in one file; refuses a benchmark without data."""
        if self.repo and not (self.row and self.kind.rows):
            raise ValueError(f"{self.name}: `repo` needs `row`, and multiple_choice, generate or judged as its kind")
        if not (self.repo or self.sources or all(subset.sources for subset in self.subsets) and self.subsets):
            raise ValueError(f"{self.name}: give `repo`, the hub's data set")
        if self.repo:
            source = Source(
                self.repo,
                "original",
                partial(_row_of_function, self.row, self.kind.rows),
                splits=(self.split,),
                few_shot_splits=(self.few_shot_split,) if self.few_shot_split else (),
                pool_configs=not self.config,
            )
            aliases = (self.config,) if self.config else ()
            object.__setattr__(self, "sources", (source,))
            object.__setattr__(self, "subsets", (Subset(self.name, "", aliases=aliases, register="standard"),))

    def tasks(self, suite: str) -> list["Task"]:
        """A task for each subset."""
        return [self._task(suite, self.group or self.name, subset) for subset in self.subsets]

    def _task(self, suite: str, group: str, subset: Subset) -> "Task":
        key = _name(subset.name) if subset.key is None else subset.key
        return Task(
            task=f"{group}:{key}" if key else group,
            suite=suite,
            benchmark=self.name,
            group=group,
            subset=subset.name,
            domain=self.domain,
            kind=self.kind,
            template=self.kind.template.replace("{", "{{").replace("}", "}}") or subset.template or self.template,
            sources=subset.sources or self.sources,
            subset_names=tuple(dict.fromkeys((subset.name, *([key] if key else []), *subset.aliases))),
            expected_rows=subset.rows,
            group_rows=self.group_rows,
            language=self.language,
            register=subset.register,
            images=self.images,
            shared_items=self.shared_items,
            mean=subset.mean,
        )


def _row_of_function(
    function: Callable[[Row], Any], rows: Callable[..., PreparedRow], row: Row, preparation: Preparation
) -> PreparedRow:
    """A prepared row: the result of a benchmark's function `row`, converted by the kind's `rows`."""
    try:
        returned = function(row)
    except KeyError as error:
        raise MissingColumn(f"no column {error}; columns found: {', '.join(map(str, row))}") from error
    except CulturevalError:
        raise
    except Exception as error:  # the function of a benchmark's author
        raise BadRow("row", described(error), "cannot be converted by the benchmark's function `row`") from error
    if not isinstance(returned, Mapping):
        raise CulturevalError(f"The function `row` must return a dictionary, not {type(returned).__name__}.")
    image = {"image": image_cell(returned, "image", preparation.folder)} if "image" in returned else {}
    return rows(returned, preparation) | image


@dataclass(frozen=True, config=STRICT)
class Task:
    """One LightEval task, a subset of a benchmark; other fields are as in `Benchmark`.

    Attributes:
        task: LightEval's name, `group:subset`, or the group alone if it has one subset.
        suite: Name of its suite (`qimma`).
        benchmark: The benchmark's name in the suite's paper.
        subset: The subset's name in the paper.
        subset_names: Names of the subset in the sources (of configs, of files, in cells).
        expected_rows: Rows of the original source's subset, if known.
        register: See `Subset`.
        mean: See `Subset`.
        by_size: Whether the average of its group weights tasks by their rows.
        shots: Few-shot examples where `|k` names no number.
    """

    task: str
    suite: str
    benchmark: str
    group: str
    subset: str
    domain: str
    kind: Kind
    template: str
    sources: tuple[Source, ...]
    subset_names: tuple[str, ...]
    expected_rows: int | None = None
    group_rows: Mapping[str, int] = field(default_factory=dict, hash=False)
    language: str = "ar"
    register: str = "MSA"
    images: bool = False
    shared_items: str = ""
    mean: str | None = None
    by_size: bool = False
    shots: int = 0

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics in the results, the headline first."""
        return tuple(self.kind.declared)

    @property
    def lower(self) -> tuple[str, ...]:
        """Names of the metrics for which lower is better."""
        return tuple(name for name, declared in self.kind.declared.items() if not declared.higher_is_better)

    @property
    def generates(self) -> bool:
        """Whether the model generates text."""
        return self.kind.generation_size > 0

    def expected(self, form: str) -> int | None:
        """Rows of the published subset in this form, if known."""
        alone = self.group_rows.get(form) if self.task == self.group else None
        return self.expected_rows if form == "original" else alone

    def as_record(self) -> dict[str, Any]:
        """The task in `cultureval tasks --json`; `source` is the original, `curated` QIMMA's copy."""
        fields = ("task", "suite", "benchmark", "group", "subset", "domain", "language", "register", "images")
        repos = {source.form: source.repo for source in reversed(self.sources)}
        return {name: getattr(self, name) for name in fields} | {
            "task_type": self.kind.task_type,
            "metrics": list(self.metrics),
            "source": repos["original"],
            "curated": repos.get("curated"),
            "expected_rows": self.expected_rows,
        }


@dataclass(frozen=True, config=STRICT)
class Average:
    """A mean of the paper over several LightEval groups.

    Attributes:
        name: Its name in other harnesses, such as `qimma_stem`.
        title: The paper's name for it.
        members: Task, group or average -> its metric (`SCORE` for an average); members have equal weights.
        parts: Groups, tasks and averages that a harness lists below it.
    """

    name: str
    title: str
    members: Mapping[str, str]
    parts: tuple[str, ...]


HARNESSES = {"lm-eval": "tasks of lm_eval", "lighteval": "tasks of LightEval"}  # `lm-eval:NAME`
SCORE = "score"  # the metric of an `Average` in harnesses


@dataclass(frozen=True, config=STRICT)
class Suite:
    """A suite of benchmarks with its tables, comparison and other parts.

    A field with a function may have its dotted name instead; it is loaded on first use.

    Attributes:
        name: What people type for all of its tasks (`qimma`); the name of its folders in every room.
        title: One line that says what it measures.
        benchmarks: Its table of benchmarks, in the order in which tasks are listed.
        options: Its own options, which `--task-args` and environment variables set.
        of_model: From a model's type (`qwen3_vl`) to values of the suite's options; those that people give come first.
        comparison: Its paper's comparison for `compare --suite`, from paths, output folder or None, allowed fields,
            draws and seed to a text and the files that it wrote.
        analysis: Its analysis for `show --figures`, from a list of results and an output folder to a text.
        ratings: Its human ratings (`reports.human_ratings.HumanRatings`), for `judge --ratings`.
        submissions: Name in `cultureval score NAME` -> scorer: from the gold file, the submissions and the output
            folder to `reports.submissions.ScoredSubmissions`.
        outputs: Scores outputs of other programs for `cultureval score <name>`: from files and output folder to a text.
        picture: Draws a saved sample for `cultureval show`, from a row of the details and the file to write; returns
            the meaning of its colours, or None for a sample without a picture.
        tables: From task (without `|k`) -> names of scores to a list of `runs.table.Table`; None: a row for each group,
            and their average.
        run_files: Writes further files of a finished run (`runs.loading.Run`); returns sentences with their paths.
        charts: From a table of a leaderboard (`BoardTable`) to a list of `reports.charts.Chart`.
        averages: Returns its paper's averages over several groups, a list of `Average`.
        page: Its documentation, a path below the repository or an address; `cultureval tasks` prints it.
    """

    name: Name
    title: str
    benchmarks: tuple[Benchmark, ...] = field(hash=False)
    options: tuple[Option[Any], ...] = ()
    of_model: Function = None
    comparison: Function = None
    analysis: Function = None
    ratings: Any = None
    submissions: Any = None
    outputs: Function = None
    picture: Function = None
    tables: Function = None
    run_files: Function = None
    charts: Function = None
    averages: Function = None
    page: str = ""

    def part(self, field: str) -> Any:
        """The value of a field; a dotted name is loaded."""
        value = getattr(self, field)
        try:
            return load_attribute(value) if isinstance(value, str) else value
        except CulturevalError as error:
            raise CulturevalError(f"The suite {self.name!r}, {field}: {error}") from error

    def tasks(self) -> list[Task]:
        """Its tasks, in the order of its table."""
        return [task for benchmark in self.benchmarks for task in benchmark.tasks(self.name)]

    def scorers(self) -> Mapping[str, Callable[[Path, Sequence[Path], Path], Any]]:
        """Its scorers of submission files, by the names of their formats."""
        return dict(self.part("submissions"))
