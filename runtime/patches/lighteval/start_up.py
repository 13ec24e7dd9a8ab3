"""Starting LightEval without internet and without what a run does not use.

Stock LightEval 0.13 spends most of its start importing (annotations of inspect_ai, the code of eleven backends, every
metric's packages), imports its hundred modules of built-in tasks for every run, and downloads two kinds of files while
doing so. Here imports are lazy (`deferred_imports`), built-in tasks are imported when one of them is requested, and
nothing is downloaded at start-up. No file of another package is changed.
"""

import copy
import difflib
import inspect
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import cache, partial, wraps
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.deferred_imports import defer_imports
from cultureval.runtime.patches.table import expect, expect_imports, patched, source_of

if TYPE_CHECKING:
    from lighteval.tasks.registry import Registry

BACKENDS = {
    f"lighteval.models.{name}"
    for name in (
        "dummy.dummy_model",
        "endpoints.endpoint_model",
        "endpoints.inference_providers_model",
        "endpoints.litellm_model",
        "endpoints.tgi_model",
        "sglang.sglang_model",
        "transformers.adapter_model",
        "transformers.delta_model",
        "transformers.transformers_model",
        "transformers.vlm_transformers_model",
        "vllm.vllm_model",
    )
}

# Importing module of LightEval -> what it imports for annotations, for one metric, or for one backend.
DEFERRED: dict[str, set[str]] = {
    "lighteval.main_custom": {"lighteval.models.custom.custom_model"},
    "lighteval.main_inspect": {
        "inspect_ai",
        "inspect_ai.dataset",
        "inspect_ai.log",
        "inspect_ai.scorer",
        "inspect_ai.solver",
        "lighteval.models.abstract_model",
        "lighteval.tasks.lighteval_task",
    },
    "lighteval.metrics.harness_compatibility.drop": {"scipy.optimize"},
    "lighteval.metrics.metrics": {"inspect_ai.scorer", "inspect_ai.solver"},
    "lighteval.metrics.metrics_corpus": {"sacrebleu", "sklearn.metrics"},
    "lighteval.metrics.metrics_sample": {
        "lighteval.metrics.imports.bert_scorer",
        "lighteval.metrics.imports.summac",
        "lighteval.metrics.utils.llm_as_judge",
        "nltk",
        "nltk.metrics.distance",
        "nltk.tokenize",
        "nltk.tokenize.treebank",
        "nltk.translate.bleu_score",
        "scipy.stats",
        "transformers",
    },
    "lighteval.metrics.utils.stderr": {"scipy.stats"},
    "lighteval.models.model_loader": BACKENDS,
    "lighteval.models.abstract_model": {"torch", "transformers.tokenization_utils_base"},
    "lighteval.models.model_output": {"torch"},
    "lighteval.pipeline": {"accelerate"},
    "lighteval.tasks.lighteval_task": {"inspect_ai.dataset", "lighteval.metrics.metrics", "pytablewriter"},
    "lighteval.utils.utils": {"numpy", "pytablewriter"},
}


class UnknownTask(CulturevalError):
    """A requested task is not one of ours, of the custom tasks, or of LightEval's."""


@dataclass(frozen=True)
class OwnTasks:
    """The tasks that LightEval finds without `--custom-tasks`.

    Attributes:
        module: Name of the module that holds their TASKS_TABLE.
        names: Returns the names of the tasks and their groups, without importing LightEval.
        hint: Returns what to add to the error about an unknown name: a sentence after a space, or "".
    """

    module: str
    names: Callable[[], set[str]]
    hint: Callable[[], str] = str


@cache
def prepare_lighteval(own: OwnTasks) -> None:
    """Makes LightEval start offline and fast; call it before anything imports LightEval.

    From then on, `lighteval.tasks.registry.Registry` imports LightEval's built-in tasks only when one is requested,
    finds `own` tasks without `--custom-tasks`, and raises `UnknownTask` for a name that it does not know. Called again,
    it changes nothing.
    """
    then = {"lighteval.tasks.registry": partial(_import_tasks_on_demand, own=own)}
    defer_imports(DEFERRED, then=then)


def needs_builtin_tasks(tasks: str | Path | None, custom_tasks: str | Path | ModuleType | None, own: OwnTasks) -> bool:
    """Whether LightEval's built-in task modules must be imported for these tasks.

    Args:
        tasks: Tasks as LightEval takes them: names and groups separated by commas, or a file of them; None is all.
        custom_tasks: The module, its name, or its file; None means `own`.

    Returns:
        True where a name is not among the custom tasks, or where a custom task may have a built-in task's name, which
        LightEval refuses.
    """
    if tasks is None:
        return True
    known = own.names() if custom_tasks in (None, own.module) else _names_of(load_custom_tasks(custom_tasks))
    return not known.issuperset(requested_names(tasks)) or any(map(builtin_name_pattern().match, known))


def requested_names(tasks: str | Path) -> list[str]:
    """The bare names of tasks and groups in LightEval's argument TASKS, without suite, few-shot and parameters."""
    if os.path.isfile(tasks):
        lines = Path(tasks).read_text(encoding="utf-8").splitlines()
        entries = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    else:
        entries = str(tasks).split(",")
    return [_bare(entry) for entry in entries]


def load_custom_tasks(custom_tasks: str | Path | ModuleType) -> ModuleType:
    """The module of custom tasks, as LightEval finds it.

    Raises:
        CulturevalError: There is neither such a file nor such a module.
    """
    from lighteval.tasks.registry import Registry

    try:
        return Registry.create_custom_tasks_module(custom_tasks)
    except ModuleNotFoundError as error:
        if error.name and str(custom_tasks).startswith(error.name):
            raise CulturevalError(
                f"--custom-tasks {custom_tasks}: there is no such file, and no module of that name can be imported."
            ) from error
        raise


@cache
def builtin_name_pattern() -> re.Pattern[str]:
    """Matches the name of every built-in task of LightEval, read from the source code without importing it.

    It may match others: it compares names up to the colon, and up to the first slot of an f-string.
    """
    (package,) = find_spec("lighteval").submodule_search_locations
    folder = Path(package, "tasks", "tasks")
    assignment = re.compile(r"""\bname\s*=\s*f?["']([^"'{:]+)(["'{:])""")
    files = [*folder.glob("*.py"), *folder.glob("*/main.py")]
    found = {pair for file in files for pair in assignment.findall(file.read_text(encoding="utf-8"))}
    return re.compile("|".join(re.escape(head) + ("" if end == "{" else "(?::|$)") for head, end in sorted(found)))


def _bare(entry: str) -> str:
    parts = entry.split("|")
    name = parts[1] if len(parts) == 3 else parts[0]
    return name.partition("@")[0]


def _group(name: str) -> str:
    return name.partition(":")[0]


def _names_of(module: ModuleType) -> set[str]:
    """Tasks of a module and, as in LightEval, their groups of at least two."""
    names = [config.name for config in getattr(module, "TASKS_TABLE", ())]
    return _with_groups(names)


def _with_groups(names: Collection[str]) -> set[str]:
    subsets = Counter(map(_group, names))
    return {*names, *(group for group, count in subsets.items() if count > 1)}


def _import_tasks_on_demand(module: ModuleType, own: OwnTasks) -> None:
    """Makes the registry of a loaded `lighteval.tasks.registry` import built-in tasks only where they are needed."""
    registry = module.Registry
    stock_init = registry.__init__

    @wraps(stock_init)
    def __init__(
        self: "Registry",
        tasks: str | Path | None = None,
        load_multilingual: bool = False,
        custom_tasks: str | Path | ModuleType | None = None,
    ) -> None:
        names = [] if tasks is None else requested_names(tasks)
        if custom_tasks is None and not own.names().isdisjoint(names):
            custom_tasks = own.module
        if custom_tasks is not None:
            custom_tasks = load_custom_tasks(custom_tasks)
        builtin = load_multilingual or needs_builtin_tasks(tasks, custom_tasks, own)
        with _no_downloads(names) if builtin else _only_custom_tasks(registry):
            try:
                stock_init(self, tasks, load_multilingual, custom_tasks)
            except ValueError as error:
                found = getattr(self, "_task_registry", None)
                raise _explained(error, names, found, own) from error

    stock_list = registry._get_full_task_list_from_input_string
    registry.__init__ = __init__
    registry._get_full_task_list_from_input_string = wraps(stock_list)(
        lambda self, tasks: sorted(stock_list(self, tasks))
    )


def _only_custom_tasks(registry: type) -> AbstractContextManager[Any]:
    """A context in which the registry loads nothing but the module of custom tasks."""
    from unittest.mock import patch

    def load(custom_tasks: ModuleType, load_multilingual: bool = False) -> dict[str, Any]:
        return registry._extract_configs(custom_tasks)

    return patch.object(registry, "load_all_task_configs", staticmethod(load))


def _no_downloads(names: list[str]) -> AbstractContextManager[Any]:
    """A context in which importing the built-in tasks downloads nothing.

    tiny_benchmarks downloads a file that its scorer then looks for elsewhere: it gets the 404 that it accepts. ifeval
    downloads an NLTK tokenizer, which it needs, so that is allowed where ifeval is requested.
    """
    from unittest.mock import patch

    import nltk
    import requests

    stock_get = requests.get

    def get(url: str, *args: Any, **kwargs: Any) -> requests.Response:
        if not str(url).endswith("/tinyBenchmarks.pkl"):
            return stock_get(url, *args, **kwargs)
        answer = requests.Response()
        answer.status_code = 404
        return answer

    within = ExitStack()
    within.enter_context(patch.object(requests, "get", get))
    if not any(name.startswith(("ifeval", "ifbench")) for name in names):
        within.enter_context(patch.object(nltk, "download", lambda *args, **kwargs: False))
    return within


def _explained(error: ValueError, names: list[str], registry: dict[str, Any] | None, own: OwnTasks) -> CulturevalError:
    """LightEval's error about the tasks, as a sentence that names the nearest tasks where one is unknown."""
    known = _with_groups(registry or ()) | own.names()
    unknown = [name for name in names if name not in known]
    if registry is None or not unknown:
        return CulturevalError(f"{error}.")
    nearest = difflib.get_close_matches(unknown[0], known, n=3, cutoff=0.5)
    hint = f" Did you mean {', '.join(nearest)}?" if nearest else ""
    return UnknownTask(
        f"There is no task or group {unknown[0]!r}.{hint} `cultureval tasks` lists ours, "
        f"`cultureval lighteval tasks dump` LightEval's; other tasks come with --custom-tasks.{own.hint()}"
    )


def registry_without_builtin_tasks(tasks: str | None, table: Sequence[Any]) -> "Registry":
    """For canaries: LightEval's unpatched registry of a table of custom tasks alone."""
    from lighteval.tasks.registry import Registry

    custom_tasks = ModuleType("canary")
    custom_tasks.TASKS_TABLE = table
    registry = object.__new__(Registry)
    with _only_custom_tasks(Registry):
        inspect.unwrap(Registry.__init__)(registry, tasks, False, custom_tasks)
    return registry


@patched(
    "lighteval",
    "lighteval.tasks.registry.Registry.__init__",
    "Our tasks are found without --custom-tasks, and the error about an unknown name lists the nearest ones.",
)
def _registry_is_as_read() -> None:
    from types import SimpleNamespace

    from lighteval.tasks.registry import Registry

    taken = list(inspect.signature(inspect.unwrap(Registry.__init__)).parameters)
    expected = ["self", "tasks", "load_multilingual", "custom_tasks"]
    expect(taken == expected, f"Registry takes {', '.join(taken[1:])} now: update _import_tasks_on_demand")
    task = SimpleNamespace(name="canary")
    registry = registry_without_builtin_tasks(None, [task])
    found = getattr(registry, "_task_registry", None)
    expect(found == {"canary": task}, "Registry keeps its tasks elsewhere: update _explained")


@patched(
    "lighteval",
    "lighteval.tasks.registry.Registry._get_full_task_list_from_input_string",
    "Its order is that of a set of texts, another one in each process of a run: tasks are sorted.",
)
def _tasks_have_no_order() -> None:
    from lighteval.tasks.registry import Registry

    stock = inspect.unwrap(Registry._get_full_task_list_from_input_string)
    expect("list(set(" in inspect.getsource(stock), "LightEval keeps the order of tasks: remove this patch")
    called = "self._get_full_task_list_from_input_string(" in inspect.getsource(inspect.unwrap(Registry.__init__))
    expect(called, "Registry lists the tasks of a run elsewhere: update _import_tasks_on_demand")


@patched(
    "lighteval",
    "lighteval.tasks.registry.Registry.load_all_task_configs",
    "It imports a hundred modules of built-in tasks for every run; replaced when none of them is requested.",
)
def _builtin_tasks_are_loaded_for_every_run() -> None:
    from unittest.mock import patch

    from lighteval.tasks.registry import Registry

    taken = set(inspect.signature(Registry.load_all_task_configs).parameters)
    expect(taken == {"custom_tasks", "load_multilingual"}, "load_all_task_configs takes other arguments now")
    with (
        patch.object(Registry, "_load_from_files", return_value={}) as files,
        patch.object(Registry, "_load_from_subdirs", return_value={}),
    ):
        inspect.unwrap(Registry.__init__)(object.__new__(Registry), "canary", False, _module_of("canary"))
    expect(files.called, "Registry no longer imports built-in tasks when none is requested: remove this patch")


def _module_of(*names: str) -> ModuleType:
    from types import SimpleNamespace

    module = ModuleType("canary")
    module.TASKS_TABLE = [SimpleNamespace(name=name, metrics=[]) for name in names]
    return module


@patched(
    "lighteval",
    "lighteval.tasks.registry.Registry._extract_configs",
    "Reads a module's TASKS_TABLE where only custom tasks are loaded.",
)
def _tables_are_read_from_a_module() -> None:
    from lighteval.tasks.registry import Registry

    module = _module_of("canary")
    found = Registry._extract_configs(module)
    expect(found == {"canary": module.TASKS_TABLE[0]}, "Registry now reads a module's TASKS_TABLE in another way")


@patched(
    "lighteval",
    "requests.get (in lighteval.tasks.tasks.tiny_benchmarks)",
    "Importing built-in tasks downloads a file that the scorer then looks for elsewhere: it gets a 404.",
)
def _tiny_benchmarks_are_downloaded() -> None:
    source = source_of("lighteval.tasks.tasks.tiny_benchmarks")
    expect("requests.get(" in source and "tinyBenchmarks.pkl" in source, "tiny_benchmarks no longer downloads its file")
    waits = "        self.download()\n" not in source.partition("def __init__")[2].partition("    def ")[0]
    expect(not waits, "tiny_benchmarks no longer downloads its file when it is imported")


@patched(
    "lighteval",
    "nltk.download (in lighteval.tasks.tasks.ifeval.instructions_utils)",
    "Importing built-in tasks downloads NLTK's tokenizer, which only ifeval and ifbench need.",
)
def _ifeval_downloads_a_tokenizer() -> None:
    lines = source_of("lighteval.tasks.tasks.ifeval.instructions_utils").splitlines()
    expect("download_nltk_resources()" in lines, "ifeval no longer downloads NLTK's tokenizer when it is imported")


for module in DEFERRED:
    patched(
        "lighteval",
        f"{module} (its imports)",
        "It imports at start-up what most runs never use: those imports are deferred.",
    )(partial(expect_imports, module, DEFERRED[module]))


class RunAwareConfig:
    """A task configuration that knows whether LightEval runs it: it deep-copies those that it runs, and only those.

    Listing and dumping tasks handle the configurations of the table itself. One that reads its data lazily must do so
    only in a run, and LightEval has no hook for that.

    Attributes:
        is_run: True in a deep copy, False in the table of tasks.
    """

    is_run: ClassVar[bool] = False

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = copy.copy(self)
        memo[id(self)] = copied
        vars(copied).update({name: copy.deepcopy(value, memo) for name, value in vars(self).items()})
        vars(copied)["is_run"] = True
        return copied


class _Config(RunAwareConfig):
    name, metrics = "canary", ()


@patched(
    "lighteval",
    "lighteval.tasks.registry.Registry._update_task_configs",
    "It deep-copies exactly the configurations that it runs: a copy may therefore read its data.",
)
def _only_runs_are_copied() -> None:
    in_table = _Config()
    registry = registry_without_builtin_tasks("canary|2", [in_table])
    (run,) = registry.task_to_configs["canary"]
    expect(run.is_run, "LightEval no longer deep-copies the configurations that it runs")
    listed = registry_without_builtin_tasks(None, [in_table])
    expect(not listed.task_to_configs, "LightEval prepares all configurations for a list of tasks as for a run")
    expect(not in_table.is_run, "LightEval changes the configurations of the table itself")
