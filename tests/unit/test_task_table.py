"""What LightEval sees of a task: configurations that read nothing until they are run."""

import copy

import pytest

import cultureval.tasks
from cultureval.metrics.lighteval.row_scores import DetailsOnly, TaskScore
from cultureval.tasks.catalogue import all_tasks


@pytest.fixture
def table(monkeypatch, tmp_path):
    monkeypatch.setenv("CULTUREVAL_DATA", "samples")
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path))
    return {config.name: config for config in cultureval.tasks.TASKS_TABLE}


@pytest.mark.slow
def test_the_table_holds_every_task_and_reads_nothing(table, tmp_path):
    assert list(table) == list(all_tasks())
    assert table["qimma_aratrust"].hf_repo == "qimma/MCQ_AraTrust"
    kinds = {task.kind.name: task.task for task in all_tasks().values()}
    assert all(str(table[name]) for name in kinds.values())
    assert not any(tmp_path.iterdir())


def test_metrics_use_the_scorers_of_the_settings_of_now(table, monkeypatch):
    def definition():
        configs = {config.name: config for config in cultureval.tasks.TASKS_TABLE}
        return str(configs["qimma_arablegalqa"].metrics[0].sample_level_fn)

    first = definition()
    monkeypatch.setenv("CULTUREVAL_BERTSCORE_MODEL", "another/scorer")
    assert "another/scorer" in definition() and "another/scorer" not in first
    monkeypatch.delenv("CULTUREVAL_BERTSCORE_MODEL")
    assert definition() == first


def test_a_configuration_that_is_run_reads_its_rows_once(table, tmp_path):
    config = copy.deepcopy(table["qimma_fannorflop"])
    folder = config.hf_repo
    assert folder.startswith(str(tmp_path))
    assert config.rows_report["rows"] == 6
    assert copy.deepcopy(config).hf_repo == config.hf_repo == folder
    assert not table["qimma_fannorflop"].rows_report


def test_generation_is_asked_for_as_qimma_does(table):
    """QIMMA's task code: 512 tokens up to a newline for QA; log-likelihoods generate nothing."""
    answers = table["qimma_arablegalqa"]
    assert (answers.generation_size, list(answers.stop_sequence)) == (512, ["\n"])
    assert table["qimma_aratrust"].generation_size == -1
    assert (table["qimma_fannorflop"].generation_size, list(table["qimma_fannorflop"].stop_sequence)) == (4096, [])
    for config in table.values():
        if all_tasks()[config.name].kind.load:  # another harness's, which a test before this one has added
            continue
        scores = set()
        for metric in config.metrics:
            for name, compute in metric.get_corpus_aggregations().items():
                made = getattr(compute, "__self__", None)
                if isinstance(made, DetailsOnly):  # a column of the details alone
                    continue
                scores |= set(getattr(made, "names", [name]))
                if isinstance(made, TaskScore):
                    assert made.declared == all_tasks()[config.name].kind.declared[name], (config.name, name)
        assert scores == set(all_tasks()[config.name].metrics)
