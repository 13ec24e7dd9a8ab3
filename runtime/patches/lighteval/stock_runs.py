"""Runs of LightEval's own commands on our tasks: their results files hold our record of the run too."""

import logging
import sys
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.runtime.dotted_names import load_attribute
from cultureval.runtime.errors import described
from cultureval.runtime.patches.table import expect, patched
from cultureval.runtime.patches.transformers import loaded_facts
from cultureval.runtime.signatures import changed_settings, changed_values, text_hash
from cultureval.runtime.weight_files import fingerprint

if TYPE_CHECKING:
    from lighteval.models.abstract_model import LightevalModel
    from lighteval.pipeline import Pipeline

logger = logging.getLogger(__name__)
PIPELINE = "lighteval.pipeline"
FACTS = "model_facts"  # attribute of a pipeline for `stock_facts`, since its model is gone when the run is saved
NOT_SETTINGS = ("model_name", "cache_dir")


def record_stock_runs(complete: str) -> None:
    """Makes the pipelines of LightEval's own commands add our record; called again, it changes nothing.

    LightEval reads tasks when its pipeline is being built; where no pipeline is loaded (`lighteval tasks list`), there
    is nothing to record. `complete` is the dotted name of the function that gets a pipeline after its run, before it
    saves; it sets `sections` of the pipeline's tracker, name -> content.
    """
    module = sys.modules.get(PIPELINE)
    if module is None or hasattr(module.Pipeline.save_and_push_results, "__wrapped__"):
        return
    from lighteval.logging.evaluation_tracker import EvaluationTracker

    stock_save, stock_model = module.Pipeline.save_and_push_results, module.Pipeline._init_model
    stock_results, stock_push = EvaluationTracker.results.fget, EvaluationTracker.push_to_hub

    @wraps(stock_model)
    def _init_model(self: Any, *args: Any, **options: Any) -> Any:
        model = stock_model(self, *args, **options)
        vars(self)[FACTS] = {} if hasattr(model, "run_record") else _facts(model)
        return model

    @wraps(stock_save)
    def save_and_push_results(self: Any) -> None:
        _keep_inside(self.evaluation_tracker.general_config_logger)
        if self.is_main_process() and not hasattr(self.evaluation_tracker, "sections"):
            try:
                load_attribute(complete)(self)
            except Exception as error:  # a finished run is saved whatever its record holds
                logger.warning("The results file has no record of cultureval: %s.", described(error))
                self.evaluation_tracker.withheld = None
        stock_save(self)

    def push_to_hub(self: Any, date_id: str, details: dict[str, Any], results_dict: dict[str, Any]) -> None:
        from cultureval.runtime.patches.lighteval.tracker import public_details, public_results, upload_public

        withheld = vars(self).get("withheld", ())
        public, results = public_details(details, withheld), public_results(results_dict, withheld)
        upload_public(lambda: stock_push(self, date_id, public, results), public)

    def results(self: Any) -> dict[str, Any]:
        return stock_results(self) | vars(self).get("sections", {})

    module.Pipeline._init_model = _init_model
    module.Pipeline.save_and_push_results = save_and_push_results
    EvaluationTracker.results = property(results)
    EvaluationTracker.push_to_hub = push_to_hub


def _keep_inside(run: Any) -> None:
    """Of a model's path with `..`, by which LightEval names folders of the output folder, the last part is its name."""
    path = Path(run.model_name)
    if ".." in path.parts:
        run.model_name = path.resolve().name


def stock_facts(pipeline: "Pipeline") -> dict[str, dict[str, Any]]:
    """What is known of the model of one of LightEval's own backends; both are empty for other pipelines.

    Returns:
        `model`: fields of the record of a model; `signature`: fields of signatures.
    """
    return vars(pipeline).get(FACTS) or {"model": {}, "signature": {}}


def _facts(model: "LightevalModel") -> dict[str, dict[str, Any]]:
    config, own = model.config, vars(model)
    template = getattr(getattr(own.get("prompt_manager"), "tokenizer", None), "chat_template", None)
    uses, backend = own.get("use_chat_template"), type(model).__name__
    version = own.get("model_sha") or _fingerprint_of(config.model_name)
    resolved = _facts_of_transformers(own.get("model"))
    record = {
        "backend": backend,
        "version": version,
        "max_length": own.get("_max_length"),
        "batch_size": own.get("batch_size"),
        "adds_bos": own.get("_add_special_tokens"),
        "chat_template": uses,
        "chat_template_hash": text_hash(template) if uses and isinstance(template, str) else "",
        "system_prompt_hash": text_hash(config.system_prompt),
        "settings": changed_values(config, NOT_SETTINGS),
        **resolved,
    }
    fields = {
        "model": f"{config.model_name}@{str(version or '?')[:8]}",
        "backend": backend,
        "dtype": resolved.get("dtype"),
        "chat": None if uses is None else "on" if uses else "off",
        "settings": changed_settings(config, (*NOT_SETTINGS, "dtype", "device", "batch_size")),
    }
    return {"model": record, "signature": fields}


def _fingerprint_of(name: str) -> str | None:
    folder = Path(name).expanduser()
    return fingerprint(folder) if folder.is_dir() else None


def _facts_of_transformers(model: Any) -> dict[str, Any]:
    """Those of a model of transformers, whose choices LightEval scores with a pass each; of other backends none."""
    from transformers import PreTrainedModel

    return {**loaded_facts(model), "routes": {"text": "plain"}} if isinstance(model, PreTrainedModel) else {}


@patched(
    "lighteval",
    "lighteval.pipeline.Pipeline.save_and_push_results, _init_model; EvaluationTracker.results, push_to_hub",
    "Details of gated data are not uploaded. "
    "The results files of LightEval's own commands hold our record of the run, where its tasks are ours, and lie "
    "in the output folder: LightEval names folders by the model's path, also where that has `..`.",
)
def _pipelines_save_through_their_tracker() -> None:
    import inspect

    from lighteval.logging.evaluation_tracker import EvaluationTracker
    from lighteval.pipeline import Pipeline

    save = inspect.getsource(inspect.unwrap(Pipeline.save_and_push_results))
    expect("self.evaluation_tracker.save()" in save, "LightEval's pipeline no longer saves through its tracker")
    expect(
        "self._init_model(" in inspect.getsource(Pipeline.__init__), "LightEval's pipeline no longer has _init_model"
    )
    expect("self.results" in inspect.getsource(EvaluationTracker.save), "LightEval's tracker saves other results")
    names = list(inspect.signature(inspect.unwrap(EvaluationTracker.push_to_hub)).parameters)
    expect(names == ["self", "date_id", "details", "results_dict"], "LightEval's tracker uploads by other arguments")
    expect(isinstance(EvaluationTracker.results, property), "LightEval's tracker has other results")
