"""Templates name the labels that are scored and show them; the hash covers both."""

import pytest

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
    name = write('---\nlabels: A B C D\nseparator: " "\n---\n$question\n$options\nAnswer:\n')
    row = choice_row(name, "Which $options?", OPTIONS, [1])
    assert row["prompt"] == "Which $options?\nA. cat\nB. 5\nC. a (b)\nD. dog\nhouse\nAnswer:"
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
    ("text", "message"),
    [
        ("---\nlabels: A A\n---\n$question", "distinct labels"),
        ("---\nlabels: {A: B}\n---\n", "distinct labels"),
        ("---\nlabels: [A, [B]]\n---\n", "valid string"),
        ("---\nlabels:\n---\n", "distinct labels"),
        ("---\nlabels: [A\n---\n", "a head that is not YAML"),
        ("---\nlabels: A B\n$question", "has a head that is not lines"),
        ("---\nlables: A B\n---\n", "lables: Extra inputs"),
        ('---\nlabels: A B\nseparator: "("\n---\n', "not white space"),
        ("$question\n$options", "names no labels of options"),
        ("---\nlabels: A B\n---\n$question\n$options", "names no template for a passage"),
        ("---\nlabels: A B\n---\n$questoin\n$question $options", r"'questoin'.*\$question, \$options.*`\$\$`"),
        ("---\nlabels: A B\n---\nFor $5: $question\n$options", r"line 1, col 5.*known slots: \$question.*`\$\$`"),
    ],
)
def test_a_broken_template_is_named(write, text, message):
    with pytest.raises(CulturevalError, match=f"mcq.*{message}"):
        choice_row(write(text), "?", ["x", "y"], [0], context="P." if "passage" in message else None)


@pytest.mark.parametrize("name", ["qimma/templates/mqc", "cultureval.prompts:mcq", ""])
def test_a_template_that_is_not_there(name):
    with pytest.raises(CulturevalError, match="no prompt template"):
        load_template(name)
