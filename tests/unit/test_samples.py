"""QIMMA's shipped samples: each source's columns, and golds that are those of the originals and at no one place.

That every row is sound, test_checking.py shows; test_sample_rows.py pins what the rows hold.
"""

import csv
import json
from collections import Counter, defaultdict

import pytest
import yaml

from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import SourceUnavailable
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.reading import prepare_subset

SAMPLES = samples_root()
MEDARABIQ = "nyuad-cai/MedArabiQ/datasets"
# Their samples have tests of their own.
OTHER_SUITES = (
    "QCRI/M2CQA/",
    "QCRI/ImageEval-ArabicNLP26/",
    "cvlue/",
    "lmms-lab-encoder/",
    "visdial/",
    "coco_karpathy/",
    "toloka/",
    "JHU-CLSP/",
)
CHOICES = ("MCQ", "multi-select")

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
    "FarisHijazi/ArabLegalEval": ["Question", "Answer", "Context", "task", "subject"],
    f"{MEDARABIQ}/multiple-choice-questions.csv": ["Question", "Answer", "Category"],
    f"{MEDARABIQ}/multiple-choice-withbias.csv": BIAS,
    f"{MEDARABIQ}/fill-in-the-blank-choices.csv": PAIRS,
    f"{MEDARABIQ}/fill-in-the-blank-nochoices.csv": PAIRS,
    f"{MEDARABIQ}/patient-doctor-qa-llm.csv": ["Modified question description", "Unmodified answer"],
    "nyuad-cai/MedAraBench": MEDARABENCH,
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


@pytest.mark.slow
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


def prepared(task, form):
    """The rows of a task as a run asks them; none where the samples lack its curated form."""
    try:
        folder = prepare_subset(task, DataOptions(root=SAMPLES, form=form)).folder
    except SourceUnavailable:
        assert form == "curated"
        return []
    return [json.loads(line) for line in (folder / "test.jsonl").read_text(encoding="utf-8").splitlines()]


def test_curated_golds_are_those_of_the_originals_and_at_no_one_place(own_cache):
    """The two forms hold the same questions; of MedArabiQ, whose options are in its questions, other ones."""
    places, compared = defaultdict(set), Counter()
    for task in (one for one in all_tasks().values() if one.suite == "qimma" and one.kind.task_type in CHOICES):
        golds = {"original": Counter(), "curated": Counter()}
        for form, counted in golds.items():
            for row in prepared(task, form):
                places[task.benchmark].update(row["index"])
                right = frozenset(row["choices"][gold] for gold in row["index"])
                counted[frozenset(row["choices"]), right] += 1  # each form has an order of its own
        if task.benchmark != "MedArabiQ":
            assert golds["curated"] <= golds["original"], task.task
            compared[task.benchmark] += golds["curated"].total()
    assert min(map(len, places.values())) >= 3, "a model that always picks one label must not do well"
    assert len(compared) == 9 and min(compared.values()) >= 6
