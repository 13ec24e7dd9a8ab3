"""AL-QASIDA's scores against its released outputs (JHU-CLSP/al-qasida at 34e4dba, `llm_outputs`)."""

import ast
import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from cultureval.metrics.alqasida.dialect import (
    COUNTRIES,
    adi2,
    has_prompt_copy,
    has_too_few_words,
    macro_region,
    remove_prompt_copies,
)
from cultureval.metrics.alqasida.translation import corpus_score
from cultureval.metrics.declared import Declared
from cultureval.metrics.lighteval.row_scores import RowScore, TaskScore
from cultureval.reports.alqasida.scored_outputs import read_outputs
from cultureval.tasks.alqasida.sets import which_prompts

OUTPUTS = Path(__file__).parents[2] / "../shared/data/alqasida/llm_outputs"
PAIRS = sorted(OUTPUTS.glob("*/*_samples.csv"))
SCORES = {"prob": "nadi", "macro_prob": "nadi_macro", "score": "adi2", "macro_score": "adi2_macro"}

pytestmark = pytest.mark.skipif(not PAIRS, reason="the released files are not here")


def rows_of(path):
    csv.field_size_limit(10_000_000)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def generation(row):
    """Plain text, or a Python list of one text."""
    try:
        value = ast.literal_eval(row["generations"])
    except (SyntaxError, ValueError):
        return row["generations"]
    return value[0] if isinstance(value, list) else row["generations"]


def prompt(row):
    return row["prompts"] if "prompts" in row else ast.literal_eval(row["_raw_turns"])[-1]["content"][0]["text"]


def numbers(rows, column):
    return np.array([float(row[column] or 0) for row in rows])


def country_of(path):
    """The country whose dialect is scored; that of a translation out of a dialect is not the wanted one."""
    return next(name for name in path.stem.split("_") if name in COUNTRIES)


def eighteen(prob, macro_prob, country):
    """Probabilities of all countries that agree with the two published ones: its own, and its macro region's."""
    region = [COUNTRIES.index(name) for name in macro_region(country)]
    own, outside = COUNTRIES.index(country), next(i for i in range(len(COUNTRIES)) if i not in region)
    table = np.zeros((len(prob), len(COUNTRIES)))
    table[:, region] = ((macro_prob - prob) / max(1, len(region) - 1))[:, None]
    table[:, own], table[:, outside] = prob, 1 - macro_prob
    return table


def columns(path):
    """Names of the score columns of a file: translation files have names of their own."""
    renamed = {"prob": "dialectid_prob", "score": "dialectid_score"} if "_mt" in path.parent.name else {}
    return {name: renamed.get(name, name) for name in (*SCORES, "dialectness")}


@pytest.mark.parametrize("path", PAIRS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_scores_are_products_and_published_metrics_their_means(path):
    rows = rows_of(path)
    (published,) = rows_of(path.with_name(path.name.replace("_samples", "_metrics")))
    names = columns(path)
    level = numbers(rows, names["dialectness"])
    probabilities = eighteen(numbers(rows, names["prob"]), numbers(rows, names["macro_prob"]), country_of(path))
    found = adi2(probabilities, level, country_of(path))
    for name, ours in SCORES.items():
        assert abs(found[ours] - numbers(rows, names[name])).max() < 1e-15
    # The `released` profile: a row with too few tokens is nan and leaves the mean; other files have no such rows.
    excluded = [row.get("too_few_tokens") == "True" for row in rows]
    for name in [*names.values(), *(["acc"] if "acc" in rows[0] else [])]:
        values = [np.nan if out else value for out, value in zip(excluded, numbers(rows, name), strict=True)]
        mean = TaskScore(name, Declared()).compute_corpus([RowScore(value) for value in values])[name]
        assert mean == pytest.approx(float(published.get(name) or published["lid_acc"]), abs=1e-9)


@pytest.mark.parametrize("path", [path for path in PAIRS if "command_r" in str(path) and "crossl" in str(path)])
def test_adi2_of_the_eighteen_probabilities(path):
    rows = rows_of(path)
    probabilities = np.column_stack([numbers(rows, name) for name in rows[0] if name.startswith("prob_")])
    found = adi2(probabilities, numbers(rows, "dialectness"), path.stem.split("_")[2])
    for name, ours in SCORES.items():
        assert abs(found[ours] - numbers(rows, name)).max() < 1e-15
    assert [has_too_few_words(generation(row)) for row in rows] == [row["too_few_tokens"] == "True" for row in rows]


def test_released_files_are_read_as_outputs_made_elsewhere():
    """`cultureval score alqasida --pred llm_outputs`: every output; prompts known as the published ones."""
    found = read_outputs([OUTPUTS])
    assert sum(len(one.rows) for one in found) == sum(len(rows_of(path)) for path in PAIRS)
    texts = sorted(text for one in found for text in one.outputs)
    assert texts == sorted(generation(row) for path in PAIRS for row in rows_of(path))
    kinds = {"alqasida_mono": 10, "alqasida_cross": 5, "alqasida_mt": 2}
    assert Counter(one.task.partition(":")[0] for one in found) == kinds
    assert all(which_prompts(one.rows) == "published" for one in found if "_mt" not in one.task)
    okapi = [one for one in found if ":okapi" in one.task]
    assert all(len({row["cluster"] for row in one.rows}) == 34 for one in okapi)
    assert {one.task.partition("|")[2] for one in okapi} == {"0", "5"}


def test_one_row_of_the_five_shot_file_is_left_out():
    """Published ADI2 .1807 over 99 rows; over all 100 it would be .1789."""
    (path,) = OUTPUTS.glob("command_r+_crosslingual-5-shot/*_samples.csv")
    rows = rows_of(path)
    assert sum(has_too_few_words(generation(row)) for row in rows) == 1
    kept = [float(row["score"]) for row in rows if not has_too_few_words(generation(row))]
    assert np.mean(kept) == pytest.approx(0.18065840935864705, abs=1e-9)
    assert abs(numbers(rows, "score").mean() - np.mean(kept)) > 1e-3


def test_empty_outputs_and_outputs_that_are_their_prompt_score_zero():
    empty = 0
    for path in PAIRS:
        if "_mt" in path.parent.name:
            continue
        for row in rows_of(path):
            text = generation(row)
            if not remove_prompt_copies(prompt(row), text):
                empty += 1
                assert not any(float(row[name] or 0) for name in (*SCORES, "dialectness", "acc"))
    assert empty == 27 + 41 + 7 + 3 + 1 + 2


@pytest.mark.parametrize(("folder", "copies"), [("command_r+_base_monolingual", 56), ("command_r_monolingual", 0)])
def test_prompt_copies_go_and_special_tokens_stay(folder, copies):
    (path,) = OUTPUTS.glob(f"{folder}/DialectID_HABIBI_mar_samples.csv")
    held = 0
    for row in rows_of(path):
        asked, text = prompt(row), generation(row)
        rest = remove_prompt_copies(asked, text)
        held += has_prompt_copy(asked, text)
        assert asked.replace("\n", " ") not in rest and "\n" not in rest
        assert rest.count("<EOS_TOKEN>") == text.count("<EOS_TOKEN>")
    assert held == copies


@pytest.mark.parametrize("path", [path for path in PAIRS if "_mt" in str(path)], ids=lambda path: path.stem)
def test_published_chrf_of_command_r_plus_is_chrf_plus_plus(path):
    rows = rows_of(path)
    (published,) = rows_of(path.with_name(path.name.replace("_samples", "_metrics")))
    sides = [generation(row) for row in rows], [row["completion"] for row in rows]
    plus_plus = corpus_score("chrf_plus_plus", *sides)
    assert plus_plus / 100 == pytest.approx(float(published["ChrF_corpus_score"]), abs=1e-6)
    assert corpus_score("bleu", *sides) / 100 == pytest.approx(float(published["BLEU_corpus_score"]), abs=1e-6)
    assert abs(corpus_score("chrf", *sides) / 100 - float(published["ChrF_corpus_score"])) > 0.01
