"""The skeleton of a new suite: a small package with one benchmark that is ready to run."""

import json
import keyword
import re
import unicodedata
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.text_templates import TextTemplate
from cultureval.tasks.catalogue import suites, task_names

SKELETON = Path(__file__).with_name("skeleton")
# The skeleton's files and where they go; `{name}` is the suite's name.
FILES = {
    "pyproject.toml.txt": "pyproject.toml",
    "__init__.py.txt": "src/{name}/__init__.py",
    "benchmarks.py.txt": "src/{name}/benchmarks.py",
    "kinds.py.txt": "src/{name}/kinds.py",
    "rows.py.txt": "src/{name}/rows.py",
    "question.txt": "src/{name}/templates/question.txt",
    "test.py.txt": "tests/test_{name}.py",
}
SAMPLE_ROWS, MOST_OPTIONS = 6, 10


def write_suite(name: str, labels: Sequence[str], language: str, folder: Path) -> Path:
    """Writes a suite of one benchmark: package, template, six sample rows laid out as a data root, and a test.

    Args:
        name: Of the suite, its package, its task and its folder.

    Returns:
        The new folder.

    Raises:
        CulturevalError: A bad name, label or language, or the folder exists.
    """
    check_name(name)
    check_labels(labels)
    check_language(language)
    target = folder / name
    if target.exists():
        raise CulturevalError(f"{target} exists already: choose another name, or another folder with --output-dir.")
    texts = {
        "name": name,
        "distribution": name.replace("_", "-"),
        "title": name.replace("_", " ").capitalize(),
        "language": language,
        "labels": json.dumps(" ".join(labels), ensure_ascii=False),
        "scored": json.dumps([f" {label}" for label in labels[:MOST_OPTIONS]], ensure_ascii=False),
    }
    for source, place in FILES.items():
        _write(target / place.format(name=name), TextTemplate(SKELETON / source).render(**texts))
    rows = sample_rows(labels[:MOST_OPTIONS])
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    _write(target / "samples" / "my-lab" / name / "test.jsonl", "\n".join(lines))
    return target


def check_language(code: str) -> None:
    """Checks that a text is the ISO 639-1 or 639-3 code of a language.

    Raises:
        CulturevalError: It is none; names the code of the language that it names, or is near to.
    """
    from pycountry import languages

    codes = {getattr(one, "alpha_2", one.alpha_3): one.name for one in languages}
    if code in codes or languages.get(alpha_3=code):
        return
    named = {name.casefold(): known for known, name in codes.items()}
    word = code.casefold()
    holding = sorted((name for name in named if word in name.split()), key=len)[:3]
    nearest = [word] if word in named else holding or get_close_matches(word, named, n=3, cutoff=0.7)
    hint = f" Did you mean {', '.join(f'{named[name]} ({codes[named[name]]})' for name in nearest)}?" if nearest else ""
    raise CulturevalError(f"The language {code!r} is not an ISO 639 code such as fa or arz.{hint}")


def check_name(name: str) -> None:
    """Checks that a name can be that of a suite and its package; raises CulturevalError where it cannot."""
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise CulturevalError(
            f"The name {name!r} is not a name of a Python package: use a-z, 0-9 and _, such as my_suite."
        )
    if name in suites() or name in task_names():
        raise CulturevalError(f"There is a suite or task named {name!r} already.")
    there = find_spec(name)
    if there and there.origin:
        raise CulturevalError(f"There is a Python module named {name!r} already ({there.origin}).")


def check_labels(labels: Sequence[str]) -> None:
    """Checks labels of options: two or more, distinct, without punctuation, which the template adds."""
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise CulturevalError(f"The labels {' '.join(labels)!r} are not two or more distinct ones, such as 'A B C D'.")
    for label in labels:
        if any(unicodedata.category(character)[0] in "PSC" for character in label):
            raise CulturevalError(
                f"The label {label!r} holds punctuation: give the bare labels, such as '1 2 3 4'; the template writes "
                "them as `1. text`."
            )


def sample_rows(labels: Sequence[str]) -> list[dict[str, object]]:
    """Sums, which need no language; the correct label cycles through all labels."""
    rows = []
    for number in range(SAMPLE_ROWS):
        gold, right = number % len(labels), 41 + 2 * number
        options = [str(right + position - gold) for position in range(len(labels))]
        rows.append({"question": f"{20 + number} + {21 + number} = ?", "options": options, "answer": labels[gold]})
    return rows


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n", encoding="utf-8")
