"""`cultureval audit code`: a model refines the Arabic of code prompts; only edits of that Arabic count."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note, print_result
from cultureval.scripts.options import Data, OutputDir, ReuseReplies, data_settings
from cultureval.scripts.score import Workers

if TYPE_CHECKING:
    from cultureval.audit.code_refinement import Refined
    from cultureval.metrics.judges.asking import Asker
    from cultureval.tasks.qimma.code_data import ProblemSet


def code(
    model: Annotated[
        str, typer.Option(help="The model that refines: a YAML file as of judges, or an id; not with --reviewed.")
    ] = "",
    dataset: Annotated[
        Literal["humaneval", "mbpp", "both"], typer.Option(help="humaneval (HumanEval+), mbpp (MBPP+) or both.")
    ] = "both",
    data: Data = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Refine this many prompts, from the first on.")] = None,
    reviewed: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="People's verdicts (accept or keep) in a ..._review.csv of --output-dir; no model is asked.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option(help="Print the number of calls and their estimated cost; refine nothing.")
    ] = False,
    budget: Annotated[float | None, typer.Option(min=0, help="Maximal cost of the replies.")] = None,
    output_dir: OutputDir = "audit-code",
    resume: ReuseReplies = None,
    workers: Workers = None,
) -> None:
    """Refines the Arabic in docstrings of HumanEval+ and MBPP+ with QIMMA's prompt; exits 1 if a canonical fails.

    Example: cultureval audit code --model gpt.yaml --output-dir audit-code
    """
    from cultureval.audit.code_refinement import read_reviewed
    from cultureval.reports.audit import prompts_file, refined_text, write_refined
    from cultureval.tasks.qimma.code_data import load_problems

    folder, names = Path(output_dir).expanduser(), ("humaneval", "mbpp") if dataset == "both" else (dataset,)
    if not model and not reviewed:
        raise CulturevalError("Name the model that refines: --model FILE.yaml, or its id.")
    if model and reviewed:
        raise CulturevalError("--reviewed asks no model: leave --model out.")
    if reviewed and not reviewed.is_file():
        raise CulturevalError(f"{reviewed}: no such file.")
    with data_settings(data, None, resume=resume):
        asker = None if reviewed else _asker(model, budget)
        sets = {name: load_problems(name, limit=limit) for name in names}
        if asker and dry_run:
            print(_cost(asker, sets))
            return
        saved = {name: (one.dataset.prefix, prompts_file(folder, name)) for name, one in sets.items()}
        if asker:
            refined = _refined(asker, sets)
        else:
            assert reviewed is not None  # without it a model is named
            refined = read_reviewed(reviewed, saved)
        for name, some in refined.items():
            write_refined(some, folder, name)
        canonical = {}
        for name, problems in sets.items():
            used = load_problems(name, prompts=prompts_file(folder, name), limit=limit)
            canonical[problems.dataset.title] = _passing(used, workers)
    titled = {sets[name].dataset.title: some for name, some in refined.items()}
    print_result(refined_text(titled, canonical), folder)
    if asker and asker.stopped:
        raise CulturevalError(f"{asker.stopped}. Replies so far are kept: run the same command to continue.")
    if any(passed < number for passed, number in canonical.values()):
        raise typer.Exit(1)


def _asker(model: str, budget: float | None) -> "Asker":
    from cultureval.audit.code_refinement import MAX_TOKENS
    from cultureval.metrics.judges.asking import Asker
    from cultureval.metrics.judges.settings import find_one_judge, judge_identity

    settings = find_one_judge("--model", model).with_reply_length(MAX_TOKENS).with_(budget=budget)
    return Asker(settings, judge_identity(settings))


def _prompts(problems: "ProblemSet") -> dict[str, str]:
    return {name: row["prompt"] for name, row in problems.rows.items()}


def _cost(asker: "Asker", sets: "dict[str, ProblemSet]") -> str:
    from cultureval.audit.code_refinement import refinement_questions
    from cultureval.runtime.servers.costs import estimate_tokens

    lines = []
    for problems in sets.values():
        prompts = _prompts(problems)
        usual = sum(map(estimate_tokens, prompts.values())) // len(prompts)
        found = asker.estimate(refinement_questions(prompts), usual)
        lines.append(f"{problems.dataset.title}: {found}")
    return "\n".join(lines)


def _refined(asker: "Asker", sets: "dict[str, ProblemSet]") -> "dict[str, list[Refined]]":
    from cultureval.audit.code_refinement import refine

    print_note(f"{sum(len(one.rows) for one in sets.values()):,} prompts; --dry-run tells the cost before.")
    return {name: refine(asker, _prompts(problems)) for name, problems in sets.items()}


def _passing(problems: "ProblemSet", workers: int | None) -> tuple[int, int]:
    """How many canonical solutions pass their own tests with these prompts, of how many."""
    with redirect_stdout(sys.stderr):  # what EvalPlus prints
        from cultureval.metrics.code.judging import check_canonical_solutions
        from cultureval.metrics.code.report import failing_canonicals

        verdicts = check_canonical_solutions(problems.problems(), problems.dataset.name, workers=workers)
        for entry in failing_canonicals(verdicts):
            print_note(f"{entry['task_id']}: the canonical solution fails: {entry['reason']}")
        return len(verdicts) - len(failing_canonicals(verdicts)), len(verdicts)
