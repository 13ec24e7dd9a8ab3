"""Refined prompts: only the Arabic of a docstring may differ from the source's prompt."""

import json

import pytest

from cultureval.prompts.qimma.refined_prompts import _read_prompts, check_refinement, refined_prompt
from cultureval.runtime.errors import BadRow, CulturevalError

FUNCTION = '''from typing import List


def zakat(amounts: List[int], nisab: int = 5) -> int:
    """ اذا بلغ المجموع `nisab` أعد ربع العشر ل 40 جملا
    >>> zakat([40], 5)
    1
    >>> zakat(["شاة"], 5)
    'شاة'
    """
'''
MBPP = '"""\nاكتب دالة لجمع عددين.\nassert add(1, 2) == 3\n"""'


@pytest.mark.parametrize(
    ("original", "refined"),
    [
        (FUNCTION, FUNCTION.replace("اذا بلغ المجموع", "إذا بلغَ مجموعُ المبالغ،")),
        (FUNCTION, FUNCTION.replace("أعد ربع العشر ل 40 جملا", "فأعد ربع عُشر 40 جملًا.")),
        (MBPP, MBPP.replace("لجمع عددين.", "تجمع عددين صحيحين؟")),
        (MBPP, MBPP + "\n"),
        (FUNCTION, FUNCTION),
    ],
)
def test_changed_arabic_is_accepted(original, refined):
    check_refinement(original, refined)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("nisab: int = 5", "nisab: int = 6"), "code outside the docstring"),
        (("def zakat(", "def sadaqa("), "sadaqa"),
        (("import List", "import List, Dict"), "code outside the docstring"),
        ((">>> zakat([40], 5)", ">>> zakat([41], 5)"), "zakat([41], 5)"),
        (("    1\n", "    2\n"), "an example"),
        (("'شاة'", "'ناقة'"), "ناقة"),
        (("`nisab`", "النصاب"), "nisab"),
        (("40 جملا", "41 جملا"), "41"),
        (('    """\n', '    """\n    import os\n'), "import os"),
        (("-> int:", "-> int"), "is not Python"),
        (("    1\n", "    1\n\n    More English here.\n"), "More English here."),
    ],
)
def test_any_other_change_is_refused_and_named(change, named):
    refined = FUNCTION.replace(*change)
    assert refined != FUNCTION
    with pytest.raises(BadRow) as caught:
        check_refinement(FUNCTION, refined)
    assert named in str(caught.value)


def test_a_docstring_that_ends_early_cannot_smuggle_code_in():
    smuggled = MBPP.replace("لجمع عددين.", '"""\nimport os\nos.abort()\n"""')
    with pytest.raises(BadRow, match="code outside the docstring"):
        check_refinement(MBPP, smuggled)


def test_prompts_are_matched_by_task_id(tmp_path):
    file, row = tmp_path / "prompts.jsonl", {"task_id": "Mbpp/1", "prompt": f"{MBPP}\n\n"}
    sources = [{"task_id": "Mbpp/1", "prompt": MBPP}, {"task_id": "Mbpp/2", "prompt": FUNCTION}]

    def read(*rows):
        file.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
        _read_prompts.cache_clear()
        return [refined_prompt(str(file), "mbpp", source) for source in sources]

    refined = FUNCTION.replace("اذا", "إذا")
    crlf = {"task_id": "Mbpp/2", "prompt": refined.replace("\n", "\r\n"), "note": ""}
    assert read(crlf, row | {"prompt": MBPP}) == [MBPP, refined]
    assert refined_prompt("", "mbpp", sources[0]) == MBPP
    for rows, named in (
        ([{"task_id": "Mbpp/1", "text": "x"}], "row 1 has no text in the column"),
        ([{"prompt": "x"}], "row 1: None"),
        ([row | {"task_id": "HumanEval/3"}], "HumanEval/3"),
        ([row, row], "row 2.*duplicate"),
        ([row | {"prompt": " "}], "no text"),
        ([row | {"prompt": FUNCTION}], "Mbpp/1: .*Only the Arabic of a docstring"),
    ):
        with pytest.raises(CulturevalError, match=named):
            read(*rows)
