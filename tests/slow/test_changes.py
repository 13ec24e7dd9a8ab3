"""Changes of data and replies with their declared effects, on each suite's samples, real rows and drawn ones.

`python tests/slow/write_page.py` writes docs/metamorphic.md from the same table.
"""

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wrappings import WRAPPINGS, Wrapping

from cultureval.metrics.choice_replies import parse_labels
from cultureval.models.choice import check_model
from cultureval.prompts.option_labels import LABELS
from cultureval.reports.comparison.report import compare_all
from cultureval.reports.cvlue.official_scores import means, score_task
from cultureval.reports.evaluation import evaluate_tasks
from cultureval.runs.loading import load
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.reading import forget_files
from cultureval.testing import CHANGES, assert_metamorphic, reading_of, table_of

pytestmark = pytest.mark.usefixtures("own_cache")

# Task -> the least number of changes that apply to its samples.
ORIGINALS = {
    "qimma_aratrust": 36,
    "qimma_arabicmmlu:Driving Test": 34,
    "qimma_palmx:culture": 34,
    "qimma_mizanqa": 36,
    "qimma_3lm_stem:native": 33,
    "qimma_gat:Algebra": 27,
    "qimma_aradice:Egypt": 20,
    "qimma_medarabench:Surgery": 15,
    "jeem_caption:msa": 3,
    "m2cqa_aynvqa_answer_reason:en": 2,
    "alqasida_mono:btec_egy": 3,
    "cvlue_vqa": 8,
    "cvlue_vg": 8,
    "cvlue_vd": 8,
    "cvlue_itr": 7,
    "cvlue_en_vg": 10,
}
CURATED = {"qimma_aratrust": 14, "qimma_arabicmmlu:Driving Test": 10, "qimma_mizanqa": 14}
REAL = Path(__file__).parents[2].parent / "shared/data/arabicmmlu/ArabicMMLUs.csv"
ON_SCORE = (
    "a byte-order mark before the rows",
    "records by id in reverse order",
    "records as JSON with indents, escapes and names in another order",
    "an id twice",
    "a record in one of two files",
)
ON_REAL = ("rows in reverse order", "two shards", "stored as jsonl", "stored as parquet", "a row twice")


def copy_of(name, form):
    """A task that reads only its copies of a form."""
    task = all_tasks()[name]
    return replace(task, sources=tuple(source for source in task.sources if source.form == form))


@pytest.mark.parametrize("name", ORIGINALS)
def test_every_change_of_an_original_has_its_declared_effect(tmp_path, name):
    assert len(assert_metamorphic(copy_of(name, "original"), samples_root(), tmp_path)) >= ORIGINALS[name]


@pytest.mark.parametrize("name", CURATED)
def test_every_change_of_a_curated_copy_has_its_declared_effect(tmp_path, name):
    assert len(assert_metamorphic(copy_of(name, "curated"), samples_root(), tmp_path)) >= CURATED[name]


@pytest.mark.skipif(not REAL.is_file(), reason="ArabicMMLU's rows are not on this machine")
def test_changes_of_the_real_table_of_arabicmmlu(tmp_path):
    folder = tmp_path / "real/MBZUAI/ArabicMMLU"
    folder.mkdir(parents=True)
    (folder / "ArabicMMLU.csv").write_bytes(REAL.read_bytes())
    some = [change for change in CHANGES if change.name in ON_REAL]
    task = copy_of("qimma_arabicmmlu:Philosophy (High School)", "original")
    assert assert_metamorphic(task, tmp_path / "real", tmp_path / "copy", some) == list(ON_REAL)


ON_EXPORTS = {
    "qimma_arabicmmlu:Driving Test": ("rows in reverse order", "stored as parquet", "golds as Arabic letters"),
    "qimma_mizanqa": ("stored as jsonl.gz", "options as an object in another order", "golds as Latin letters"),
    "qimma_gen_mizanqa": ("two shards", "options as JSON"),
    "cvlue_vqa": ("records by id in reverse order", "a byte-order mark before the rows"),
}


@pytest.mark.parametrize("name", ON_EXPORTS)
def test_the_exports_to_other_harnesses_ask_the_same_after_a_change(tmp_path, name):
    from cultureval.tasks.harnesses.inspect_scoring import AskedTask
    from cultureval.tasks.harnesses.lm_eval_tasks import SuiteTask

    task, asked = copy_of(name, "original"), []
    for change in (None, *(one for one in CHANGES if one.name in ON_EXPORTS[name])):
        table = table_of(task, samples_root(), tmp_path)
        if change:
            change.make(table)
        forget_files()
        with use_settings(current_settings().with_(data_root=table.root)):
            inspect = AskedTask(name, 0, "{}").docs.values()
            lm_eval = SuiteTask({"task": name, "dataset_name": name, "output_type": "generate_until"}).eval_docs
        ours = [json.loads(one) for one in reading_of(task, table.root).docs.elements()]
        asked += [Counter(repr((doc.query, doc.choices, doc.gold_index)) for doc in inspect)]
        asked += [Counter(repr((one["query"], one["choices"], one["gold"])) for one in lm_eval)]
        asked += [Counter(repr((query, choices, gold)) for query, choices, gold, _ in ours)]
    assert len(asked) == 3 + 3 * len(ON_EXPORTS[name]) and asked.count(asked[0]) == len(asked) and asked[0]


def test_score_gives_the_same_after_a_change_of_the_gold_files(tmp_path):
    """`cultureval score` reads CVLUE's gold files itself."""
    folder, changes = tmp_path / "pred", [one for one in CHANGES if one.name in ON_SCORE]
    folder.mkdir()
    for part, (place, task) in {
        "vqa": ("VQA", "cvlue_vqa"),
        "vg": ("VG", "cvlue_vg"),
        "vd": ("VD", "cvlue_vd"),
    }.items():
        gold = json.loads((samples_root() / f"cvlue/{place}/gold.json").read_text(encoding="utf-8"))
        records = gold["data"] if isinstance(gold, dict) else gold
        right = [one | {"answer_sort": one["answer_options"]} if part == "vd" else one for one in records]
        wrong = {"vqa": {"answer": "?"}, "vg": {"bbox": [0, 0, 1, 1]}, "vd": {}}[part]
        pred = folder / f"{part}.json"
        pred.write_text(json.dumps([{**one, **(wrong if n % 2 else {})} for n, one in enumerate(right)]))
        scores = []
        for change in (None, *changes):
            table = table_of(all_tasks()[task], samples_root(), tmp_path)
            if change:
                change.make(table)
            if change and change.effect == "told and refused":
                with pytest.raises(CulturevalError):
                    score_task(part, table.file, [pred], tmp_path / "out")
                continue
            ((_, scored),) = score_task(part, table.file, [pred], tmp_path / "out").submissions
            found = means(part, scored[task].rows)
            scores.append({name: round(value, 9) for name, value in found.items()} | {"n": len(scored[task].rows)})
        assert len(scores) == 4 and scores.count(scores[0]) == 4


STORED = ("stored as csv", "stored as jsonl.gz", "stored as parquet", "two shards")


def test_runs_of_the_same_rows_in_other_files_are_compared_and_in_another_order_refused(tmp_path):
    """Items are known by their file and number: files of other names were other data for `compare` and the ranks."""
    task, model = "qimma_arabicmmlu:Driving Test", str(build_tiny_causal_lm(tmp_path / "tiny"))
    runs = {}
    for name in ("", *STORED, "rows in reverse order"):
        table = table_of(copy_of(task, "original"), samples_root(), tmp_path)
        for change in (one for one in CHANGES if one.name == name):
            change.make(table)
        forget_files()
        of_model = {"device": "cpu", "dtype": "float32"}
        given = current_settings().with_(data_root=table.root, form="original", model_settings=of_model)
        runs[name] = tmp_path / "runs" / (name or "as it was")
        with use_settings(given):
            evaluate_tasks(model, partial(check_model, model), [task], None, str(runs[name]))
    records = [load(folder).runs[0].record.tasks[f"{task}|0"] for folder in runs.values()]
    assert len({one.content_hash for one in records}) == 2 and len({one.rows_hash for one in records}) > 3
    differences = compare_all([runs[name] for name in ("", *STORED)]).document["differences"]
    assert len(differences) == 10
    assert {(one["test"], one["items"]) for one in differences} == {("identical", records[0].rows)}
    with pytest.raises(CulturevalError, match="rows"):
        compare_all([runs[""], runs["rows in reverse order"]])


WORDS = st.text("ابتثجحخدذرزسشصضطظعغفقكلمنهوي", min_size=3, max_size=9)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.lists(WORDS, min_size=5, max_size=5, unique=True), min_size=2, max_size=8, unique_by=lambda row: row[0]
    ),
    st.lists(st.integers(0, 3), min_size=8, max_size=8),
    st.lists(st.sampled_from(CHANGES), min_size=3, max_size=3, unique=True),
)
def test_changes_of_drawn_rows(tmp_path_factory, texts, golds, changes):
    tmp_path = tmp_path_factory.mktemp("drawn")
    file = tmp_path / "rows/asas-ai/AraTrust/test.jsonl"
    file.parent.mkdir(parents=True)
    rows = [
        {"Question": f"{row[0]}؟", **dict(zip("ABCD", row[1:], strict=True)), "Answer": "ABCD"[gold]}
        for row, gold in zip(texts, golds, strict=False)
    ]
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    assert_metamorphic(copy_of("qimma_aratrust", "original"), tmp_path / "rows", tmp_path / "copy", changes)


@pytest.mark.parametrize("wrapping", WRAPPINGS, ids=lambda one: one.name)
@pytest.mark.parametrize("asked", ["الإجابة النهائية: {}", "Final answer: {}", "最终答案: {}"])
def test_what_stands_around_a_reply_changes_nothing(wrapping: Wrapping, asked):
    options = ["القاهرة", "بيروت", "دمشق", "بغداد", "فاس"]
    for place, label in enumerate(LABELS[:5]):
        reply = wrapping.wrap(asked.format(label), label)
        for several in (False, True):
            read = [parse_labels(reply, LABELS[:5], options, profile, several) for profile in ("strict", "lenient")]
            assert read == [(place,) if wrapping.strict else None, (place,)], (reply, several)


def test_the_page_shows_the_table():
    page = Path(__file__).parents[2].joinpath("docs/metamorphic.md").read_text(encoding="utf-8")
    for one in (*CHANGES, *WRAPPINGS):
        assert f"| {one.name} |" in page
