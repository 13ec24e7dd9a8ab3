"""`cultureval check` begins with a line a suite: ready, or what is missing and how it is got."""

import pytest

from cultureval.reports import doctor
from cultureval.reports.doctor import machine_report, suite_findings
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.tasks.catalogue import all_suites


@pytest.fixture
def report_on(monkeypatch):
    """The report on one suite, without checks of the machine."""

    def report(suite, **settings):
        monkeypatch.setattr(doctor, "CHECKS", ())
        monkeypatch.setattr(doctor, "all_suites", lambda: {suite: all_suites()[suite]})
        with use_settings(current_settings().with_(**settings)):
            text, fits = machine_report()
        assert fits
        return text

    return report


def test_a_suite_is_ready_where_its_data_and_scorers_are_there(report_on, monkeypatch):
    monkeypatch.setattr(doctor, "missing_packages", lambda extra: [])
    monkeypatch.setattr(doctor, "tasks_without_data", lambda tasks, options: ())
    assert report_on("cvlue").splitlines()[1].split() == ["cvlue", "ready", "8", "of", "8"]


def test_what_is_missing_is_told_with_the_command_that_gets_it(report_on, tmp_path):
    text = report_on("qimma", data_root=str(tmp_path))
    assert text.splitlines()[1].split() == ["qimma", "missing", "0", "of", "109"]
    assert "qimma lacks data of 109 of 109 tasks: cultureval fetch qimma --output-dir DIR" in text


def test_a_suite_of_which_a_few_tasks_lack_their_scorer_can_run_the_others(report_on, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(doctor, "tasks_without_data", lambda tasks, options: ())
    monkeypatch.setattr(doctor, "_on_machine", lambda name: False)
    text = report_on("qimma", data_root=samples_root())
    assert "partly" in text and "qimma_arablegalqa" in text
    assert "qimma lacks BERTScore model: " in text and "cultureval fetch qimma" in text


def test_a_missing_sandbox_keeps_the_suite_with_code_from_being_ready(monkeypatch):
    monkeypatch.setenv("PATH", "")
    found = [one for one in suite_findings("qimma") if one.what == "bubblewrap"]
    assert [one.state for one in found] == ["missing"] and "qimma_code:humaneval_plus" in found[0].tasks


def test_a_version_that_was_not_tested_is_wrong(monkeypatch):
    monkeypatch.setattr(doctor, "version", lambda name: "0.0.1")
    assert {one.state for one in doctor.check_versions()} >= {"wrong"}
