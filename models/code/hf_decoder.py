"""EvalPlus's transformers decoder, extended to many prompts and to reasoning models."""

import torch
from evalplus.provider.hf import HuggingFaceDecoder

from cultureval.models.code.settings import DecoderSettings, code_from_reply, reasoning_prompt
from cultureval.runtime.patches.evalplus import chat_without_thinking, forget_stopping_criteria


class HFCodeDecoder(HuggingFaceDecoder):
    """Code from a transformers model."""

    def __init__(self, settings: DecoderSettings) -> None:
        super().__init__(attn_implementation=settings.attn_implementation, **settings.local())
        self.thinking = settings.thinking
        if not settings.thinking:
            chat_without_thinking(self.tokenizer)

    def codegen(self, prompt: str, do_sample: bool = True, num_samples: int = 200) -> list[str]:
        """Solutions of one problem, `num_samples` or `batch_size` of them, whichever is less."""
        forget_stopping_criteria(self.model)
        if not self.thinking:
            return super().codegen(prompt, do_sample, num_samples)
        return [code_from_reply(reply) for reply in self._generate_with_reasoning(prompt, do_sample, num_samples)]

    @torch.inference_mode()
    def _generate_with_reasoning(self, prompt: str, do_sample: bool, num_samples: int) -> list[str]:
        rendered = reasoning_prompt(prompt, self.instruction_prefix, self.tokenizer)
        # The template already adds BOS.
        tokens = self.tokenizer(rendered, return_tensors="pt", add_special_tokens=False).to(self.device)
        sampling = {"temperature": self.temperature, "top_p": 0.95} if do_sample else {}
        outputs = self.model.generate(
            **tokens,
            max_new_tokens=self.max_new_tokens,
            do_sample=do_sample,
            num_return_sequences=min(self.batch_size, num_samples),
            pad_token_id=self.tokenizer.eos_token_id,
            **sampling,
        )
        return self.tokenizer.batch_decode(outputs[:, tokens["input_ids"].size(-1) :], skip_special_tokens=True)
