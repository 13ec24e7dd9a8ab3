"""Solutions of code problems, for `cultureval code generate`: asked as EvalPlus asks, answered by the models of `eval`.

EvalPlus's prompts (`prompts/qimma/code_problems`), sampling and file names are kept, not its decoders.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.model_settings import read_model_settings
from cultureval.runtime.servers.settings import openai_base_url
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.runtime.signatures import installed_versions

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

    from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse

Backend = Literal["hf", "vllm", "openai"]
# EvalPlus's, of sampled answers and of every request to a server.
TOP_P = 0.95
SYSTEM_PROMPT = "You are a helpful assistant good at coding."
MOST_AT_ONCE = 32  # solutions of one problem in one request
FENCE = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)(?:^[ \t]*```|\Z)", flags=re.DOTALL | re.MULTILINE)
# Fields that may change when a run is resumed: answers do not depend on them, or more are asked for.
MAY_CHANGE = {"n_samples", "problems", "refined_prompts", "versions", "prompt", "base_url", "batch_size", "refused"}
PACKAGES = ("cultureval", "evalplus", "transformers", "torch")
LOADED = ("model_class", "parameters", "dtype", "quantisation", "devices", "attention")  # of the record of a model


@dataclass(frozen=True)
class CodeSettings:
    """How code is generated; what is None is left to the model's file, and has EvalPlus's value without one.

    Attributes:
        model: Hub id, folder, the server's name of the model, or a YAML file with settings.
        dataset: `humaneval` or `mbpp`.
        backend: EvalPlus's name of it; None: `openai` with a URL, else `hf`.
        temperature: 0 decodes greedily.
        max_new_tokens: Limit of one solution, reasoning included.
        thinking: Whether the model writes reasoning before its answer.
        base_prompt: Whether a model with a chat template continues the bare problem.
        batch_size: Solutions that are generated at once; those of one request to a server.
        base_url: The server, up to and including `/v1`.
        dtype: Name of a torch dtype.
        attn_implementation: Name of an attention implementation of transformers.
        trust_remote_code: Whether a repository's own code may run; None: as the file says.
    """

    model: str
    dataset: str
    backend: Backend | None = None
    temperature: float = 0.0
    max_new_tokens: int = 768
    thinking: bool = False
    base_prompt: bool = False
    batch_size: int | None = None
    base_url: str | None = None
    dtype: str | None = None
    attn_implementation: str | None = None
    trust_remote_code: bool | None = None

    def resolved_backend(self) -> Backend:
        """The backend, also where none is named; raises CulturevalError for a file that cannot be read."""
        served = self.base_url or "base_url" in read_model_settings(self.model)
        return self.backend or ("openai" if served else "hf")

    def name(self) -> str:
        """The model's name, which a YAML file has.

        Raises:
            CulturevalError: It has none.
        """
        file = read_model_settings(self.model, self.base_url)
        name = file.get("model") or file.get("model_name")
        if not isinstance(name, str):
            raise CulturevalError(f"The model settings {self.model!r} name no model.")
        return name

    def of_model(self, n_samples: int) -> dict[str, Any]:
        """Settings of the model, over those of its file, to ask for so many solutions as EvalPlus asks."""
        file, backend = read_model_settings(self.model, self.base_url), self.resolved_backend()
        sampling: dict[str, Any] = {"temperature": self.temperature, "max_new_tokens": self.max_new_tokens}
        sampling |= {"top_p": TOP_P} if self.temperature or backend == "openai" else {}
        names = ("base_url", "dtype", "trust_remote_code", "attn_implementation")
        given: dict[str, Any] = {name: getattr(self, name) for name in names}
        given |= {"chat_template": "off"} if self.base_prompt else {}
        if backend == "openai":
            left_out = _left_out(file)
            sampling = {name: value for name, value in sampling.items() if name not in left_out}
            at_once = self.batch_size or min(n_samples, MOST_AT_ONCE)
            given["n"] = None if "n" in left_out else at_once
            usual = {"base_url": openai_base_url()} | ({} if self.base_prompt else {"system_prompt": SYSTEM_PROMPT})
        else:
            given |= {"backend": "transformers" if backend == "hf" else backend, "batch_size": self.batch_size}
            # EvalPlus adds BOS also where the chat template has written it, but for reasoning models.
            usual = {"dtype": "bfloat16", "add_special_tokens": "off" if self.thinking else "on"}
            usual |= {"attn_implementation": "eager"} if backend == "hf" else {}
            usual |= {} if self.thinking else {"reasoning_tags": []}
        own = {name: value for name, value in given.items() if value is not None}
        own["generation_parameters"] = {**(file.get("generation_parameters") or {}), **sampling}
        return {name: value for name, value in usual.items() if name not in file} | own


def _left_out(file: Mapping[str, Any]) -> Sequence[str]:
    """The parameters of requests that the model of a server does not take."""
    from cultureval.models.server.settings import with_provider
    from cultureval.runtime.servers.providers import providers

    if file.get("leave_out") is not None:
        return list(file["leave_out"])
    provider = providers().get(str(with_provider(file).get("provider")))
    return provider.left_out(str(file.get("model"))) if provider else ()


def generate_solutions(
    settings: CodeSettings,
    docs: "Sequence[Doc]",
    data: Mapping[str, Any],
    output_dir: Path,
    resume: bool,
    sanitize: Callable[[Sequence[tuple[str, str]]], Sequence[str]],
) -> "tuple[Path, dict[str, RefusedResponse]]":
    """Generates a model's solutions; answers of an earlier, interrupted run are in the journal.

    Args:
        settings: The model, and how it is asked.
        docs: The problems by id, with as many samples each.
        data: Fields of the description that say which problems they are.
        output_dir: Folder of the files.
        resume: Whether files that are there must be of the same settings; else they are written over.
        sanitize: From problems' ids and solutions' texts to programs; accepts any texts.

    Returns:
        The file of solutions, named as EvalPlus names it; and problem's id -> why, of those without a usable answer.

    Raises:
        CulturevalError: The earlier run had other settings, or the model cannot be loaded or asked.
        BatchWritten, DryRun: The model's file asks for that; no solution is written.
    """
    from cultureval.models.choice import check_model, load_model
    from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse

    samples, own = samples_file(settings, output_dir), settings.of_model(docs[0].num_samples)
    current = current_settings()
    with use_settings(current.with_(model_settings=current.model_settings | own)):
        check_model(settings.model, images=False, likelihoods=False)
        model: Any = load_model(settings.model)
        if settings.resolved_backend() == "openai":
            model.identify()
        made = describe(settings, model) | {"n_samples": docs[0].num_samples, **data}
        if resume:
            require_same_settings(samples, made)
        responses = model.greedy_until(list(docs))
        model.cleanup()
    refused = {doc.id: one for doc, one in zip(docs, responses, strict=True) if isinstance(one, RefusedResponse)}
    made["refused"] = {task: {"reason": one.reason, "kind": one.kind} for task, one in refused.items()}
    if len(refused) == len(docs):
        task, one = next(iter(refused.items()))
        raise CulturevalError(f"No problem has a usable answer, such as {task}: {one.reason}.")
    raw = [
        (doc.id, solution)
        for doc, response in zip(docs, responses, strict=True)
        if doc.id not in refused
        for solution in solutions(settings, doc, response.text, made["prompt"])
    ]
    samples.parent.mkdir(parents=True, exist_ok=True)
    _write_lines(raw_file(samples), raw)
    _write_lines(samples, list(zip([task for task, _ in raw], sanitize(raw), strict=True)))
    write_atomically(description_file(samples), json.dumps(made, ensure_ascii=False, indent=1).encode())
    return samples, refused


def describe(settings: CodeSettings, model: Any) -> dict[str, Any]:
    """Everything that solutions depend on, but for the problems.

    Raises:
        CulturevalError: A reasoning model is wanted, and it has no chat template.
    """
    record, name, backend = model.run_record()["model"], settings.name(), settings.resolved_backend()
    if settings.thinking and not record["chat_template"]:
        raise CulturevalError(f"{name!r} has no chat template (or --base-prompt is set): reasoning is not possible.")
    prefix = "no response prefix" if settings.thinking or backend == "openai" else "response prefix"
    chat = f"chat, thinking, {prefix}" if settings.thinking else f"chat, {prefix}"
    return asdict(settings) | {
        "model": name,
        "backend": backend,
        "dtype": record.get("dtype", ""),
        "prompt": chat if record["chat_template"] else "completion",
        "model_hash": record["version"],
        "settings": model.signature_fields()["settings"],
        "loaded": {field: record[field] for field in LOADED if field in record},
        "server": record.get("server") or None,
        "versions": installed_versions(PACKAGES),
    }


def solutions(settings: CodeSettings, doc: "Doc", texts: Sequence[str], prompt: str) -> list[str]:
    """The solutions in a model's answers (without reasoning) to a problem, before they are sanitised.

    `prompt` is the prompt's form, as `describe` has it.
    """
    if prompt == "completion":
        return [doc.specific["plain_query"] + text.replace("\t", "    ") for text in texts]
    if settings.thinking:
        return [first_code_block(text.strip()).replace("\t", "    ") for text in texts]
    if settings.resolved_backend() == "openai":
        return [text.strip() for text in texts]
    return [text.replace("\t", "    ") for text in texts]


def first_code_block(text: str) -> str:
    """The content of the first fenced block, closed or not; all of the text where there is none."""
    block = FENCE.search(text)
    return block.group(1) if block else text


def samples_file(settings: CodeSettings, output_dir: Path) -> Path:
    """Where EvalPlus writes a run's solutions: `<root>/<dataset>/<model>_<backend>_temp_<t>.jsonl`."""
    name = settings.name().strip("./").replace("/", "--")
    return output_dir / settings.dataset / f"{name}_{settings.resolved_backend()}_temp_{settings.temperature}.jsonl"


def raw_file(samples: Path) -> Path:
    """The file of the same solutions before they are sanitised."""
    return samples.with_name(samples.name.replace(".jsonl", ".raw.jsonl"))


def description_file(samples: Path) -> Path:
    """The file that describes how a file of solutions was generated."""
    return samples.with_name(samples.name.removesuffix(".jsonl") + ".generation.json")


def require_same_settings(samples: Path, description: Mapping[str, Any]) -> None:
    """Checks that the files of an earlier run may be written anew.

    Raises:
        CulturevalError: The earlier run had other settings.
    """
    described = description_file(samples)
    if not samples.is_file() or not described.is_file():
        return
    earlier = json.loads(described.read_text(encoding="utf-8"))
    differing = [name for name in description if name not in MAY_CHANGE and earlier.get(name) != description[name]]
    if differing:
        raise CulturevalError(
            f"{samples} was generated with another {', '.join(differing)}. Use another --output-dir, or start again "
            "with --no-resume."
        )


def _write_lines(file: Path, found: Sequence[tuple[str, str]]) -> None:
    lines = [json.dumps({"task_id": task, "solution": solution}) + "\n" for task, solution in found]
    write_atomically(file, "".join(lines).encode("ascii"))
