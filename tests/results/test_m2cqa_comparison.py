"""`cultureval compare --suite m2cqa` on planted runs: cells of Table 2, differences of Table 7, regimes, figures."""

import csv
from xml.etree import ElementTree

import numpy as np
import pytest
from planted import plant, text_row
from typer.testing import CliRunner

from cultureval.metrics.m2cqa.counterfactual import (
    ROLES,
    Statement,
    counterfactual_report,
    item_columns,
    paired_cfhr_difference,
)
from cultureval.reports.comparison.differences import compare, load_sides
from cultureval.reports.m2cqa.comparison import compare_m2cqa, differences_of, sides_of
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.main import app

PROMPTS, VARIETIES = ("tf", "reason_first"), ("en", "msa", "ajp", "arz")


def drawn(seed, q_plus, rejected, items=200, invalid=0.0):
    """[items, 3] verdicts."""
    draw = np.random.default_rng(seed)
    verdicts = np.full((items, 3), "true", dtype="<U7")
    verdicts[:, 0] = np.where(draw.random(items) < q_plus, "true", "false")
    verdicts[:, 1:] = np.where(draw.random((items, 2)) < rejected, "false", "true")
    verdicts[draw.random((items, 3)) < invalid] = "invalid"
    return verdicts


CELLS = {
    (name, prompt, variety): drawn(10 * seed + len(variety), share, 0.8 - 0.2 * at + 0.03 * len(variety), invalid=0.02)
    for seed, (name, share) in enumerate((("a", 0.9), ("b", 0.7)), start=1)
    for at, prompt in enumerate(PROMPTS)
    for variety in VARIETIES
}


def rows_of(verdicts):
    """The rows of statements, with the metrics as they are scored."""
    statements = [
        Statement(f"i{at}", *pair) for at, row in enumerate(verdicts) for pair in zip(ROLES, row, strict=True)
    ]
    columns = item_columns(statements)
    rows = []
    for at, statement in enumerate(statements):
        metric = {}
        for name, (scores, dens, sums) in columns.items():
            score = None if np.isnan(scores[at]) else scores[at]
            metric |= {name: score, f"{name}_den": dens[at]} | ({f"{name}_sums": sums[at]} if any(sums) else {})
        rows.append(text_row(at, metric, item_id=statement.item_id, role=statement.role))
    return rows


@pytest.fixture(scope="module")
def two_models(tmp_path_factory):
    """A folder with two runs of both prompts."""
    folder = tmp_path_factory.mktemp("m2cqa")
    for name in "ab":
        tasks = {f"m2cqa:{p}_{v}|0": rows_of(cell) for (model, p, v), cell in CELLS.items() if model == name}
        plant(folder / name, tasks, model=f"lab/{name}")
    return folder


def read(verdicts):
    return verdicts[:, 0] == "true", verdicts[:, 1:] == "false"


def table(file):
    with file.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_cells_are_the_papers_metrics_and_dialect_is_a_mean(two_models, tmp_path):
    command = ["compare", str(two_models / "a"), str(two_models / "b"), "--suite", "m2cqa"]
    done = CliRunner().invoke(app, [*command, "--output-dir", str(tmp_path / "out")], catch_exceptions=False)
    assert done.exit_code == 0 and "Differences of CFHR between prompts" in done.output
    cells = {(row["model"], row["prompt"], row["variety"]): row for row in table(tmp_path / "out/cells.csv")}
    assert len(cells) == 2 * 2 * 5
    for (name, prompt, variety), verdicts in CELLS.items():
        own = counterfactual_report(*read(verdicts), verdicts == "invalid")
        row = cells[f"lab/{name}", prompt, variety]
        for metric in ("q_plus_acc", "q_minus_acc", "f1", "combined_acc", "cfhr", "invalid_rate"):
            assert float(row[metric]) == pytest.approx(own[metric])
        assert (float(row["items"]), float(row["right_q_plus"])) == (200, own["n_q_plus"])
        assert float(row["cfhr_low"]) < own["cfhr"] < float(row["cfhr_high"])
    parts = [float(cells["lab/a", "tf", variety]["cfhr"]) for variety in ("ajp", "arz")]
    assert float(cells["lab/a", "tf", "dialect"]["cfhr"]) == pytest.approx(np.mean(parts))
    assert {row["regime"] for row in cells.values()} >= {"over-acceptance"}
    assert len(table(tmp_path / "out/differences.csv")) == 5 * (2 + 2)
    ElementTree.parse(tmp_path / "out/regimes.svg")


def test_differences_are_those_of_the_papers_bootstrap_and_of_compare(two_models):
    runs, _ = load_sides([two_models / "a", two_models / "b"])
    notes = []
    found = differences_of([side for run in runs for side in sides_of(run)], "cfhr", (), 2000, 0, notes)
    rows = {(row.level, held, row.name): row for held, row in found}
    assert len(rows) == 20 and not notes
    row = rows["prompts", "lab/a", "en"]
    first, second = (CELLS["a", prompt, "en"] for prompt in PROMPTS)
    wanted = paired_cfhr_difference(*read(first), *read(second))
    # The paper takes an unreadable Q+ for a wrong one; here it counts as fooled.
    assert row.pair.difference == pytest.approx(wanted["delta"], abs=0.02)
    assert (row.pair.low, row.pair.high) == pytest.approx((wanted["ci_low"], wanted["ci_high"]), abs=0.04)
    models = rows["models", "tf", "msa"]
    general = compare(runs, ["cfhr"], draws=2000)
    (same,) = [one for one in general.rows if one.name == "m2cqa:tf_msa|0"]
    assert models.pair == same.pair and models.scores == same.scores
    assert rows["prompts", "lab/a", "dialect"].pair.clusters <= 200  # an item in both dialects is one cluster
    of_prompts = [one for (level, *_), one in rows.items() if level == "prompts"]
    least = min(of_prompts, key=lambda one: one.pair.p)
    assert least.p_holm == pytest.approx(min(1, len(of_prompts) * least.pair.p))


def test_runs_with_other_settings_are_refused_and_one_run_compares_its_prompts(two_models, tmp_path):
    text, files = compare_m2cqa([two_models / "a"], None)
    assert "between prompts" in text and "between models" not in text and not files
    rows = rows_of(CELLS["a", "tf", "en"])
    for name, form in (("x", "original"), ("y", "changed")):
        report = {"m2cqa:tf_en|0": {"prompt": form}}
        plant(tmp_path / name, {"m2cqa:tf_en|0": rows}, model=f"lab/{name}", reports=report)
    paths = [tmp_path / "x", tmp_path / "y"]
    with pytest.raises(CulturevalError, match="prompt: original / changed"):
        compare_m2cqa(paths, None)
    assert "identical" in compare_m2cqa(paths, None, allowed=["prompt"])[0]
    plant(tmp_path / "other", {"qimma_aratrust|0": [text_row(0, {"acc_norm": 1.0})]}, model="lab/other")
    with pytest.raises(CulturevalError, match="no run of M2CQA"):
        compare_m2cqa([tmp_path / "other"], None)


def test_an_undefined_cfhr_is_empty_and_an_unreadable_q_plus_gains_nothing(tmp_path):
    never, some = drawn(0, 0.0, 0.5, 40), drawn(1, 1.0, 0.5, 40)
    hidden = some.copy()
    hidden[(some[:, 1:] == "true").any(axis=1), 0] = "invalid"  # every item that would have fooled it
    for name, verdicts in (("never", never), ("some", some), ("hidden", hidden)):
        plant(tmp_path / name, {"m2cqa:tf_en|0": rows_of(verdicts)}, model=f"lab/{name}")
    text, _ = compare_m2cqa([tmp_path / "never"], None)
    assert "undefined" in text and "n/a" in text
    (row,) = compare(load_sides([tmp_path / "some", tmp_path / "hidden"])[0]).rows
    assert row.scores[1].value == 0 and row.pair.difference == pytest.approx(0)
