"""What we change in EvalPlus, and what we use of it that is not public.

EvalPlus 0.3.1 has two faults that change what a model writes: its decoders append their stop strings to one list of the
module, so that a second decoder of a process stops at the first one's strings too; and its transformers decoder keeps
the stopping criteria of every earlier prompt, which count from where that prompt ended, so that a longer prompt is
searched for stop strings itself and its answer ends immediately.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.runtime.patches.table import expect, patched, source_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Sanitize = Callable[[str, str], str]
STOPPING_CRITERIA = "_get_stopping_criteria"

# --- data ---


def evalplus_problems(dataset: str, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows of a data file of `humaneval` or `mbpp`, by task id; the tuples and sets of MBPP's inputs are restored."""
    if dataset == "humaneval":
        return {task_id: dict(row) for task_id, row in rows.items()}
    from evalplus.data.mbpp import mbpp_deserialize_inputs

    return {
        task_id: {**row, **{name: mbpp_deserialize_inputs(task_id, row[name]) for name in ("base_input", "plus_input")}}
        for task_id, row in rows.items()
    }


# --- generation ---


@contextmanager
def restored_stop_strings() -> Iterator[None]:
    """A context that removes, at its end, the stop strings that a decoder has appended to the shared list."""
    from evalplus.provider import utility

    stop_strings = list(utility.EOS)
    try:
        yield
    finally:
        utility.EOS[:] = stop_strings


def forget_stopping_criteria(model: "PreTrainedModel") -> None:
    """Removes the wrappers of earlier prompts that EvalPlus's decoder has put around a model's stopping criteria."""
    vars(model).pop(STOPPING_CRITERIA, None)


@contextmanager
def vllm_loads_for(tokens: int | None) -> Iterator[None]:
    """A context in which EvalPlus loads vLLM models for sequences of `tokens` tokens; None keeps EvalPlus's 2048."""
    provider = import_module("evalplus.provider.vllm")
    engine = provider.LLM
    if tokens is not None:
        provider.LLM = lambda **options: engine(**options | {"max_model_len": tokens})
    try:
        yield
    finally:
        provider.LLM = engine


def chat_without_thinking(tokenizer: "PreTrainedTokenizerBase") -> None:
    """Makes the tokenizer pass `enable_thinking=False` to its chat template, as 3LM does; other templates ignore it."""
    render = tokenizer.apply_chat_template
    tokenizer.apply_chat_template = lambda *turns, **options: render(*turns, **{"enable_thinking": False} | options)


def chat_request(**settings: Any) -> dict[str, Any]:
    """The request that EvalPlus's `make_request` would send to a server for these settings, without sending it."""
    from types import SimpleNamespace

    from evalplus.gen.util.openai_request import make_request

    gives_the_request_back = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=dict)))
    return make_request(gives_the_request_back, **settings)


@contextmanager
def codegen_reads(dataset: str, file: Path, sanitize: Sanitize) -> Iterator[None]:
    """A context in which `evalplus.codegen` reads its problems from a file (JSON lines) and uses another sanitiser.

    `sanitize` goes from a reply and the entry point to a program.
    """
    data, codegen = import_module(f"evalplus.data.{dataset}"), import_module("evalplus.codegen")
    override = f"{dataset.upper()}_OVERRIDE_PATH"  # EvalPlus reads it from the environment when it is loaded
    earlier, stock = getattr(data, override), codegen.sanitize
    setattr(data, override, str(file))
    codegen.sanitize = lambda code, entrypoint: sanitize(code, entrypoint)
    try:
        yield
    finally:
        setattr(data, override, earlier)
        codegen.sanitize = stock


def sanitize_with(extract: Callable[[str], str], code: str, entry_point: str) -> str:
    """EvalPlus's `sanitize` of a model's code, with another function in place of its `code_extract`."""
    module = import_module("evalplus.sanitize")
    stock = module.code_extract
    module.code_extract = extract
    try:
        return module.sanitize(code, entry_point)
    finally:
        module.code_extract = stock


# --- the oracles of problems with several right answers ---


def polynomial(coefficients: Sequence[float], at: float) -> float:
    """HumanEval/32: the value of a polynomial."""
    from evalplus.eval import _poly

    return _poly(coefficients, at)


def surface_area(base_edge: float, height: float) -> int:
    """Mbpp/581: the surface of a square pyramid, where `height` is that of its apex."""
    from evalplus.eval import _surface_Area

    return _surface_Area(base_edge, height)


def digit_distance(one: int, other: int) -> int:
    """Mbpp/558: the sum of the differences of two numbers' digits."""
    from evalplus.eval import _digit_distance_nums

    return _digit_distance_nums(one, other)


# --- canaries ---


@patched(
    "evalplus",
    "evalplus.provider.utility.EOS",
    "Decoders append to this one list, so that a second one would stop at the first one's strings too.",
)
def _decoders_share_stop_strings() -> None:
    from evalplus.provider import utility
    from evalplus.provider.base import DecoderBase

    class Decoder(DecoderBase):
        def codegen(self, prompt: str, do_sample: bool = True, num_samples: int = 200) -> list[str]:
            return []

        def is_direct_completion(self) -> bool:
            return True

    before = list(utility.EOS)
    with restored_stop_strings():
        Decoder("canary").eos += ["canary"]
        expect("canary" in utility.EOS, "EvalPlus's decoders now have separate stop strings: remove this patch")
    expect(utility.EOS == before, "EvalPlus's stop strings are not restored")


@patched(
    "stop-sequencer",
    "stop_sequencer.StopSequencer.register_stop_texts",
    "It keeps the criteria of earlier prompts, which end the answer to a longer prompt immediately.",
)
def _stopping_criteria_pile_up() -> None:
    from stop_sequencer import StopSequencer

    class Model:
        def _get_stopping_criteria(self) -> list[Any]:
            return []

    model: Any = Model()
    for place in range(2):
        StopSequencer(model, "causal", None).register_stop_texts(["canary"], place)
    criteria = getattr(model, STOPPING_CRITERIA)()
    expect(len(criteria) == 2, "stop-sequencer no longer keeps the criteria of earlier prompts")
    forget_stopping_criteria(model)
    expect(
        getattr(model, STOPPING_CRITERIA)() == [], "stop-sequencer now wraps a model's stopping criteria in another way"
    )


@patched(
    "evalplus", "evalplus.provider.vllm.LLM", "It loads models for 2048 tokens, which is too few for a reasoning model."
)
def _vllm_models_are_loaded_for_2048_tokens() -> None:
    call = "LLM(model=name, max_model_len=2048, **kwargs)"
    expect(call in source_of("evalplus.provider.vllm"), "EvalPlus loads vLLM models in another way: read VllmDecoder")


@patched(
    "evalplus",
    "evalplus.provider.utility.make_raw_chat_prompt (its tokenizer.apply_chat_template)",
    "It cannot turn reasoning off in a chat template, as 3LM does.",
)
def _chats_do_not_name_thinking() -> None:
    from types import SimpleNamespace

    from evalplus.provider.utility import make_raw_chat_prompt

    seen: list[dict[str, Any]] = []

    def render(turns: list[dict[str, str]], **options: Any) -> str:
        seen.append(options)
        return turns[-1]["content"]

    tokenizer: Any = SimpleNamespace(chat_template="canary", apply_chat_template=render)
    make_raw_chat_prompt("problem", "instruction", "response", tokenizer)
    chat_without_thinking(tokenizer)
    make_raw_chat_prompt("problem", "instruction", "response", tokenizer)
    expect("enable_thinking" not in seen[0], "EvalPlus now passes enable_thinking to chat templates itself")
    expect(seen[1].get("enable_thinking") is False, "EvalPlus renders chats in another way: read make_raw_chat_prompt")


@patched(
    "evalplus",
    "evalplus.gen.util.openai_request.make_request",
    "EvalPlus repeats a request for ever, whatever the server answers: our client sends its request.",
)
def _requests_are_repeated_for_ever() -> None:
    request = chat_request(message="canary", model="m", max_tokens=1, temperature=0.0, n=1)
    named = {"model", "messages", "max_tokens", "temperature", "n", "top_p"}
    expect(set(request) == named, f"EvalPlus's request has the fields {', '.join(sorted(request))} now")
    source = source_of("evalplus.gen.util.openai_request")
    expect("while ret is None:" in source, "EvalPlus no longer repeats a request for ever: its own client may suffice")


@patched(
    "evalplus",
    "evalplus.data.humaneval.HUMANEVAL_OVERRIDE_PATH, evalplus.data.mbpp.MBPP_OVERRIDE_PATH",
    "EvalPlus reads these from the environment only at import, and our problems are chosen later.",
)
def _codegen_can_be_given_problems() -> None:
    import json
    from tempfile import TemporaryDirectory

    from evalplus import data

    inputs: dict[str, list[Any]] = {"base_input": [], "plus_input": []}
    with TemporaryDirectory() as folder:
        for dataset, task, read in (
            ("humaneval", "HumanEval/0", data.get_human_eval_plus),
            ("mbpp", "Mbpp/2", data.get_mbpp_plus),
        ):
            file = Path(folder, f"{dataset}.jsonl")
            file.write_text(json.dumps({"task_id": task, **inputs}), encoding="utf-8")
            with codegen_reads(dataset, file, lambda code, _: code):
                expect(list(read(err_incomplete=False)) == [task], f"EvalPlus reads {dataset} from elsewhere now")


@patched(
    "evalplus", "evalplus.codegen.sanitize", "Some texts, such as lone surrogates, make its sanitiser end the run."
)
def _codegen_stops_at_some_texts() -> None:
    from evalplus import sanitize

    call = "sanitize(\n                        solution, entrypoint="
    expect(call in source_of("evalplus.codegen"), "evalplus.codegen now calls its sanitiser in another way")
    try:
        sanitize.sanitize("\ud800", "canary")
    except UnicodeError:
        return
    expect(False, "EvalPlus's sanitiser now takes any text: remove this patch of `evalplus.codegen`")


@patched(
    "evalplus",
    "evalplus.sanitize.code_extract",
    "It parses every run of lines of a text; ours finds the same one sooner.",
)
def _extraction_parses_all_runs_of_lines() -> None:
    from unittest.mock import patch

    from evalplus import sanitize

    program = "def canary():\n    return 1"
    found = sanitize_with(lambda _: program, "text", "canary")
    expect(found == program, "EvalPlus's sanitiser finds programs in another way: read extract_target_code_or_empty")
    with patch.object(sanitize, "syntax_check", return_value=False) as parsed:
        sanitize.code_extract("line\n" * 20)
    expect(parsed.call_count > 150, "EvalPlus's code_extract no longer parses all runs of lines: it may be fast enough")


@patched(
    "evalplus",
    "evalplus.eval._poly, _surface_Area, _digit_distance_nums",
    "Its oracles judge outputs outside the sandbox, where our rules apply them.",
)
def _oracles_are_as_read() -> None:
    found = polynomial([1, 2, 3], 2.0), surface_area(3, 4), digit_distance(1, 256)
    expect(found == (17.0, 35, 12), f"EvalPlus's oracles give {found} now: read evalplus.eval.unsafe_execute")
    source = "".join(source_of("evalplus.eval").split())
    expect(
        "assertabs(_poly(*inp,out))<=atolcontinue" in source,
        "EvalPlus now judges HumanEval/32 in another way: compare with metrics/code/rules.py",
    )
