"""LightEval's own vLLM backend, with a plain forward pass in place of vLLM; tokenizers on which its tokens differ."""

import inspect
from types import SimpleNamespace

import torch
from lighteval.models.vllm import vllm_model
from lighteval.tasks.prompt_manager import PromptManager
from tokenizers import Tokenizer, models, normalizers, processors, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

BOS, EOS, PAD = "<s>", "</s>", "<pad>"
BOS_CHAT = (
    "{{ bos_token }}{% for message in messages %}[{{ message['role'] }}]\n{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]:{% endif %}"
)
# Where vLLM is not installed, LightEval puts a class that only complains in place of this one, which it keeps.
BACKEND = inspect.getclosurevars(vars(vllm_model.VLLMModel)["__init__"]).nonlocals.get("_object", vllm_model.VLLMModel)


def merging_tokenizer(texts, vocabulary=400, chat_template=None):
    """A tokenizer in the style of Llama 2's: spaces are ▁, one before every text, and tokens cross words.

    Args:
        texts: What it is trained on; it merges over the end of prompts where these go on with labels.
        vocabulary: Its size at most.
        chat_template: Its chat template, if it shall have one.
    """
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    special = ["<unk>", BOS, EOS, PAD]
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=special, show_progress=False),
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, tokenizer.token_to_id(BOS))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=BOS, eos_token=EOS, pad_token=PAD, chat_template=chat_template
    )


class StockVLLM(BACKEND):
    """`lighteval vllm` with its default settings; `_generate` alone is ours."""

    def __init__(self, folder, max_length=None):
        self.config = vllm_model.VLLMModelConfig(model_name=str(folder))
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self.use_chat_template = self._tokenizer.chat_template is not None
        self._add_special_tokens = self.config.add_special_tokens
        self.pairwise_tokenization = self.config.pairwise_tokenization
        self.prompt_manager = PromptManager(self.use_chat_template, self._tokenizer, None)
        self._max_length = max_length
        self.plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    @torch.inference_mode()
    def _generate(self, inputs, generate):
        assert not generate
        outputs = []
        for tokens in inputs:
            rows = self.plain(torch.tensor([tokens]), use_cache=False).logits[0, :-1].double().log_softmax(-1)
            own = rows.gather(1, torch.tensor(tokens[1:])[:, None])
            ranks = (rows > own).sum(1) + 1
            pairs = zip(tokens[1:], own[:, 0].tolist(), ranks.tolist(), strict=True)
            entries = [{token: SimpleNamespace(logprob=value, rank=rank)} for token, value, rank in pairs]
            outputs.append(SimpleNamespace(prompt_logprobs=[None, *entries]))
        return outputs

    def scores(self, docs):
        """LightEval's responses to docs, without its response cache."""
        return self._loglikelihood_tokens(docs)
