"""`cultureval audit curate` with scripted servers: from twelve images to a data set that `eval m2cqa` runs on."""

import csv
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml
from faulty_server import MODEL, FaultyServer
from forked_commands import StartedCommand, own_variables, run_forked
from result_files import details_of, results_of
from waiting import wait_until

from cultureval.samples.tiny_models.classifiers import build_tiny_encoder
from cultureval.tasks.manifest import read_manifest

IMAGES = Path(__file__).parents[2] / "samples" / "QCRI" / "M2CQA" / "images"
ROWS = [json.loads(line) for line in (IMAGES / "metadata.jsonl").read_text(encoding="utf-8").splitlines()]
# What goes wrong with the n-th image, and why its item is then rejected; "" keeps it.
MANNERS = {
    1: ("both blind models guess it", "answered_blind"),
    3: ("no JSON at first", ""),
    4: ("two options alike", "options_not_distinct"),
    5: ("refusal", "refused"),
    6: ("a negation", "en:new_negation"),
    8: ("a translation in English", "msa:not_arabic"),
    9: ("the same counterfactual twice in Egyptian", "arz:not_distinct"),
}
WORDS = {"en": ("coral", "amber", "jade"), "ar": ("مرجان", "كهرمان", "يشم")}
SAID = {"en": "The object in the image is made of {}.", "ar": "الشيء في الصورة مصنوع من {}."}
KEPT = [row["id"] for number, row in enumerate(ROWS) if not MANNERS.get(number, ("", ""))[1]]


def number_of(prompt):
    """The image that a prompt is about: by its description, or by the number in its options."""
    if found := re.search(r"Image description: (.*)", prompt):
        return next(number for number, row in enumerate(ROWS) if row["description"] == found[1])
    return int(
        re.search(r"\d+", prompt[prompt.rindex("Which material") if "Which" in prompt else prompt.rindex("أي") :])[0]
    )


def options_of(number, language):
    return [f"{word} {number}" for word in WORDS[language]]


def mcq(number):
    options = options_of(number, "en")
    if number == 4:
        options[2] = options[1]
    inner = {"question_en": f"Which material is object {number} made of?", "options_en": options}
    inner |= {"correct_answer_en": options[1 if number != 4 else 0], "rationale": "It shines."}
    inner |= {"cognitive_focus": "knowledge-based", "semantic_focus": ["Visual Attributes"]}
    return json.dumps({"multiple-choice": inner})


def statements(prompt, number):
    language = "en" if "Which material" in prompt else "ar"
    coral, amber, jade = (SAID[language].format(option) for option in options_of(number, language))
    minus = [coral, jade]
    if number == 6:
        minus[0] = minus[0].replace(" is ", " is not ")
    if number == 9 and "مصرية" in prompt:
        minus[1] = minus[0]
    return json.dumps({"Q_plus": amber, "Q_minus": minus}, ensure_ascii=False)


class Writer(FaultyServer):
    """Writes, converts and translates."""

    def __init__(self):
        faults = {5: "refusal"}
        super().__init__(
            lambda prompt, count: faults.get(number_of(prompt)) if "Image description" in prompt else None,
            delay=0.02,
            reply=self.answer,
        )

    def answer(self, prompt, index):
        number, first = number_of(prompt), "requested form" not in prompt
        if "Image description" in prompt:
            return "A fine image." if number == 3 and first else mcq(number)
        if "Translate an English" in prompt:
            language = "en" if number == 8 else "ar"
            variety = "مصرية" if "Egyptian" in prompt else "عامة"
            question = f"أي مادة {variety} في الشيء {number}؟" if language == "ar" else f"Which material is {number}?"
            return json.dumps({"question": question, "options": options_of(number, language)}, ensure_ascii=False)
        return statements(prompt, number)


def guesser(right):
    """An image-blind model that knows some items' answers, and is wrong on all others."""

    def reply(prompt, index):
        number = number_of(prompt)
        letters = {text: letter for letter, text in re.findall(r"^([ABC])\. (.*)$", prompt, re.MULTILINE)}
        return letters[options_of(number, "en")[1 if number in right else 0]]

    return FaultyServer(reply=reply, entry={"root": f"guesser{sorted(right)}"})


def verdict(prompt, index):
    """A model that accepts the true statements alone, whatever the prompt asks for besides."""
    true = any(words[1] in prompt for words in WORDS.values())
    heads = ("The final answer is", "True" if true else "False")
    if re.search(r"العبارة:", prompt):
        heads = ("الإجابة النهائية هي", "صحيح" if true else "خطأ")
    return f"{heads[0]}: {heads[1]}"


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "images"
    shutil.copytree(IMAGES, folder)
    shutil.copyfile(folder / "oud.png", folder / "oud_again.png")
    with (folder / "metadata.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"id": "again", "image": "oud_again.png"}) + "\n")
    build_tiny_encoder(tmp_path / "encoder")
    return tmp_path


def test_from_twelve_images_to_a_run_of_m2cqa_across_a_kill(place):
    variables = own_variables(place) | {"HF_HUB_OFFLINE": "1"}
    translators = [part for name in ("msa", "ajp", "arz") for part in ("--translator", f"{name}=writer.yaml")]
    options = ["--writer", "writer.yaml", "--blind", "one.yaml,two.yaml", *translators, "--share", "0.5"]
    options = ["audit", "curate", "images", *options, "--encoder", "encoder", "--output-dir", "curated"]
    kept = {"network": True, "loaded": "ours"}

    def run(*arguments):
        done = run_forked("cultureval.scripts.main", list(arguments), place, variables, **kept)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    with Writer() as writer, guesser({1}) as one, guesser({1}) as two:
        for name, server in (("writer", writer), ("one", one), ("two", two)):
            settings = {"name": name, "model": MODEL, "base_url": server.url, "concurrency": 4}
            (place / f"{name}.yaml").write_text(yaml.safe_dump(settings | {"input_token_price": 0.001}))
        started = StartedCommand("cultureval.scripts.main", options, place, variables, **kept)
        wait_until(lambda: writer.answered.total() >= 45 or not started.is_alive())
        assert started.is_alive(), started.end().stderr[-1500:]
        started.kill()
        started.end()
        text = run(*options)
        paid = sum(server.answered.total() for server in (writer, one, two))
        assert run(*options).partition("Cost:")[0] == text.partition("Cost:")[0]
        check_people(place, run, options)
        assert sum(server.answered.total() for server in (writer, one, two)) == paid  # all is in the journal
    # Each reply was paid for once, but for what was in flight at the kill.
    assert sum(count - 1 for server in (one, two) for count in server.answered.values()) == 0
    assert set(writer.answered.values()) <= {1, 2} and list(writer.answered.values()).count(2) <= 4
    check_rejects(place / "curated", text)
    with FaultyServer(reply=verdict) as model:
        (place / "model.yaml").write_text(yaml.safe_dump({"model": MODEL, "base_url": model.url, "concurrency": 8}))
        run("eval", "model.yaml", "m2cqa", "--data", "curated", "--output-dir", "results")
        assert len(model.requests) == 3 * 2 * 3 * len(KEPT)  # the scripts say the same in the three Arabic varieties
        manifest = ("--manifest", "curated/manifest.jsonl")
        run("eval", "model.yaml", "m2cqa:tf_en", "--data", "curated", *manifest, "--output-dir", "without")
    check_results(place)


def check_results(place):
    (details,) = details_of(place / "without").values()
    assert len(details) == 3 * (len(KEPT) - 1)
    results = results_of(place / "results")["results"]
    for variety in ("en", "msa", "ajp", "arz"):
        found = results[f"m2cqa:tf_{variety}|0"]
        assert (found["q_plus_acc"], found["q_minus_acc"], found["cfhr"]) == (1, 1, 0)


def check_rejects(folder, text):
    rejected = [json.loads(line) for line in (folder / "rejected.jsonl").read_text(encoding="utf-8").splitlines()]
    wanted = {ROWS[number]["id"]: reason for number, (_, reason) in MANNERS.items() if reason}
    assert {one["id"]: one["reason"] for one in rejected} == wanted | {"again": "same_image"}
    assert all(one["detail"] for one in rejected)
    lines = [
        r"1_images +12 +1 +1 same_image",
        r"2_questions +10 +2 +1 options_not_distinct, 1 refused",
        r"3_blind +9 +1 +1 answered_blind",
        r"4_translation_msa +8 +1 +1 msa:not_arabic",
        r"5_statements_en +7 +1 +1 en:new_negation",
        r"5_statements_arz +6 +1 +1 arz:not_distinct",
        r"statements +6 +\d\.\d\d +\[0\.71\] +\d\.\d\d +\[0\.19\]",
    ]
    assert [line for line in lines if not re.search(line, text)] == [], text
    for variety in ("en", "msa", "ajp", "arz"):
        lines = (folder / "QCRI" / "M2CQA" / variety / "test.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line)["id"] for line in lines] == KEPT
    first = json.loads(lines[0])
    assert first["q_plus"] == SAID["ar"].format("كهرمان 0") and (folder / "QCRI" / "M2CQA" / first["image"]).is_file()


def check_people(place, run, options):
    """Two annotators of half of the items, who reject one; and who then disagree."""
    with (place / "curated" / "sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 4 * 3
    for name in ("a", "b"):
        with (place / f"{name}.csv").open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            for row in rows:
                wrong = row["item"] == rows[0]["item"] and row["role"] == "q_plus"
                writer.writerow(row | {"need_image": "Yes", "correctness": "Incorrect" if wrong else "Correct"})
    text = run(*options, "--people", "a.csv", "--people", "b.csv", "--output-dir", "curated")
    assert "Of 3 items that people labelled, 2 are kept, 1 discarded, 0 still to be reviewed" in text, text
    manifest = read_manifest(place / "curated" / "manifest.jsonl")
    assert Counter(row.decision for row in manifest.rows) == {"keep": 2 * 4, "discard": 4}
    assert {(*row.reasons, *row.by) for row in manifest.rows if row.decision == "discard"} == {
        ("person:incorrect:ajp:q_plus", "person:a", "person:b")
    }
