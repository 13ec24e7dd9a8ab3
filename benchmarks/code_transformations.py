"""Canonical solutions of 3LM's HumanEval+ and MBPP+, rewritten in ways that keep them right or make them wrong: the
verdicts of this project beside those of plain EvalPlus 0.3.1.

`python -m benchmarks.code_transformations humaneval [--problems N] [--cache FILE]` prints a table. Its rows
are in docs/code_sandbox.md. The verdicts on a problem are written to FILE as they come, so that a stopped run goes on.
The problems come by the time that their canonical solution takes, the fastest first.
"""

import argparse
import ast
import io
import json
import tokenize
from collections import Counter
from pathlib import Path

from evalplus.eval import untrusted_check
from evalplus.gen.util import trusted_exec
from tqdm import tqdm

from cultureval.metrics.code.ground_truth import canonical_code, content_key, known_truth
from cultureval.metrics.code.judging import Solution, check_canonical_solutions, judge_solutions
from cultureval.metrics.code.rules import output_form
from cultureval.runtime.sandbox.jail import TEST_SUITES
from cultureval.tasks.qimma.code_data import load_problems

DATA = Path(__file__).parents[2] / "shared" / "data" / "evalplus_arabic"
TOO_LARGE = {"Mbpp/255"}  # one output of its canonical solution takes 1.4 GB, see docs/code_sandbox.md
LIMIT = 10.0  # seconds of wall time of a call of plain EvalPlus, which a busy machine keeps

# `change` is applied to each result, in containers to each item.
EACH = """
def change_all(value, change):
    if isinstance(value, (list, tuple, set)) and type(value) in (list, tuple, set):
        return type(value)(change_all(item, change) for item in value)
    if type(value) is dict:
        return {key: change_all(item, change) for key, item in value.items()}
    return change(value)
"""
CHANGES = {
    "ints for floats": "int(v) if type(v) is float and v.is_integer() and abs(v) < 2**53 else v",
    "floats for ints": "float(v) if type(v) is int and abs(v) < 2**53 else v",
    "numpy's numbers": (
        "numpy.int64(v) if type(v) is int and abs(v) < 2**63 else numpy.float64(v) if type(v) is float"
        " else numpy.bool_(v) if type(v) is bool else v"
    ),
    "sympy's numbers": (
        "sympy.Integer(v) if type(v) is int else sympy.Float(v) if type(v) is float and abs(v) < 1e300"
        " else sympy.true if v is True else sympy.false if v is False else v"
    ),
}
RESULTS = {
    "tuple for list": "tuple(value) if type(value) is list else value",
    "list made by a generator": "list(item for item in value) if type(value) is list else value",
    "generator for list": "(item for item in value) if type(value) is list else value",
    "prints": "print('نتيجة', type(value)) or value",
    "None": "None",
    "one more": (
        "value + 1 if isinstance(value, (int, float, complex)) else value + type(value)([0])"
        " if type(value) in (list, tuple) else value + 'x' if type(value) is str else 'other'"
    ),
    "in a list": "[value]",
    "third call wrong": "'other' if len(calls) == 3 else value",
    "second call raises": "value if len(calls) != 2 else 1 // 0",
}
WRONG = list(RESULTS)[4:]


def wrapped(code, entry_point, result, before=""):
    """The program with a function around the entry point, whose own calls of itself stay as they are."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == entry_point:
            node.id = "inner_solution"
        if isinstance(node, ast.FunctionDef) and node.name == entry_point:
            node.name = "inner_solution"
    function = (
        f"calls = []\ndef {entry_point}(*arguments):\n    calls.append(0)\n    value = inner_solution(*arguments)\n"
    )
    return f"{ast.unparse(tree)}\n{before}\n{function}    return {result}\n"


def renamed(code, entry_point):
    """The program with other names for all variables and functions of its own but the entry point."""
    tree = ast.parse(code)
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)} - {entry_point}
    names = {name: f"مساعد_{number}" for number, name in enumerate(sorted(own))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            node.id = names[node.id]
        if isinstance(node, ast.FunctionDef) and node.name in names:
            node.name = names[node.name]
    return ast.unparse(tree)


def commented(code, _entry_point):
    """The program with a comment in Arabic at the end of each of its statements."""
    lines = code.split("\n")
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(code).readline))):
        if token.type == tokenize.NEWLINE and token.line:
            row = token.start[0] - 1
            lines[row] = f"{lines[row]}  # تعليق: نعيد النتيجة"
    return "\n".join(["# برنامج", *lines])


def transformed(code, entry_point):
    """All variants of a program, by the name of the transformation."""
    found = {"as it is": code}
    for name, change in CHANGES.items():
        library = name.partition("'")[0] if "'" in name else "math"
        change = f"import {library}\n{EACH}\nchange = lambda v: {change}"
        small = "value if isinstance(value, (list, tuple)) and len(value) > 1000 else " * (name == "sympy's numbers")
        found[name] = wrapped(code, entry_point, f"{small}change_all(value, change)", change)
    found |= {name: wrapped(code, entry_point, result) for name, result in RESULTS.items() if name not in WRONG}
    found["renamed helpers"] = renamed(code, entry_point)
    found["byte-order mark"] = f"\ufeff{code}"
    found["CRLF"] = code.replace("\n", "\r\n")
    found["comments in Arabic"] = commented(code, entry_point)
    found["main guard"] = f'{code}\n\nif __name__ == "__main__":\n    print({entry_point})\n    raise SystemExit(1)\n'
    return found | {name: wrapped(code, entry_point, RESULTS[name]) for name in WRONG}


def by_plain_evalplus(dataset, problem, codes):
    """By name, whether base and plus pass by EvalPlus's own executor."""
    import sympy  # noqa: F401  # as the jail has it, before EvalPlus's guard

    found = {name: [] for name in codes}
    for suite in TEST_SUITES:
        inputs, entry = problem[f"{suite}_input"], problem["entry_point"]
        any_value = output_form(dataset, entry, canonical=True) == "is not None"
        expected, seconds = trusted_exec(
            canonical_code(problem), inputs, entry, record_time=True, output_not_none=any_value
        )
        for name, code in codes.items():
            settings = (entry, expected, problem["atol"], seconds)
            status, _ = untrusted_check(dataset, code, inputs, *settings, fast_check=True, min_time_limit=LIMIT)
            found[name].append(status == "pass")
    return {name: [base, base and plus] for name, (base, plus) in found.items()}  # as our second outcome


def our_verdicts(dataset, task, problem, codes):
    """By name, whether base and plus pass by this project, None where not judged; and why not."""
    solutions = [Solution(task, place, code) for place, code in enumerate(codes.values())]
    verdicts = judge_solutions({task: problem}, solutions, dataset, workers=1, progress=False)
    values = {"pass": True, "fail": False, "not_judged": None}
    return {name: [values[v.base], values[v.plus], v.reason] for name, v in zip(codes, verdicts, strict=True)}


def compared(dataset, problems, cache):
    """By task, the verdicts of both on its variants; a task that the file has is not judged again."""
    known = [json.loads(line) for line in cache.open(encoding="utf-8")] if cache.exists() else []
    found = {entry["task"]: entry for entry in known if entry["task"] in problems}
    with cache.open("a", encoding="utf-8") as file:
        for task in tqdm([task for task in problems if task not in found]):
            codes = transformed(canonical_code(problems[task]), problems[task]["entry_point"])
            ours = our_verdicts(dataset, task, problems[task], codes)
            found[task] = {"task": task, "ours": ours, "plain": by_plain_evalplus(dataset, problems[task], codes)}
            file.write(json.dumps(found[task], ensure_ascii=False) + "\n")
            file.flush()
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset", choices=["humaneval", "mbpp"])
    parser.add_argument("--first", type=int, default=0, help="skip so many of the fastest")
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--data", default=str(DATA))
    parser.add_argument("--cache", type=Path, default=Path("code_transformations.jsonl"))
    given = parser.parse_args()
    problems = load_problems(given.dataset, given.data).problems()
    problems = {task: problem for task, problem in problems.items() if task not in TOO_LARGE}
    check_canonical_solutions(problems, given.dataset, workers=1)
    order = fastest_first(given.dataset, problems)[given.first : given.first + given.problems]
    print(table(compared(given.dataset, {task: problems[task] for task in order}, given.cache)))


def fastest_first(dataset, problems):
    """Task ids by the time of the canonical solution."""
    truths = {task: known_truth(content_key(problem, dataset)) for task, problem in problems.items()}
    return sorted(truths, key=lambda task: sum(sum(suite.seconds) for suite in truths[task].values()))


def table(found):
    """The table of the documents: by transformation, passes of both, and where they differ."""
    lines = ["| transformation | programs | pass here | pass under EvalPlus | different |", "|---|---|---|---|---|"]
    for name in next(iter(found.values()))["ours"]:
        counts, different = Counter(), []
        for task, verdicts in found.items():
            (*mine, reason), theirs = verdicts["ours"][name], verdicts["plain"][name]
            counts.update(here=all(mine), there=all(theirs))
            if mine != theirs:
                different.append(f"{task} ({reason[:80]})" if reason else task)
        shown = "; ".join(different[:4]) + (f"; {len(different) - 4} more" if len(different) > 4 else "")
        lines.append(f"| {name} | {len(found)} | {counts['here']} | {counts['there']} | {shown} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
