"""`cultureval code generate`: solutions of Arabic HumanEval+ and MBPP+, asked as EvalPlus asks."""

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from cultureval.runtime.data.hub import go_offline_if_unreachable
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note
from cultureval.runtime.saving import require_output_folder
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.code.options import Data, Dataset, Prompts, data_in_settings, notes_on_stderr

TOKENS, REASONING_TOKENS = 768, 16384  # EvalPlus's limit; ours for reasoning and answer together


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
    tensor_parallel: Annotated[int | None, typer.Option(min=1, help="GPUs that vLLM spreads the model over.")] = None,
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
    on_change: Annotated[
        Literal["stop", "continue"] | None,
        typer.Option(help="A server that changes its model stops the run, or both models are taken, marked as mixed."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N problems.")] = None,
    output_dir: Annotated[Path, typer.Option(help="Output folder of the solutions.")] = Path("evalplus_results"),
    resume: Annotated[bool, typer.Option(help="Continue an earlier run with the same settings.")] = True,
) -> None:
    """Writes a model's solutions. Example: cultureval code generate MODEL --dataset humaneval --data samples"""
    if n_samples > 1 and not temperature:
        raise CulturevalError(f"--n-samples {n_samples} needs --temperature above 0: greedy samples are all the same.")
    from cultureval.metrics.code.solution_code import sanitize_solution
    from cultureval.models.code_generation import CodeSettings, generate_solutions
    from cultureval.runtime.patches.lighteval.start_up import prepare_lighteval
    from cultureval.tasks.qimma.code_data import load_problems
    from cultureval.tasks.running import OWN_TASKS

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
        tensor_parallel,
        trust_remote_code or None,
    )
    require_output_folder(output_dir)
    go_offline_if_unreachable()
    own = current_settings().with_(resume=None if resume else False, on_refused=on_refused, on_change=on_change)
    with use_settings(own), data_in_settings(data) as root:
        problems = load_problems(dataset, prompts=prompts, limit=limit)
        if not limit:
            for sentence in filter(None, (problems.difference, problems.shortened)):
                print_note(f"{sentence.rstrip('.')}.")
        with notes_on_stderr():
            prepare_lighteval(OWN_TASKS)
            docs = problems.docs(n_samples, thinking, settings.resolved_backend() == "openai")

            def sanitize(task: str, solution: str) -> str:
                return sanitize_solution(solution, problems.rows[task]["entry_point"])

            samples, refused = generate_solutions(settings, docs, problems.description(), output_dir, resume, sanitize)
        print(f"Solutions: {samples}")
        if refused:
            told = "; ".join(f"{task}: {one.reason}" for task, one in refused.items())
            print_note(f"Of {len(problems.rows)} problems, {len(refused)} have no usable answer, so no score: {told}.")
        command = ["cultureval", "code", "evaluate", str(samples), "--dataset", dataset]
        command += (["--data", str(root)] if root else []) + (["--partial"] if len(problems.rows) == limit else [])
        print(f"Judge them: {shlex.join(command)}")
