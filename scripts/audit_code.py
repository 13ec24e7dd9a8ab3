"""`cultureval audit code`: a model refines the Arabic of code prompts; only edits of that Arabic count."""

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cultureval.runtime.csv_files import HOLDS_VERDICTS, require_unfilled
from cultureval.runtime.data.hub import go_offline_if_unreachable
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.extras import require_extra
from cultureval.runtime.printing import print_note, print_result
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.options import Data, OutputDir

if TYPE_CHECKING:
    from cultureval.metrics.judges.asking import Asker
    from cultureval.tasks.qimma.code_data import ProblemSet

DATASETS = ("humaneval", "mbpp")


def code(
    model: Annotated[str, typer.Option(help="The model that refines: a YAML file or an id; not with --reviewed.")] = "",
    data: Data = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Refine the first N prompts of each data set.")] = None,
    reviewed: Annotated[
        Path | None,
        typer.Option(exists=True, metavar="FILE", help="A ..._review.csv with people's verdicts."),
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Print the number of calls and their cost; refine nothing.")] = False,
    budget: Annotated[float | None, typer.Option(min=0, help="Maximal cost of the replies.")] = None,
    output_dir: OutputDir = "audit-code",
) -> None:
    """Refines the Arabic in docstrings of HumanEval+ and MBPP+ with QIMMA's prompt; exits 1 if a canonical fails.

    Example: cultureval audit code --model gpt.yaml --output-dir audit-code
    """
    require_extra("code")
    from cultureval.audit.code_refinement import read_reviewed, refine
    from cultureval.reports.audit import prompts_file, refined_text, write_refined
    from cultureval.tasks.qimma.code_data import load_problems

    folder = Path(output_dir).expanduser()
    if bool(model) == bool(reviewed):
        raise CulturevalError("Name the model that refines (--model FILE.yaml) or people's verdicts (--reviewed FILE).")
    if model:
        _require_no_verdicts(folder)
    asker = _asker(model, budget) if model else None
    with use_settings(current_settings().with_(data_root=data)) as settings:
        if not settings.data_root:
            go_offline_if_unreachable()
        sets = {name: load_problems(name, limit=limit) for name in DATASETS}
        prompts = {
            name: {task: row["prompt"] for task, row in problems.rows.items()} for name, problems in sets.items()
        }
        if asker and dry_run:
            return print(
                "\n".join(f"{sets[name].dataset.title}: {_cost(asker, texts)}" for name, texts in prompts.items())
            )
        if asker:
            refined = {name: refine(asker, texts) for name, texts in prompts.items()}
        elif reviewed:
            refined = read_reviewed(reviewed, {name: prompts_file(folder, name) for name in DATASETS})
        canonical = {}
        for name, texts in refined.items():
            write_refined(texts, folder, name, for_people=bool(asker))
            used = load_problems(name, prompts=prompts_file(folder, name), limit=limit)
            canonical[used.dataset.title] = _passing(used)
    print_result(refined_text({sets[name].dataset.title: texts for name, texts in refined.items()}, canonical), folder)
    if asker and asker.stopped:
        raise CulturevalError(f"{asker.stopped}. Replies are saved: run the same command to continue.")
    if any(passed < number for passed, number in canonical.values()):
        raise typer.Exit(1)


def _require_no_verdicts(folder: Path) -> None:
    """Refuses to replace a table that people have filled in, or prompts that they have decided on."""
    from cultureval.audit.code_refinement import PERSON
    from cultureval.reports.audit import prompts_file, review_file
    from cultureval.runtime.data.row_files import read_rows

    for name in DATASETS:
        require_unfilled(review_file(folder, name))
        file = prompts_file(folder, name)
        if file.is_file() and any(row.get("reason") == PERSON for row in read_rows(file)):
            raise CulturevalError(f"{file} {HOLDS_VERDICTS}")


def _asker(model: str, budget: float | None) -> "Asker":
    from cultureval.audit.code_refinement import MAX_TOKENS
    from cultureval.metrics.judges.asking import Asker
    from cultureval.metrics.judges.settings import find_one_judge, judge_identity

    settings = find_one_judge("--model", model).with_reply_length(MAX_TOKENS).with_(budget=budget)
    return Asker(settings, judge_identity(settings))


def _cost(asker: "Asker", prompts: dict[str, str]) -> str:
    from cultureval.audit.code_refinement import refinement_questions
    from cultureval.runtime.servers.costs import estimate_tokens

    usual = sum(map(estimate_tokens, prompts.values())) // len(prompts)
    return str(asker.estimate(refinement_questions(prompts), usual))


def _passing(problems: "ProblemSet") -> tuple[int, int]:
    """How many canonical solutions pass their own tests with these prompts, of how many."""
    with contextlib.redirect_stdout(sys.stderr):  # what EvalPlus and its libraries print
        from cultureval.metrics.code.judging import check_canonical_solutions
        from cultureval.metrics.code.report import failing_canonicals

        verdicts = check_canonical_solutions(problems.problems(), problems.dataset.name)
        failing = list(failing_canonicals(verdicts))
    for entry in failing:
        print_note(f"{entry['task_id']}: the canonical solution fails: {entry['reason']}")
    return len(verdicts) - len(failing), len(verdicts)
