"""Runs of our tasks by LightEval's own commands: our record of the run in their results files."""

import logging
import sys
from functools import wraps
from pathlib import Path
from typing import Any

from cultureval.runtime.dotted_names import load_attribute
from cultureval.runtime.errors import described
from cultureval.runtime.signatures import changed_settings, changed_values
from cultureval.runtime.weight_files import fingerprint

logger = logging.getLogger(__name__)
NOT_SETTINGS = ("model_name", "cache_dir")


def record_stock_runs(complete: str) -> None:
    """Makes LightEval's Pipeline add our record to its results, if it is loaded; a second call changes nothing.

    `complete` is the dotted name of a function, called with the pipeline before it saves. It sets `sections` (name ->
    content) and `withheld` (tasks of gated data, without upload of details) of the pipeline's tracker.
    """
    module = sys.modules.get("lighteval.pipeline")
    if module is None or hasattr(module.Pipeline.save_and_push_results, "__wrapped__"):
        return
    from lighteval.logging.evaluation_tracker import EvaluationTracker

    stock_save, stock_push = module.Pipeline.save_and_push_results, EvaluationTracker.push_to_hub
    stock_results = EvaluationTracker.results.fget

    @wraps(stock_save)
    def save_and_push_results(self: Any) -> None:
        if self.is_main_process():
            try:
                load_attribute(complete)(self)
            except Exception as error:  # a finished run is saved in any case
                logger.warning("The results file has no record of cultureval: %s.", described(error))
                self.evaluation_tracker.withheld = None
        stock_save(self)

    def push_to_hub(self: Any, date_id: str, details: dict[str, Any], results_dict: dict[str, Any]) -> None:
        from cultureval.runtime.patches.lighteval.tracker import public_details, public_results, upload_public

        withheld = vars(self).get("withheld", ())
        public = public_details(details, withheld)
        upload_public(lambda: stock_push(self, date_id, public, public_results(results_dict, withheld)), public)

    module.Pipeline.save_and_push_results = save_and_push_results
    EvaluationTracker.results = property(lambda self: stock_results(self) | vars(self).get("sections", {}))
    EvaluationTracker.push_to_hub = push_to_hub


def stock_facts(model: Any) -> dict[str, dict[str, Any]]:
    """Fields of the model's record and of signatures for LightEval's own backends; {} for our models."""
    if hasattr(model, "run_record"):
        return {"model": {}, "signature": {}}
    config, attributes, backend = model.config, vars(model), type(model).__name__
    folder, uses = Path(config.model_name).expanduser(), attributes.get("use_chat_template")
    version = attributes.get("model_sha") or (fingerprint(folder) if folder.is_dir() else None)
    record = {"backend": backend, "version": version, "settings": changed_values(config, NOT_SETTINGS)}
    return {
        "model": record
        | {"max_length": attributes.get("_max_length"), "adds_bos": attributes.get("_add_special_tokens")},
        "signature": {
            "model": f"{config.model_name}@{str(version or '?')[:8]}",
            "backend": backend,
            "chat": None if uses is None else "on" if uses else "off",
            "settings": changed_settings(config, (*NOT_SETTINGS, "device", "batch_size")),
        },
    }
