"""Outputs that were made elsewhere: what is read of files with our columns, and of those of the authors' repository."""

import csv
import json

import pytest

from cultureval.reports.alqasida.scored_outputs import read_outputs
from cultureval.runtime.errors import CulturevalError

ENGLISH = "Write a poem about a cat that sleeps on a chair. {}Keep it short and sweet for a small child."
TRANSLATION = (
    "Translate from {} into {}. Output only the translation, do NOT output anything else before nor after it.\n"
    "{}\nTranslation:"
)


def written(file, *rows):
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
    return file


def row(prompt="قول كلام", completion="كلام", dialect="egy", **more):
    return {"prompt": prompt, "completion": completion, "dialect": dialect} | more


def test_rows_are_told_apart_by_their_prompts_and_references(tmp_path):
    asked = TRANSLATION.format("English", "Syrian Arabic", "hello")
    file = written(
        tmp_path / "my-llm.csv",
        row(),
        row(completion=""),
        row("قول غيره", dialect="Moroccan Arabic"),
        row(ENGLISH.format("Reply in Egyptian Arabic. ")),
        row("Use Egyptian Arabic. " + ENGLISH.format(""), dialect="Egyptian"),
        row(asked, "مرحبا", "syr", reference="اهلين"),
        row(TRANSLATION.format("Syrian Arabic", "English", "اهلين"), "hi", "eng", reference="hello"),
        row("قول", genre="habibi", model="org/other"),
    )
    found = {(one.model, one.task): one for one in read_outputs([file])}
    mine = [task for model, task in found if model == "my-llm"]
    assert mine == [
        "alqasida_mono:own_egy|0",
        "alqasida_mono:own_mar|0",
        "alqasida_cross:own_egy|0",
        "alqasida_mt:own_eng_to_syr|0",
        "alqasida_mt:own_syr_to_eng|0",
    ]
    assert [task for model, task in found if model == "org/other"] == ["alqasida_mono:habibi_egy|0"]
    mono, cross, translated, english = (found["my-llm", mine[place]] for place in (0, 2, 3, 4))
    assert mono.outputs == ["كلام", ""] and mono.prompts == ["قول كلام"] * 2
    assert mono.rows[0]["cluster"] == mono.rows[1]["cluster"] != found["my-llm", mine[1]].rows[0]["cluster"]
    assert len({one["cluster"] for one in cross.rows}) == 1  # one request at two places
    assert (translated.rows[0]["source"], translated.rows[0]["answer"]) == ("hello", "اهلين")
    assert (english.rows[0]["source"], english.rows[0]["dialect"]) == ("اهلين", "eng")


def test_short_requests_of_one_pattern_are_several(tmp_path):
    asked = "What is the capital of {}? Reply in Egyptian Arabic."
    file = written(tmp_path / "out.csv", *(row(asked.format(country)) for country in ("France", "Spain", "Chad")))
    (one,) = read_outputs([file])
    assert len({asked["cluster"] for asked in one.rows}) == 3


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"prompt": "x", "completions": "y", "dialect": "egy"}], "no column 'completion'. Did you mean completions"),
        ([row(dialect="egyptain")], "row 1: column 'dialect' is none of .*Did you mean"),
        ([row(), row(dialect="")], "row 2: column 'dialect' is none of"),
        ([row(dialect="msa")], "is no dialect, and the row has no `reference`"),
        ([row(prompt="")], "row 1: column 'prompt' is null or empty"),
        ([row(genre="my genre")], "column 'genre' is not a word of small letters"),
        ([row("to Arabic: hi", reference="اهلا")], "is not AL-QASIDA's translation prompt"),
        (
            [row(TRANSLATION.format("English", "Syrian Arabic", "hi"), reference="x")],
            "is not the language that the prompt asks for",
        ),
        ([{"prompts": "x", "generations": "y"}], "Rename the file, or rename its columns"),
        ([], "has no rows"),
    ],
)
def test_what_is_not_understood_is_named(tmp_path, rows, message):
    file = written(tmp_path / "out.csv", *rows) if rows else tmp_path / "out.csv"
    if not rows:
        file.write_text("prompt,completion,dialect\n", encoding="utf-8")
    with pytest.raises(CulturevalError, match=message):
        read_outputs([file])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prompt": "قول", "completions": "y", "dialect": "egy"}, "row 2: column 'completion' is missing"),
        (row(completion=["a", "b"]), "row 2: column 'completion' is not a text"),
        (row(completion=float("nan")), "row 2: column 'completion' is not a text"),
        (row(completion=0), "row 2: column 'completion' is not a text"),
        (row(prompt=[{"role": "user", "content": "قول"}]), "row 2: column 'prompt' is not a text"),
        (
            row(TRANSLATION.format("English", "Egyptian Arabic", "hi"), reference=""),
            "row 2: column 'reference' is null",
        ),
    ],
)
def test_what_is_no_text_is_not_scored_as_one(tmp_path, given, message):
    file = tmp_path / "out.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in (row(completion=None), given)), encoding="utf-8")
    with pytest.raises(CulturevalError, match=message):
        read_outputs([file])


def test_released_files_are_read_by_their_names(tmp_path):
    block = "Q: مثال\nA: جواب\n\nQ: قول\nA:"
    turns = str([{"role": "User", "content": [{"text": block}]}])
    written(
        tmp_path / "llm_outputs" / "command_r+_base_monolingual-5-shot" / "DialectID_BTEC_egy_samples.csv",
        {"_raw_turns": turns, "generations": str(["كلام\nQ: 'غيره'"])},
        {"_raw_turns": turns, "generations": ""},
    )
    asked = TRANSLATION.format("English", "Saudi Arabic", "hi")
    written(
        tmp_path / "llm_outputs" / "llama_mt" / "DialectMT_FLORES_eng_to_sau_samples.csv",
        {"prompts": asked, "generations": "['هلا']", "completion": "اهلا"},
    )
    base, llama = read_outputs([tmp_path])
    assert (base.model, base.task) == ("command_r+_base", "alqasida_mono:btec_egy|5")
    assert base.outputs == ["كلام\nQ: 'غيره'", ""] and base.prompts[0] == "Q: قول\nA:"
    assert [one["prompt"] for one in base.rows] == ["قول"] * 2
    assert [one["cluster"] for one in base.rows] == ["btec:0"] * 2  # the same prompt twice
    assert (llama.model, llama.task, llama.outputs) == ("llama", "alqasida_mt:flores_eng_to_sau|0", ["['هلا']"])
    assert llama.rows[0]["answer"] == "اهلا"
    with pytest.raises(CulturevalError, match="no file of outputs"):
        read_outputs([written(tmp_path / "x" / "y.csv", row()).parent])
