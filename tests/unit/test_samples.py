"""QIMMA's shipped samples: each source's schema, every subset present, every row sound.

The rows are read with the standard library alone, so that these tests do not trust the code they supply with data.
"""

import ast
import csv
import json
import re
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

import pytest
import yaml

from cultureval.runtime.data_options import samples_root

SAMPLES = samples_root()
TABLE_5 = Path(__file__).parents[1] / "reference" / "qimma_table_5.csv"
MEDARABIQ = "nyuad-cai/MedArabiQ/datasets"
# Their samples have tests of their own.
OTHER_SUITES = (
    "judge_injections/",
    "QCRI/M2CQA/",
    "QCRI/ImageEval-ArabicNLP26/",
    "cvlue/",
    "lmms-lab/",
    "visdial/",
    "coco_karpathy/",
    "toloka/",
    "JHU-CLSP/",
)
LABELS = ("أ", "ب", "ج", "د", "هـ", "و", "ز", "ح")

MCQ_COLUMNS = {"prompt", "question", "choices", "index"}
ARABICMMLU = ["ID", "Source", "Country", "Group", "Subject", "Level", "Question", "Context", "Answer Key"]
ARABICMMLU += [*(f"Option {number}" for number in range(1, 6)), "is_few_shot"]
MEDARABENCH = ["Question Number", "Question", *(f"Option {letter}" for letter in "ABCDEF"), "Correct Answer", "Level"]
MEDARABENCH += ["Medical Specialty", "Group", "umbrella_specialty"]
ARABCULTURE = ["worker_id", "sample_id", "sub_topic", "first_statement", "options", "answer_key"]
ARABCULTURE += ["relevant_to_this_country", "relevant_to_other_countries", "should_discard", "country", "region"]
FANNORFLOP = "id title author source tags meter genre era verse_count poem_verses explanation raw_explanation".split()
HUMANEVAL = "task_id prompt entry_point test contract canonical_solution base_input plus_input atol".split()
MBPP = "task_id code prompt source_file test_imports test_list test canonical_solution entry_point contract".split()
MBPP += ["base_input", "plus_input", "atol"]
BIAS = ["Question", "Answer", "Category", "Bias Category", "Question with Bias", "Bias Education"]
BIAS += ["One-shot Demonstration", "Few-shot Demonstration"]
PAIRS = ["Question - Arabic", "Answer - Arabic", "Question - English", "Answer - English", "Category"]
# The columns of each source, in order (spec: section 1.2); GAT's and MizanQA's are ours, as theirs are not public.
COLUMNS = {
    "QCRI/AraDiCE-Culture": ["Question", "Option A", "Option B", "Option C"],
    "MBZUAI/ArabCulture": ARABCULTURE,
    "UBC-NLP/palmx_2025_subtask1_culture": ["id", "question", "A", "B", "C", "D", "answer"],
    "UBC-NLP/palmx_2025_subtask2_islamic": ["id", "question", "A", "B", "C", "D", "answer"],
    "MBZUAI/ArabicMMLU": ARABICMMLU,
    "smballaa/GATmath": ["question", "A", "B", "C", "D", "answer"],
    "smballaa/GATLc": ["question", "A", "B", "C", "D", "answer"],
    "tiiuae/NativeQA": ["question_text", "choices", "correct_choice"],
    "tiiuae/SyntheticQA": ["question", "choices", "self_answer"],
    "adlbh/MizanQA-v0": ["question", "options", "answers"],
    "omkarthawakar/FannOrFlop": FANNORFLOP,
    "tiiuae/evalplus-arabic/HumanEvalPlus.jsonl": HUMANEVAL,
    "tiiuae/evalplus-arabic/MBPPPlus.jsonl": MBPP,
    "asas-ai/AraTrust": ["Question", "A", "B", "C", "Answer", "Category"],
    "Thiqah/ArabLegalEval": ["questions", "ground_truths", "context"],
    f"{MEDARABIQ}/multiple-choice-questions.csv": ["Question", "Answer", "Category"],
    f"{MEDARABIQ}/multiple-choice-withbias.csv": BIAS,
    f"{MEDARABIQ}/fill-in-the-blank-choices.csv": PAIRS,
    f"{MEDARABIQ}/fill-in-the-blank-nochoices.csv": PAIRS,
    f"{MEDARABIQ}/patient-doctor-qa-llm.csv": ["Modified question description", "Unmodified answer"],
    "nyuad-cai/MedAraBench": MEDARABENCH,
}
MEDARABIQ_FILES = {
    "mcq_knowledge": "multiple-choice-questions",
    "mcq_bias": "multiple-choice-withbias",
    "fib_with_choices": "fill-in-the-blank-choices",
    "fib_no_choices": "fill-in-the-blank-nochoices",
    "llm_modified": "patient-doctor-qa-llm",
}


def data_files():
    files = (path for path in SAMPLES.rglob("*") if path.suffix in (".jsonl", ".json", ".csv"))
    names = sorted(path.relative_to(SAMPLES).as_posix() for path in files)
    return [name for name in names if not name.startswith(OTHER_SUITES)]


def read(name):
    """Rows of one data file; the legal file is one object of parallel lists."""
    text = (SAMPLES / name).read_text(encoding="utf-8-sig")
    if name.endswith(".csv"):
        return list(csv.DictReader(text.splitlines(keepends=True), strict=True))
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    content = json.loads(text)
    if isinstance(content, list):
        return content
    return [dict(zip(content, row, strict=True)) for row in zip(*content.values(), strict=True)]


def declared():
    """(folder, config, {split: file}) of every README's front matter."""
    found = []
    for readme in sorted(SAMPLES.glob("*/*/README.md")):
        text = readme.read_text(encoding="utf-8")
        of_qimma = not readme.relative_to(SAMPLES).as_posix().startswith(OTHER_SUITES)
        if of_qimma and text.startswith("---\n"):
            for config in yaml.safe_load(text.split("---\n")[1])["configs"]:
                splits = {item["split"]: item["path"] for item in config["data_files"]}
                found.append((readme.parent.relative_to(SAMPLES).as_posix(), config["config_name"], splits))
    return found


def evaluated_rows():
    """{(benchmark, subset): original rows}, under the names of the paper's Table 5."""
    rows = defaultdict(list)
    names = {"culture": "General Culture", "islamic": "Islamic Culture", "Thorasic Internal": "Thoracic Internal"}
    for folder, config, splits in declared():
        split = splits.get("test") or splits.get("train")
        org, name = folder.split("/")
        if org == "qimma":
            continue
        benchmark = {"NativeQA": "3LM STEM", "SyntheticQA": "3LM STEM", "MizanQA-v0": "MizanQA"}.get(name, name)
        benchmark = "PalmX" if name.startswith("palmx") else "GAT" if name.startswith("GAT") else benchmark
        subset = name if benchmark == "3LM STEM" else benchmark if config == "default" else config
        if benchmark == "PalmX":
            subset = names[name.rsplit("_", 1)[1]]
        subset = subset.capitalize() if benchmark == "GAT" else subset
        rows[benchmark, subset] += read(f"{folder}/{split}")
    for row in read("nyuad-cai/MedAraBench/medarabench-test_split.csv"):
        rows["MedAraBench", names.get(row["Medical Specialty"], row["Medical Specialty"])].append(row)
    for subset, file in MEDARABIQ_FILES.items():
        rows["MedArabiQ", subset] = read(f"{MEDARABIQ}/{file}.csv")
    rows["ArabLegalQA", "QA"] = read("Thiqah/ArabLegalEval/benchmarkQA/Najiz_QA_with_context_v2.benchmark.json")
    return rows


EVALUATED = evaluated_rows()


def position(label):
    """Where a label of a source points: Arabic with its variants, or Latin of either case."""
    label = {"ا": "أ", "ه": "هـ"}.get(label, label)
    return LABELS.index(label) if label in LABELS else "ABCDEF".index(label.upper())


def parts_of(text):
    """Options of one text with inline labels."""
    marks = list(re.finditer(r"(?:^|[ ,\n])(أ|ا|ب|ج|د|هـ|ه)[.)] ", text))
    assert [position(mark[1]) for mark in marks] == list(range(len(marks)))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return [text[mark.end() : end].strip(" ,\n") for mark, end in zip(marks, ends, strict=True)]


def filled(row, names):
    return [row[name] for name in names if row[name] not in (None, "")]


def medarabiq_options(row):
    question = row.get("Question with Bias") or row.get("Question - Arabic") or row["Question"]
    return parts_of(question[question.index("\n") :])


def by_columns(names, answer):
    return lambda row: (filled(row, names), [position(row[answer])])


def arabculture(row):
    keys = row["options"]["arabic_keys"], row["options"]["english_keys"]
    golds = row["answer_key"]["arabic_answer_key"], row["answer_key"]["english_answer_key"]
    assert keys == (["أ", "ب", "ج"], ["A", "B", "C"]) and keys[0].index(golds[0]) == keys[1].index(golds[1])
    return row["options"]["text"], [position(golds[0])]


def native(row):
    choices = ast.literal_eval(row["choices"]) if isinstance(row["choices"], str) else row["choices"]
    assert [choice[:4] for choice in choices] == [f"({label}) " for label in LABELS[: len(choices)]]
    return [choice[4:] for choice in choices], [position(row["correct_choice"])]


def synthetic(row):
    text = row["choices"] if isinstance(row["choices"], str) else row["choices"][0]
    return parts_of(text), [position(row["self_answer"])]


def aratrust(row):
    cells = filled(row, "ABC")
    assert [cell[:3] for cell in cells] == [f"{label}) " for label in LABELS[: len(cells)]]
    return [cell[3:] for cell in cells], [position(row["Answer"])]


def medarabiq(row):
    question = row.get("Question with Bias") or row.get("Question - Arabic") or row["Question"]
    options = parts_of(question[question.index("\n") :])
    label, text = (row.get("Answer - Arabic") or row["Answer"]).strip().split(". ", 1)
    assert options[position(label)] == text
    return options, [position(label)]


READERS = {
    "AraDiCE-Culture": lambda row: (filled(row, ["Option A", "Option B", "Option C"]), [0]),
    "ArabCulture": arabculture,
    "PalmX": by_columns("ABCD", "answer"),
    "GAT": by_columns("ABCD", "answer"),
    "ArabicMMLU": by_columns(ARABICMMLU[9:14], "Answer Key"),
    "3LM STEM": lambda row: native(row) if "question_text" in row else synthetic(row),
    "MizanQA": lambda row: (row["options"], [position(letter) for letter in row["answers"]]),
    "AraTrust": aratrust,
    "MedAraBench": by_columns(MEDARABENCH[2:8], "Correct Answer"),
    "MedArabiQ": medarabiq,
}
FREE_ANSWERS = {("ArabLegalQA", "QA"), ("FannOrFlop", "FannOrFlop")}
FREE_ANSWERS |= {("MedArabiQ", "fib_no_choices"), ("MedArabiQ", "llm_modified")}


def choice_rows():
    """(benchmark, row, option texts, positions of the right ones) of every row with options."""
    for (benchmark, subset), rows in EVALUATED.items():
        for row in rows if (benchmark, subset) not in FREE_ANSWERS else []:
            options, golds = READERS[benchmark](row)
            yield benchmark, row, [str(option).strip() for option in options], golds


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


@pytest.mark.parametrize("folder", sorted({folder for folder, _, _ in declared()}))
def test_a_folder_of_samples_loads_with_datasets(folder, tmp_path):
    """One config of each; that the files of all are there shows where they are read below."""
    import datasets

    config, splits = next((config, splits) for where, config, splits in declared() if where == folder)
    loaded = datasets.load_dataset(str(SAMPLES / folder), config, cache_dir=str(tmp_path))
    assert set(loaded) == set(splits)
    for split, file in splits.items():
        rows = read(f"{folder}/{file}")
        assert loaded[split].num_rows == len(rows) >= 2
        assert [row.get("choices") for row in loaded[split]] == [row.get("choices") for row in rows]


def test_all_107_subsets_of_table_5_have_rows():
    with TABLE_5.open(encoding="utf-8") as file:
        pairs = {(row["benchmark"], row["subset"]) for row in csv.DictReader(file)}
    assert set(EVALUATED) == pairs and len(pairs) == 107
    assert {pair: len(rows) for pair, rows in EVALUATED.items() if len(rows) < 2} == {}
    totals = Counter()
    for (benchmark, _), rows in EVALUATED.items():
        totals[benchmark] += len(rows)
    assert min(totals.values()) >= 6


def test_columns_are_those_of_the_sources():
    unseen = set(COLUMNS)
    for file in data_files():
        source = next((name for name in COLUMNS if file.startswith(name)), None)
        if source is None:
            assert file.startswith("qimma/"), file
            continue
        unseen.discard(source)
        expected = COLUMNS[source] + (["context"] if file.endswith("reading.json") else [])
        assert {tuple(row) for row in read(file)} == {tuple(expected)}, file
    assert not unseen


def test_golds_point_at_options_that_are_all_different():
    golds_of = defaultdict(set)
    for benchmark, row, options, golds in choice_rows():
        assert len(options) >= 2 and all(options) and len(set(options)) == len(options), row
        assert golds and len(set(golds)) == len(golds) and max(golds) < len(options), row
        golds_of[benchmark].update(golds)
    assert set(golds_of) == set(READERS)
    assert golds_of.pop("AraDiCE-Culture") == {0}
    assert min(map(len, golds_of.values())) >= 3, "a model that always picks one label must not do well"


def test_free_answers_are_complete():
    for row in EVALUATED["ArabLegalQA", "QA"]:
        assert all(row[column].strip() for column in COLUMNS["Thiqah/ArabLegalEval"])
    for subset in ("fib_no_choices", "llm_modified"):
        for row in EVALUATED["MedArabiQ", subset]:
            assert all(cell.strip() for cell in row.values())
    for row in EVALUATED["FannOrFlop", "FannOrFlop"]:
        assert row["verse_count"] == len(row["explanation"]) == len(row["poem_verses"].splitlines())
        assert row["tags"] == [row["meter"], row["genre"], row["era"]]
        for number, pair in enumerate(row["explanation"], 1):
            line = row["poem_verses"].splitlines()[number - 1]
            assert line == f"{number}. " + pair["verse"].replace("\n", " ... ")
            assert pair["explanation"] in row["raw_explanation"]


def test_curated_rows_carry_whole_prompts():
    for file in data_files():
        for row in read(file) if file.startswith("qimma/") else []:
            assert row["prompt"].endswith("\nالإجابة:")
            assert row["question"] in row["prompt"] and row.get("context", "") in row["prompt"]
            if "/QA_" in file:
                assert set(row) - {"context"} == MCQ_COLUMNS - {"index"}
                assert all(strings(row["choices"])) and row["choices"]
                continue
            assert set(row) - {"context"} == MCQ_COLUMNS
            assert isinstance(row["index"], list) == ("MizanQA" in file)
            golds = row["index"] if isinstance(row["index"], list) else [row["index"]]
            assert golds and all(0 <= gold < len(row["choices"]) for gold in golds)
            assert len(set(row["choices"])) == len(row["choices"])
            listed = [f"{label}. {text}" for label, text in zip(LABELS, row["choices"], strict=False)]
            assert "\n".join(listed) + "\nالإجابة:" in row["prompt"]


def test_curated_golds_are_those_of_the_originals():
    """The two forms hold the same questions; MedArabiQ's options stand inside its questions, so these are not keys."""
    names = ("Question", "question", "question_text", "first_statement")
    right = {
        next(row[name] for name in names if name in row): {options[gold] for gold in golds}
        for benchmark, row, options, golds in choice_rows()
        if benchmark != "MedArabiQ"
    }
    compared = Counter()
    for file in data_files():
        for row in read(file) if file.startswith("qimma/MCQ_") and "validation" not in file else []:
            if "MedArabiQ" not in file:
                golds = row["index"] if isinstance(row["index"], list) else [row["index"]]
                assert {row["choices"][gold] for gold in golds} == right[row["question"]]
                compared[file.split("/")[1]] += 1
    assert len(compared) == 10 and min(compared.values()) >= 6


def test_text_is_normalised_arabic():
    for file in data_files():
        raw = (SAMPLES / file).read_bytes()
        assert raw.startswith(b"\xef\xbb\xbf") == file.endswith("multiple-choice-questions.csv"), file
        assert len(raw) < 300_000 and b"\r" not in raw
        for row in read(file):
            texts = list(strings(row))
            assert all(unicodedata.is_normalized("NFC", text) for text in texts), file
            assert not any("\ufb50" <= mark <= "\ufdff" and mark not in "﴿﴾" for text in texts for mark in text), file
            questions = [text for name, text in row.items() if "uestion" in name and isinstance(text, str)]
            questions += [row[name] for name in ("first_statement", "prompt") if name in row and "choices" not in row]
            questions = [text for text in questions if text and not text.startswith("Fill in")]
            assert questions or "poem_verses" in row
            assert all(re.search("[\u0621-\u064a]", text) for text in questions if not text.isdigit()), row


def test_awkward_rows_are_there():
    """What sources do to their readers, so that runs on the samples meet it too."""
    mmlu = [row for (benchmark, _), rows in EVALUATED.items() if benchmark == "ArabicMMLU" for row in rows]
    assert {type(row["Option 1"]) for row in EVALUATED["ArabicMMLU", "Math (Primary School)"]} == {float}
    assert any(row["Option 5"] for row in mmlu) and any(row["Option 3"] is None for row in mmlu)
    assert max(Counter(row["Context"] for row in mmlu if row["Context"]).values()) == 2
    assert any(str(row["Option 4"]).endswith("\n") for row in mmlu)
    for subset, names in (("NativeQA", {str, list}), ("SyntheticQA", {str, list})):
        assert {type(row["choices"]) for row in EVALUATED["3LM STEM", subset]} == names
    assert any("," in row["choices"] for row in EVALUATED["3LM STEM", "SyntheticQA"])
    assert {len(row["options"]) for row in EVALUATED["MizanQA", "MizanQA"]} >= {2, 8}
    assert {len(row["answers"]) > 1 for row in EVALUATED["MizanQA", "MizanQA"]} == {True, False}
    trust = EVALUATED["AraTrust", "AraTrust"]
    assert "ا" in {row["Answer"] for row in trust} and [row["C"] for row in trust].count(None) == 1
    bench = [row for (benchmark, _), rows in EVALUATED.items() if benchmark == "MedAraBench" for row in rows]
    assert {row["Group"] for row in bench} == {"ABCD", "ABCDE", "ABCDEF"}
    assert any(row["Correct Answer"].islower() for row in bench)
    inline = "\n".join("\n".join(strings(row)) for row in EVALUATED["MedArabiQ", "mcq_knowledge"])
    assert all(f"\n{label}. " in inline for label in ("ا", "أ", "ه", "هـ"))
    passages = Counter(row["context"] for row in EVALUATED["ArabLegalQA", "QA"])
    assert max(passages.values()) >= 2
    assert max(row["verse_count"] for row in EVALUATED["FannOrFlop", "FannOrFlop"]) > 10
