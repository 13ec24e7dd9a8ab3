"""`cultureval code generate`: solutions of Arabic HumanEval+ and MBPP+ by EvalPlus's own code generation."""

import contextlib
import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cultureval.runtime.data.hub import go_offline_if_unreachable
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.evalplus_patches import codegen_reads
from cultureval.runtime.model_settings import read_model_settings, refuse_unknown
from cultureval.runtime.output_folder import require_output_folder
from cultureval.runtime.signatures import installed_versions
from cultureval.scripts.code.options import Data, Dataset, Prompts, data_or_setting, notes_on_stderr

if TYPE_CHECKING:
    from cultureval.models.code.settings import DecoderSettings
    from cultureval.tasks.qimma.code_data import ProblemSet

MODEL_SETTINGS = {"model", "model_name", "base_url", "api_key_env", "dtype", "trust_remote_code"}
TOKENS, THINKING_TOKENS = 768, 16384  # EvalPlus's limit; ours for reasoning and answer together
# What may change between a run and its continuation: the answers do not depend on it, or there are more of them.
FREE = {"n_samples", "problems", "refined_prompts", "versions", "prompt", "base_url", "api_key_env", "batch_size"}
FREE |= {"tensor_parallel"}
PACKAGES = ("cultureval", "evalplus", "transformers", "torch")


def generate(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Hub id, folder, server's model, or YAML file with settings.")
    ],
    dataset: Dataset,
    data: Data = None,
    prompts: Prompts = None,
    backend: Annotated[
        Literal["hf", "vllm", "openai"] | None,
        typer.Option(help="EvalPlus's provider; default: hf, or openai with a URL."),
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="OpenAI-compatible server, up to and including /v1.")] = None,
    thinking: Annotated[
        bool, typer.Option("--thinking", help="Let the model think first: no response prefix, reasoning taken off.")
    ] = False,
    n_samples: Annotated[int, typer.Option(min=1, help="Solutions a problem; more than one needs a temperature.")] = 1,
    temperature: Annotated[float, typer.Option(min=0.0, help="0 decodes greedily.")] = 0.0,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Solutions of one problem drawn at once.")] = None,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help=f"Default: {TOKENS}, or {THINKING_TOKENS} with --thinking.")
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="Type of the weights; default: bfloat16.")] = None,
    base_prompt: Annotated[
        bool, typer.Option("--base-prompt", help="Continue the bare problem, as for base models.")
    ] = False,
    tensor_parallel: Annotated[int, typer.Option(min=1, help="GPUs that vLLM spreads the model over.")] = 1,
    attn_implementation: Annotated[str, typer.Option(help="transformers' attention.")] = "eager",
    trust_remote_code: Annotated[bool, typer.Option("--trust-remote-code")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many problems, from the first on.")] = None,
    output_dir: Annotated[Path, typer.Option(help="Where the solutions are written.")] = Path("evalplus_results"),
    resume: Annotated[bool, typer.Option(help="Go on where an earlier run of the same settings ended.")] = True,
) -> None:
    """Writes a model's solutions. Example: cultureval code generate MODEL --dataset humaneval --data samples"""
    if n_samples > 1 and not temperature:
        raise CulturevalError(f"--n-samples {n_samples} needs --temperature above 0: greedy samples are all the same.")
    from cultureval.models.code.settings import DecoderSettings
    from cultureval.prompts.templates import render

    given = _model_settings(model, base_url=base_url, dtype=dtype)
    url = given.get("base_url")
    settings = DecoderSettings(
        model=given["model"],
        backend=backend or ("openai" if url else "hf"),
        dataset=dataset,
        instruction_prefix=render("qimma/templates/code_instruction"),
        response_prefix=render("qimma/templates/code_response"),
        temperature=temperature,
        batch_size=batch_size or min(n_samples, 32),
        max_new_tokens=max_new_tokens or (THINKING_TOKENS if thinking else TOKENS),
        dtype=given.get("dtype") or "bfloat16",
        thinking=thinking,
        force_base_prompt=base_prompt,
        base_url=url,
        api_key_env=given.get("api_key_env"),
        tensor_parallel=tensor_parallel,
        attn_implementation=attn_implementation,
        trust_remote_code=trust_remote_code or bool(given.get("trust_remote_code")),
    )
    _check(settings)
    require_output_folder(output_dir)
    go_offline_if_unreachable()
    root = data_or_setting(data)
    samples = run(settings, root, prompts, limit, n_samples, output_dir, resume)
    print(f"Solutions: {samples}")
    print(f"Judge them: cultureval code evaluate {samples} --dataset {dataset}" + (f" --data {root}" if root else ""))


def run(
    settings: "DecoderSettings",
    data: str,
    prompts: Path | None,
    limit: int | None,
    n_samples: int,
    output_dir: Path,
    resume: bool,
) -> Path:
    """Generates what is missing of a run's solutions and returns their file, named as EvalPlus names it."""
    from cultureval.models.code.decoders import make_decoder, prompt_mode
    from cultureval.tasks.qimma.code_data import load_problems

    problem_set = load_problems(settings.dataset, data, prompts, limit)
    samples = samples_file(settings, output_dir)
    description = describe(settings, problem_set, n_samples)
    prepare_resume(samples, description, resume)
    with notes_on_stderr():
        decoder = make_decoder(settings)
        description["prompt"] = prompt_mode(decoder, settings)
        description_file(samples).write_text(json.dumps(description, ensure_ascii=False, indent=1), encoding="utf-8")
        with evalplus_reads(problem_set):
            from evalplus.codegen import codegen

            codegen(
                target_path=str(samples),
                model=decoder,
                dataset=settings.dataset,
                greedy=settings.temperature == 0,
                n_samples=n_samples,
            )
    return samples


def samples_file(settings: "DecoderSettings", output_dir: Path) -> Path:
    """Where EvalPlus writes a run's solutions: `<root>/<dataset>/<model>_<backend>_temp_<t>.jsonl`."""
    name = settings.model.strip("./").replace("/", "--")
    return output_dir / settings.dataset / f"{name}_{settings.backend}_temp_{settings.temperature}.jsonl"


def description_file(samples: Path) -> Path:
    """Where it stands how the solutions of a file were generated."""
    return samples.with_name(samples.name.removesuffix(".jsonl") + ".generation.json")


def describe(settings: "DecoderSettings", problem_set: "ProblemSet", n_samples: int) -> dict[str, Any]:
    """All that the solutions depend on."""
    own = dataclasses.asdict(settings)
    return own | {
        "n_samples": n_samples,
        "data_revision": problem_set.revision,
        "data_hash": problem_set.content_hash,
        "model_hash": _model_hash(settings),
        "problems": len(problem_set.rows),
        "refined_prompts": problem_set.refined,
        "versions": installed_versions(PACKAGES),
    }


def prepare_resume(samples: Path, description: dict[str, Any], resume: bool) -> None:
    """Makes the files of an earlier run fit to go on with, or moves them out of the way where not resuming.

    A killed run may leave half a line behind, at which EvalPlus would stop. A larger --limit continues a smaller.

    Raises:
        CulturevalError: The earlier run had other settings.
    """
    raw, described = samples.with_name(samples.name.replace(".jsonl", ".raw.jsonl")), description_file(samples)
    samples.parent.mkdir(parents=True, exist_ok=True)
    for file in (samples, raw, described):
        if not resume and file.is_file():
            os.replace(file, file.with_name(file.name + ".bak"))
    for file in (samples, raw):
        if file.is_file():
            whole = file.read_bytes()
            file.write_bytes(whole[: whole.rfind(b"\n") + 1])
    if not samples.is_file() or not described.is_file():
        return
    earlier = json.loads(described.read_text(encoding="utf-8"))
    differing = [name for name in description if name not in FREE and earlier.get(name) != description[name]]
    if differing:
        raise CulturevalError(
            f"{samples} was generated with another {', '.join(differing)}. Take another --output-dir, or start over "
            "with --no-resume."
        )


def evalplus_reads(problem_set: "ProblemSet") -> contextlib.AbstractContextManager[None]:
    """A block in which EvalPlus reads our problems, and its sanitiser survives any text."""
    from cultureval.metrics.code.solution_code import sanitize_solution

    return codegen_reads(problem_set.dataset.name, problem_set.file, sanitize_solution)


def _model_hash(settings: "DecoderSettings") -> str | None:
    """Tells other weights in the same folder apart; None for models that are no folder here."""
    folder = Path(settings.model)
    if settings.backend == "openai" or not folder.is_dir():
        return None
    from cultureval.models.loading import fingerprint

    return fingerprint(folder)


def _model_settings(model: str, **given: str | None) -> dict[str, Any]:
    """What a YAML file says of the model, the command line's own options on top."""
    settings = read_model_settings(model)
    refuse_unknown(settings, MODEL_SETTINGS, "`cultureval code generate`")
    settings |= {name: value for name, value in given.items() if value is not None}
    settings["model"] = settings.get("model") or settings.get("model_name")
    if not settings["model"]:
        raise CulturevalError(f"The model settings {model!r} name no model.")
    return settings


def _check(settings: "DecoderSettings") -> None:
    import torch

    if not isinstance(getattr(torch, settings.dtype, None), torch.dtype):
        raise CulturevalError(f"--dtype {settings.dtype!r} is none of torch's types, such as bfloat16 or float32.")
    if settings.backend == "openai" and settings.force_base_prompt:
        raise CulturevalError("--base-prompt is for models that are loaded here: EvalPlus asks servers by chat only.")
    if settings.backend != "openai" and settings.base_url:
        raise CulturevalError(f"--base-url goes with --backend openai, not with {settings.backend}.")
    if settings.backend == "openai":
        settings.servers()  # before a URL with a password is written anywhere
