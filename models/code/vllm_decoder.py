"""EvalPlus's vLLM decoder, extended to reasoning models."""

from evalplus.provider.vllm import VllmDecoder
from vllm import SamplingParams

from cultureval.models.code.settings import DecoderSettings, code_from_reply, reasoning_prompt
from cultureval.runtime.patches.evalplus import chat_without_thinking, vllm_loads_for

# EvalPlus loads models for 2048 tokens (3LM's setting too); reasoning needs more.
PROBLEM_TOKENS = 2048


class VllmCodeDecoder(VllmDecoder):
    """Code from a model that vLLM runs in this process."""

    def __init__(self, settings: DecoderSettings) -> None:
        with vllm_loads_for(PROBLEM_TOKENS + settings.max_new_tokens if settings.thinking else None):
            super().__init__(tensor_parallel_size=settings.tensor_parallel, **settings.local())
        self.thinking = settings.thinking
        if not settings.thinking:
            chat_without_thinking(self.tokenizer)

    def codegen(self, prompt: str, do_sample: bool = True, num_samples: int = 200) -> list[str]:
        """Solutions of one problem, `num_samples` or `batch_size` of them, whichever is less."""
        if not self.thinking:
            return super().codegen(prompt, do_sample, num_samples)
        rendered = reasoning_prompt(prompt, self.instruction_prefix, self.tokenizer)
        sampling = SamplingParams(
            temperature=self.temperature, max_tokens=self.max_new_tokens, top_p=0.95 if do_sample else 1.0
        )
        outputs = self.llm.generate([rendered] * min(self.batch_size, num_samples), sampling, use_tqdm=False)
        return [code_from_reply(output.outputs[0].text) for output in outputs]
