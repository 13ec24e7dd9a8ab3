"""The settings of a model as arguments and environment variables of `vllm serve`."""

from collections.abc import Mapping

from cultureval.models.settings import HFModelSettings
from cultureval.runtime.errors import CulturevalError, ProblemList

SEVERAL_NODES = "for several nodes see docs/scaling.md"
# Settings that only transformers knows -> what to do instead.
NOT_IN_VLLM = {
    "adapter": "save the model with the adapter merged (PEFT's merge_and_unload), and name that",
    "device_map": "spread the model with --tensor-parallel",
    "quantisation": "give vLLM's own arguments, such as --vllm-args '--quantization fp8'",
    "attn_implementation": "give --vllm-args '--attention-backend ...'",
    "token_budget": "vLLM makes its own batches",
    "image_max_pixels": "give --vllm-args '--mm-processor-kwargs ...'",
    "image_min_pixels": "give --vllm-args '--mm-processor-kwargs ...'",
}
# Arguments of `vllm serve` that are set here -> the setting, or why it is not one.
OURS = {
    "--model": "MODEL names it",
    "--served-model-name": "MODEL names it",
    "--host": "the server is for this command alone",
    "--port": "a free one is taken",
    "--uds": "the server is for this command alone",
    "--api-key": "a random one is made",
    "--headless": SEVERAL_NODES,
    "--nnodes": SEVERAL_NODES,
    "--ssl-keyfile": "the server is for this command alone",
    "--chat-template": "put it into the tokenizer's folder, and name that as `tokenizer`",
    "--tensor-parallel-size": "use --tensor-parallel",
    "-tp": "use --tensor-parallel",
    "--data-parallel-size": "use --data-parallel",
    "-dp": "use --data-parallel",
    "--dtype": "use --dtype, or `dtype`",
    "--revision": "use `revision`",
    "--tokenizer": "use `tokenizer`",
    "--max-model-len": "use `max_length`",
    "--trust-remote-code": "use `trust_remote_code`",
}
CPU_CACHE = "VLLM_CPU_KVCACHE_SPACE"  # GiB; vLLM reads it on CPUs only


def require_vllm_settings(settings: HFModelSettings) -> None:
    """Checks that vLLM knows what the settings ask for.

    Raises:
        CulturevalError: All that it does not, with what to do.
    """
    problems = ProblemList()
    for name, remedy in NOT_IN_VLLM.items():
        if getattr(settings, name) is not None:
            problems.add(CulturevalError(f"{name} is a setting of transformers, not of vLLM: {remedy}."))
    if settings.dtype == "8bit":
        problems.add(CulturevalError("vLLM quantises to 4 bits as it loads, not to 8: set dtype: 4bit, or bfloat16."))
    for argument in settings.vllm_args:
        name = argument.partition("=")[0].replace("_", "-")
        if name in OURS:
            problems.add(CulturevalError(f"--vllm-args must not contain {name}: {OURS[name]}."))
    problems.raise_if_any()


def serve_options(settings: HFModelSettings) -> list[str]:
    """The arguments of `vllm serve` after the model; ours come last, where they take precedence."""
    options = [*settings.vllm_args]
    quantised = settings.dtype == "4bit"
    options += ["--dtype", "auto" if quantised else settings.dtype]
    options += ["--quantization", "bitsandbytes"] if quantised else []
    options += ["--tensor-parallel-size", str(settings.tensor_parallel)] if settings.tensor_parallel > 1 else []
    options += ["--data-parallel-size", str(settings.data_parallel)] if settings.data_parallel > 1 else []
    options += ["--revision", settings.revision] if settings.revision != "main" else []
    options += ["--tokenizer", settings.tokenizer] if settings.tokenizer else []
    options += ["--max-model-len", str(settings.max_length)] if settings.max_length else []
    return options + (["--trust-remote-code"] if settings.trust_remote_code else [])


def serve_variables(settings: HFModelSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment variables of vLLM that keep it to the device of the settings: `cuda:1` is the second visible one.

    On a CPU vLLM would ask for 92 % of the memory and not start where less is free: its cache has 4 GiB, unless named.
    """
    cache = {CPU_CACHE: environment.get(CPU_CACHE, "4")}
    kind, _, number = settings.device.partition(":")
    if kind == "cpu":
        return {**cache, "CUDA_VISIBLE_DEVICES": ""}
    if not number:
        return cache
    visible = [name for name in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return {**cache, "CUDA_VISIBLE_DEVICES": visible[int(number)] if visible else number}
