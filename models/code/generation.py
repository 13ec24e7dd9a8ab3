"""Generate solutions with EvalPlus: its file names, and resumable runs."""

import dataclasses
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cultureval.models.code.decoders import make_decoder, prompt_mode
from cultureval.models.code.settings import Backend, DecoderSettings
from cultureval.runtime.errors import CulturevalError, counted
from cultureval.runtime.interruption import kept_when_interrupted
from cultureval.runtime.model_settings import read_model_settings, refuse_unknown
from cultureval.runtime.patches.evalplus import codegen_reads
from cultureval.runtime.patches.transformers import loaded_facts
from cultureval.runtime.signatures import installed_versions
from cultureval.runtime.weight_files import fingerprint

if TYPE_CHECKING:
    from evalplus.provider.base import DecoderBase

    from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse

MODEL_SETTINGS = {"model", "model_name", "base_url", "api_key_env", "dtype", "trust_remote_code"}
MODEL_SETTINGS |= {"revision", "identify"}
# Fields that may change when a run is resumed: answers do not depend on them, or more are added.
MAY_CHANGE = {"n_samples", "problems", "refined_prompts", "versions", "prompt", "base_url", "api_key_env", "batch_size"}
MAY_CHANGE |= {"tensor_parallel", "identify"}
PACKAGES = ("cultureval", "evalplus", "transformers", "torch")


class CodeProblems(Protocol):
    """A set of problems, as generation needs it.

    Attributes:
        rows: The problems by task id.
        file: The problems in EvalPlus's format.
        revision: Revision of the data.
        content_hash: Hash of the data.
        refined: The refined prompts, if any.
    """

    rows: Mapping[str, Any]
    file: Path
    revision: str
    content_hash: str
    refined: Any


def generate_solutions(
    settings: DecoderSettings,
    problems: CodeProblems,
    n_samples: int,
    output_dir: Path,
    resume: bool,
    sanitize: Callable[[str, str], str],
) -> "tuple[Path, dict[str, RefusedResponse]]":
    """Generates the missing solutions of a run.

    Args:
        settings: The model and its generation settings.
        problems: The problems of the settings' data set.
        n_samples: Solutions per problem.
        output_dir: Folder of the files.
        resume: Continue an earlier run with the same settings.
        sanitize: From a solution's text and the entry point's name to a program; accepts any text.

    Returns:
        The file of solutions, named as EvalPlus names it; and task id -> why, of problems that lack a usable answer
        and get no more solutions (`--on-refused unscored`).

    Raises:
        CulturevalError: The earlier run had other settings or was of another model of this name, the model cannot be
            loaded, or its server does not answer or refuses a problem.
    """
    samples, identity = samples_file(settings, output_dir), settings.server_identity()
    description = describe(settings, problems, n_samples) | {"server": identity.known if identity else None}
    earlier = prepare_resume(samples, description, resume).get("other_models", {})
    done = _done(samples)
    others = {task: who for task, who in earlier.items() if done[task]}  # solutions that are there stay what they are
    decoder = make_decoder(settings)
    description |= {"prompt": prompt_mode(decoder, settings), "loaded": _loaded(decoder), "other_models": others}
    _describe_in(description_file(samples), description)
    kept_when_interrupted(samples, lambda: counted(_count_lines(samples), "solution"), resume)
    refused: dict[str, RefusedResponse] = {}
    if ask_all := getattr(decoder, "ask_all", None):
        calls = list(_calls(done, problems, settings, n_samples))
        found = ask_all({call: task for task, call in calls}, n_samples, identity)
        refused = {task: found[call] for task, call in calls if call in found}
        others |= {task: decoder.others[call] for task, call in calls if call in decoder.others}
        told = {task: {"reason": one.reason, "kind": one.kind} for task, one in refused.items()}
        _describe_in(description_file(samples), description | {"refused": told})
    if len(refused) == len(problems.rows):
        task, one = next(iter(refused.items()))
        raise CulturevalError(f"No problem has a usable answer, such as {task}: {one.reason}.")
    with _file_without(refused, problems) as file, codegen_reads(settings.dataset, file, sanitize):
        from evalplus.codegen import codegen

        codegen(
            target_path=str(samples),
            model=decoder,
            dataset=settings.dataset,
            greedy=settings.temperature == 0,
            n_samples=n_samples,
        )
    return samples, refused


def _describe_in(file: Path, description: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(description, ensure_ascii=False, indent=1), encoding="utf-8")


@contextmanager
def _file_without(refused: Mapping[str, str], problems: CodeProblems) -> Iterator[Path]:
    """The problems in EvalPlus's format, but for those that are refused."""
    if not refused:
        yield problems.file
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "problems.jsonl"
        kept = [json.dumps(row) + "\n" for task, row in problems.rows.items() if task not in refused]
        file.write_text("".join(kept), encoding="utf-8")
        yield file


def _done(samples: Path) -> Counter[str]:
    """Task id -> solutions that are there."""
    lines = samples.read_text(encoding="utf-8").splitlines() if samples.is_file() else []
    return Counter(json.loads(line)["task_id"] for line in lines if line.strip())


def _calls(
    done: Mapping[str, int], problems: CodeProblems, settings: DecoderSettings, n_samples: int
) -> Iterator[tuple[str, tuple[str, int]]]:
    """Task id, prompt and number of missing solutions of each call that `evalplus.codegen` will make of its decoder."""
    for task, row in problems.rows.items():
        for missing in range(n_samples - done[task], 0, -settings.batch_size):
            yield task, (row["prompt"].strip() + "\n", missing)


def samples_file(settings: DecoderSettings, output_dir: Path) -> Path:
    """Where EvalPlus writes a run's solutions: `<root>/<dataset>/<model>_<backend>_temp_<t>.jsonl`."""
    name = settings.model.strip("./").replace("/", "--")
    return output_dir / settings.dataset / f"{name}_{settings.backend}_temp_{settings.temperature}.jsonl"


def description_file(samples: Path) -> Path:
    """The file that describes how a file of solutions was generated."""
    return samples.with_name(samples.name.removesuffix(".jsonl") + ".generation.json")


def describe(settings: DecoderSettings, problems: CodeProblems, n_samples: int) -> dict[str, Any]:
    """Everything that the solutions depend on."""
    own = dataclasses.asdict(settings)
    return own | {
        "n_samples": n_samples,
        "data_revision": problems.revision,
        "data_hash": problems.content_hash,
        "model_hash": _model_hash(settings),
        "problems": len(problems.rows),
        "refined_prompts": problems.refined,
        "versions": installed_versions(PACKAGES),
    }


def prepare_resume(samples: Path, description: dict[str, Any], resume: bool) -> dict[str, Any]:
    """Prepares the files of an earlier run for resuming, or renames them to *.bak if not resuming.

    A killed run may leave an incomplete last line, at which EvalPlus would stop. A larger --limit continues a smaller.

    Returns:
        The description of the earlier run; {} where there is none to resume.

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
            content = file.read_bytes()
            file.write_bytes(content[: content.rfind(b"\n") + 1])
    if not samples.is_file() or not described.is_file():
        return {}
    earlier = json.loads(described.read_text(encoding="utf-8"))
    differing = [name for name in description if name not in MAY_CHANGE and earlier.get(name) != description[name]]
    if differing:
        raise CulturevalError(
            f"{samples} was generated with another {', '.join(differing)}. Use another --output-dir, or start again "
            "with --no-resume."
        )
    return earlier


def decoder_model_settings(model: str, **given: str | None) -> dict[str, Any]:
    """The model settings of a YAML file, overridden by the command line's options.

    Raises:
        CulturevalError: It has an unknown setting, or names no model.
    """
    settings = read_model_settings(model, given.get("base_url"))
    settings.pop("provider", None)  # its address and key are there too
    refuse_unknown(settings, MODEL_SETTINGS, "`cultureval code generate`")
    settings |= {name: value for name, value in given.items() if value is not None}
    settings["model"] = settings.get("model") or settings.get("model_name")
    if not settings["model"]:
        raise CulturevalError(f"The model settings {model!r} name no model.")
    return settings


def decoder_settings(
    model: str,
    *,
    backend: Backend | None = None,
    base_url: str | None = None,
    dtype: str | None = None,
    trust_remote_code: bool = False,
    **others: Any,
) -> DecoderSettings:
    """The settings of the command line, over those of the model's YAML file, checked.

    Args:
        model: Hub id, folder, the server's name of the model, or a YAML file.
        backend: Default: `openai` with a URL, else `hf`.
        base_url: The server, up to and including `/v1`.
        dtype: Default: that of the file, else bfloat16.
        trust_remote_code: Whether a repository's own code may run; the file may allow it too.
        **others: Further settings, which no file holds.

    Raises:
        CulturevalError: Settings are unknown or wrong, or do not go together.
    """
    given = decoder_model_settings(model, base_url=base_url, dtype=dtype)
    url = given.get("base_url")
    if url is not None and not (url and all(isinstance(one, str) for one in (url if isinstance(url, list) else [url]))):
        raise CulturevalError(f"base_url is {url!r} in the model's settings, but must be an address or a list of them.")
    settings = DecoderSettings(
        model=given["model"],
        backend=backend or ("openai" if url else "hf"),
        dtype=given.get("dtype") or "bfloat16",
        base_url=url,
        api_key_env=given.get("api_key_env"),
        trust_remote_code=trust_remote_code or bool(given.get("trust_remote_code")),
        revision=given.get("revision"),
        identify=given.get("identify", "all"),
        **others,
    )
    check_settings(settings)
    return settings


def check_settings(settings: DecoderSettings) -> None:
    """Checks settings before anything is loaded or written.

    Raises:
        CulturevalError: Settings are wrong or do not go together.
    """
    import torch

    if not isinstance(getattr(torch, settings.dtype, None), torch.dtype):
        raise CulturevalError(f"--dtype {settings.dtype!r} is not a torch dtype, such as bfloat16 or float32.")
    if settings.backend == "openai" and settings.force_base_prompt:
        raise CulturevalError("--base-prompt is for local models: EvalPlus sends only chats to servers.")
    if settings.backend != "openai" and settings.base_url:
        raise CulturevalError(f"--base-url needs --backend openai, not {settings.backend}.")
    if settings.identify not in ("all", "model"):
        raise CulturevalError(f"identify is {settings.identify!r} in the model's settings, but all or model exist.")
    if settings.backend != "openai" and settings.revision:
        raise CulturevalError("revision names the weights of a server; a local folder is known by its files.")
    if settings.backend == "openai":
        settings.servers()  # raises for a URL with a password, before it is written anywhere


def _loaded(decoder: "DecoderBase") -> dict[str, Any]:
    """What the model was resolved to, where it is one of transformers in this process."""
    model = getattr(decoder, "model", None)
    if model is None:  # of a server or of vLLM: transformers, which takes seconds to import, is not needed
        return {}
    from transformers import PreTrainedModel

    return loaded_facts(model) if isinstance(model, PreTrainedModel) else {}


def _count_lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.is_file() else 0


def _model_hash(settings: DecoderSettings) -> str | None:
    """Hash of the files of a local model folder; None for other models."""
    folder = Path(settings.model)
    if settings.backend == "openai" or not folder.is_dir():
        return None
    return fingerprint(folder)
