"""`cultureval code check-data`: checks that each problem's canonical solution passes its tests."""

import json as json_format

import typer

from cultureval.runtime.printing import print_note
from cultureval.scripts.code.options import (
    Data,
    Dataset,
    Prompts,
    UnsafeNoSandbox,
    Workers,
    data_in_settings,
    notes_on_stderr,
    prepare_hub,
)
from cultureval.scripts.options import OnlyJson


def check_data(
    dataset: Dataset,
    data: Data = None,
    prompts: Prompts = None,
    workers: Workers = None,
    json: OnlyJson = False,
    unsafe_no_sandbox: UnsafeNoSandbox = False,
) -> None:
    """Judges the canonical solutions; exits 1 if one fails, or where tests lack.

    Example: cultureval code check-data --dataset mbpp
    """
    with data_in_settings(data) as root:
        prepare_hub(root)
        from cultureval.tasks.qimma.code_data import load_problems

        problem_set = load_problems(dataset, prompts=prompts)
        told = [problem_set.difference, *([f"Shortened: {problem_set.shortened}."] if problem_set.shortened else [])]
        for sentence in filter(None, told):
            print_note(sentence)
        with notes_on_stderr():
            from cultureval.metrics.code.judging import check_canonical_solutions
            from cultureval.metrics.code.report import failing_canonicals

            verdicts = check_canonical_solutions(
                problem_set.problems(), dataset, workers=workers, sandboxed=not unsafe_no_sandbox
            )
            failing = failing_canonicals(verdicts)
        if json:
            found = {"dataset": dataset, "problems": len(problem_set.rows), "defects": failing}
            found |= {"data_difference": problem_set.difference, "shortened": problem_set.shortened}
            print(json_format.dumps(found, ensure_ascii=False, indent=1))
        else:
            lines = [
                f"{entry['task_id']}: base {entry['base']}, plus {entry['plus']}: {entry['reason']}"
                for entry in failing
            ]
            passed = len(problem_set.rows) - len(failing)
            print("\n".join([*lines, f"{passed} of {len(problem_set.rows)} canonical solutions pass their own tests."]))
        if failing or problem_set.shortened:
            raise typer.Exit(1)
