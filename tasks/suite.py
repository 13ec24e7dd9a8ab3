"""The types of a suite of benchmarks: plain data that load neither LightEval nor torch.

A suite is one object, `Suite`, which its package offers as `SUITE` (a tuple of several where one package holds
several). What it has in other rooms, or what is slow to load, it names by dotted strings "package.module:attribute".
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cultureval.metrics.declared import Metrics
from cultureval.prompts.preparation import Prepare, PreparedRow
from cultureval.runtime.data.row_files import PlacedRow
from cultureval.runtime.dotted_names import load_attribute
from cultureval.runtime.errors import CulturevalError, shorten
from cultureval.tasks.kinds import Kind

FUNCTIONS = (
    "of_model",
    "before_run",
    "comparison",
    "analysis",
    "outputs",
    "tables",
    "picture",
    "run_files",
    "charts",
    "averages",
)  # fields of a suite


@dataclass(frozen=True)
class Source:
    """One copy of a benchmark's data.

    Attributes:
        repo: `org/name`: the folder below a data root and, where `on_hub`, the hub's data set.
        form: "curated" (QIMMA's own copy, prompts included) or "original".
        as_curated: Whether an original gives the rows of the curated copy, and is read where that is not there.
        prepare: Conversion of one of its rows to the suite's schema.
        splits: Names of the evaluated split, the preferred first; all of them together where `pool_splits`.
        few_shot_splits: Names of the split of few-shot examples, the preferred first.
        pool_configs: Whether a subset is all of the source, so that its configs are pooled.
        files: Glob patterns of the data files where the folder declares no config; `{subset}` is the subset's name.
        columns: Names of columns that `prepare` reads and `--columns` may rename, of sources that nobody could see.
        subset_of: The subset that a row belongs to, for tables that hold several.
        find: Finds a task's files (evaluated, few-shot) below the source's folder, where configs, splits and patterns
            cannot; two empty lists where they are missing.
        read: Builds a task's rows from its files, where a row is not one record of one file (joins, sampling).
        complete: Adds to the rows of the files what needs all of them; takes the rows, the task, the source's folder.
        check: Checks all prepared rows together (for a duplicated id), by raising
            CulturevalError.
        notes: Sentences for the results about all prepared rows.
        other_data: A sentence where the prepared rows are not the published ones; "" where they are.
        prompts: What signatures call the prompts of all prepared rows, where the template's hash does not tell.
        caveat: What a reader of scores on this copy must know, printed once below the table of a run.
        reorder: Puts all prepared rows into the order in which they are written (`patches/lighteval/row_order.py`).
        archive: A public .tar.gz of a source that is not on the hub, which `cultureval mirror` unpacks.
        archive_files: `fnmatch` patterns of the files to unpack, below its top folder.
        revision: Branch, tag or commit; None is the hub's default branch.
        unreadable: Numbers, from 0, of published rows that are known to be broken. They are left out and listed, and do
            not count towards the broken rows that stop a run.
        licence: The source's licence, as its card or paper states it.
        how_to_get: How people get it where it is not on the hub, or gated.
        gated: Whether who gets it accepts terms, so that its texts are never uploaded.
    """

    repo: str
    form: str
    prepare: Prepare
    as_curated: bool = False
    splits: tuple[str, ...] = ("test",)
    few_shot_splits: tuple[str, ...] = ("validation", "dev")
    pool_splits: bool = False
    pool_configs: bool = False
    files: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    subset_of: Callable[[Mapping[str, Any]], str | None] | None = None
    find: "Callable[[Path, Task], tuple[list[Path], list[Path]]] | None" = None
    read: "Callable[[Sequence[Path], Task], Iterable[PlacedRow]] | None" = None
    complete: "Callable[[list[PlacedRow], Task, Path], Iterable[PlacedRow]] | None" = None
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


@dataclass(frozen=True)
class Task:
    """One LightEval task: a subset of a benchmark.

    Attributes:
        task: LightEval's name, `group:subset`, or the group alone where it holds one subset.
        suite: Name of its suite (`qimma`).
        benchmark: The benchmark's name in the suite's paper.
        group: LightEval's group, whose subsets are averaged with equal weights.
        subset: The subset's name in the paper.
        domain: The paper's domain, under which benchmarks are averaged.
        task_type: Such as "MCQ", "multi-select" or "QA".
        metric_set: Key of how it is asked and scored, in the suite's table of kinds.
        metrics: Names of the metrics in the results, the headline first.
        declared: What is declared of them, by name; {} where their suite names them alone.
        template: Prompt template of original rows (named as in `prompts.templates`); `{name}` is replaced by the value
            of that option of a suite.
        sources: The copies of its data, the preferred first.
        subset_names: Names of the subset in the sources (of configs, of files, in cells).
        expected_rows: Rows of the original source's subset, where known.
        group_rows: Rows of all subsets of its group together, with or without examples, where their sum is known: by
            form, "curated" or "original".
        language: ISO 639 code.
        register: "MSA", "dialectal" or, where that distinction does not apply, "standard".
        images: Whether its prompts hold images, so that only vision-language models can run it.
        shared_items: Name of its items where other tasks ask the same ones, in other languages or forms; "" where all
            are its own.
        mean: See `Subset`.
        parity: See `MetricSet`.
        instruction: See `MetricSet`.
    """

    task: str
    suite: str
    benchmark: str
    group: str
    subset: str
    domain: str
    task_type: str
    metric_set: str
    metrics: tuple[str, ...]
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
    parity: str = ""
    instruction: str = ""
    declared: Metrics = field(default_factory=dict, hash=False)

    def expected(self, form: str) -> int | None:
        """Rows of the published subset in that form, where known."""
        alone = self.group_rows.get(form) if self.task == self.group else None
        return self.expected_rows if form == "original" else alone

    def as_record(self) -> dict[str, Any]:
        """The task as `cultureval tasks --json` prints it; `source` is the original, `curated` QIMMA's copy."""
        fields = ("task", "suite", "benchmark", "group", "subset", "domain", "task_type", "language", "register")
        fields += ("images",)
        record: dict[str, Any] = {name: getattr(self, name) for name in fields}
        originals = [source.repo for source in self.sources if source.form == "original"]
        curated = [source.repo for source in self.sources if source.form == "curated"]
        return record | {
            "metrics": list(self.metrics),
            "source": originals[0],
            "curated": curated[0] if curated else None,
            "expected_rows": self.expected_rows,
        }


@dataclass(frozen=True)
class Subset:
    """One row of a suite's table.

    Attributes:
        name: The subset's name in the paper.
        key: Its name after the group's colon; None is the paper's name, "" a group that is one task.
        rows: Rows of the original source's subset, where known.
        aliases: Further names that sources use for it.
        template: Prompt template, where it differs from the benchmark's.
        sources: Copies of its data, where they differ from the benchmark's.
        register: "MSA" or "dialectal".
        mean: A mean of the paper's, besides the group's, that the subset is a part of: `<group>:_<name>`.
    """

    name: str
    key: str | None = None
    rows: int | None = None
    aliases: tuple[str, ...] = ()
    template: str | None = None
    sources: tuple[Source, ...] | None = None
    register: str = "MSA"
    mean: str | None = None


@dataclass(frozen=True)
class MetricSet:
    """How a group of tasks is asked and scored.

    Attributes:
        key: Of the suite's table of kinds.
        task_type: Such as "MCQ".
        names: The metrics as `metrics.declared.declare` returns them, the headline first; or their names alone, of
            which then nobody knows the range: a model with unscored items has no rank by them.
        parity: How prompts become tokens: "paper", as `lighteval vllm` makes them, or "sound"; `{name}` is replaced by
            the value of that option of a suite. Without it they are sound, and the results say nothing of it.
        instruction: The template that the kind adds to every prompt, for signatures.
    """

    key: str
    task_type: str
    names: Metrics | tuple[str, ...] = field(hash=False)
    parity: str = ""
    instruction: str = ""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of a suite: what its subsets have in common. The fields are those of `Task`."""

    name: str
    domain: str
    group: str
    sources: tuple[Source, ...]
    subsets: tuple[Subset, ...]
    metric_set: MetricSet
    template: str = ""
    language: str = "ar"
    images: bool = False
    shared_items: str = ""
    group_rows: Mapping[str, int] = field(default_factory=dict, hash=False)

    def tasks(self, suite: str) -> list[Task]:
        """One task a subset."""
        return [self._task(suite, subset) for subset in self.subsets]

    def _task(self, suite: str, subset: Subset) -> Task:
        key = subset.name if subset.key is None else subset.key
        return Task(
            task=f"{self.group}:{key}" if key else self.group,
            suite=suite,
            benchmark=self.name,
            group=self.group,
            subset=subset.name,
            domain=self.domain,
            task_type=self.metric_set.task_type,
            metric_set=self.metric_set.key,
            metrics=tuple(self.metric_set.names),
            template=subset.template or self.template,
            sources=subset.sources or self.sources,
            subset_names=tuple(dict.fromkeys((subset.name, *([key] if key else []), *subset.aliases))),
            expected_rows=subset.rows,
            group_rows=self.group_rows,
            language=self.language,
            register=subset.register,
            images=self.images,
            shared_items=self.shared_items,
            mean=subset.mean,
            parity=self.metric_set.parity,
            instruction=self.metric_set.instruction,
            declared=self.metric_set.names if isinstance(self.metric_set.names, dict) else {},
        )


@dataclass(frozen=True)
class Average:
    """A mean of the paper's that is not that of one LightEval group.

    Attributes:
        name: As other harnesses call it, such as `qimma_stem`.
        title: The paper's name for it.
        members: What is averaged with equal weights: tasks, groups and averages -> the metric of each, which is
            `SCORE` of an average.
        parts: Groups, tasks and averages that a harness lists below it.
    """

    name: str
    title: str
    members: Mapping[str, str]
    parts: tuple[str, ...]


SCORE = "score"  # what harnesses call the value of an `Average`


@dataclass(frozen=True)
class Suite:
    """A suite of benchmarks and everything that `cultureval` knows about it.

    Each field but the texts and `order` may hold the thing itself or a dotted string that names it, which is loaded
    when it is needed; a suite's package should load quickly. The names of its sources'
    columns need no registration: its row conversion passes them (`prompts.cells.Column`).

    Attributes:
        name: What people type for all of its tasks (`qimma`); the name of its folders in every room.
        title: One line that says what it measures.
        benchmarks: Its table of benchmarks, in the order in which tasks are listed.
        kinds: How its tasks are asked and scored: keys of metric sets -> `tasks.kinds.Kind`.
        options: Its own options, a tuple of `runtime.settings.Option`; each is also one of `cultureval eval`.
        of_model: The function that takes a model's type (`qwen3_vl`) and returns the values of the suite's options
            that follow from it; values that people give come first.
        before_run: The function that checks the selected tasks of the suite (`["cvlue_vg|0"]`) before a model is
            loaded: it returns warnings to print, or raises CulturevalError.
        comparison: The function that is the command `cultureval compare <name>`.
        analysis: The function that is the command `cultureval analyze <name>`.
        ratings: Its human ratings (`reports.human_ratings.HumanRatings`), for `cultureval agreement <name>`.
        submissions: Scorers of submission files in an official format, by the name in `cultureval score NAME`: the
            suite's, or one that begins with it and `-`. Each takes the gold file, the list of submission files and the
            output folder, writes tables and plots there, and returns `reports.submissions.ScoredSubmissions`: the text
            to print, and the scores, which go into results files.
        outputs: The function that scores outputs that were made elsewhere, for `cultureval score <name>`: takes the
            list of files and the output folder, writes results files there, and returns the text to print.
        picture: The function that draws a saved sample for `cultureval show`: takes a row of the details and the file
            to write, and returns what its colours mean, or None for a sample without a picture.
        tables: The function that declares its tables: takes the tasks of a run (without `|k`) with the names of their
            scores, and returns a list of `runs.table.Table`; None: a row a group, and their average.
        run_files: The function that writes more files of a finished run (a `runs.record.Run`) into its output
            folder, after results and details are saved; it returns sentences to print.
        charts: The function that draws the suite's charts of a leaderboard: takes a table of it
            (`reports.leaderboard.board.BoardTable`), and returns a list of `reports.charts.Chart`.
        averages: The function that gives its paper's averages over several groups (a list of `Average`), for other
            harnesses; that of the suite's own name is a row of `cultureval compare`, too.
        page: Where its documentation is, a path below the repository or an address; `cultureval tasks` prints it.
        order: Suites are listed by this number, then by name; ours come first.
    """

    name: str
    title: str
    benchmarks: str | Sequence[Benchmark]
    kinds: str | Mapping[str, Kind]
    options: str | Sequence[Any] = ()
    of_model: str | Callable[[str], Mapping[str, Any]] | None = None
    before_run: str | Callable[[Sequence[str]], Sequence[str]] | None = None
    comparison: str | Callable[..., Any] | None = None
    analysis: str | Callable[..., Any] | None = None
    ratings: Any = None
    submissions: str | Mapping[str, Callable[[Path, Sequence[Path], Path], Any]] | None = None
    outputs: str | Callable[[Sequence[Path], Path], str] | None = None
    picture: str | Callable[[Mapping[str, Any], Path], str | None] | None = None
    tables: str | Callable[..., Sequence[Any]] | None = None
    run_files: str | Callable[..., Sequence[str]] | None = None
    charts: str | Callable[..., Sequence[Any]] | None = None
    averages: str | Callable[[], Sequence[Average]] | None = None
    page: str = ""
    order: int = 1000

    def part(self, field: str) -> Any:
        """The value of a field, loaded where the field holds a dotted string, which must name such an object."""
        value = getattr(self, field)
        try:
            loaded = load_attribute(value) if isinstance(value, str) else value
        except CulturevalError as error:
            raise CulturevalError(f"The suite {self.name!r}, {field}: {error}") from error
        if field in FUNCTIONS and loaded is not None and not callable(loaded):
            raise CulturevalError(f"The suite {self.name!r}, {field}: {value!r} is not a function.")
        return loaded

    def tasks(self) -> list[Task]:
        """Its tasks, in the order of its table."""
        return [task for benchmark in self.part("benchmarks") for task in benchmark.tasks(self.name)]

    def scorers(self) -> Mapping[str, Callable[[Path, Sequence[Path], Path], Any]]:
        """Its scorers of submission files, by names that begin with its own; CulturevalError if they are none."""
        scorers = self.part("submissions")
        fitting = isinstance(scorers, Mapping) and all(
            isinstance(name, str) and (name == self.name or name.startswith(f"{self.name}-")) and callable(scorer)
            for name, scorer in scorers.items()
        )
        if not fitting:
            wanted = f"a mapping from {self.name!r} or '{self.name}-...' to functions"
            raise CulturevalError(f"The suite {self.name!r}: `submissions` is {shorten(scorers)}, not {wanted}.")
        return scorers

    def kind(self, metric_set: str) -> Kind:
        """How the tasks of a metric set are asked and scored; CulturevalError if the table has no such Kind."""
        kinds = self.part("kinds")
        if not isinstance(kinds, Mapping):
            raise CulturevalError(f"The suite {self.name!r}: its kinds are {shorten(kinds)}, not a mapping.")
        if metric_set not in kinds:
            raise CulturevalError(
                f"The suite {self.name!r} has no kind {metric_set!r}; it has {', '.join(map(str, kinds))}."
            )
        kind = kinds[metric_set]
        if not isinstance(kind, Kind):
            raise CulturevalError(f"The suite {self.name!r}: its kind {metric_set!r} is {shorten(kind)}, not a Kind.")
        return kind
