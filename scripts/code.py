"""`cultureval code`: solutions of Arabic HumanEval+ and MBPP+, asked and judged as EvalPlus does."""

import contextlib
import json as json_format
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cultureval.runtime.data.hub import go_offline_if_unreachable
from cultureval.runtime.errors import BatchWritten, CulturevalError, DryRun, counted, shown_names
from cultureval.runtime.extras import require_extra
from cultureval.runtime.printing import print_note
from cultureval.runtime.rounding import without_nan
from cultureval.runtime.saving import require_folder
from cultureval.runtime.settings import current_settings, use_settings

code = typer.Typer(
    help="Arabic HumanEval+ and MBPP+ with EvalPlus. Example: cultureval code generate MODEL --dataset humaneval",
    no_args_is_help=True,
    rich_markup_mode=None,
)
TOKENS, REASONING_TOKENS = 768, 16384  # EvalPlus's limit; ours for reasoning and answer together
Dataset = Annotated[Literal["humaneval", "mbpp"], typer.Option(help="humaneval (HumanEval+) or mbpp (MBPP+).")]
Data = Annotated[
    str | None,
    typer.Option(help="Data root, folder with the data files, or `samples`; default: hub."),
]
Prompts = Annotated[
    Path | None,
    typer.Option(help="Refined prompts (task_id, prompt or Fixed): only Arabic text in docstrings may differ."),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Parallel sandboxes; default: one per core.")]


@code.command("generate")
def generate(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Hub id, folder, server's model, or YAML file with settings.")
    ],
    dataset: Dataset,
    data: Data = None,
    prompts: Prompts = None,
    backend: Annotated[
        Literal["hf", "vllm", "openai"] | None,
        typer.Option(help="transformers (hf), vLLM, or a server (openai); default: hf, or openai with a URL."),
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="OpenAI-compatible server, up to and including /v1.")] = None,
    thinking: Annotated[
        bool,
        typer.Option("--thinking", help="Enable reasoning: no response prefix; reasoning is removed from replies."),
    ] = False,
    n_samples: Annotated[
        int, typer.Option(min=1, help="Solutions per problem; more than one needs a temperature.")
    ] = 1,
    temperature: Annotated[float, typer.Option(min=0.0, help="0 decodes greedily.")] = 0.0,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Solutions generated at once; of a server, those in one request.")
    ] = None,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help=f"Default: {TOKENS}, or {REASONING_TOKENS} with --thinking.")
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="dtype of the weights; default: bfloat16.")] = None,
    base_prompt: Annotated[
        bool, typer.Option("--base-prompt", help="Plain completion of the problem, as for base models.")
    ] = False,
    attn_implementation: Annotated[
        str | None, typer.Option(help="Attention implementation of transformers; default: eager.")
    ] = None,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run the model's own Python code from the hub or its folder.")
    ] = False,
    on_refused: Annotated[
        Literal["error", "unscored"] | None,
        typer.Option(help="A problem that the model's server refuses stops the run, or gets no solution and is named."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N problems.")] = None,
    output_dir: Annotated[Path, typer.Option(help="Output folder of the solutions.")] = Path("evalplus_results"),
    resume: Annotated[bool, typer.Option(help="Continue an earlier run with the same settings.")] = True,
) -> None:
    """Writes a model's solutions. Example: cultureval code generate MODEL --dataset humaneval --data samples"""
    if n_samples > 1 and not temperature:
        raise CulturevalError(f"--n-samples {n_samples} needs --temperature above 0: greedy samples are all the same.")
    from cultureval.metrics.code.solution_code import Text, programs
    from cultureval.models.code_generation import CodeSettings, generate_solutions
    from cultureval.tasks.qimma.code_data import load_problems

    settings = CodeSettings(
        model,
        dataset,
        backend,
        temperature,
        max_new_tokens or (REASONING_TOKENS if thinking else TOKENS),
        thinking,
        base_prompt,
        batch_size,
        base_url,
        dtype,
        attn_implementation,
        trust_remote_code or None,
    )
    cut: list[str] = []
    require_folder(output_dir)
    go_offline_if_unreachable()
    own = current_settings().with_(resume=None if resume else False, on_refused=on_refused)
    with use_settings(own), data_in_settings(data) as root:
        problems = load_problems(dataset, prompts=prompts, limit=limit)
        if not limit and problems.other_data:
            print_note(problems.other_data)
        try:
            with notes_on_stderr():
                docs = problems.docs(n_samples, thinking, settings.resolved_backend() == "openai")

                def sanitize(given: Sequence[tuple[str, str]]) -> list[str]:
                    found = programs([Text(code, problems.rows[task]["entry_point"]) for task, code in given])
                    cut.extend(task for (task, _), program in zip(given, found, strict=True) if program.cut)
                    return [program.code for program in found]

                samples, refused = generate_solutions(
                    settings, docs, problems.description(), output_dir, resume, sanitize
                )
        except BatchWritten as written:  # as the model's file asks for
            return print_note(f"{written}.")
        except DryRun as costs:
            return print(costs)
        print(f"Solutions: {samples}")
        if cut:
            print_note(f"{counted(len(cut), 'solution')} too long to be read whole: {shown_names(cut)}.")
        if refused:
            told = "; ".join(f"{task}: {one.reason}" for task, one in refused.items())
            print_note(f"Of {len(problems.rows)} problems, {len(refused)} have no usable answer, so no score: {told}.")
        command = ["cultureval", "score", dataset, "--pred", str(samples)]
        command += (["--data", str(root)] if root else []) + (["--prompts", str(prompts)] if prompts else [])
        command += ["--partial"] if len(problems.rows) == limit else []
        print(f"Judge them: {shlex.join(command)}")


def score_solutions(
    dataset: Literal["humaneval", "mbpp"],
    samples: Path,
    output_dir: Path,
    data: str | None,
    prompts: Path | None,
    as_json: bool,
    **given: Any,
) -> tuple[str, Path]:
    """Judges EvalPlus's .jsonl file of solutions; returns the report, as text or JSON, and the file that holds it."""
    with data_in_settings(data) as root:
        prepare_hub(root)
        from cultureval.reports.code.evaluation import evaluate_solutions, report_text
        from cultureval.runs.writing import write_summary
        from cultureval.tasks.qimma.code_data import load_problems

        problem_set = load_problems(dataset, prompts=prompts)
        with notes_on_stderr():
            report = evaluate_solutions(samples, problem_set, output_dir, **given)
        text = report_text(report)
        path = write_summary(Path(report["results"]), text)
        return json_format.dumps(without_nan(report), ensure_ascii=False, indent=1) if as_json else text, path


def check_canonicals(dataset: str, data: str | None) -> bool:
    """Judges the canonical solutions and prints which fail; whether all pass."""
    with data_in_settings(data) as root:
        prepare_hub(root)
        from cultureval.tasks.qimma.code_data import load_problems

        problem_set = load_problems(dataset)
        if problem_set.other_data:
            print_note(problem_set.other_data)
        with notes_on_stderr():
            from cultureval.metrics.code.judging import check_canonical_solutions
            from cultureval.metrics.code.report import failing_canonicals

            failing = failing_canonicals(check_canonical_solutions(problem_set.problems(), dataset))
    for entry in failing:
        print(f"{entry['task_id']}: base {entry['base']}, plus {entry['plus']}: {entry['reason']}")
    rows = len(problem_set.rows)
    print(f"{rows - len(failing)} of {rows} canonical solutions of {dataset} pass their own tests.")
    return not failing


@contextlib.contextmanager
def notes_on_stderr() -> Iterator[None]:
    """Redirect what EvalPlus and its libraries print to standard error; standard output is for results."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def data_in_settings(data: str | None) -> Iterator[str]:
    """The data root of the command line, else of the settings ("": the hub), which they hold: the sandbox hides it.

    Raises:
        MissingExtra: EvalPlus is not installed.
    """
    require_extra("code")
    with use_settings(current_settings().with_(data_root=data)) as settings:
        yield str(settings.data_root or "")


def prepare_hub(data: str) -> None:
    """Go offline if the hub does not answer; not checked if the data are a folder."""
    if not data and (problem := go_offline_if_unreachable()):
        print_note(f"the hub does not answer ({problem}).")
