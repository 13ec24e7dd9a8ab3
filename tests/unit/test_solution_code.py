"""From replies to programs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from cultureval.metrics.code import solution_code
from cultureval.metrics.code.solution_code import Program, Text, longest_program, program_of, programs

FUNCTION = "def add(a, b):\n    return a + b"
PROMPT = 'def add(a, b):\n    """ اجمع """\n'
THOUGHTS = "\n".join(f"Step {number}: this line of prose is no program." for number in range(260))
OTHER_FORMS = [
    f"import math\n{form}"
    for form in (
        "try:\n    math.gmp\nexcept AttributeError:\n    def add(a, b):\n        return a + b",
        "match math:\n    case _:\n        add = lambda a, b: a + b",
        "[add] = [lambda a, b: a + b]",
        "import functools\n@functools.lru_cache\ndef add(a, b):\n    return a + b",
    )
]
REPLIES = [
    FUNCTION,
    f"\ufeff{FUNCTION}",
    f"إليك الحل:\n```python\n{FUNCTION}\n```\nشرح.",
    f"{FUNCTION}\n```\nبعد ذلك",
    "    return a + b\n",
    f"import math\n{FUNCTION}\n\nprint(add(1, 2))",
    f"{THOUGHTS}\n```python\n{FUNCTION}\n```\n{THOUGHTS}",
    f"```\n{FUNCTION}\n```\nOutput:\n5\n",
    *(f"```\n{form}\n```\n" for form in OTHER_FORMS),
    *OTHER_FORMS,
    "import math\nglobals()['add'] = lambda a, b: a + b",
]


@pytest.mark.parametrize("reply", REPLIES)
def test_the_program_of_a_reply_solves_the_problem(reply):
    space = {}
    exec(program_of(Text(reply, "add", PROMPT)), space)  # noqa: S102
    assert space["add"](2, 3) == 5


LINES = (
    'def add(a, b):|    return a + b||x = 1|نص|```|if x:|    pass|"""|y = [1, {|}|])|z = (|try:|except E:|@w|class C:'
)
LINES += "|  z|f(a, b c|a = b \\|x = 'open|y\r|match x:|    case 1:|else:"


@settings(max_examples=300, deadline=None)
@given(some.lists(some.sampled_from(LINES.split("|")), max_size=9).map("\n".join))
def test_the_longest_program_is_evalpluss(text):
    from evalplus.sanitize import code_extract

    assert longest_program(text) == code_extract(text)


HOSTILE = [
    "(" * 50_000,
    "-" * 100_000 + "1",
    "x = 1\n" * 3000 + "(",
    "x = [1, 2, [\n" * 120,
    "".join(" " * depth + "if x:\n" for depth in range(99)) * 2,
    "def add(a, b):\n    if a: pass\n" + "    elif b: pass\n" * 5000,
    "This is prose.\n" + " " * 150_000,
    "\0",
    "\ud800",
]


def test_no_text_stops_the_others_and_none_takes_long(monkeypatch):
    texts = [Text(one, "add", PROMPT) for one in [*HOSTILE, FUNCTION]]
    found = programs(texts, 2)
    assert found[-1] == Program(FUNCTION) and len(found) == len(texts)
    assert found[5].code.startswith(HOSTILE[5][:20])


def ends(text):
    """A function of a module that one text ends the process of, as a limit does."""
    import os
    import signal

    if text.code == "kill":
        os.kill(os.getpid(), signal.SIGPROF)
    return Program(text.code)


def test_a_text_that_meets_a_limit_is_taken_by_its_last_block_or_as_it_stands(monkeypatch):
    monkeypatch.setattr(solution_code, "_within_limits", ends)
    assert programs([Text("kill", "add"), Text("b", "add")], 1) == [Program("kill", cut=True), Program("b")]
    block = f"def add(a):\n{FUNCTION}\n"
    for reply in (f"prose\n```python\nx = 1\n```\n```\n{block}```\nprose", f"```\n{block}```\n```sh\npython a.py\n```"):
        assert solution_code._unsanitized(Text(reply, "add")) == Program(block, cut=True)


def test_a_text_that_is_python_is_taken_as_it_is_where_that_is_asked():
    code = f"{FUNCTION}\n\nprint(add(1, 2))"
    assert program_of(Text(code, "add", as_it_is=True)) == code
    assert program_of(Text(code, "add")) == FUNCTION
