"""From replies to programs."""

import resource
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cultureval.metrics.code import solution_code
from cultureval.metrics.code.solution_code import is_program, longest_program, program_of, sanitize_solution
from cultureval.models.code_generation import first_code_block

FUNCTION = "def add(a, b):\n    return a + b"
PROMPT = 'def add(a, b):\n    """ اجمع """\n'
EXAMPLE = '    """\n    ```{}\n    >>> add(2, 3)\n    5\n    ```\n    """\n'
DOCUMENTED = FUNCTION.replace("    return", EXAMPLE + "    total = a\n    return").replace("return a", "return total")
IN_A_LIST = "\n".join(f"   {line}" for line in DOCUMENTED.format("python").split("\n"))
THOUGHTS = "\n".join(f"Step {number}: this line of prose is no program." for number in range(260))
NUMBERS = "0.5\n" * 300
LONG_BLOCK = f"{THOUGHTS}\n```\ntable = [\n" + "0.5,\n" * 300 + f"]\n{FUNCTION}\n```\n```sh\npython a.py\n```\n"
OTHER_FORMS = [
    f"import math\n{form}"
    for form in (
        "try:\n    math.gmp\nexcept AttributeError:\n    def add(a, b):\n        return a + b",
        "match math:\n    case _:\n        add = lambda a, b: a + b",
        "one, add = 1, lambda a, b: a + b",
        "[add] = [lambda a, b: a + b]",
        "(add := lambda a, b: a + b)",
        "for add in [lambda a, b: a + b]: pass",
        "def make():\n    global add\n    add = lambda a, b: a + b\nmake()",
        "M = []\nM.append(0)\ntry:\n    M[1]\nexcept IndexError:\n    def add(a, b): return a + b + M[0]",
    )
]


@pytest.mark.parametrize(
    "reply",
    [
        FUNCTION,
        f"إليك الحل:\n```python\n{FUNCTION}\n```\nشرح.",
        f"{FUNCTION}\n```\nبعد ذلك",
        "    return a + b\n",
        "\treturn a + b",
        f"import math\n{FUNCTION}\n\nprint(add(1, 2))",
        f"إليك الحل:\n```python\n{DOCUMENTED.format('')}\n```\n",
        f"{DOCUMENTED.format('python')}\nThis works.",
        f"1. ```python\n{IN_A_LIST}\n   ```\nThis works.",
        "الحل:\n\t```python\n\tdef add(a, b):\n\t    return a + b\n\t```\n",
        f"{THOUGHTS}\n```python\n{DOCUMENTED.format('')}\n```\n{THOUGHTS}",
        f"{THOUGHTS}\n{FUNCTION}",
        f"```\n{FUNCTION}\n```\nOutput:\n```\n{NUMBERS}```\n",
        f"```\n{FUNCTION}\n```\n```\nassert add(2, 3) == 5\n{NUMBERS}```\n",
        LONG_BLOCK,
        f"{THOUGHTS * 2}\n{FUNCTION}\n{THOUGHTS * 2}",
        f"```\n{FUNCTION}\n```\n{'x' * 500_000}",
        *(f"```\n{form}\n```\n" for form in OTHER_FORMS),
        *OTHER_FORMS,
        "import math\nglobals()['add'] = lambda a, b: a + b",
    ],
)
def test_the_program_of_a_reply_solves_the_problem(reply):
    space = {}
    exec(program_of(reply, PROMPT, "add").code, space)  # noqa: S102
    assert space["add"](2, 3) == 5


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300) | st.binary(max_size=200).map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_no_text_stops_the_sanitiser(text):
    assert isinstance(sanitize_solution(text, "add").code, str)
    assert isinstance(program_of(text, PROMPT, "add").code, str)


LINES = st.sampled_from(
    [
        "def add(a, b):",
        "    return a + b",
        "",
        "x = 1",
        "نص",
        "```",
        "if x:",
        "    pass",
        '"""',
        "y = [1, {",
        "}",
        "])",
        "z = (",
    ]
    + [
        "try:",
        "except E:",
        "@w",
        "class C:",
        "  z",
        "f(a, b c",
        "a = b \\",
        "x = 'open",
        "y\r",
        "match x:",
        "    case 1:",
        "else:",
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(LINES, max_size=9).map("\n".join))
def test_the_longest_program_is_evalpluss(text):
    from evalplus.sanitize import code_extract

    assert longest_program(text) == code_extract(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 50_000,
        "-" * 100_000 + "1",
        "def f(:\n" * 5000,
        "x = 1\n" * 3000 + "(",
        "(\n" * 3000,
        "x = 1\n:\n" * 999,
        "x = [1, 2, [\n" * 120,
        "This sentence explains, at length, what the program does and why.\n" * 250,
        "".join(" " * depth + "if x:\n" for depth in range(99)) * 2,
        "This is prose.\n" + " " * 150_000,
        "\0",
    ],
)
def test_no_text_takes_the_sanitiser_long(text):
    sanitize_solution(text, "add")  # a text that took long would end at the limit of a test


@pytest.mark.parametrize(
    ("code", "defines"),
    [
        (FUNCTION, True),
        ("from operator import add", True),
        ("add = lambda a, b: a + b", True),
        ("import contextlib\nwith contextlib.nullcontext(max) as add: pass", True),
        ("try:\n    from x import add\nexcept ImportError:\n    def add(a, b): return a + b", True),
        *((form, True) for form in OTHER_FORMS),
        ("def add(a, b):\n    if a: pass\n" + "    elif b: pass\n" * 5000, True),
        ("class Sum:\n    def add(self): pass", False),
        ("def add(", False),
        ("Sure, here it is", False),
        ("\0", False),
    ],
)
def test_a_program_defines_its_entry_point(code, defines):
    assert is_program(code, "add") is defines


def test_what_a_limit_leaves_unread_is_said():
    whole = [f"{THOUGHTS}\n```\n{FUNCTION}\n```", THOUGHTS[:999], FUNCTION + "\n\n" * 300, THOUGHTS[:999] + FUNCTION]
    assert [sanitize_solution(text, "add").cut for text in [*whole, THOUGHTS, f"{THOUGHTS}\n{FUNCTION}"]] == [
        *[False] * 4,
        *[True] * 2,
    ]


def test_a_program_for_which_the_sanitiser_has_too_little_time_is_judged_whole(monkeypatch):
    sanitize_solution("def add(a, b):\n    return a\n", "add")  # imports, in which the limit's error would be lost
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: None)  # the limit may end a finaliser, then comes again
    monkeypatch.setattr(solution_code, "MOST_SECONDS", 0.01)
    program = "def add(a, b):\n    if a: pass\n" + "    elif b: pass\n" * 4000
    assert sanitize_solution(program, "add") == (program, False)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("شرح\n```python\na = 1\n```\n```python\nb = 2\n```", "a = 1\n"),
        ("```\na = 1\n", "a = 1\n"),
        ("  ```py\n  a = 1\n  ```", "  a = 1\n"),
        ("a = '```'", "a = '```'"),
        ("no fence", "no fence"),
    ],
)
def test_the_first_fenced_block_is_the_code(text, code):
    assert first_code_block(text) == code


def test_a_program_that_is_too_long_to_be_parsed_is_not_its_docstrings_example():
    table = f'TABLE = """{"a" * solution_code.MOST_PARSED}"""\n'
    program = f'{table}def add(a, b):\n    """Adds.\n\n```\n{FUNCTION}\n```\n"""\n    return a + b\n'
    assert sanitize_solution(program, "add").code == program_of(program, PROMPT, "add").code == program
    for start in ("Sure, here it is:\n", "\n\nالحل:\n\n"):
        reply = f"{start}```python\n{FUNCTION}\n```\n{table}"
        assert sanitize_solution(reply, "add").code.strip() == program_of(reply, PROMPT, "add").code.strip() == FUNCTION


def test_a_text_of_millions_of_lines_takes_little_memory():
    code = "x = 1\n" * 1_000_000  # its syntax tree takes more than two gibibytes
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert sanitize_solution(code, "f") == (code, True)
    assert program_of(code, "def f():\n", "f").code.endswith(code)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10
