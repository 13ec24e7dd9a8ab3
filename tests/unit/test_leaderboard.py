"""Leaderboards: which runs share a table, the paper's averages, rank intervals, exports, and who is refused."""

import csv
import fcntl
import json
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest
from board_runs import write_run
from m2cqa_runs import drawn_verdicts
from m2cqa_runs import write_run as write_statements
from typer.testing import CliRunner

from cultureval.metrics.m2cqa.statement_items import cell_report
from cultureval.metrics.proportions import paired_interval
from cultureval.reports.leaderboard.board import read_board
from cultureval.reports.leaderboard.exports import FORMATS, as_csv, as_latex, as_markdown
from cultureval.reports.leaderboard.pages import Pages
from cultureval.reports.leaderboard.publishing import push_space
from cultureval.reports.leaderboard.site import PARTS, Site, site_summary, write_site
from cultureval.reports.leaderboard.tables import BoardRow, BoardTable, best_cells
from cultureval.reports.qimma.table import PUBLISHED
from cultureval.reports.run_ranks import rank_items
from cultureval.reports.viewer.bundle import write_bundle
from cultureval.reports.viewer.logs import write_logs
from cultureval.reports.viewer_links import gated_answers
from cultureval.runs.load_runs import load
from cultureval.runs.paper_numbers import published_rows
from cultureval.runs.table import Cell, Column
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.main import app
from cultureval.tasks.catalogue import all_tasks

QIMMA = [task.task for task in all_tasks().values() if task.suite == "qimma"]
TRUST = ["qimma_aratrust"]


class Rows(HTMLParser):
    """The cells of a page's tables, row by row, as people read them, without errors."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
        self.open.append((tag, dict(attributes).get("class") or ""))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        inside = [name for name, _ in self.open]
        if self.rows and self.rows[-1] and {"td", "th"} & {*inside} and ("span", "error") not in self.open:
            self.rows[-1][-1] += data.strip()


@pytest.fixture(scope="module")
def four_models(tmp_path_factory):
    """Two good models that cannot be told apart, a bad one, and one without code."""
    root = tmp_path_factory.mktemp("results")
    for model, ability in (("lab/good-7B", 0.7), ("lab/also-good-9B", 0.7), ("lab/bad-1B", 0.3)):
        write_run(root, model, QIMMA, ability, 12, signed={})
    write_run(root, "lab/no-code", [name for name in QIMMA if "code" not in name], 0.5, 12, signed={})
    return root


@pytest.mark.slow
def test_the_papers_tables_follow_from_its_benchmarks_on_the_page(four_models, tmp_path):
    board = read_board([four_models], published=True, partial=True, ranks=False)
    write_site(board, tmp_path / "site", "Ours & theirs", ())
    rows = Rows((tmp_path / "site" / "index.html").read_text()).rows
    (table,) = json.loads((tmp_path / "site" / "leaderboard.json").read_text())["sections"][0]["tables"]
    names = [column["name"] for column in table["columns"]]
    header = ["Model", *names]
    shown = {
        row[0].removesuffix(" (paper)"): dict(zip(header, row, strict=True)) for row in rows if "(paper)" in row[0]
    }
    paper = {row["model"]: row for row in published_rows(PUBLISHED)}
    assert shown.keys() == paper.keys() and len(shown) == 14
    domains = [
        name for name in header if name in ("Cultural", "STEM", "Legal", "Medical", "Safety", "Coding", "Poetry")
    ]
    compared = [(float(shown[one][name]), float(paper[one][name])) for one in paper for name in ["Average", *domains]]
    assert len(compared) == 14 + 98
    assert all(abs(ours - theirs) < 0.0101 for ours, theirs in compared), "one is 47.125, which the paper rounds up"
    exact = {row["model"]: dict(zip(names, row["cells"], strict=True)) for row in table["rows"] if row["published"]}
    for model, row in paper.items():
        cells = exact[f"{model} (paper)"]
        wrong = {name for name in ["Average", *domains] if abs(cells[name]["value"] - float(row[name])) > 0.0050001}
        assert not wrong, "all 14 averages and 98 domain scores, within rounding"


@pytest.mark.slow
def test_ranks_are_intervals_and_an_incomplete_run_has_coverage_but_no_average(four_models):
    (section,) = read_board([four_models]).sections
    (table,) = section.tables
    rows = {row.label: row for row in table.rows}
    assert rows["good-7B"].rank == rows["also-good-9B"].rank == "1–2" and rows["good-7B"].top
    assert rows["bad-1B"].rank == "3" and not rows["bad-1B"].top
    assert (
        list(rows)[-1] == "no-code"
        and rows["no-code"].rank == ""
        and rows["no-code"].cells[:2] == ["no average", "12/14"]
    )
    bold = best_cells(table)
    assert bold and all(table.rows[row].rank for row, _ in bold), "nothing is called the best without a rank"
    assert table.notes[0].startswith("The data tell 1 of 2 neighbouring ranks apart (50%)")
    assert table.notes[1] == "No rank for no-code: it has no score in the main column."
    assert {chart.name for chart in section.charts} == {"qimma_size", "qimma_domains", "qimma_differences"}


@pytest.mark.slow
def test_the_page_begins_with_how_many_may_be_the_best_and_says_what_is_known_of_models(four_models, tmp_path):
    card = tmp_path / "local-model" / "README.md"
    card.parent.mkdir()
    card.write_text("---\nlicense: other\nlicense_name: <b>ours-1.0</b>\n---\n")
    shutil.copytree(four_models, tmp_path / "results")
    write_run(tmp_path / "results", str(card.parent), QIMMA, 0.1, 12, signed={}, folder="local")
    (tmp_path / "models.csv").write_text("model,billions\nbad-1B,1.24\n")
    write_site(read_board([tmp_path / "results"], models=tmp_path / "models.csv"), tmp_path / "site", "Board", ())
    text = (tmp_path / "site" / "index.html").read_text()
    lead = re.sub("<[^>]*>", "", text[text.index('class="lead"') : text.index("</p>", text.index('class="lead"'))])
    assert lead.partition(">")[2].startswith("Of 4 models, 2 cannot be told apart at the top by Average: ")
    assert {"good-7B", "also-good-9B"} == set(lead.rpartition(": ")[2].partition(".")[0].split(", "))
    assert lead.endswith("1 more has no rank.")
    facts = [re.sub("<.*?>", "", one).strip() for one in re.findall(r'class="facts">(.*?)</span>', text)]
    assert sorted(facts) == [
        "&lt;b&gt;ours-1.0&lt;/b&gt; run 2026-11-01",
        "1.24 B run 2026-11-01",
        *["run 2026-11-01"] * 3,
    ]


def test_columns_without_a_score_are_not_shown_names_are_as_they_are_and_backticks_are_code(tmp_path):
    for model, ability in (("lab/علّام-9B", 0.9), ("lab/one", 0.1)):
        write_run(tmp_path / "results", model, ["qimma_aratrust"], ability, 12, signed={})
    board = read_board([tmp_path / "results"])
    (table,) = board.sections[0].tables
    assert {row.label for row in table.rows} == {"علّام-9B", "one"}  # as they are, without marks of direction
    assert {one.family for one in board.models.values()} == {"علّام", "one"}
    assert [column.name for column in table.columns] == ["Coverage", "AraTrust", "Safety"] and table.main is None
    write_site(board, tmp_path / "site", "Ours", (), about="made by `a <b>` of علّام-9B alone")
    text = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert "made by <code>a &lt;b&gt;</code> of <bdi>علّام-9B</bdi> alone" in text


@pytest.mark.slow
def test_the_chart_of_sizes_names_the_models_whose_size_is_unknown(tmp_path):
    for name in ("lab/two-2B", "lab/seven-7B", "lab/unknown"):
        write_run(tmp_path, name, QIMMA, 0.5, 12, signed={})
    charts = {chart.name: chart for chart in read_board([tmp_path], ranks=False).sections[0].charts}
    assert charts["qimma_size"].note == "One standard error on either side. Not drawn: unknown (size unknown)."
    assert charts["qimma_domains"].note == "95 % intervals."


@pytest.mark.slow
def test_runs_whose_signatures_differ_are_in_groups_that_say_why(tmp_path):
    write_run(tmp_path, "a", QIMMA[:6], 0.7, 5, signed={}, date="2026-01-01T00-00-00")
    write_run(tmp_path, "a", QIMMA[:6], 0.3, 5, signed={}, date="2026-02-01T00-00-00")  # the newer run counts
    write_run(
        tmp_path, "a", TRUST, 0.5, 5, signed={}, date="2025-01-01T00-00-00"
    )  # what is missing is from an older one
    write_run(tmp_path, "b", QIMMA[:6], 0.5, 5, signed={"dtype": "float32"})
    write_run(tmp_path, "c", QIMMA[:6], 0.5, 5, signed={"scorer": "another"})
    write_run(tmp_path, "d", QIMMA[:6], 0.5, 5, signed=None, details=False)
    write_run(tmp_path, "e", QIMMA[:6], 0.5, 5, signed={}, query="another prompt")
    first, *others = read_board([tmp_path], ranks=False).sections
    assert [one.label for one in first.group.entries] == ["a", "b"], "a dtype is the model's own"
    merged = first.group.entries[0]
    newest = next(run for run in load(tmp_path) if run.model == "a" and run.date.startswith("2026-02"))
    assert merged.run.value("qimma_aradice:Egypt|0", "acc_norm") == newest.value("qimma_aradice:Egypt|0", "acc_norm")
    assert "qimma_aratrust|0" in merged.run.record.tasks
    assert len(merged.warnings) and merged.warnings[0].kind == "superseded" and "and 5 more" in merged.warnings[0]
    reasons = {one.group.entries[0].label: list(one.group.differences)[0] for one in others}
    assert reasons["c"] == "scorer: another here, not told there (6 tasks)"
    assert reasons["e"] == "what was asked (a hash of the prompts) differs (6 tasks)", "hashes tell a reader nothing"
    assert set(reasons) == {"c", "d", "e"} and reasons["d"].startswith("prompts: not told here, ")
    allowed = read_board([tmp_path], ranks=False, allowed=["scorers"]).sections
    assert [one.label for one in allowed[0].group.entries] == ["a", "b", "c"]


@pytest.mark.slow
def test_the_last_message_names_a_few_of_many_groups(tmp_path):
    for number in range(12):
        write_run(tmp_path, f"m{number}", TRUST, 0.5, 2, signed={"scorer": f"v{number}"}, details=False)
    lines = site_summary(read_board([tmp_path], ranks=False), Site(tmp_path / "index.html", 1, 1, 0)).splitlines()
    assert len(lines) == 11 and lines[1].startswith("qimma: m1, a group apart: scorer: v1 here, v0 there")
    assert lines[-2] == "and 3 more groups, with reasons, on the page (--allow FIELDS)"


def test_a_limited_run_of_a_model_is_an_entry_of_its_own(tmp_path):
    write_run(tmp_path, "lab/a", TRUST, 0.7, 8, signed={}, date="2026-01-01T00-00-00")
    write_run(tmp_path, "lab/a", TRUST, 0.7, 5, signed={}, limit=5, date="2026-02-01T00-00-00")
    board = read_board([tmp_path], ranks=False)
    page, sections = dict(Pages(board, "title", ()).all())["index.html"], board.sections
    assert "1 model, 2 results files" in page and set(re.findall(r'data-of="(\d+)"', page)) == {"0"}, "one, run twice"
    labels = {entry.label for section in sections for entry in section.group.entries}
    assert labels == {"a (limit 5)", "a (limit none)"}
    said = [*sections[0].group.differences, *sections[1].group.differences]
    assert any(one.startswith("limit: ") for one in said)


def test_a_field_that_no_score_has_and_a_viewer_that_is_not_there_are_named(tmp_path):
    write_run(tmp_path / "runs", "a", TRUST, 0.7, 5, signed={})
    site, options = str(tmp_path / "site"), ["--no-ranks", "--charts", "none"]
    given = ["leaderboard", str(tmp_path / "runs"), "--out", site, *options, "--allow", "backedn,limit"]
    said = CliRunner().invoke(app, [*given, "--logs", "answers"]).stderr
    assert "--allow backedn: no score here has such a field. Did you mean backend" in said and "limit:" not in said
    assert f"--logs answers: the pages link {site}/answers, which is not there" in said
    (tmp_path / "site" / "answers").mkdir()
    assert "--logs" not in CliRunner().invoke(app, [*given, "--logs", "answers"]).stderr


HOSTILE = "</script><script>alert(1)</script>\u202e$_{%}&|`*SURROGATE\n\x00\x0b"


def test_exports_hold_hostile_names_as_text(tmp_path):
    write_run(tmp_path, HOSTILE, TRUST, 0.7, 8, signed={}, folder="h1")
    file = next(tmp_path.rglob("h1/results_*.json"))
    file.write_text(file.read_text().replace("SURROGATE", r"\ud800"))
    write_run(tmp_path, "lab/=1+1", TRUST, 0.5, 8, signed={})
    board = read_board([tmp_path], ranks=False)
    site = write_site(board, tmp_path / "site", HOSTILE, ())
    (table,) = board.sections[0].tables
    assert not best_cells(table)
    rows = list(csv.reader(as_csv(table).splitlines()))
    assert len(rows) == 3 and any(row[0] == "'=1+1" for row in rows[1:])
    for file in (tmp_path / "site" / "tables").iterdir():
        assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", file.read_text("utf-8")), file
    latex = as_latex(table)
    assert r"\toprule" in latex and r"\$\_\{\%\}\&" in latex and "\u202e" not in latex
    assert "<script" not in as_markdown(table).replace(r"\<script", "")
    page = site.index.read_text(encoding="utf-8")
    assert "<script>alert" not in page and "\u202e" not in page and "default-src &#39;none&#39;" in page
    data = json.loads((tmp_path / "site" / "leaderboard.json").read_text(encoding="utf-8"))
    assert len(data["sections"][0]["tables"][0]["rows"]) == 2
    assert {file.parent for file in (tmp_path / "site").rglob("*.html")} == {
        tmp_path / "site",
        tmp_path / "site" / "models",
        tmp_path / "site" / "tasks",
    }


def test_exports_of_any_column_names():
    columns = [Column("rank"), Column("acc", lower=True), Column("acc"), Column("a|<b>", "c|d")]
    table = BoardTable("t", "percent", columns, [BoardRow("m", [*(Cell(float(place)) for place in range(3)), "x|y"])])
    names, values = csv.reader(as_csv(table).splitlines())
    assert names[3::3] == ["rank", "acc", "acc", "c|d: a|<b>"] and values[3::3] == ["0.0", "1.0", "2.0", "x|y"]
    caption, between, *lines = as_markdown(table).splitlines()
    assert (caption, between) == ("t: percent", "") and as_latex(table).startswith("% t: percent\n")
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {7}
    assert r"c\|d: a\|\<b\>" in as_markdown(table)
    rows = [BoardRow(name, [Cell(1.0, n=3), Cell(2.0, n=n)]) for name, n in (("m", 5), ("k", 6000))]
    table = BoardTable("t", "", [Column("a"), Column("b")], rows)
    for text in (as_markdown(table).replace("\\", ""), as_latex(table)):
        assert "a (n 3)" in text and "b (n" not in text and "(n 5)" in text and "(n 6,000)" in text


def test_what_cannot_be_a_leaderboard_is_refused(tmp_path):
    write_run(tmp_path / "r", "a", TRUST, 0.7, 8, signed={})
    board = read_board([tmp_path / "r"], ranks=False)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("mine")
    with pytest.raises(CulturevalError, match="no leaderboard's"):
        write_site(board, tmp_path / "other", "T", ())
    write_site(board, tmp_path / "site", "T", ())
    (tmp_path / "site" / "index.html").unlink()
    (tmp_path / "site" / "index.html").symlink_to(tmp_path / "other" / "thesis.tex")
    write_site(board, tmp_path / "site", "T", ())
    shutil.rmtree(tmp_path / "site" / "tasks")
    (tmp_path / "site" / "tasks").symlink_to(tmp_path / "other")
    with pytest.raises(CulturevalError, match="tasks is a link"):
        write_site(board, tmp_path / "site", "T", ())
    assert (tmp_path / "other" / "thesis.tex").read_text() == "mine"
    (tmp_path / "models.csv").write_text("model,billions\na,big\n")
    with pytest.raises(CulturevalError, match="billions is 'big'"):
        read_board([tmp_path / "r"], models=tmp_path / "models.csv")
    (tmp_path / "models.csv").write_text("model,family,billions,licence\nA,Ours,7.5,apache-2.0\n")
    facts = read_board([tmp_path / "r"], models=tmp_path / "models.csv", ranks=False).models["a"]
    assert (facts.family, facts.billions, facts.licence) == ("Ours", 7.5, "apache-2.0")
    with pytest.raises(CulturevalError, match="no results file"):
        read_board([tmp_path / "other"])


@pytest.mark.slow
def test_every_suite_has_ranks_ratios_and_averages_of_several_scores_of_a_task(tmp_path):
    """M2CQA by its mean CFHR (lower is better), JEEM by CIDEr, CVLUE by its macro-average, AL-QASIDA by ADI2, QIMMA's
    generated answers by their strict mean."""
    wanted = {"m2cqa:tf_en", "m2cqa:tf_msa", "jeem_caption:msa", "jeem_caption:jo"}
    names = [task.task for task in all_tasks().values() if task.task in wanted or task.group == "alqasida_mono"]
    names += ["cvlue_vqa", "cvlue_vg", "cvlue_vd", "cvlue_itr"]
    names += [task.task for task in all_tasks().values() if task.suite == "qimma_gen"]
    for model, ability in (("lab/good", 0.9), ("lab/bad", 0.2)):
        write_run(tmp_path, model, names, ability, 60, signed={})
    board = read_board([tmp_path], published=True, partial=True)
    ranked = {table.title: table for section in board.sections for table in section.tables if table.main is not None}
    columns = {title: table.columns[table.main].whole for title, table in ranked.items()}
    assert columns == {
        "JEEM, captions": "Mean of MSA, Jordan: CIDEr",
        "M2CQA, True or False": "Mean of English, MSA: CFHR",
        "CVLUE, Chinese": "Macro",
        "AL-QASIDA, requests": "Average: monolingual",
        "QIMMA, generated answers": "Average: strict",
    }
    (hint,) = (note for note in ranked["CVLUE, Chinese"].notes if note.startswith("VG: "))
    assert "cannot be said: KeyError: 'size'" in hint, "of invented details, which lack the images' sizes"
    for title, table in ranked.items():
        first, last = ("bad", "good") if title.startswith("M2CQA") else ("good", "bad")
        assert [(row.label, row.rank) for row in table.rows if row.entry] == [(first, "1"), (last, "2")], title
    differences = [chart for section in board.sections for chart in section.charts if "_differences" in chart.name]
    assert len(differences) == len({chart.name for chart in differences}) == 5


def test_the_table_in_place_of_those_that_cannot_be_made_stands_last(tmp_path, monkeypatch):
    monkeypatch.setattr("cultureval.reports.cvlue.table._gallery_note", lambda run, _: [1 / (run.model != "lab/a")][:0])
    for model in ("lab/a", "lab/b"):
        write_run(tmp_path, model, ["cvlue_vqa", "cvlue_vd"], 0.5, 10, signed={})
    (section,) = read_board([tmp_path]).sections
    assert [table.title for table in section.tables] == ["CVLUE, Chinese", "cvlue"]


@pytest.mark.slow
def test_ranks_are_of_the_column_by_which_most_models_are_sorted(tmp_path):
    names = [task.task for task in all_tasks().values() if task.suite == "m2cqa"]
    asked = [name for name in names if ":tf_" in name]
    for model, ability in (("lab/a-7B", 0.2), ("lab/b-7B", 0.45), ("lab/c-7B", 0.7)):
        write_run(tmp_path, model, asked, ability, 12, signed={})
    others = [name for name in names if name not in asked]
    write_run(tmp_path, "lab/one-variety-7B", [*others, asked[0]], 0.1, 12, signed={})  # the most scores of all
    (section,) = read_board([tmp_path]).sections
    table = next(table for table in section.tables if len(table.rows) == 4)
    assert table.columns[table.main].whole == "Mean of English, MSA, Levantine, Egyptian: CFHR"
    assert [row.label for row in table.rows] == ["a-7B", "b-7B", "c-7B", "one-variety-7B"]
    assert table.rows[0].rank.startswith("1") and not table.rows[-1].rank
    assert "No rank for one-variety-7B: it has other subsets." in table.notes


def test_models_whose_score_is_often_undefined_are_left_out_of_ranks_and_named(tmp_path):
    """CFHR is undefined where no Q+ is right: nine models have one such item each, 1/e of whose resamples lack it."""
    for place in range(11):
        verdicts = drawn_verdicts(40, 0.8, 0.7, place)
        if place < 9:
            verdicts[:, 0] = "false"
            verdicts[place] = "true"
        file = write_statements(tmp_path, f"lab{place}", {"tf_en": verdicts}, model_name=f"lab/{place}")
        content = json.loads(file.read_text(encoding="utf-8"))
        content["results"] = {"m2cqa:tf_en|0": {"cfhr": cell_report(verdicts)["cfhr"]}}
        file.write_text(json.dumps(content), encoding="utf-8")
    models = [(run.model, {"m2cqa:tf_en|0": run}) for run in load(tmp_path)]
    ranked = rank_items(models, {("m2cqa:tf_en|0", "cfhr"): 1.0})
    assert sorted(row.model for row in ranked.ranking.rows) == ["lab/10", "lab/9"]
    assert sorted(ranked.without) == [f"lab/{place}" for place in range(9)]
    assert all(re.search("not defined in 3[3-9]% of resamples", why) for why in ranked.without.values())


def differences_shown(folder):
    """The points of the one chart of differences from the best model."""
    (section,) = read_board([folder]).sections
    (chart,) = [one for one in section.charts if "_differences" in one.name]
    return chart.spec["layer"][1]["data"]["values"]


def test_differences_from_the_best_are_widened_for_few_items_as_the_ranks(tmp_path):
    names = ["m2cqa:tf_en", "m2cqa:tf_msa", "m2cqa:tf_ajp", "m2cqa:tf_arz"]
    for model, ability in (("lab/a", 0.6), ("lab/b", 0.5)):
        write_run(tmp_path, model, names, ability, 4, signed={})
    (shown,) = differences_shown(tmp_path)
    tasks = [f"{name}|0" for name in names]
    models = [(run.model, dict.fromkeys(tasks, run)) for run in load(tmp_path)]
    resamples = rank_items(models, dict.fromkeys([(task, "cfhr") for task in tasks], 1.0)).resamples
    plain = np.quantile(np.diff(resamples.draws), [0.025, 0.975])
    assert resamples.freedom < 9 and shown["high"] - shown["low"] > 1.1 * np.ptp(plain)


@pytest.mark.slow
def test_a_difference_that_is_the_same_on_every_item_is_no_single_point(tmp_path):
    names = ["m2cqa:tf_en", "m2cqa:tf_msa", "m2cqa:tf_ajp", "m2cqa:tf_arz"]
    for model, ability in (("lab/never", 0.0), ("lab/always", 1.0)):
        write_run(tmp_path, model, names, ability, 4, signed={})
    (shown,) = differences_shown(tmp_path)
    assert shown["high"] == 1.0 and 0.3 < shown["low"] < 0.95
    for model, ability in (("lab/same", 0.0), ("lab/too", 0.0), ("lab/near", 0.2)):
        write_run(tmp_path / "few", model, names[:1], ability, 80, signed={})
    too, near = differences_shown(tmp_path / "few")
    fooled = round(near["x"] * 80)
    assert (near["label"], too["label"]) == ("near", "too") and 0 < fooled < 20
    for point, count in ((near, fooled), (too, 0)):
        low, high, _ = paired_interval(count, 0, 80)
        assert point["low"] == pytest.approx(low) and high <= point["high"] + 1e-9 < high + 0.02, point


def test_a_site_that_cannot_be_written_leaves_the_earlier_one_as_it_was(tmp_path, monkeypatch):
    write_run(tmp_path / "results", "lab/a", TRUST, 0.5, 4, signed={})
    board, site = read_board([tmp_path / "results"], ranks=False), tmp_path / "site"
    write_site(board, site, "Board", ())
    (site / "models" / "gone.html").write_text("")
    earlier = {file: file.read_bytes() for file in site.rglob("*") if file.is_file()}
    with monkeypatch.context() as broken:
        broken.setitem(FORMATS, "csv", lambda table: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_site(board, site, "Other", ())
    assert {file: file.read_bytes() for file in site.rglob("*") if file.is_file()} == earlier
    (page,) = (site / "tasks").iterdir()
    page.rename(tmp_path / "page")
    page.mkdir()
    with pytest.raises(CulturevalError, match=f"tasks/{page.name} is a folder"):
        write_site(board, site, "Other", ())
    page.rmdir()
    (tmp_path / "page").rename(page)
    (site / ".cultureval-new").write_text("mine")
    with pytest.raises(CulturevalError, match="cultureval-new is a link or a file"):
        write_site(board, site, "Other", ())
    (site / ".cultureval-new").unlink()
    (site / ".cultureval-new" / "models").mkdir(parents=True)  # of a command that was killed
    with (site / ".cultureval-leaderboard").open() as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)  # as the command that writes it
        with pytest.raises(CulturevalError, match="another command is writing"):
            write_site(board, site, "Other", ())
    assert {file: file.read_bytes() for file in site.rglob("*") if file.is_file()} == earlier
    write_site(board, site, "Other", ())
    assert {*site.rglob("*")} == {*earlier, *(site / part for part in PARTS)} - {site / "models" / "gone.html"}
    assert "<title>Other" in (site / "index.html").read_text()


@pytest.mark.slow
def test_scores_link_their_answers_in_the_viewer_and_the_viewer_links_back(tmp_path):
    root, site = tmp_path / "results", tmp_path / "site"
    write_run(root, "lab/a", [*TRUST, "jeem_vqa:ma"], 0.5, 4, signed={})
    write_run(root, "lab/a", TRUST, 0.5, 4, signed={}, date="2026-01-01T00-00-00")
    write_bundle(write_logs([root]), site / "some where" / "answers")
    with pytest.raises(CulturevalError, match="no leaderboard's"):
        write_site(read_board([root], ranks=False), site, "A <board>", ())
    for _ in range(2):
        write_site(read_board([root], ranks=False), site, "A <board>", (), "some where/answers")
    (model,) = (site / "models").iterdir()
    links = re.findall('<a href="([^"]*)">[^<]*<span class="hidden">, the answers<', model.read_text())
    assert len(links) == 1, "those of gated data are not in the bundle"
    place, _, name = links[0].partition("#/logs/")
    assert (model.parent / place).is_file()
    assert (site / "some where" / "answers" / "logs" / name.removesuffix("/samples")).is_file()
    page = (site / "some where" / "answers" / "index.html").read_text()
    assert page.count("A &lt;board&gt;</a>") == 1
    back = re.search('id="cultureval-back" href="([^"]*)"', page)[1]
    assert (site / "some where" / "answers" / back).resolve() == site / "index.html"
    assert gated_answers(site) == []
    write_bundle(write_logs([root]), site / "all", gated=True)
    assert gated_answers(site) == [site / "all"]
    mark = (site / "all" / "cultureval_viewer.json").rename(tmp_path / "mark")  # as where the command was killed
    assert gated_answers(site) and all((site / "all" / "logs") in (one, *one.parents) for one in gated_answers(site))
    mark.rename(site / "all" / "cultureval_viewer.json")
    with pytest.raises(CulturevalError, match="all holds answers to gated data"):
        push_space(site, "lab/board", public=False)
    for bad in ('{"logs": 1}', "x"):
        (site / "some where" / "answers" / "cultureval_viewer.json").write_text(bad)
        with pytest.raises(CulturevalError, match="write the bundle again"):
            write_site(read_board([root], ranks=False), site, "b", (), "some where/answers")


def test_charts_that_cannot_be_made_do_not_end_the_page(tmp_path, monkeypatch):
    """Tables were guarded for each suite, charts were not: one file ended the whole page."""

    def fails(models):
        raise IndexError("tuple index out of range")

    monkeypatch.setattr("cultureval.reports.qimma.table.charts", fails)
    write_run(tmp_path, "lab/a", ["qimma_aratrust"], 0.5, 10, signed={})
    (section,) = read_board([tmp_path]).sections
    assert any("charts cannot be made" in note for note in section.tables[0].notes)
