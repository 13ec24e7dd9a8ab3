"""`cultureval compare m2cqa` on saved runs: what is compared, what is refused, tables and figures."""

import csv
import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from item_runs import rank_runs
from m2cqa_runs import drawn_verdicts, write_run
from typer.testing import CliRunner

from cultureval.metrics.m2cqa.counterfactual import counterfactual_report
from cultureval.metrics.paired_tests import PairedSubset, compare_paired
from cultureval.reports.comparison.report import compare_all
from cultureval.reports.m2cqa.comparison import printed_p_value
from cultureval.reports.m2cqa.comparison_rows import Borders
from cultureval.reports.model_sizes import family, model_sizes
from cultureval.runs.load_runs import load
from cultureval.runs.means import interval_of
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.main import app

CELLS = {
    f"{prompt}_{variety}": drawn_verdicts(300, 0.9 - 0.05 * a, 0.8 + 0.05 * a - 0.1 * b, seed=10 * a + b, invalid=0.02)
    for a, prompt in enumerate(("tf", "answer_reason", "reason_first"))
    for b, variety in enumerate(("en", "msa", "ajp", "arz"))
}
WORSE = {name: drawn_verdicts(300, 0.95, 0.4, seed=100 + number) for number, name in enumerate(CELLS)}


def compare(*arguments):
    """The command's output; what it raises comes through."""
    command = ["compare", "m2cqa", *map(str, arguments)]
    command += [] if "--figures" in command else ["--figures", "none"]
    done = CliRunner().invoke(app, command, catch_exceptions=False, prog_name="c")
    assert done.exit_code == 0, done.output
    return done.output


def rows_of(file):
    with file.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def judgements(verdicts):
    return verdicts[:, 0] == "true", verdicts[:, 1:] == "false"


def fooled_of_right(verdicts):
    right, rejected = judgements(verdicts)
    return np.column_stack([right & ~rejected.all(axis=1), right])


def by_compare(*pairs):
    """The columns of a difference by the general comparison: of one variety, or the mean of several.

    Items of which one of the two has no readable Q+ are left out.
    """
    subsets = []
    for pair in pairs:
        (kept,) = np.nonzero((pair[0][:, 0] != "invalid") & (pair[1][:, 0] != "invalid"))
        subsets.append(PairedSubset(*(fooled_of_right(one[kept]) for one in pair), clusters=list(kept)))
    found = compare_paired(subsets)
    known = {"delta": found.difference, "ci_low": found.low, "ci_high": found.high, "p_value": found.p_value}
    return known | {"n_items": found.clusters}


def without_escapes(markdown):
    return re.sub(r"\\(.)", r"\1", markdown)


@pytest.fixture(scope="module")
def two_models(tmp_path_factory):
    """The folder of two runs of all cells and their comparison, and what that printed."""
    folder = tmp_path_factory.mktemp("two_models")
    write_run(folder / "a", "org/model-2B", CELLS)
    write_run(folder / "b", "org/model-8B", WORSE)
    output = compare(folder / "a", folder / "b", "--output-dir", folder / "out", "--figures", "svg")
    return folder, output


@pytest.mark.slow
def test_cells_differences_and_figures_of_two_models(two_models):
    folder, output = two_models
    cells = {(row["model"], row["prompt"], row["variety"]): row for row in rows_of(folder / "out/cells.csv")}
    assert len(cells) == 2 * 3 * 5
    own = counterfactual_report(*judgements(CELLS["tf_msa"]), CELLS["tf_msa"] == "invalid")
    for name in ("q_plus_acc", "q_minus_acc", "f1", "combined_acc", "cfhr", "cfhr_stderr", "invalid_rate"):
        assert float(cells["org/model-2B", "tf", "msa"][name]) == pytest.approx(own[name])
    for name in ("q_plus_acc", "f1", "cfhr"):
        mean = np.mean([float(cells["org/model-2B", "tf", variety][name]) for variety in ("ajp", "arz")])
        assert float(cells["org/model-2B", "tf", "dialect"][name]) == pytest.approx(mean)
    differences = rows_of(folder / "out/differences.csv")
    # Five varieties: three pairs of prompts for each model, one pair of models for each prompt.
    assert len(differences) == 5 * (2 * 3 + 3)
    (row,) = [
        row
        for row in differences
        if (row["variety"], row["held"], row["first"], row["second"]) == ("en", "org/model-2B", "tf", "reason_first")
    ]
    expected = by_compare((CELLS["tf_en"], CELLS["reason_first_en"]))
    assert {name: float(row[name]) for name in expected} == pytest.approx(expected)
    text = without_escapes((folder / "out/comparison.md").read_text(encoding="utf-8"))
    assert "## Differences of models" in text and "| over-acceptance |" in text
    # The terminal shows every row of the file's tables, laid out otherwise.
    printed = [re.split(r" {2,}", line) for line in output.splitlines()]
    tables = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert len(tables) == 5 + len(cells) + len(differences) and all(row in printed for row in tables)
    for stem in ("regimes", "cfhr_by_size"):
        ElementTree.parse(folder / "out" / f"{stem}.svg")


def test_dialect_differences_share_their_resamples(two_models):
    rows = [row for row in rows_of(two_models[0] / "out/differences.csv") if row["variety"] == "dialect"]
    rows = [row for row in rows if row["held"] == "org/model-2B"]
    assert len(rows) == 3
    expected = by_compare(*((CELLS[f"tf_{d}"], CELLS[f"answer_reason_{d}"]) for d in ("ajp", "arz")))
    assert {name: float(rows[0][name]) for name in expected} == pytest.approx(expected)
    assert expected["ci_low"] < expected["delta"] < expected["ci_high"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "kind", "words"),
    [
        ({"report": {"fingerprint": "other"}}, "items", "order of examples) differs: 'hash-en' / 'other'"),
        ({"recorded": {"settings": {"image_placement": "last"}}}, "prompts", "image placement differs"),
        ({"recorded": {"system_prompt_hash": "ab"}}, "prompts", "system prompt differs: 'not told' / 'ab'"),
    ],
)
def test_runs_that_compare_refuses_are_not_compared_silently_here(tmp_path, changed, kind, words):
    write_run(tmp_path / "a", "a", {"tf_en": CELLS["tf_en"]}, recorded={})
    write_run(tmp_path / "b", "b", {"tf_en": WORSE["tf_en"]}, **{"recorded": {}} | changed)
    with pytest.raises(CulturevalError) as caught:
        compare(tmp_path / "a", tmp_path / "b", "--output-dir", tmp_path / "out")
    assert f"a tf / b tf, {kind}: m2cqa:tf_en|0: " in str(caught.value) and words in str(caught.value)
    assert f"--allow {kind} compares them all the same." in str(caught.value)
    assert not (tmp_path / "out").exists()
    for number, option in enumerate((("--force",), ("--allow", kind))):
        compare(tmp_path / "a", tmp_path / "b", "--output-dir", tmp_path / f"out{number}", *option)
        text = without_escapes((tmp_path / f"out{number}/comparison.md").read_text(encoding="utf-8"))
        assert f"compared all the same, {kind}" in text and words in text


def test_prompts_of_one_model_are_compared_on_the_same_statements_alone(tmp_path):
    write_run(tmp_path, "m", {"tf_en": CELLS["tf_en"]})
    write_run(tmp_path, "m", {"reason_first_en": WORSE["tf_en"]}, date="2026-01-02T00-00-00", report={"prompt": "q"})
    output = compare(tmp_path, "--output-dir", tmp_path / "out")
    (row,) = rows_of(tmp_path / "out/differences.csv")
    assert (row["held"], row["first"], row["second"]) == ("m", "tf", "reason_first")
    assert "compared all the same" not in output, "their prompts are what is compared"
    write_run(tmp_path, "m", {"reason_first_en": WORSE["tf_en"]}, "2026-01-03T00-00-00", report={"fingerprint": "x"})
    with pytest.raises(CulturevalError, match="m tf / m reason_first, items: m2cqa:tf_en|0: the fingerprint"):
        compare(tmp_path, "--output-dir", tmp_path / "out")


def test_unreadable_replies_to_true_statements_lower_no_rank_of_cfhr_and_decide_no_difference(tmp_path):
    """A model that left Q+ of the items that fool it unreadable had a lower CFHR, told by a mark only."""
    fooled, never = np.array([["true"] * 3]), np.array([["true", "false", "false"]], dtype="<U7")
    honest = np.concatenate([np.repeat(fooled, 60, 0), np.repeat(never, 140, 0)])
    gaming = honest.copy()
    gaming[:60, 0] = "invalid"
    better = np.concatenate([np.repeat(fooled, 40, 0), np.repeat(never, 160, 0)])
    for name, verdicts in {"a": gaming, "b": better, "c": honest}.items():
        write_run(tmp_path, name, {"tf_en": verdicts})
    output = compare(tmp_path, "--output-dir", tmp_path / "out")
    rows = {(row["first"], row["second"]): row for row in rows_of(tmp_path / "out/differences.csv")}
    assert (rows["a", "b"]["left_out_first"], rows["a", "b"]["p_holm"]) == ("60", "1.0")
    assert float(rows["a", "b"]["lowest"]) == pytest.approx(-0.2) and float(rows["a", "b"]["highest"]) > 0
    assert "a tf has no score for 60 items, b tf for 0 items" in output
    assert re.search(r"^en +tf +a +b +140, 60 left out, decides nothing ", output, re.MULTILINE)
    assert "| 140 of 200, 60 unscored |" in (tmp_path / "out/comparison.md").read_text(encoding="utf-8")
    runs, rates = load(tmp_path), {"a": 0.0, "b": 0.2, "c": 0.3}
    runs = [replace(run, scores={"m2cqa:tf_en|0": {"cfhr": rates[run.file.parent.name]}}) for run in runs]
    names = [run.file.parent.name for run in runs]
    ranking, notes = rank_runs(runs, {"m2cqa:tf_en|0": "cfhr"}, names=names, higher_is_better=False)
    assert ranking.rows[0].model == "b" and "60 items without a score" in " ".join(notes)


@pytest.mark.slow
def test_the_general_comparison_has_the_same_numbers(tmp_path):
    write_run(tmp_path / "a", "a", {"tf_en": CELLS["tf_en"]})
    write_run(tmp_path / "b", "b", {"tf_en": WORSE["tf_en"]})
    for profile, metric in (("strict", "cfhr"), ("lenient", "cfhr_lenient")):
        compare(tmp_path / "a", tmp_path / "b", "--output-dir", tmp_path / "own", "--profile", profile)
        compare_all([tmp_path / "a", tmp_path / "b"], tmp_path / "all", [metric])
        (own,), (general,) = (rows_of(tmp_path / folder / "differences.csv") for folder in ("own", "all"))
        names = {"delta": "difference", "ci_low": "low", "ci_high": "high", "n_items": "clusters"}
        assert {names.get(name, name): own[name] for name in own if name not in ("variety", "held", "level")} == {
            name: general[name] for name in general if name not in ("level", "name")
        }


def test_identical_cells_and_cells_that_no_resample_changes(tmp_path):
    """No item fools any model; the second accepts ten true statements, the others all twenty."""
    first = np.array([["true", "false", "false"]] * 20)
    second = np.array([["true" if number < 10 else "false", "false", "false"] for number in range(20)])
    for name, verdicts in {"a": first, "b": second, "c": first}.items():
        write_run(tmp_path, name, {"tf_en": verdicts})
    output = compare(tmp_path, "--output-dir", tmp_path / "out")
    rows = {(row["first"], row["second"]): row for row in rows_of(tmp_path / "out/differences.csv")}
    assert [rows[pair]["identical"] for pair in (("a", "b"), ("a", "c"))] == ["False", "True"]
    same = [float(rows["a", "c"][name]) for name in ("ci_low", "ci_high", "p_value")]
    assert same == pytest.approx([-1.959964 * 2**0.5 / 22, 1.959964 * 2**0.5 / 22, 1])  # Bonett and Price's of 20
    # Newcombe's interval of 0 of 20 against 0 of 10, from Wilson's.
    interval = [float(rows["a", "b"][name]) for name in ("delta", "ci_low", "ci_high", "p_value")]
    assert interval == pytest.approx([0, -0.2775, 0.1611, 1], abs=1e-4)
    assert re.search(r"a +c +20 +0\.000 +identical", output)
    cells = {row["model"]: row for row in rows_of(tmp_path / "out/cells.csv")}
    assert [float(cells["a"][name]) for name in ("cfhr_low", "cfhr_high")] == pytest.approx([0, 0.1611], abs=1e-4)
    assert re.search(r"0\.000 +\[0\.000, 0\.161\]", output)


@pytest.mark.slow
def test_p_values_are_adjusted_for_the_differences_of_their_table(two_models, tmp_path):
    folder, output = two_models
    rows = rows_of(folder / "out/differences.csv")
    for held, count in ((("tf", "answer_reason", "reason_first"), 15), (("org/model-2B", "org/model-8B"), 30)):
        of_family = [row for row in rows if row["held"] in held]
        raw = [max(float(row[name] or 0) for name in ("p_value", "p_left_out")) for row in of_family]
        family = sorted(zip(raw, (float(row["p_holm"]) for row in of_family), strict=True))
        assert len(family) == count
        raw = [p for p, _ in family]
        expected = [min(1, max((count - j) * raw[j] for j in range(place + 1))) for place in range(count)]
        assert [adjusted for _, adjusted in family] == pytest.approx(expected)
    assert "p (Holm)" in output
    few = compare(folder / "a", folder / "b", "--output-dir", tmp_path / "few", "--resamples", "100")
    assert "with 30 permutation tests none can be below 0.05 by Holm: --resamples 600 or more" in few


def test_cfhr_by_country_and_category(tmp_path):
    def fields(number):
        return {"country": ("Egypt", "Jordan", "")[number % 3], "category": "Food" if number < 150 else "Sports"}

    write_run(tmp_path, "m", {"tf_en": CELLS["tf_en"], "tf_msa": CELLS["tf_msa"]}, fields=fields)
    output = compare(tmp_path, "--output-dir", tmp_path / "out")
    rows = rows_of(tmp_path / "out/breakdown.csv")
    assert len(rows) == 2 * (3 + 2)
    (row,) = [row for row in rows if (row["variety"], row["value"]) == ("msa", "Jordan")]
    expected = counterfactual_report(*judgements(CELLS["tf_msa"][1::3]))
    assert (int(row["n_items"]), int(row["n_q_plus"])) == (100, expected["n_q_plus"])
    assert float(row["cfhr"]) == pytest.approx(expected["cfhr"])
    assert float(row["cfhr_low"]) < float(row["cfhr"]) < float(row["cfhr_high"])
    pooled = [counterfactual_report(*judgements(CELLS[cell][0::3])) for cell in ("tf_en", "tf_msa")]
    hits = sum(one["n_q_plus"] for one in pooled)
    fooled = sum(round(one["cfhr"] * one["n_q_plus"]) for one in pooled)
    unread = sum(int((CELLS[cell][0::3, 0] == "invalid").sum()) for cell in ("tf_en", "tf_msa"))
    assert f"{fooled / hits:.3f} ({fooled}/{hits}, {unread} unscored)" in output
    assert re.search(r"^unknown ", output, re.MULTILINE)


def test_refused_items_are_counted_in_every_table(tmp_path):
    """A model that refused 33 of 60 items read "22 of 27 ... 0.000 strong grounding" without a mark."""
    fields = {"country": "Egypt"}
    write_run(tmp_path, "all", {"tf_en": CELLS["tf_en"]}, fields=lambda number: fields, recorded={})
    kept = CELLS["tf_en"][200:]
    ids = [f"item-{number:05}" for number in range(200, 300)]
    part = write_run(tmp_path, "part", {"tf_en": kept}, ids=ids, fields=lambda number: fields, recorded={})
    content = json.loads(part.read_text(encoding="utf-8"))
    content["cultureval"]["tasks"]["m2cqa:tf_en|0"] |= {"rows": 300, "refused": 600}
    part.write_text(json.dumps(content), encoding="utf-8")
    output = compare(tmp_path, "--output-dir", tmp_path / "out")
    cells = {row["model"]: row for row in rows_of(tmp_path / "out/cells.csv")}
    unread = int((kept[:, 0] == "invalid").sum())
    counts = [cells["part"][name] for name in ("n_q_plus", "n_asked", "n_unscored")]
    assert counts == [str(int((kept[:, 0] == "true").sum())), "300", str(200 + unread)]
    assert f"{counts[0]} of 300, {counts[2]} unscored" in output and "200 items that part tf was asked are in" in output
    (row,) = [row for row in rows_of(tmp_path / "out/breakdown.csv") if row["model"] == "part"]
    assert unread and row["n_unscored"] == str(unread) and f"/{counts[0]}, {unread} unscored)" in output
    assert re.search(r"^en +tf +all +part .* left out", output, re.MULTILINE)


def test_the_interval_of_cfhr_is_that_of_the_page(two_models):
    """The page had that of the bootstrapped error, `compare m2cqa` Wilson's of the counts."""
    for row in rows_of(two_models[0] / "out/cells.csv"):
        value, error, low, high = (float(row[f"cfhr{end}"]) for end in ("", "_stderr", "_low", "_high"))
        assert interval_of(f"m2cqa:{row['prompt']}_en|0", "cfhr", value, error) == pytest.approx((low, high))


def test_forced_comparison_takes_the_items_that_both_have(tmp_path):
    ids = [f"item-{number:05}" for number in range(300)]
    write_run(tmp_path, "a", {"tf_en": CELLS["tf_en"]}, ids=ids)
    write_run(tmp_path, "b", {"tf_en": WORSE["tf_en"][100:]}, ids=ids[100:], report={"fingerprint": "part"})
    compare(tmp_path, "--output-dir", tmp_path / "out", "--force")
    (row,) = rows_of(tmp_path / "out/differences.csv")
    expected = by_compare((CELLS["tf_en"][100:], WORSE["tf_en"][100:]))
    assert (row["first"], row["second"]) == ("a", "b") and 190 < expected["n_items"] <= 200
    assert {name: float(row[name]) for name in expected} == pytest.approx(expected)


def test_a_run_without_its_results_file_is_not_known_to_be_comparable(tmp_path):
    write_run(tmp_path, "a", {"tf_en": CELLS["tf_en"]})
    write_run(tmp_path, "b", {"tf_en": WORSE["tf_en"]}).unlink()
    with pytest.raises(CulturevalError, match="'v0' / 'not told'"):
        compare(tmp_path, "--output-dir", tmp_path / "out")


@pytest.mark.slow
def test_the_newest_run_counts_and_one_model_twice_is_told_apart(tmp_path):
    write_run(tmp_path / "x", "m", {"tf_en": WORSE["tf_en"]}, date="2026-01-01T00-00-00")
    write_run(tmp_path / "x", "m", {"tf_en": CELLS["tf_en"]}, date="2026-01-02T00-00-00")
    write_run(tmp_path / "y", "m", {"tf_en": WORSE["tf_en"]})
    compare(tmp_path / "x", tmp_path / "y", "--output-dir", tmp_path / "out")
    values = {row["model"]: float(row["cfhr"]) for row in rows_of(tmp_path / "out/cells.csv")}
    assert values["m (x)"] == pytest.approx(counterfactual_report(*judgements(CELLS["tf_en"]))["cfhr"])
    assert values["m (y)"] == pytest.approx(counterfactual_report(*judgements(WORSE["tf_en"]))["cfhr"])


def test_an_undefined_cfhr_is_empty_in_the_tables_and_named_beside_the_figures(tmp_path):
    never = np.array([["false", "false", "false"]] * 5)
    write_run(tmp_path, "never", {"tf_ajp": never, "tf_arz": CELLS["tf_arz"][:5]})
    write_run(tmp_path, "some", {"tf_ajp": CELLS["tf_ajp"][:5]})
    output = compare(tmp_path, "--output-dir", tmp_path / "out")
    cells = {(row["model"], row["variety"]): row for row in rows_of(tmp_path / "out/cells.csv")}
    assert (cells["never", "ajp"]["cfhr"], cells["never", "ajp"]["regime"]) == ("", "undefined")
    assert cells["never", "dialect"]["cfhr"] == ""
    assert not rows_of(tmp_path / "out/differences.csv") and "not compared: m2cqa:tf_ajp|0: cfhr is undefined" in output
    assert "| n/a |" in (tmp_path / "out/comparison.md").read_text(encoding="utf-8")
    write_run(tmp_path, "other", {"tf_ajp": never}, report={"fingerprint": "x"})
    with pytest.raises(CulturevalError, match="never tf / other tf, items: m2cqa:tf_ajp|0: the fingerprint"):
        compare(tmp_path, "--output-dir", tmp_path / "out")  # which have no difference, but would share a table
    assert "not drawn, because CFHR is undefined" in output


def test_what_holds_no_verdicts_is_an_error_for_people(tmp_path):
    with pytest.raises(CulturevalError, match="does not exist"):
        compare(tmp_path / "nowhere")
    file = write_run(tmp_path, "a", {"tf_en": np.array([["true", "maybe", "false"]])})
    with pytest.raises(CulturevalError, match="'maybe'"):
        compare(file)
    elsewhere = write_run(tmp_path / "old", "a", {"tf_en": CELLS["tf_en"][:2]})
    details = next(tmp_path.glob("old/details/a/*/*.parquet"))
    table = pyarrow.parquet.read_table(details)
    bare = table.set_column(table.column_names.index("metric"), "metric", pa.array([{"acc": 1.0}] * len(table)))
    pyarrow.parquet.write_table(bare, details)
    with pytest.raises(CulturevalError, match="has no verdicts of M2CQA"):
        compare(elsewhere)
    other = write_run(tmp_path / "other", "a", {"tf_fr": CELLS["tf_en"]})
    with pytest.raises(CulturevalError, match="not a task of M2CQA"):
        compare(other)


@pytest.mark.slow
def test_names_of_models_are_text_in_tables_and_figures(tmp_path):
    write_run(tmp_path, "a|<b>$x^{-7B", {"tf_en": CELLS["tf_en"]})
    output = compare(tmp_path, "--output-dir", tmp_path / "out", "--figures", "svg")
    assert "en       a|<b>$x^{-7B  " in output
    text = (tmp_path / "out/comparison.md").read_text(encoding="utf-8")
    assert r"| en | a\|\<b\>\$x^\{-7B |" in text and "a|<b>" in without_escapes(text)
    assert "<b>" not in (tmp_path / "out/regimes.svg").read_text(encoding="utf-8")


def test_sizes_and_families():
    models = {"Qwen3-VL-32B-Instruct", "gemma-3-4b-it", "x-1.5B", "FanarOryx-v1", "B52", "Qwen3-30B-A3B"}
    models |= {"SmolVLM-256M-Instruct", "Qwen2.5-14B-Instruct-1M"}
    expected = {"SmolVLM-256M-Instruct": 0.256, "Qwen2.5-14B-Instruct-1M": 14}
    expected |= {"Qwen3-VL-32B-Instruct": 32, "gemma-3-4b-it": 4, "x-1.5B": 1.5, "FanarOryx-v1": 9, "Qwen3-30B-A3B": 30}
    assert model_sizes(models, ["FanarOryx-v1=9"]) == expected
    assert family("SmolVLM-256M-Instruct") == family("SmolVLM-2.2B-Instruct") == "SmolVLM-Instruct"
    assert family("Qwen3-VL-32B-Instruct") == family("Qwen3-VL-2B-Instruct") == "Qwen3-VL-Instruct"
    for wrong in ("AIN=7", "B52=", "B52=0", "B52", "B52=seven"):
        with pytest.raises(CulturevalError, match="MODEL=BILLIONS"):
            model_sizes(models, [wrong])


def test_regimes_are_the_papers_four():
    borders = Borders(0.8, 0.3)
    assert borders.regime(0.93, 0.10) == "strong grounding"
    assert borders.regime(0.59, 0.11) == "conservative rejection"
    assert borders.regime(0.97, 0.79) == "over-acceptance"
    assert borders.regime(0.65, 0.63) == "frequent hallucination"
    assert borders.regime(0.0, None) == "undefined"


def test_p_values_are_printed_as_table_7_does():
    assert [printed_p_value(p) for p in (1 / 1001, 0.001, 0.11, 1.0, None)] == [
        "< 0.001",
        "= 0.001",
        "= 0.110",
        "= 1.000",
        "n/a",
    ]


def test_results_of_other_tasks_alone_are_no_run_of_m2cqa(tmp_path):
    file = write_run(tmp_path, "a", {"tf_en": CELLS["tf_en"][:3]})
    details = next(tmp_path.glob("details/a/*/*.parquet"))
    details.rename(details.with_name(details.name.replace("m2cqa:tf_en", "qimma_gat:Algebra")))
    assert json.loads(file.read_text(encoding="utf-8"))
    with pytest.raises(CulturevalError, match="no run of an m2cqa task"):
        compare(tmp_path)
