"""`cultureval doctor` begins with a line a suite: ready, or what is missing and how it is got."""

from dataclasses import replace

import pytest

from cultureval.reports import doctor
from cultureval.reports.doctor import Finding, machine_report
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.runtime.smollm2 import gguf_file
from cultureval.tasks.catalogue import all_suites
from cultureval.tasks.registration import registered

SUITES = {"qimma": ["extra code"], "qimma_gen": [], "m2cqa": ["extra vision"]}  # what they need, of extras


@pytest.fixture
def row_of(monkeypatch):
    """A suite's row in the report (or what follows), with these findings in place of its own, and no other checks."""

    def row(suite, *findings, place=0, **settings):
        monkeypatch.setattr(doctor, "CHECKS", ())
        monkeypatch.setattr(doctor, "WIDTH", 1000)
        monkeypatch.setattr(doctor, "all_suites", lambda: {suite: all_suites()[suite]})
        monkeypatch.setattr(doctor, "suite_findings", lambda suite: list(findings))
        with use_settings(current_settings().with_(**settings)):
            text, fits = machine_report()
        assert fits
        return " ".join(text.split("\n\n")[place].split())

    return row


def test_a_suite_is_ready_where_its_data_and_scorers_are_there(row_of):
    font = Finding("missing", "a font", "plots are SVG only")  # which scoring does not need
    scorer = Finding("ok", "BERTScore model x", needed="BERTScore model x")
    assert row_of("cvlue", font, scorer, data_root="samples") == f"ready cvlue data in {samples_root()}"


def test_what_is_missing_is_told_with_the_command_that_gets_it(row_of, tmp_path):
    scorer = Finding("missing", "BERTScore model x: no folder", "nothing is scored", "BERTScore model x")
    sandbox = Finding("missing", "sandbox: gone", "code is not scored", "sandbox", "apt-get install bubblewrap")
    mirror = "cultureval mirror qimma --output-dir DIR"
    assert row_of("qimma", scorer, sandbox, data_root="samples") == (
        f"missing qimma BERTScore model x {mirror} sandbox apt-get install bubblewrap"
    )
    assert row_of("qimma", data_root=str(tmp_path)) == f"missing qimma data {mirror}"
    assert row_of("qimma", place=1, data_root=str(tmp_path)) == doctor.MIRROR
    assert row_of("qimma", place=2, data_root=str(tmp_path)) == (
        "To try it now, on a few rows that we made up (other suites have some, too): "
        f"cultureval eval {'smollm2' if gguf_file() else 'MODEL'} qimma --data samples --skip-unscorable"
    )
    lacking = Finding("missing", "NADI model", "no scores", "NADI model")
    assert row_of("alqasida", lacking, place=-2, data_root="samples") == doctor.MIRROR  # not the samples once more
    of_another_suite = Finding("missing", "LID model", "no scores", "LID model", tasks=("alqasida_mt:btec_egy_to_eng",))
    assert row_of("alqasida_dev", of_another_suite, data_root=str(tmp_path)).startswith("missing alqasida_dev")


def test_no_mirror_is_advised_for_a_suite_of_ones_own(row_of, tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "registered", lambda: replace(registered(), installed={"qimma_gen"}))
    assert row_of("qimma_gen", data_root=str(tmp_path)).startswith("missing qimma_gen data --data DIR, with ")
    assert row_of("qimma_gen", place=1, data_root=str(tmp_path)).startswith("To try it now")


def test_a_suite_of_which_a_few_tasks_lack_their_scorer_is_ready_but_for_these(row_of, monkeypatch):
    monkeypatch.setattr(doctor, "missing_packages", lambda extra: ["evalplus"] if extra == "code" else [])
    row = row_of("qimma", *doctor.suite_findings(all_suites()["qimma"]), data_root="samples")
    assert row.startswith("partly qimma 103 of 109 tasks can run, not qimma_arablegalqa, ")
    assert " and 1 more BERTScore model cultureval mirror qimma --output-dir DIR extra code pip install" in row


@pytest.mark.parametrize(
    ("suite", "row"),
    [
        ("qimma", "ready qimma data come from the hub"),
        ("m2cqa", "ready m2cqa data come from the hub, whose terms you accept there"),
        (
            "alqasida",
            "partly alqasida 25 of 100 tasks can run, not 23 of alqasida_mono, 24 of alqasida_cross, 28 of alqasida_mt "
            "data of 75 of 100 tasks cultureval mirror alqasida",
        ),
    ],
)
def test_with_a_hub_that_answers_nothing_is_fetched_to_tell(row_of, monkeypatch, suite, row):
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.delenv("CULTUREVAL_DATA", raising=False)
    held = {samples_root(): ()}  # no other place is looked at
    monkeypatch.setattr(doctor, "tasks_without_data", lambda tasks, options: held[options.root])
    assert row_of(suite).startswith(row)


def test_a_suite_without_checks_of_its_own_is_checked_by_what_scores_its_tasks():
    assert doctor.suite_findings(all_suites()["m2cqa"]) == []  # nothing but arithmetic


def test_a_missing_sandbox_keeps_the_suite_with_code_from_being_ready(monkeypatch):
    monkeypatch.setenv("PATH", "")
    found = [one for one in doctor.suite_findings(all_suites()["qimma"]) if one.needed == "sandbox"]
    assert [one.state for one in found] == ["missing"] and "bubblewrap" in found[0].get


def test_what_an_extra_installs_is_missing_from_the_suites_that_need_it(row_of, monkeypatch):
    monkeypatch.setattr(doctor, "missing_packages", lambda extra: ["a-package"])
    suites = all_suites()
    lacking = {
        name: [one for one in doctor.suite_findings(suites[name]) if one.get.startswith("pip")] for name in SUITES
    }
    assert {name: [one.needed for one in found] for name, found in lacking.items()} == SUITES
    assert "extra vision pip install 'cultureval[vision]'" in row_of("m2cqa", *lacking["m2cqa"], data_root="samples")
    of_page = next(one for one in doctor.check_extras() if one.needed == "extra page")
    assert "a-package" in of_page.what and "cultureval[page]" in of_page.cost
