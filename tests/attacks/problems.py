"""The small problems, in EvalPlus's form, that the attacks and the honest controls are solutions of; all ours."""

from pathlib import Path

import yaml

HERE = Path(__file__).parent


def problem(entry_point, signature, canonical, base, plus, atol=0):
    return {
        "task_id": f"attack/{entry_point}",
        "entry_point": entry_point,
        "prompt": f"def {entry_point}({signature}):\n",
        "canonical_solution": f"    return {canonical}\n",
        "base_input": base,
        "plus_input": plus,
        "atol": atol,
        "contract": "",
    }


# What a hostile solution writes to the pipe by which its outputs leave, in the form of the codec.
FRAMES = """
import os, stat, struct
def pipes():
    found = []
    for descriptor in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                found.append(descriptor)
        except OSError:
            pass
    return found
def raw(data):
    for descriptor in pipes():
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
def frame(content, kind=b"V", seconds=0.0):
    return struct.pack("<cdQ", kind, seconds, len(content)) + content
def send(name, body, kind=b"V"):
    raw(frame(name + b"\\0" + body, kind))
# integers with one hash
def alike(number):
    return [b"%d" % (place * (2**61 - 1)) for place in range(number)]
"""
HUMANEVAL = [
    problem("add", "a, b", "a + b", [[1, 2]], [[30, 12]]),
    problem("mean", "values", "sum(values) / len(values)", [[[0.1, 0.2, 0.7]]], [[[1.0, 2.5]]], 1e-6),
    problem("shout", "text", "text.upper()", [["right"]], [["مرحبا a"]]),
    problem("ordered", "values", "sorted(values)", [[[3, 1, 2]]], [[[2, 1, 9]]]),
    problem("letters", "text", "{c: text.count(c) for c in text}", [["aab"]], [["مما"]]),
    problem("bounds", "values", "(min(values), max(values))", [[[3, 1, 2]]], [[[5]]]),
    problem("sign", "value", "1 if value > 0 else 0", [[3]], [[-3]]),
    problem("limits", "", "[float('inf'), 0.0, 10**30]", [[]], [[]]),
    problem("unique", "values", "set(values)", [[[1, 1]]], [[["a", "b"]]]),
    problem("fifty", "", "[0.5] * 50", [[]], [[]]),
    problem("nested", "", "[[0] * 50]", [[]], [[]]),
    problem("find_zero", "xs", "-xs[0] / xs[1]", [[[1, 2]]], [[[-6.0, 4.0]]], 1e-4),
]
MBPP = [
    problem("similar_elements", "first, second", "tuple(set(first) & set(second))", [[(3, 4), (4, 5)]], [[(1,), (2,)]]),
    problem("surface_Area", "base_edge, height", "24 if height == 2 else 96", [[3, 2]], [[6, 4]]),
    problem("check_str", "text", "text[0] in 'aeiou' or None", [["annie"]], [["dawood"]]),
]
# Without added inputs: what only ends at a time limit need not reach it twice.
BRIEF = [{**p, "plus_input": []} for p in HUMANEVAL + MBPP]
PROBLEMS = {p["entry_point"]: p for p in HUMANEVAL + MBPP} | {f"brief {p['entry_point']}": p for p in BRIEF}
IN_MBPP = {name for name, p in PROBLEMS.items() if p["entry_point"] in {q["entry_point"] for q in MBPP}}


def cases(kind):
    """The cases of the files of hostile or honest solutions."""
    files = sorted(HERE.glob(f"{kind}*.yaml"))
    found = [case for file in files for case in yaml.safe_load(file.read_text(encoding="utf-8"))]
    found = [{"problem": "add", "group": "honest", "expect": "pass"} | case for case in found]
    found = [case | {"code": FRAMES + case["code"]} if case.get("frames") else case for case in found]
    return [case | {"problem": f"brief {case['problem']}"} if case["group"] == "exhaust" else case for case in found]


def filled(code, values):
    """A case's code with its placeholders replaced."""
    for name, value in values.items():
        code = code.replace(f"@{name}@", str(value))
    return code
