"""`cultureval judge --ratings` on planted runs and files of human ratings."""

import csv
import itertools
import re

import numpy as np
import pytest
from planted import judge, plant, text_row
from scipy.stats import kendalltau
from typer.testing import CliRunner

from cultureval.metrics.rater_agreement import gwet_ac1
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.main import app

CRITERIA = ["Consistency", "Relevance", "Fluency", "Dialect Authenticity"]
MODELS, COUNTRIES = ("lab/model-a", "lab/model-b"), {"JO": "Jordan", "EG": "EG"}
IMAGES = [f"image{number}" for number in range(12)]
RNG = np.random.default_rng(7)
# What people and metrics say of each caption: country, model, image -> four human scores, a metric.
SCORES = {
    key: (RNG.integers(1, 6, 4).tolist(), float(RNG.normal())) for key in itertools.product(COUNTRIES, MODELS, IMAGES)
}


def caption(country, model, image):
    return f"وصف {country} {model[-1]} {image}"


def rows_of(country, model, metric):
    return [
        text_row(at, metric(SCORES[country, model, image]), caption(country, model, image), **about)
        for at, image in enumerate(IMAGES)
        for about in [{"country": country, "image_id": image}]
    ]


def save_results(root, judged=None):
    """Two models with captions of two countries; `judged` gives a judge's metrics of a caption's scores."""
    for model in MODELS:
        tasks = {
            f"jeem_caption:{country.lower()}|0": rows_of(country, model, lambda of: {"cider": of[1], "constant": 3.0})
            for country in COUNTRIES
        }
        file = plant(root, tasks, model)
        for number, (country, task) in enumerate(zip(COUNTRIES, tasks, strict=True)):
            if judged:
                judge(file, task, rows_of(country, model, judged), f"2026-11-0{number + 2}T10-00-00.000000")
    return root


def write_ratings(path, rows):
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def ratings():
    return [
        {"Country": COUNTRIES[country], "Image ID": image, "Model": model.split("/")[1]}
        | {"Caption": caption(country, model, image), **dict(zip(CRITERIA, scores, strict=True))}
        for (country, model, image), (scores, _) in SCORES.items()
    ]


def run(suite, human, *arguments):
    command = ["judge", "--ratings", f"{suite}={human}", *map(str, arguments)]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def table_rows(output):
    return [re.split(r" {2,}", line.strip()) for line in output.splitlines()]


def cells(path, *names):
    with path.open(encoding="utf-8") as file:
        return {tuple(row[name] for name in names): row for row in csv.DictReader(file)}


def correlations(path):
    return cells(path, "metric", "criterion", "dialect")


def test_correlations_are_scipys_for_every_criterion_and_dialect(tmp_path):
    human = write_ratings(tmp_path / "human.csv", ratings())
    output = run("jeem", human, save_results(tmp_path), "--output", tmp_path / "cells.csv")
    found = correlations(tmp_path / "cells.csv")
    for dialect, place in itertools.product(("all", "JO", "EG"), range(5)):
        rows = [value for key, value in SCORES.items() if dialect in ("all", key[0])]
        people = [np.mean(scores) if place == 4 else scores[place] for scores, _ in rows]
        cell = found["cider", [*CRITERIA, "mean"][place], dialect]
        assert float(cell["value"]) == pytest.approx(kendalltau([metric for _, metric in rows], people, variant="c")[0])
        assert float(cell["low"]) < float(cell["value"]) < float(cell["high"])
        # An image of two countries is two items; two models' captions of it are one.
        assert (int(cell["pairs"]), int(cell["items"])) == ((48, 24) if dialect == "all" else (24, 12))
    assert found["constant", "mean", "all"]["value"] == "" and "n/a" in output
    assert "48 rated texts, 48 ratings." in output


def test_judges_are_compared_with_people_and_with_each_other(tmp_path):
    """Ratings 3 and 4 have the rounded mean 4; no text is left out because its mean is no whole number."""
    parts = ["consistency", "relevance", "fluency", "dialect_authenticity"]

    def judged(of):
        scores = {f"judge_j_reference_{part}": float(score) for part, score in zip(parts, of[0], strict=True)}
        fluency = None if of is SCORES["EG", MODELS[1], "image0"] else scores["judge_j_reference_fluency"]
        return scores | {"judge_j_reference_fluency": fluency, "judge_k_reference_fluency": 6.0 - of[0][2]}

    save_results(tmp_path, judged)
    one = [row | {"Annotator": "one"} for row in ratings()]
    two = [row | {"Annotator": "two", "Fluency": min(5, row["Fluency"] + at % 2)} for at, row in enumerate(one)]
    human = write_ratings(tmp_path / "human.csv", one + two)
    run("jeem", human, tmp_path, "--output", tmp_path / "cells.csv")
    assert correlations(tmp_path / "cells.csv")["judge_j_reference_mean", "mean", "all"]["pairs"] == "47"
    found = cells(tmp_path / "cells_raters.csv", "criterion", "raters", "coefficient")
    pairs = [(row["Fluency"], other["Fluency"]) for row, other in zip(one, two, strict=True)]
    expected = {
        "annotators": pairs,
        "rounded mean of people and judge_k_reference": [(int((a + b + 1) / 2), 6 - a) for a, b in pairs],
        "judge_j_reference and judge_k_reference": [
            (a, 6 - a) for (a, _), key in zip(pairs, SCORES, strict=True) if key != ("EG", MODELS[1], "image0")
        ],
    }
    for raters, values in expected.items():
        cell = found["Fluency", raters, "AC1"]
        assert float(cell["value"]) == pytest.approx(gwet_ac1(values, range(1, 6)))
        assert (int(cell["texts"]), cell["excluded"]) == (len(values), "0")
    assert float(found["Fluency", "judge_j_reference and judge_k_reference", "tau_c"]["value"]) < -0.9
    agree = found["Relevance", "rounded mean of people and judge_j_reference", "alpha"]
    assert (float(agree["value"]), agree["low"]) == (1, "")  # agreement on all tells no interval


def test_annotators_need_no_results_and_ratings_off_the_scale_are_counted(tmp_path):
    rows = [row | {"Annotator": "", "Model": ""} for row in ratings() if row["Model"] == "model-a"]
    others = [
        row | {"Consistency": row["Consistency"] % 5 + 1 if at % 3 else row["Consistency"], "Fluency": 3.5}
        for at, row in enumerate(rows)
    ]
    output = run("jeem", write_ratings(tmp_path / "human.csv", rows + others))
    pairs = [(row["Consistency"], other["Consistency"]) for row, other in zip(rows, others, strict=True)]
    (row,) = [row for row in table_rows(output) if row[:2] == ["Consistency", "annotators"]]
    assert [cell.split()[0] for cell in row[2:4]] == ["0.33", f"{gwet_ac1(pairs, range(1, 6)):.2f}"]
    assert row[-2:] == ["24", "0"] and "No metric to compare with" in output
    assert not [row for row in table_rows(output) if row[:2] == ["Fluency", "annotators"]]


def test_what_cannot_be_joined_is_left_out_and_said(tmp_path):
    rows = ratings()
    rows[0]["Caption"] = "وصف آخر"
    rows[1]["Image ID"] = "unknown"
    rows += [rows[2] | {"Model": "Human", "Caption": ""}, rows[3] | {"Model": "model-c"}]
    output = run("jeem", write_ratings(tmp_path / "human.csv", rows), save_results(tmp_path))
    assert "46 rated texts, 46 ratings." in output and "1 ratings of human references excluded." in output
    for reason in ("differ from the text in the results", "have no text in the results", "are of a model that has no"):
        assert f"1 ratings excluded: they {reason}" in output


def test_renamed_models(tmp_path):
    rows = [row | {"Model": {"model-a": "GPT-4o", "model-b": "AyaV"}[row["Model"]]} for row in ratings()]
    human = write_ratings(tmp_path / "human.csv", rows)
    save_results(tmp_path)
    with pytest.raises(CulturevalError, match="No rating is left.*of the results: lab/model-[ab], lab/model-[ab]"):
        run("jeem", human, tmp_path)
    output = run("jeem", human, tmp_path, "--rated-as", "GPT-4o=lab/model-a", "--rated-as", "AyaV=model-b")
    assert "48 rated texts" in output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Fluency": "6"}, "row 1: column 'Fluency' is not a number from 1 to 5"),
        ({"Fluency": "nan"}, "not a number"),
        ({"Country": "Tunisian"}, "names no dialect"),
        ({"Image ID": " "}, "column 'Image ID' is empty"),
        ({"Annotator": "one"}, "row 49: column 'annotator' has rated the same text before"),
    ],
)
def test_a_wrong_cell_is_named(tmp_path, change, message):
    rows = [row | {"Annotator": ""} for row in ratings()]
    more = [rows[0] | change] if "Annotator" in change else []
    human = write_ratings(tmp_path / "human.csv", [rows[0] | change, *rows[1:], *more])
    with pytest.raises(CulturevalError, match=message):
        run("jeem", human)


def test_wrong_files_are_one_sentence(tmp_path):
    rows = [{name: value for name, value in row.items() if name != CRITERIA[3]} for row in ratings()]
    with pytest.raises(CulturevalError, match="no column 'dialect_authenticity'; columns found: Country"):
        run("jeem", write_ratings(tmp_path / "human.csv", rows))
    with pytest.raises(CulturevalError, match="none.csv does not exist"):
        run("jeem", tmp_path / "none.csv")
    plant(tmp_path, {"qimma_aratrust|0": [text_row(0, {"acc": 1.0})]})
    with pytest.raises(CulturevalError, match="no details of rated tasks"):
        run("jeem", write_ratings(tmp_path / "human.csv", ratings()), tmp_path)


def test_alqasidas_files_hold_their_own_metric_and_join_saved_answers(tmp_path):
    """The form of humevals/results: completions of three models to prompts; TVD is the authors' ADI2."""
    scores = [(1 + n % 3, 1 + n % 5, 1 + n * 7 % 5, (n * 7 % 5) / 5 + n / 1000) for n in range(30)]
    rows = [
        {"": n, "Prompt": f"سؤال {n // 3}", "Completion": f"جواب {n}", "Dialect": "egy", "Adherence": adherence}
        | {"Model": ("gpt-4o", "command_r+", "base")[n % 3], "Fluency": fluency, "Dialectal Accuracy": accuracy}
        | {"TVD": tvd}
        for n, (adherence, fluency, accuracy, tvd) in enumerate(scores)
    ]
    human = write_ratings(tmp_path / "egy_monolingual_humeval.csv", rows)
    output = run("alqasida", human, "--output", tmp_path / "cells.csv")
    found = correlations(tmp_path / "cells.csv")
    for place, criterion in enumerate(["Adherence", "Fluency", "Dialectal Accuracy"]):
        expected = kendalltau([row[3] for row in scores], [row[place] for row in scores], variant="c")[0]
        assert float(found["TVD", criterion, "all"]["value"]) == pytest.approx(expected)
        assert found["TVD", criterion, "all"]["items"] == "10"
    assert "people's Dialectal Accuracy score" in output and ("TVD", "mean", "all") not in found
    details = [
        text_row(n, {"adi2": row["TVD"] ** 2, "judge_j_dialectal_fidelity_dialectal_fidelity": 6.0 - scores[3 * n][2]})
        | {"model_response": {"text": [row["Completion"]]}}
        for n, row in enumerate(rows[::3])
    ]
    for row, rated in zip(details, rows[::3], strict=True):
        row["doc"]["query"] = rated["Prompt"]
    plant(tmp_path, {"alqasida_mono:habibi_egy|0": details}, "openai/gpt-4o")
    run("alqasida", human, tmp_path, "--output", tmp_path / "cells.csv")
    found = correlations(tmp_path / "cells.csv")
    both = [found[metric, "Dialectal Accuracy", "all"]["value"] for metric in ("TVD", "adi2")]
    assert both[0] == both[1] != ""
    assert float(found["judge_j_dialectal_fidelity_dialectal_fidelity", "Dialectal Accuracy", "all"]["value"]) < -0.9
    raters = cells(tmp_path / "cells_raters.csv", "criterion", "raters")
    assert ("Dialectal Accuracy", "rounded mean of people and judge_j_dialectal_fidelity") in raters
