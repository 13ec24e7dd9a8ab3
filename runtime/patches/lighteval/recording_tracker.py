"""LightEval's tracker of a run, whose results hold one more section."""

from typing import TYPE_CHECKING, Any

from cultureval.runtime.patches.table import Patch, expect

if TYPE_CHECKING:
    from cultureval.runtime.patches.lighteval.tracker import Tracker


def recording_tracker(**options: Any) -> "Tracker":
    """A tracker, loaded with LightEval when it is made.

    Args:
        **options: Of LightEval's EvaluationTracker.
    """
    from cultureval.runtime.patches.lighteval.tracker import Tracker

    return Tracker(**options)


def _results_are_a_property_that_is_saved() -> None:
    import json
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from lighteval.models.abstract_model import ModelConfig

    for template in (None, "{output_dir}/there/{org}_{model}"):
        with TemporaryDirectory() as folder:
            tracker = recording_tracker(output_dir=folder, save_details=False, results_path_template=template)
            tracker.general_config_logger.log_model_info(ModelConfig(model_name="org/canary"))
            tracker.sections["more"] = {"a": 1}
            tracker.save()
            files = list(Path(folder).rglob("results_*.json"))
            expect(len(files) == 1, "LightEval's tracker writes no or several results files")
            expect(json.loads(files[0].read_text()).get("more") == {"a": 1}, "LightEval saves other than its `results`")
            expect(files[0] == Path(tracker.results_file or ""), "LightEval names its results files in another way")


PATCHES = (
    Patch(
        "lighteval",
        "lighteval.logging.evaluation_tracker.EvaluationTracker.results, save_results",
        "The results file holds our record of the run (versions, signatures, counts), and says where it is.",
        ("0.13.0",),
        _results_are_a_property_that_is_saved,
    ),
)
