"""Generated answers of multiple-choice questions: what replies name, the tasks, their prompts, table and refusals."""

import re
from pathlib import Path
from typing import get_args

import pytest
from growth import grows_slowly
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cultureval.metrics.choice_replies import Profile, parse_labels
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.tasks.catalogue import all_tasks, kind_of
from cultureval.tasks.reading import prepare_subset

PROFILES = get_args(Profile)
LABELS = "أ ب ج د هـ و".split()
OPTIONS = ["القاهرة", "بيروت", "3", "بغداد", "فاس العتيقة", "12"]
LATIN, ABJAD = "ABCDEF", ["ا", "ب", "جـ", "دَ", "ه", "و"]
ORDINALS = ["الأولى", "الثانية", "الثالثة", "الرابعة", "الخامسة", "السادسة"]
ASKED = [
    "الإجابة النهائية: {}",
    "Final answer: {}",
    "**الإجابة النهائية:** {}.",
    "الاجابة النهائية : ({})",
    "最终答案:{}",
]
STATED = ["إذن الإجابة الصحيحة هي {}", "الجواب: ({})", "The answer is **{}**.", "the correct option is {}", "أختار {}"]
REASONS = ["", "الخيار أ خاطئ لأن السؤال عن بيروت.", "Option B is tempting, but no.", "الإجابة ليست ب."]


@pytest.mark.parametrize(
    ("reply", "strict", "lenient"),
    [
        ("ب", 1, 1),
        ("(ب).", 1, 1),
        ("الإجابة النهائية: <هـ>", 4, 4),
        ("الإجابة النهائية: B", None, 1),
        ("الإجابة النهائية: ٢", None, 1),
        ("الإجابة: 3", None, 2),  # an option's number and its text
        ("الإجابة: 12", None, 5),
        ("الإجابة النهائية: أ أو ب", None, None),
        ("الإجابة النهائية: أ\nالإجابة النهائية: ب", None, None),  # two labels
        ("الإجابة أ خاطئة. الإجابة ب", None, 1),
        ("The answer is a country.", None, None),
        ("The answer is A", None, 0),
        ("The answer is A because Cairo is old", None, 0),
        (r"$\boxed{ج}$", 2, 2),
        (r"so it is $\boxed{\text{B}}$, clearly", None, 1),
        ("正确答案是B", None, 1),
        ("答案是B，不是A", None, 1),
        ("The correct answer is C, not B", None, 2),
        ("Answer: A, not correct", None, None),
        ("The answer would be A if it were in Asia, but as it is not, the answer is C.", None, None),
        ("The answer is A for Egypt and C for Syria.", None, None),
        ("B\n\nQuestion 2: capital of Syria?\nFinal answer: أ", None, 1),
        ("الإجابة النهائية: ب\n\nالسؤال التالي: ما عاصمة تونس؟\nالإجابة النهائية: أ", None, 1),
        ("هل الإجابة ب؟", None, None),
        ("ج\n\nالشرح: لأن السؤال عن دمشق", None, 2),
        ("### الإجابة النهائية: ب", 1, 1),
        ("الإجابة النهائية:\nب", 1, 1),
        ("الإجابة النهائية: ب 🎉", 1, 1),
        ("The answer is C. Many people think the answer is A, but that is wrong.", None, 2),
        ("The answer is A. The answer is B.", None, None),
        ("The answer is A.\nFinal answer: ب", 1, 1),
        ("ربما تكون الإجابة أ", None, None),
        ("لا أعرف", None, None),
        ("", None, None),
    ],
)
def test_known_replies(reply, strict, lenient):
    found = [parse_labels(reply, LABELS, OPTIONS, profile) for profile in ("strict", "lenient")]
    assert found == [None if place is None else (place,) for place in (strict, lenient)]


@pytest.mark.parametrize(
    ("reply", "strict", "lenient"),
    [
        ("الإجابات الصحيحة هي: أ، ج، هـ", None, (0, 2, 4)),
        ("The answers are A and C.", None, (0, 2)),
        ("الإجابة النهائية:\n- أ\n- ج", (0, 2), (0, 2)),
        ("الإجابة النهائية: أ، ج", (0, 2), (0, 2)),
        ("The answers are A and C. The answers are A and D.", None, None),
        ("الإجابات: أ | ج", None, None),
    ],
)
def test_known_replies_that_name_several(reply, strict, lenient):
    found = [parse_labels(reply, LABELS, OPTIONS, profile, True) for profile in ("strict", "lenient")]
    assert found == [strict, lenient]


def test_replies_that_a_person_has_read():
    """Of replies written and read by hand, many of them to be misread, strict misreads none and lenient very few."""
    read = misread = named = 0
    for file in (Path(__file__).parents[1] / "replies").glob("*.txt"):
        head, *parts = re.split(r"^=== (.*)\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        asked = dict(line.split(": ", 1) for line in head.splitlines())
        labels, options = asked["labels"].split(), asked["options"].split(" | ")
        for hand, reply in zip(parts[::2], parts[1::2], strict=True):
            right = None if hand == "-" else tuple(sorted(labels.index(label) for label in hand.split()))
            strict, lenient = (parse_labels(reply, labels, options, one, "several" in asked) for one in PROFILES)
            assert strict in (None, right), reply
            named, read = named + (right is not None), read + (lenient == right is not None)
            misread += lenient not in (None, right)
    assert named > 240 and misread <= 9 and read > 0.7 * named


places = st.integers(0, len(LABELS) - 1)


@given(places, st.sampled_from(ASKED), st.sampled_from(REASONS), st.sampled_from([LABELS, ABJAD]))
def test_the_asked_form_is_read_by_both_profiles(place, form, reason, spelling):
    reply = f"{reason}\n{form.format(spelling[place])}\n"
    for profile in ("strict", "lenient"):
        assert parse_labels(reply, LABELS, OPTIONS, profile) == (place,)


@given(places, places, st.sampled_from(STATED), st.sampled_from([LABELS, LATIN]))
def test_a_clear_statement_counts_leniently_unless_another_differs(place, other, form, spelling):
    reply = f"لنفكر.\n{form.format(spelling[place])}"
    assert parse_labels(reply, LABELS, OPTIONS, "lenient") == (place,)
    assert parse_labels(reply, LABELS, OPTIONS) is None
    both = parse_labels(f"الإجابة: {LABELS[other]}\n{reply}", LABELS, OPTIONS, "lenient")
    assert both == ((place,) if place == other else None)


@given(st.sets(places, min_size=1), st.sampled_from(["، ", ",", ", "]), st.randoms())
def test_all_right_labels_in_any_order(right, between, random):
    shown = [LABELS[place] for place in right]
    random.shuffle(shown)
    reply = f"الإجابة النهائية: {between.join(shown)}"
    for profile in ("strict", "lenient"):
        assert parse_labels(f"لنفكر.\n{reply}", LABELS, OPTIONS, profile, several=True) == tuple(sorted(right))
    assert parse_labels(f"{reply}{between}{shown[0]}", LABELS, OPTIONS, several=True) == tuple(sorted(right))
    assert parse_labels(f"{reply}{between}شيء", LABELS, OPTIONS, several=True) is None


WORDS = [
    *LABELS,
    *LATIN,
    *OPTIONS,
    *ORDINALS,
    "الإجابة",
    "النهائية",
    ":",
    "answer",
    "is",
    "not",
    "أو",
    "\n",
    "(",
    "a",
    "ليست",
]


@settings(max_examples=80)
@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=25), st.booleans())
@example(["الإجابة", "النهائية", ":", "ب"], False)
def test_any_reply_gives_a_position_or_none_and_what_strict_reads_lenient_reads_alike(parts, several):
    reply = " ".join(parts)
    strict, lenient = (parse_labels(reply, LABELS, OPTIONS, profile, several) for profile in ("strict", "lenient"))
    for found in (strict, lenient):
        assert found is None or (found == tuple(sorted(set(found))) and set(found) <= set(range(len(LABELS))))
        assert several or found is None or len(found) == 1
    assert strict in (None, lenient)
    marked = reply.replace("ب", "\u200fب\u0651")  # marks that a reader does not see change nothing
    assert parse_labels(marked, LABELS, OPTIONS, "strict", several) == strict


@pytest.mark.parametrize(
    "part",
    [
        "الإجابة ",
        "answer ",
        "الإجابة: أ و ",
        "((((",
        "ﷺ",
        "\n",
        "\\boxed{",
        "أ،",
        "the best correct ",
        "Option A is correct ",
    ],
)
def test_hostile_replies_are_read_in_linear_time(part):
    def read(size):
        for profile in ("strict", "lenient"):
            for several in (False, True):
                parse_labels(part * size, LABELS, OPTIONS, profile, several)

    assert grows_slowly(read, 4_000)


def test_every_scored_choice_task_has_a_generative_form_of_the_same_rows():
    tasks = all_tasks()
    scored = [one for one in tasks.values() if one.suite == "qimma" and one.kind.task_type in ("MCQ", "multi-select")]
    assert len(scored) > 90
    for task in scored:
        form = tasks[task.task.replace("qimma_", "qimma_gen_", 1)]
        assert (form.sources, form.subset_names, form.template) == (task.sources, task.subset_names, task.template)
        assert not {*form.metrics} & {*task.metrics} and kind_of(form.task).generation_size > 0


@pytest.mark.parametrize("name", ["qimma_palmx:culture", "qimma_mizanqa"])
def test_the_question_is_the_task_s_and_the_signature_has_the_instruction(name):
    form = name.replace("qimma_", "qimma_gen_", 1)
    options = DataOptions(root=samples_root())
    scored, generated = (prepare_subset(all_tasks()[one], options) for one in (name, form))
    assert generated.report["fingerprint"] != "" and generated.report["rows"] == scored.report["rows"]
    assert generated.report["prompt"].startswith(scored.report["prompt"].removesuffix("+paper") + "+")
    row = {"prompt": "س؟\nأ. نعم\nب. لا\nالإجابة:", "choices": ["نعم", "لا"], "labels": [" أ", " ب"], "index": [1]}
    doc = kind_of(form).prompt({**row, "source_row": "f:1", "form": "curated", "cluster": "k"}, form)
    assert doc.query.startswith("س؟\nأ. نعم\nب. لا\n\nاختر ") and "أ، ب" in doc.query and "\nالإجابة:" not in doc.query
    assert doc.choices == ["الإجابة النهائية: ب"] and doc.specific["right"] == [1] and doc.specific["cluster"] == "k"
    assert parse_labels(doc.choices[0], doc.specific["labels"], several="mizan" in name) == (1,)
    assert parse_labels(doc.query, doc.specific["labels"], row["choices"], "lenient") is None  # an echo is no answer
