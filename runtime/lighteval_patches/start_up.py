"""Starting LightEval without internet and without what a run does not use.

Stock LightEval 0.13 spends most of its start importing (annotations of inspect_ai, the code of eleven backends, every
metric's packages), imports its hundred modules of built-in tasks for every run, and downloads two kinds of files while
doing so. Here imports wait for their first use (`deferred_imports` beside this file), built-in tasks are imported
when one of them is asked for, and nothing is downloaded at start-up. No file of another package is touched.
"""

import difflib
import os
import re
from collections import Counter
from collections.abc import Collection
from contextlib import AbstractContextManager, ExitStack
from functools import cache, wraps
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.lighteval_patches.deferred_imports import defer_imports
from cultureval.tasks.catalogue import task_names
from cultureval.tasks.registration import unknown_name_hint

if TYPE_CHECKING:
    from lighteval.tasks.registry import Registry

OUR_TASKS = "cultureval.tasks"

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
    "lighteval.pipeline": {"accelerate"},
    "lighteval.tasks.lighteval_task": {"inspect_ai.dataset"},
}


class UnknownTask(CulturevalError):
    """A requested task is neither ours, nor in the custom tasks, nor one of LightEval's."""


@cache
def prepare_lighteval() -> None:
    """Makes LightEval start offline and fast; call it before anything imports LightEval.

    From then on, `lighteval.tasks.registry.Registry` imports LightEval's built-in tasks only where one is asked for,
    finds our tasks without `--custom-tasks`, and raises `UnknownTask` for a name that it does not know. Called again,
    it changes nothing.
    """
    defer_imports(DEFERRED, then={"lighteval.tasks.registry": _import_tasks_on_demand})


def needs_builtin_tasks(tasks: str | Path | None, custom_tasks: str | Path | ModuleType | None) -> bool:
    """Whether LightEval's built-in task modules must be imported for these tasks.

    Args:
        tasks: Tasks as LightEval takes them: names and groups separated by commas, or a file of them; None is all.
        custom_tasks: The module, its name, or its file; None stands for our own tasks.

    Returns:
        True where a name is not among the custom tasks, or where a custom task may bear a built-in task's name, which
        LightEval refuses.
    """
    if tasks is None:
        return True
    known = task_names() if custom_tasks in (None, OUR_TASKS) else _names_of(load_custom_tasks(custom_tasks))
    return not known.issuperset(requested_names(tasks)) or any(map(builtin_name_pattern().match, known))


def requested_names(tasks: str | Path) -> list[str]:
    """The bare names of tasks and groups in what LightEval takes for TASKS, without suite, few-shot and parameters."""
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
    """Matches every name that a built-in task of LightEval bears, read from their source without importing it.

    It may match others: it knows names up to the colon, and up to what an f-string fills in.
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
    """Tasks of a module and, as LightEval has it, their groups of at least two."""
    names = [config.name for config in getattr(module, "TASKS_TABLE", ())]
    return _with_groups(names)


def _with_groups(names: Collection[str]) -> set[str]:
    subsets = Counter(map(_group, names))
    return {*names, *(group for group, count in subsets.items() if count > 1)}


def _import_tasks_on_demand(module: ModuleType) -> None:
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
        if custom_tasks is None and not task_names().isdisjoint(names):
            custom_tasks = OUR_TASKS
        if custom_tasks is not None:
            custom_tasks = load_custom_tasks(custom_tasks)
        builtin = load_multilingual or needs_builtin_tasks(tasks, custom_tasks)
        with _no_downloads(names) if builtin else _only_custom_tasks(registry):
            try:
                stock_init(self, tasks, load_multilingual, custom_tasks)
            except ValueError as error:
                raise _explained(error, names, getattr(self, "_task_registry", None)) from error

    registry.__init__ = __init__


def _only_custom_tasks(registry: type) -> AbstractContextManager[Any]:
    """Within it, the registry loads nothing but the module of custom tasks."""
    from unittest.mock import patch

    def load(custom_tasks: ModuleType, load_multilingual: bool = False) -> dict[str, Any]:
        return registry._extract_configs(custom_tasks)

    return patch.object(registry, "load_all_task_configs", staticmethod(load))


def _no_downloads(names: list[str]) -> AbstractContextManager[Any]:
    """Within it, importing the built-in tasks downloads nothing.

    tiny_benchmarks asks for a file that its scorer then looks for elsewhere: it gets the 404 that it accepts. ifeval
    fetches a tokenizer for NLTK, which it needs, so that is left alone where it is asked for.
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


def _explained(error: ValueError, names: list[str], registry: dict[str, Any] | None) -> CulturevalError:
    """LightEval's complaint about the tasks, as a sentence that names the nearest tasks where one is unknown."""
    known = _with_groups(registry or ()) | task_names()
    unknown = [name for name in names if name not in known]
    if registry is None or not unknown:
        return CulturevalError(f"{error}.")
    nearest = difflib.get_close_matches(unknown[0], known, n=3, cutoff=0.5)
    hint = f" Did you mean {', '.join(nearest)}?" if nearest else ""
    return UnknownTask(
        f"There is no task or group {unknown[0]!r}.{hint} `cultureval tasks` lists ours, "
        f"`cultureval lighteval tasks dump` LightEval's; other tasks come with --custom-tasks.{unknown_name_hint()}"
    )
