"""M2CQA's construction: rules for replies, duplicates of images, the contrast check, people's labels, step files."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from cultureval.audit.m2cqa import people, steps
from cultureval.audit.m2cqa.curation import contrasts
from cultureval.audit.m2cqa.files import read_images
from cultureval.audit.m2cqa.items import ChoiceQuestion, Item, Statements, Unfit
from cultureval.runtime.errors import CulturevalError

PAPER = Path(__file__).parents[2].parent / "shared/papers/002_10a7fb7e2c8e7658.txt"
MCQ = {
    "question_en": "Which pot is on the tray?",
    "options_en": ["a Moroccan teapot", "a Turkish coffee pot", "an oil lamp"],
    "correct_answer_en": "A Moroccan teapot",
    "rationale": "Its spout.",
    "cognitive_focus": "knowledge-based",
    "semantic_focus": ["Visual Attributes", "Something else"],
}
ASKED = ChoiceQuestion(MCQ["question_en"], tuple(MCQ["options_en"]), 0)
ENGLISH = (
    "The pot on the tray is a Moroccan teapot.",
    "The pot on the tray is a Turkish coffee pot.",
    "The pot on the tray is an oil lamp.",
)
ARABIC = ("الإبريق في الصورة إبريق شاي مغربي.", "الإبريق في الصورة إبريق قهوة تركي.", "الإبريق في الصورة مصباح زيت.")
ASKED_AR = ChoiceQuestion("ما هذا؟", ("إبريق شاي مغربي", "إبريق قهوة تركي", "مصباح زيت"), 0)


def test_a_question_is_read_and_its_rules_are_kept():
    assert steps.read_question(f"Here it is:\n```json\n{json.dumps({'multiple-choice': MCQ})}\n```") == ASKED
    for change, reason in (
        ({"options_en": ["a pot", "A pot ", "a lamp"]}, "options_not_distinct"),
        ({"correct_answer_en": "a samovar"}, "answer_not_an_option"),
        ({"question_en": "Is a Moroccan teapot on the tray?"}, "answer_in_question"),
        ({"options_en": ["a pot", "a lamp"]}, "unreadable_reply"),
        ({"question_en": "x" * 2000}, "unreadable_reply"),
        ({"question_en": "Which \u202epot?"}, "unreadable_reply"),
        ({"options_en": "a pot"}, "unreadable_reply"),
    ):
        with pytest.raises(Unfit) as caught:
            steps.read_question(json.dumps(MCQ | change))
        assert str(caught.value).startswith(f"{reason}: ")
    for text in ("", "no", "[1]", "{" * 5000, '{"multiple-choice": 3}'):
        with pytest.raises(Unfit):
            steps.read_question(text)


@pytest.mark.parametrize(
    ("text", "letter"), [("B", "B"), ("b.", "B"), ("**C**", "C"), ("(A)", "A"), ("B. a lamp\nBecause", "B")]
)
def test_letters_are_read(text, letter):
    assert steps.read_letter(text) == letter


@pytest.mark.parametrize("text", ["", "D", "I think it is the teapot", "A or B", "5"])
def test_what_is_not_one_letter_is_no_answer(text):
    with pytest.raises(Unfit):
        steps.read_letter(text)


@pytest.mark.parametrize(
    ("variety", "changed", "reason"),
    [
        ("en", {}, ""),
        ("msa", {}, ""),
        ("en", {1: "The pot on the tray is not a Turkish coffee pot."}, "new_negation"),
        ("en", {2: "The pot on the tray isn\u2019t an oil lamp."}, "new_negation"),
        (
            "en",
            {0: "The pot without a lid is a Moroccan teapot.", 1: "The pot without a lid is a Turkish coffee pot."},
            "",
        ),
        ("msa", {1: "الإبريق في الصورة ليس إبريق قهوة تركي."}, "new_negation"),
        ("msa", {1: "الإبريق في الصورة إبريق قهوة غير تركي."}, "new_negation"),
        ("msa", {1: "الإبريق في الصورة إبريق قهوة تركي وَلا شاي."}, "new_negation"),
        ("ajp", {1: "الإبريق في الصورة مش إبريق قهوة تركي."}, "new_negation"),
        ("ajp", {1: "الإبريق في الصورة مو إبريق قهوة تركي."}, "new_negation"),
        ("arz", {1: "الإبريق في الصورة ما فيهوش قهوة تركي."}, "new_negation"),
        ("arz", {1: "الإبريق في الصورة مفيهوش قهوة تركي."}, "new_negation"),
        ("msa", {0: "ما في الصورة إبريق شاي مغربي.", 1: "ما في الصورة إبريق قهوة تركي."}, ""),  # "what is in"
        ("msa", {1: "الإبريق في الصورة إبريق حلاوة تركي."}, ""),  # letters of a negation within a word
        ("en", {2: "The pot on the tray is a Turkish  coffee pot"}, "not_distinct"),
        ("en", {1: "Is the pot a Turkish coffee pot?"}, "not_declarative"),
        ("en", {1: "The pot on the tray is a Turkish coffee pot. True or False"}, "not_declarative"),
        ("msa", {1: "الإبريق في الصورة إبريق قهوة تركي، صح أم خطأ"}, "not_declarative"),
        ("msa", {1: "The pot on the tray is a Turkish coffee pot."}, "wrong_language"),
        ("en", {1: "الإبريق في الصورة إبريق قهوة تركي."}, "wrong_language"),
        (
            "en",
            {0: "The pot on the tray is an oil lamp.", 2: "The pot on the tray is a Moroccan teapot."},
            "swapped_roles",
        ),
        ("en", {2: "Oil lamp, brass, is shown here."}, "not_parallel"),
        ("en", {2: "An oil lamp stands on the tray " + "and it is very old and made of brass " * 3}, "not_parallel"),
    ],
)
def test_statements_keep_the_rules(variety, changed, reason):
    texts = list(ENGLISH if variety == "en" else ARABIC)
    for place, text in changed.items():
        texts[place] = text
    given, asked = Statements(texts[0], tuple(texts[1:])), ASKED if variety == "en" else ASKED_AR
    if not reason:
        return steps.check_statements(given, asked, variety)
    with pytest.raises(Unfit) as caught:
        steps.check_statements(given, asked, variety)
    assert str(caught.value).startswith(f"{reason}: ")


def test_images_that_double_others_or_cannot_be_read_are_left_out(tmp_path):
    def drawn(name, shift, quality=None):
        image = Image.new("RGB", (90, 80), "white")
        ImageDraw.Draw(image).polygon([(5 + shift, 70), (40, 5), (80 - shift, 60)], fill="brown")
        image.save(tmp_path / name, **({"quality": quality} if quality else {}))

    drawn("a.png", 0)
    drawn("b.png", 30)
    drawn("a_again.jpg", 0, 60)
    (tmp_path / "same.png").write_bytes((tmp_path / "a.png").read_bytes())
    (tmp_path / "broken.png").write_bytes(b"\x89PNG")
    rows = [("a.png", "u1"), ("b.png", "u2"), ("a_again.jpg", "u3"), ("same.png", "u4"), ("b.png", "u1")]
    rows += [("broken.png", "u5"), ("../outside.png", "u6"), ("", "u7")]
    lines = [json.dumps({"file_name": name, "url": url, "country": "Oman"}) for name, url in rows]
    (tmp_path / "metadata.jsonl").write_text("\n".join(lines))
    found = read_images(tmp_path)
    assert [item.id for item in found.kept] == ["a", "b"] and found.kept[0].about["country"] == "Oman"
    reasons = [(one.id, one.reason) for one in found.rejected]
    assert reasons[:3] == [("a_again", "near_duplicate"), ("same", "same_image"), ("b", "same_id")]
    assert [reason for _, reason in reasons[3:]] == ["bad_image"] * 3


def made(number, country="Oman", category="Food"):
    about = {"country": country, "category": category}
    said = Statements(f"It is pot {number}.", (f"It is jug {number}.", f"It is lamp {number}."))
    asked = ChoiceQuestion("What is it?", (f"lamp {number}", f"pot {number}", f"jug {number}"), 1)
    return Item(f"i{number}", f"{number}.png", about, {"en": asked}, statements={"en": said})


def test_contrast_is_the_mean_cosine_within_and_across_items():
    items = [made(number) for number in range(3)]

    def encode(
        texts,
    ):  # one axis an item; counterfactual statements at 60 degrees to the true one, options at a right one
        number = [int(re.search(r"\d", text)[0]) for text in texts]
        vectors = np.zeros((len(texts), 6))
        for place, text in enumerate(texts):
            true = "pot" in text
            nearness = 1.0 if true else 0.5 if text.startswith("It") else 0.0
            vectors[place, number[place]], vectors[place, 3 + number[place]] = nearness, (1 - nearness**2) ** 0.5
        return vectors

    found = contrasts(items, encode)
    assert found["statements"] == pytest.approx((0.5, 0)) and found["options"] == pytest.approx((0, 0))


def test_the_sample_for_people_is_stratified_and_their_labels_decide(tmp_path):
    items = [
        made(number, country, "Food") for number, country in enumerate(["Oman"] * 12 + ["Qatar"] * 6 + ["Iraq"] * 2)
    ]
    drawn = people.stratified(items, 0.25)
    counts = [sum(item.about["country"] == name for item in drawn) for name in ("Oman", "Qatar", "Iraq")]
    assert counts == [3, 1, 1] and drawn == people.stratified(items, 0.25)
    people.write_sheet(tmp_path / "sheet.csv", drawn, ["en"])
    with (tmp_path / "sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    formulas = [replace(drawn[0], about={"country": "=1+1", "category": "@x"})]
    people.write_sheet(tmp_path / "formulas.csv", formulas, ["en"])
    text = (tmp_path / "formulas.csv").read_text("utf-8")
    assert text.splitlines()[1].count(",'") == 2  # a spreadsheet computes nothing
    assert len(rows) == 15 and {row["gold"] for row in rows if row["role"] != "q_plus"} == {"False"}

    def filled(name, labels):
        path = tmp_path / name
        with path.open("w", newline="", encoding="utf-8-sig") as file:
            writer = csv.DictWriter(file, people.SHEET)
            writer.writeheader()
            for row in rows:
                need, right = labels.get((row["item"], row["role"]), ("yes", "Correct"))
                writer.writerow(row | {"need_image": need, "correctness": right})
        return path

    first, second = drawn[0].id, drawn[1].id
    sheets = [
        filled("amal.csv", {(first, "q_plus"): ("Yes", "Incorrect"), (second, "q_minus_1"): ("No", "Correct")}),
        filled("basim.csv", {(first, "q_plus"): ("Yes", "incorrect"), (second, "q_minus_1"): ("Yes", "Correct")}),
    ]
    labels = people.read_sheets(sheets, drawn)
    majority = people.majorities(labels)
    assert list(majority.index[majority.eq("").any(axis=1)]) == [(second, "en", "q_minus_1")]
    decided = people.decisions(majority)
    assert [decided[item.id][0] for item in drawn] == ["discard", "review", "keep", "keep", "keep"]
    assert decided[first][1] == "person:incorrect:en:q_plus" and decided[second][1] == "person:tie"
    with pytest.raises(CulturevalError, match="holds another statement"):
        people.read_sheets(sheets, drawn[1:])
    agreed = people.agreement(labels)
    assert agreed["correctness", "q_plus"]["raw"].value == 1 and agreed["need_image", "q_minus_1"]["raw"].value == 0.8
    # By hand: pa = 4/5, pi = (0.9, 0.1, 0), pe = (0.09 + 0.09) / 2, AC1 = (0.8 - 0.09) / (1 - 0.09).
    assert agreed["need_image", "q_minus_1"]["AC1"].value == pytest.approx(0.71 / 0.91)
    (tmp_path / "again").mkdir()
    with pytest.raises(CulturevalError, match="Two files have the same name"):
        people.read_sheets([sheets[0], filled("again/amal.csv", {})], drawn)
    with pytest.raises(CulturevalError, match="none of Yes, No, Unsure"):
        people.read_sheets([filled("3.csv", {(first, "q_plus"): ("perhaps", "")})], drawn)
    one_sheet = people.read_sheets(sheets[:1], drawn)
    assert people.agreement(one_sheet) == {} and people.decisions(people.majorities(one_sheet))[second][0] == "discard"


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper's text is not on this machine")
@pytest.mark.parametrize(
    ("template", "start", "end"),
    [
        (steps.MCQ, "You are an AI assistant spec", "A.2.2"),
        (steps.SYSTEM, "You are an AI assistant.", "A.2.3"),
    ],
)
def test_the_prompts_are_the_papers_word_for_word(template, start, end):
    text = PAPER.read_text(encoding="utf-8")
    text = text[text.index(start) :].partition(end)[0]
    text = re.sub(
        r"Category\tSubcategories.*?multimodal dataset\.", "", text, flags=re.DOTALL
    )  # a table between two pages
    words = [re.findall(r"[^\W_]+", one) for one in (text, template.file_text)]
    assert words[0] == words[1]
