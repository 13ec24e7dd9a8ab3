"""Templates name the labels that are scored and show them; the hash covers both."""

import sys

import pytest

from cultureval.prompts import templates
from cultureval.prompts.choices import choice_prompt, choice_row
from cultureval.prompts.options import LABELS
from cultureval.prompts.templates import load_template, template_hash
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import BadRow, CulturevalError
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.reading import prompt_template

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
    choices = {prompt_template(task, options) for task in all_tasks().values() if "MCQ" in task.kind.task_type} - {""}
    assert all(load_template(name).labels == LABELS for name in choices | {"qimma/templates/multi_select"})
    assert load_template("qimma/templates/mcq").also("passage") is load_template("qimma/templates/mcq_c")


def test_labels_layout_and_separator_are_the_templates(write):
    name = write('---\nlabels: A B C D\noption: "($label) $text"\nseparator: " "\n---\n$question\n$options\nAnswer:\n')
    row = choice_row(name, "Which $options?", OPTIONS, [1])
    assert row["prompt"] == "Which $options?\n(A) cat\n(B) 5\n(C) a (b)\n(D) dog\nhouse\nAnswer:"
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


def test_rows_without_labels_or_with_too_few_are_refused():
    row = {"prompt": "?", "choices": ["x", "y"], "index": [0]}
    with pytest.raises(CulturevalError, match="no labels to score"):
        choice_prompt(row, "t")
    with pytest.raises(CulturevalError, match="1 labels for 2 options"):
        choice_prompt(row | {"labels": ["A"]}, "t")


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
        (
            '---\nlabels: A B\noption: "$lable. $text"\n---\n$question\n$options',
            r"an `option` without \$label or \$text",
        ),
        ('---\nlabels: A B\noption: "$text"\n---\n$question\n$options', r"an `option` without"),
        ("---\nlabels: A B\n---\n$question", r"has no slot \$options"),
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
