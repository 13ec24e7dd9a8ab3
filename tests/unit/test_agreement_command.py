"""`cultureval agreement` on results of LightEval's shape and files of human ratings."""

import csv
import itertools
import re

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import pytest
from scipy.stats import kendalltau
from typer.testing import CliRunner

from cultureval.metrics.rater_agreement import gwet_ac1
from cultureval.runs.files import find_saved_tasks, read_details
from cultureval.runs.writing import write_derived
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.main import app

CRITERIA = ["Consistency", "Relevance", "Fluency", "Dialect Authenticity"]
MODELS = ("lab/model-a", "lab/model-b")
IMAGES = [f"image{number}" for number in range(12)]
RNG = np.random.default_rng(7)
# What people and metrics say of each caption: country, model, image -> four human scores, a metric.
SCORES = {
    key: (RNG.integers(1, 6, 4).tolist(), float(RNG.normal()))
    for key in itertools.product(("JO", "EG"), MODELS, IMAGES)
}
ASKED = {"query": "صف الصورة", "choices": [""], "gold_index": 0}


def caption(country, model, image):
    return f"وصف {country} {model[-1]} {image}"


def save_details(root, task, model, rows, date="2026-01-01"):
    folder = root / "details" / model / date
    folder.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / f"details_{task}|0_{date}.parquet")


def save_results(root):
    for country, model in itertools.product(("JO", "EG"), MODELS):
        rows = [
            {
                "doc": {"id": image, "specific": {"country": country, "image_id": image}, **ASKED},
                "model_response": {"text": [caption(country, model, image)]},
                "metric": {"cider": SCORES[country, model, image][1], "constant": 3.0, "undefined": float("nan")},
            }
            for image in IMAGES
        ]
        save_details(root, f"jeem_caption:{country.lower()}", model, rows)
    return root


def write_ratings(path, rows):
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def ratings():
    names = {"JO": "Jordan", "EG": "egyptian"}
    return [
        {
            "Dialect": names[country],
            "Image ID": image,
            "Model": model.split("/")[1],
            "Caption": caption(country, model, image),
        }
        | dict(zip(["Con", "Rel", "Flu", "DA"], scores, strict=True))
        for (country, model, image), (scores, _) in SCORES.items()
    ]


def run(*arguments):
    result = CliRunner().invoke(app, ["agreement", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def table_rows(output):
    """The cells of every line of the tables in the output."""
    return [re.split(r" {2,}", line) for line in output.splitlines()]


def cells(path):
    with path.open(encoding="utf-8") as file:
        return {(row["metric"], row["criterion"], row["dialect"]): row for row in csv.DictReader(file)}


def test_correlations_are_scipys_for_every_criterion_and_dialect(tmp_path):
    human = write_ratings(tmp_path / "human.csv", ratings())
    output = run("jeem", human, save_results(tmp_path), "--output", tmp_path / "cells.csv")
    found = cells(tmp_path / "cells.csv")
    for dialect, place in itertools.product(("all", "JO", "EG"), range(5)):
        rows = [value for key, value in SCORES.items() if dialect in ("all", key[0])]
        people = [np.mean(scores) if place == 4 else scores[place] for scores, _ in rows]
        cell = found["cider", [*CRITERIA, "mean"][place], dialect]
        assert float(cell["tau_c"]) == pytest.approx(kendalltau([metric for _, metric in rows], people, variant="c")[0])
        assert float(cell["low"]) < float(cell["tau_c"]) < float(cell["high"])
        # An image of two countries is two items; two models' captions of it are one.
        assert (int(cell["pairs"]), int(cell["items"])) == ((48, 24) if dialect == "all" else (24, 12))
    assert found["constant", "mean", "all"]["tau_c"] == "" and "n/a" in output
    assert not any(metric == "undefined" for metric, _, _ in found)
    assert "48 rated texts of 48 ratings." in output


def test_later_judgements_count_and_judges_are_compared_with_people(tmp_path):
    save_results(tmp_path)
    parts = ["consistency", "relevance", "fluency", "dialect_authenticity"]
    for task in find_saved_tasks([tmp_path]):
        country = task.task.split(":")[1][:2].upper()
        metrics = [
            {
                f"judge_j_reference_{part}": float(score)
                for part, score in zip(parts, SCORES[country, task.model, image][0], strict=True)
            }
            for image in IMAGES
        ]
        metrics[0]["judge_j_reference_fluency"] = float("nan")  # unscored
        write_derived(task, "2026-02-02", read_details(task.file), metrics)
    human = write_ratings(tmp_path / "human.csv", ratings())
    output = run("jeem", human, tmp_path, "--output", tmp_path / "cells.csv")
    found = cells(tmp_path / "cells.csv")
    assert found["judge_j_reference_mean", "mean", "all"]["pairs"] == "44"
    for part, criterion in zip(parts, CRITERIA, strict=True):
        same = float(found[f"judge_j_reference_{part}", criterion, "all"]["tau_c"])
        assert same > 0.9 and found["cider", criterion, "all"]["pairs"] == "48"
    names = ["Fluency", "rounded mean of people and judge_j_reference"]
    (row,) = [row for row in table_rows(output) if row[:2] == names]
    assert row[2:7] == ["1.000 [n/a]"] * 5 and row[8:] == ["44", "0"]  # agreement on all tells no interval


def test_judgements_of_other_answers_do_not_count(tmp_path):
    """A newer run of the model has other captions: judgements of the older run are not theirs."""
    save_results(tmp_path)
    (old, *_) = find_saved_tasks([tmp_path])
    write_derived(old, "2026-02-02", read_details(old.file), [{"judge_j_reference_fluency": 5.0}] * len(IMAGES))
    rows = read_details(old.file).to_pylist()
    save_details(tmp_path, old.task.removesuffix("|0"), old.model, rows, date="2026-03-03")
    human = write_ratings(tmp_path / "human.csv", ratings())
    assert "judge_j" not in run("jeem", human, tmp_path)


def test_annotators_of_the_same_captions_are_compared(tmp_path):
    rows = [row | {"Annotator": "one", "Model": ""} for row in ratings() if row["Model"] == "model-a"]
    others = [
        row | {"Annotator": "two", "Con": row["Con"] % 5 + 1 if place % 3 else row["Con"]}
        for place, row in enumerate(rows)
    ]
    human = write_ratings(tmp_path / "human.csv", rows + others)
    output = run("jeem", human)
    pairs = [(row["Con"], other["Con"]) for row, other in zip(rows, others, strict=True)]
    (row,) = [row for row in table_rows(output) if row[:2] == ["Consistency", "annotators"]]
    assert [cell.split()[0] for cell in row[2:4]] == ["0.333", f"{gwet_ac1(pairs, range(1, 6)):.3f}"]
    assert row[8:] == ["24", "0"]
    assert ["Relevance", "annotators", "1.000 [n/a]"] in [row[:3] for row in table_rows(output)]
    assert "No metric to compare with" in output


def test_judges_are_compared_with_each_annotator_on_all_texts_and_with_each_other(tmp_path):
    """Ratings 3 and 4 have the rounded mean 4; no text is left out because its mean is no whole number."""
    save_results(tmp_path)
    for task in find_saved_tasks([tmp_path]):
        country = task.task.split(":")[1][:2].upper()
        people = [SCORES[country, task.model, image][0][2] for image in IMAGES]
        scores = [{"judge_j_reference_fluency": float(n), "judge_k_reference_fluency": 6.0 - n} for n in people]
        write_derived(task, "2026-02-02", read_details(task.file), scores)
    one = [row | {"Annotator": "one"} for row in ratings()]
    two = [row | {"Annotator": "two", "Flu": min(5, row["Flu"] + place % 2)} for place, row in enumerate(one)]
    human = write_ratings(tmp_path / "human.csv", one + two)
    output = run("jeem", human, tmp_path, "--output", tmp_path / "cells.csv")
    rows = {row[1]: row for row in table_rows(output) if row[0] == "Fluency" and len(row) == 10}
    judges = [
        f"{who} and judge_{judge}_reference" for judge in "jk" for who in ("rounded mean of people", "one", "two")
    ]
    assert list(rows) == ["annotators", *judges, "judge_j_reference and judge_k_reference"]
    assert {tuple(row[8:]) for row in rows.values()} == {("48", "0")}
    pairs = list(zip([row["Flu"] for row in one], [row["Flu"] for row in two], strict=True))
    for name, second in (("annotators", [b for _, b in pairs]), ("two and judge_j_reference", [b for _, b in pairs])):
        value = gwet_ac1([(a, b) for (a, _), b in zip(pairs, second, strict=True)], range(1, 6))
        assert rows[name][3].startswith(f"{value:.3f} [")
    rounded = [(int(np.floor((a + b) / 2 + 0.5)), a) for a, b in pairs]
    assert rows["rounded mean of people and judge_j_reference"][3].startswith(f"{gwet_ac1(rounded, range(1, 6)):.3f} [")
    assert float(rows["one and judge_k_reference"][6].split()[0]) < 0  # the second judge turns the scale round
    with (tmp_path / "cells_raters.csv").open(encoding="utf-8") as file:
        kept = [row for row in csv.DictReader(file) if row["criterion"] == "Fluency"]
    assert {row["coefficient"] for row in kept} == {"raw", "AC1", "AC2", "alpha", "kappa", "tau_c"}
    assert len(kept) == 6 * len(rows)


def test_what_cannot_be_joined_is_left_out_and_said(tmp_path):
    rows = ratings()
    rows[0]["Caption"] = "وصف آخر"
    rows[1]["Image ID"] = "unknown"
    rows += [rows[2] | {"Model": "Human", "Caption": ""}, rows[3] | {"Model": "model-c"}]
    output = run("jeem", write_ratings(tmp_path / "human.csv", rows), save_results(tmp_path))
    assert "46 rated texts of 49 ratings." in output
    assert "1 rated texts excluded: they differ from the text in the results." in output
    assert "1 rated texts excluded: they have no text in the results." in output
    assert "1 rated texts excluded: they are of 'model-c', which has no results." in output
    assert "1 ratings of human references excluded." in output


def test_renamed_models(tmp_path):
    rows = [row | {"Model": {"model-a": "GPT-4o", "model-b": "AyaV"}[row["Model"]]} for row in ratings()]
    human = write_ratings(tmp_path / "human.csv", rows)
    save_results(tmp_path)
    with pytest.raises(CulturevalError, match="No rated text is left.*lab/model-a, lab/model-b"):
        run("jeem", human, tmp_path)
    output = run("jeem", human, tmp_path, "--model", "GPT-4o=lab/model-a", "--model", "AyaV=model-b")
    assert "48 rated texts" in output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Con": "6"}, "row 1: column 'Con' is not a number from 1 to 5"),
        ({"Con": "nan"}, "not a number"),
        ({"Dialect": "Tunisian"}, "names none of Jordan"),
        ({"Image ID": " "}, "column 'Image ID' is empty"),
    ],
)
def test_a_wrong_cell_is_named(tmp_path, change, message):
    rows = ratings()
    human = write_ratings(tmp_path / "human.csv", [rows[0] | change, *rows[1:]])
    with pytest.raises(CulturevalError, match=message):
        run("jeem", human)


def test_wrong_files_are_one_sentence(tmp_path):
    rows = [{name: value for name, value in row.items() if name != "DA"} for row in ratings()]
    with pytest.raises(CulturevalError, match="no column 'dialect_authenticity'; columns found: Dialect"):
        run("jeem", write_ratings(tmp_path / "human.csv", rows))
    with pytest.raises(CulturevalError, match="none.csv does not exist"):
        run("jeem", tmp_path / "none.csv")
    with pytest.raises(CulturevalError, match="have no texts of jeem"):
        save_details(
            tmp_path, "qimma_aratrust", "m", [{"doc": {"id": "0"}, "metric": {"acc": 1}, "model_response": ""}]
        )
        run("jeem", write_ratings(tmp_path / "human.csv", ratings()), tmp_path)
    twice = [row | {"Annotator": "one"} for row in ratings()[:1]] * 2
    with pytest.raises(CulturevalError, match="row 2: 'one' has rated the same text in row 1"):
        run("jeem", write_ratings(tmp_path / "human.csv", twice))


def humeval(scores):
    """The form of AL-QASIDA's humevals/results: completions of three models to prompts, TVD is their ADI2."""
    return [
        {
            "": number,
            "Prompt": f"سؤال {number // 3}",
            "Completion": f"جواب {number}",
            "Model": ("gpt-4o", "command_r+", "command_r+_base")[number % 3],
            "Dialect": "egy",
            "Adherence": adherence,
            "Fluency": fluency,
            "Dialectal Accuracy": accuracy,
            "TVD": tvd,
            "Copy": "False",
        }
        for number, (adherence, fluency, accuracy, tvd) in enumerate(scores)
    ]


def test_alqasidas_files_hold_their_own_metric(tmp_path):
    scores = [(1 + n % 3, 1 + n % 5, 1 + n * 7 % 5, (n * 7 % 5) / 5 + n / 1000) for n in range(30)]
    human = write_ratings(tmp_path / "egy_monolingual_humeval.csv", humeval(scores))
    output = run("alqasida", human, "--output", tmp_path / "cells.csv")
    found = cells(tmp_path / "cells.csv")
    for place, criterion in enumerate(["Adherence", "Fluency", "Dialectal Accuracy"]):
        expected = kendalltau([row[3] for row in scores], [row[place] for row in scores], variant="c")[0]
        assert float(found["TVD", criterion, "all"]["tau_c"]) == pytest.approx(expected)
        assert found["TVD", criterion, "all"]["items"] == "10"
    assert "with the human score of Dialectal Accuracy" in output and ("TVD", "mean", "all") not in found
    wrong = [row | {"Adherence": 4} for row in humeval(scores)]
    with pytest.raises(CulturevalError, match="'Adherence' is not a number from 1 to 3"):
        run("alqasida", write_ratings(tmp_path / "wrong.csv", wrong))


def test_alqasidas_ratings_join_saved_answers(tmp_path):
    scores = [(1, 2, 1 + n % 5, n / 30) for n in range(30)]
    rows = [row for row in humeval(scores) if row["Model"] == "gpt-4o"]
    details = [
        {
            "doc": {**ASKED, "query": row["Prompt"], "specific": {"dialect": "egy"}},
            "model_response": {"text": [row["Completion"]]},
            "metric": {"adi2": row["TVD"] ** 2}
            | {"judge_j_dialectal_fidelity_dialectal_fidelity": 6.0 - row["Dialectal Accuracy"]}
            | {"judge_j_adherence_adherence": float(row["Adherence"]), "judge_j_fulfilment_fulfilment": 5.0},
        }
        for row in rows
    ]
    save_details(tmp_path, "alqasida_mono:habibi_egy", "openai/gpt-4o", details)
    output = run("alqasida", write_ratings(tmp_path / "human.csv", rows), tmp_path, "--output", tmp_path / "cells.csv")
    found = cells(tmp_path / "cells.csv")
    both = [found[metric, "Dialectal Accuracy", "all"]["tau_c"] for metric in ("TVD", "adi2")]
    assert both[0] == both[1] != ""
    assert float(found["judge_j_dialectal_fidelity_dialectal_fidelity", "Dialectal Accuracy", "all"]["tau_c"]) < -0.9
    raters = [row[:2] for row in table_rows(output)]
    assert ["Dialectal Accuracy", "rounded mean of people and judge_j_dialectal_fidelity"] in raters
    assert ["Adherence", "rounded mean of people and judge_j_adherence"] in raters  # both from 1 to 3
