"""Judge metrics as LightEval's: what details and results have of criteria, also of those that a template lacks."""

import math
from types import SimpleNamespace

import pytest
from lighteval.logging.info_loggers import MetricsLogger
from lighteval.metrics import apply_metric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.metrics.judges import lighteval as judges
from cultureval.metrics.judges.items import JudgeVerdict
from cultureval.metrics.judges.settings import JudgeSettings

AUTHENTICITY, FLUENCY = "judge_j_reference_dialect_authenticity", "judge_j_reference_fluency"


def test_a_criterion_that_msa_lacks_counts_there_no_row_and_enters_no_average(monkeypatch):
    verdicts = [
        JudgeVerdict("a", {"Fluency": 4.0, "Dialect Authenticity": 2.0}),
        JudgeVerdict("b", {"Fluency": 2.0, "Dialect Authenticity": 5.0}),
        JudgeVerdict("c", outcome="refused", reason="no"),
    ]
    monkeypatch.setattr(judges, "configured_judges", lambda: [JudgeSettings(model="j", base_url="http://localhost/v1")])
    logger, tasks, details = MetricsLogger(), {}, {}
    for subset, template in (("eg", "jeem_caption_reference"), ("msa", "jeem_caption_reference_msa")):
        monkeypatch.setattr(judges, "_verdicts", lambda *_, name=template: {("j", name): verdicts})
        metrics, name = judges.judge_metrics(template), f"jeem_caption:{subset}|0"
        docs = [Doc(task_name=name, query="", choices=[], gold_index=0, specific={"cluster": one}) for one in "abc"]
        details[subset] = apply_metric([ModelResponse()] * 3, docs, metrics)
        for row in details[subset]:
            logger.log(name, row)
        functions = {key: one for metric in metrics for key, one in metric.get_corpus_aggregations().items()}
        tasks[name] = SimpleNamespace(aggregation=lambda functions=functions: functions)
    logger.aggregate(tasks)
    found = logger.metric_aggregated
    assert not any(f"{AUTHENTICITY}_den" in row for row in details["eg"])
    assert [row[f"{AUTHENTICITY}_den"] for row in details["msa"]] == [0, 0, 0]
    assert details["eg"][2]["judge_j_reference"]["outcome"] == "refused" and math.isnan(details["eg"][2][FLUENCY])
    assert found["jeem_caption:eg|0"][FLUENCY] == 3 and found["jeem_caption:eg|0"][
        f"{FLUENCY}_stderr"
    ] == pytest.approx(1)
    assert found["jeem_caption:_average|0"][AUTHENTICITY] == 3.5
    assert math.isnan(found["jeem_caption:msa|0"][AUTHENTICITY])
    assert found["jeem_caption:_average|0"][f"{FLUENCY}_stderr"] == pytest.approx(1)  # they share all images
