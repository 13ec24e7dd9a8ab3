"""Templates name the labels that are scored; a prompt that does not show them is refused; the hash covers both."""

import json
import sys

import pytest

from cultureval.prompts import templates
from cultureval.prompts.choices import check_labels, choice_prompt, choice_row
from cultureval.prompts.option_labels import LABELS
from cultureval.prompts.qimma import rows
from cultureval.prompts.templates import load_template, template_hash
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import BadRow, CulturevalError
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.kinds import MULTIPLE_CHOICE_KIND
from cultureval.tasks.reading import prepare_subset, prompt_template
from cultureval.tasks.suite import Benchmark, Source, Subset

OPTIONS = ["cat", "5", "a (b)", "dog\nhouse"]


@pytest.fixture
def write(tmp_path):
    """Writes a template and gives its name."""

    def write(text, name="mcq"):
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
        load_template.cache_clear()
        return str(tmp_path / name)

    yield write
    load_template.cache_clear()


def test_the_templates_of_every_task_are_there_and_name_the_labels_of_qimma():
    options = DataOptions()
    names = {prompt_template(task, options) for task in all_tasks().values()} - {""}
    assert len(names) > 30 and all(load_template(name).hash for name in names)
    choices = {prompt_template(task, options) for task in all_tasks().values() if "MCQ" in task.task_type} - {""}
    assert all(load_template(name).labels == LABELS for name in choices | {"qimma/templates/multi_select"})
    assert load_template("qimma/templates/mcq").also("passage") is load_template("qimma/templates/mcq_c")


def test_labels_layout_and_separator_are_the_templates(write):
    name = write('---\nlabels: A B C D\noption: "($label) $text"\nseparator: " "\n---\n$question\n$options\nAnswer:\n')
    row = choice_row(name, "Which $options?", OPTIONS, [1])
    assert row["prompt"] == "Which $options?\n(A) cat\n(B) 5\n(C) a (b)\n(D) dog\nhouse\nAnswer:"
    check_labels(row, name, ready_made=False)
    doc = choice_prompt(row, "t")
    assert (doc.choices, doc.gold_index) == ([" A", " B", " C", " D"], 1)
    with pytest.raises(BadRow, match="5 counts more options|counts more options than the 4 labels of"):
        choice_row(name, "?", [*OPTIONS, "x"], [1])


def test_the_hash_covers_text_labels_and_the_template_of_passages(write):
    write("$context $question $options", "passage")
    texts = ["---\nlabels: A B\n---\n$question", "---\nlabels: 1 2\n---\n$question", "$question", "$question "]
    texts += ["---\nlabels: A B\nalso: {passage: passage}\n---\n$question"]
    hashes = [template_hash(write(text)) for text in texts]
    write("$context $question: $options", "passage")
    assert len({*hashes, template_hash(write(texts[-1]))}) == len(texts) + 1


@pytest.mark.parametrize(
    ("prompt", "labels", "missing"),
    [
        ("q\n1. cat\n2. 5\n3. a (b)\n4. dog house\nA:", "1 2 3 4", None),
        ("q (1) cat (2) 5 (3) a (b) (4) dog house", "1 2 3 4", None),
        ("A cat\nB 5\nC a (b)\nD dog  house", "A B C D", None),
        ("**A.** cat **B.** 5 **C.** a (b) **D.** dog house", "A B C D", None),
        ("A: cat; B: 5; C: a (b); D: dog house", "A: B: C: D:", None),
        ("أ. cat\nب. 5\nج. a (b)\nد. dog house", "A B C D", "A, B, C, D"),
        ("Is A cat or B 5 the C a (b) or D dog house?", "A B C D", "A, B, C, D"),  # words, not labels
        ("11. cat\n12. 5\n13. a (b)\n14. dog house", "1 2 3 4", "1, 2, 3, 4"),  # inside numbers
        ("q 1. 2. 3. 4.\ncat\n5\na (b)\ndog house", "1 2 3 4", "1, 2, 3, 4"),  # not before the options
        ("A. cat\nB. 5\nC. a (b)\nE. dog house", "A B C D", "D"),
    ],
)
def test_labels_count_as_shown_only_in_front_of_their_options(prompt, labels, missing):
    row = {"prompt": prompt, "labels": labels.split(), "choices": OPTIONS}
    if missing is None:
        check_labels(row, "x/mcq", ready_made=False)
        with pytest.raises(BadRow, match="does not label the 4 options"):
            check_labels(row | {"labels": row["labels"][:3]}, "x/mcq", ready_made=False)
    else:
        with pytest.raises(BadRow, match=rf"does not show {missing} as the labels .* template x/mcq names"):
            check_labels(row, "x/mcq", ready_made=False)


def test_a_ready_made_prompt_with_other_labels_is_refused_and_one_without_is_taken_as_it_is():
    for shown in ("أ. نعم\nب. لا", "(أ) نعم (ب) لا", "نعم أو لا", "أ - نعم\nB. لا ب: لا"):
        check_labels(ready_made(shown), "", ready_made=True)
    with pytest.raises(BadRow, match="labels an option A, where أ would be scored"):
        check_labels(ready_made("A. نعم\nB. لا"), "", ready_made=True)
    fifth = {"prompt": "أ. 1\nب. 2\nج. 3\nد. 4\nه. 5", "choices": list("12345"), "labels": LABELS[:5]}
    check_labels(fifth, "", ready_made=True)  # ه is how sources write هـ


def ready_made(shown):
    return rows.curated_choice({"prompt": f"سؤال\n{shown}\nالإجابة:", "choices": ["نعم", "لا"], "index": 1}, None)


def test_a_row_with_other_labels_than_its_template_stops_the_run_with_template_labels_and_row(write, tmp_path):
    def own_prompt(row, preparation):
        prompt = f"{row['q']}\nA. {row['o'][0]}\nB. {row['o'][1]}\nAnswer:"
        labels = load_template(preparation.template).scored_labels(2)
        return {"prompt": prompt, "choices": row["o"], "labels": labels, "index": [0], "cluster": ""}

    name = write("---\nlabels: 1 2\n---\n$question\n$options\n")
    folder = tmp_path / "data/org/name"
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_text(json.dumps({"q": "?", "o": ["x", "y"]}), encoding="utf-8")
    source = Source("org/name", "original", own_prompt, pool_configs=True)
    subsets = (Subset("S", ""),)
    (task,) = Benchmark("B", MULTIPLE_CHOICE_KIND, sources=(source,), subsets=subsets, template=name).tasks("s")
    with pytest.raises(CulturevalError, match="row 0 of test.jsonl: .* does not show 1, 2 as the labels .*mcq names"):
        prepare_subset(task, DataOptions(root=tmp_path / "data"))
    with pytest.raises(CulturevalError, match="no labels to score"):
        choice_prompt({"prompt": "?", "choices": ["x"], "index": [0]}, "t")


def test_a_template_of_another_package(write, tmp_path, monkeypatch):
    (tmp_path / "their_suite/templates").mkdir(parents=True)
    for name, text in (("mcq", "---\nlabels: 1 2\nalso: {passage: p}\n---\n$question"), ("p", "$context")):
        (tmp_path / f"their_suite/templates/{name}.txt").write_text(text, encoding="utf-8")
    (tmp_path / "their_suite/__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    template = load_template("their_suite:templates/mcq")
    assert (template.labels, template.also("passage").render(context="c")) == (("1", "2"), "c")
    sys.modules.pop("their_suite")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("---\nlabels: A A\n---\n", "has a duplicated label"),
        ("---\nlabels: [A, A]\n---\n", "has a duplicated label"),
        ("---\nlabels: {A: B}\n---\n", "has `labels` that are not one text or a list"),
        ("---\nlabels: [A, [B]]\n---\n", "has `labels` that are not one text or a list"),
        ("---\nlabels: [A, '']\n---\n", "has `labels` that are not one text or a list"),
        ("---\nlabels:\n---\n", "has `labels` that are not one text or a list"),
        ("---\nlabels: [A\n---\n", "a head that is not YAML"),
        ("---\nlabels: A B\n$question", "has a head that is not of lines"),
        ("---\nlables: A B\n---\n", "other settings than labels, option"),
        ('---\nlabels: A B\nseparator: "("\n---\n', "not white space"),
        ("$question\n$options", "names no labels of options"),
        ("---\nlabels: A B\n---\n$question\n$options", "names no template for a passage"),
        ('---\nlabels: A B\noption: "$lable. $text"\n---\n$question\n$options', r"'lable'.*\$label, \$text"),
        ("---\nlabels: A B\n---\n$questoin\n$question $options", r"'questoin'.*\$question, \$options.*`\$\$`"),
        ("---\nlabels: A B\n---\nFor $5: $question\n$options", r"line 1, col 5.*known slots: \$question.*`\$\$`"),
        ("---\nlabels: A B\n---\nWhich?\n$options", r"has no slot \$question"),
    ],
)
def test_a_broken_template_is_named(write, text, message):
    with pytest.raises(CulturevalError, match=f"mcq.*{message}"):
        choice_row(write(text), "?", ["x", "y"], [0], context="P." if "passage" in message else None)


def test_a_template_that_is_not_utf_8_is_named(write, tmp_path):
    name = write("")
    (tmp_path / "mcq.txt").write_bytes("سؤال $question".encode("cp1256"))
    with pytest.raises(CulturevalError, match=r"mcq\.txt is not UTF-8"):
        load_template(name).render(question="?")


@pytest.mark.parametrize("name", ["qimma/templates/mqc", "no_such_package:mcq", "cultureval.prompts:mcq", ""])
def test_a_template_that_is_not_there(name):
    with pytest.raises(CulturevalError, match="no prompt template|cannot be loaded"):
        load_template(name)
    assert templates.FOLDER.is_dir()


@pytest.mark.parametrize("labels", ["A B 3", "[A, B, 3]"])
def test_labels_are_one_text_or_a_list(write, labels):
    assert load_template(write(f"---\nlabels: {labels}\n---\n$question")).labels == ("A", "B", "3")


def test_a_template_beside_a_module_of_one_file(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "persian_single.py").write_text("", encoding="utf-8")
    (tmp_path / "ask.txt").write_text("$question", encoding="utf-8")
    assert load_template("persian_single:ask").render(question="q") == "q"
    for name in ("persian_single:none", ":x", "..:x", "persian_none:x", "sys:x"):
        with pytest.raises(CulturevalError, match=f"{name!r}"):
            load_template(name)
    monkeypatch.delitem(sys.modules, "persian_single")
