"""How code is generated: the settings of a decoder, the prompt of a reasoning model and the code in its reply."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.servers.identity import IdentityQuestion, ServerIdentity, evaluated_model_identity
from cultureval.runtime.servers.providers import provider_at
from cultureval.runtime.servers.settings import ServerSettings, openai_base_url

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Backend = Literal["hf", "vllm", "openai"]
FENCE = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)(?:^[ \t]*```|\Z)", flags=re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class DecoderSettings:
    """How code is generated.

    Attributes:
        model: Hub id, folder, or the server's name of the model.
        backend: EvalPlus's provider.
        dataset: `humaneval` or `mbpp`; the stop strings of base models depend on it.
        instruction_prefix: Text before the problem in the user's turn.
        response_prefix: How the model's turn begins; not used for reasoning models and servers.
        temperature: 0 decodes greedily.
        batch_size: Samples of one problem per batch.
        max_new_tokens: Limit of one sample, reasoning included.
        dtype: Name of a torch dtype.
        thinking: Whether the model writes reasoning before its answer.
        force_base_prompt: Use plain completion even if there is a chat template.
        base_url: The server, or several of the same model, each up to and including `/v1`.
        api_key_env: Environment variable with the server's key; None sends no key.
        revision: Your name for the weights that a server has under the model's name.
        identify: What tells a server's model apart from another one of its name, as in `ServerModelConfig`.
        tensor_parallel: GPUs that vLLM spreads a model over.
        attn_implementation: Name of an attention implementation of transformers.
        trust_remote_code: Whether a repository's own code may run.
    """

    model: str
    backend: Backend
    dataset: str
    instruction_prefix: str
    response_prefix: str
    temperature: float = 0.0
    batch_size: int = 1
    max_new_tokens: int = 768
    dtype: str = "bfloat16"
    thinking: bool = False
    force_base_prompt: bool = False
    base_url: str | list[str] | None = None
    api_key_env: str | None = None
    revision: str | None = None
    identify: Literal["all", "model"] = "all"
    tensor_parallel: int = 1
    attn_implementation: str = "eager"
    trust_remote_code: bool = False

    def common(self) -> dict[str, Any]:
        """The arguments that every decoder of EvalPlus takes."""
        return {
            "name": self.model,
            "batch_size": self.batch_size,
            "temperature": self.temperature,
            "max_new_tokens": self.max_new_tokens,
            "instruction_prefix": self.instruction_prefix,
            "response_prefix": self.response_prefix,
        }

    def servers(self) -> ServerSettings:
        """The settings of the client.

        Raises:
            CulturevalError: The URL is wrong or contains a password, or the key's variable is not set.
        """
        given = self.base_url or openai_base_url()
        urls = (given,) if isinstance(given, str) else tuple(given)
        timeout_s = 100 if not self.thinking else 3600  # 100 s is EvalPlus's limit per request
        return ServerSettings(urls, self.api_key_env, timeout_s=timeout_s, max_retries=7)

    def server_identity(self) -> ServerIdentity | None:
        """Who the server is, before anything is asked of it or reused; None without one; a provider's is not asked.

        Raises:
            CulturevalError: It does not answer.
        """
        if self.backend != "openai":
            return None
        if (question := self.identity_question()) is not None:
            return evaluated_model_identity(question, self.revision)
        provider = provider_at(self.servers().base_urls)
        return ServerIdentity(id=self.model, root=provider.id if provider else None)

    def identity_question(self) -> IdentityQuestion | None:
        """How the server is asked who it is; None for a provider's, which is not."""
        servers = self.servers()
        if provider_at(servers.base_urls) and self.identify == "all":
            return None
        return IdentityQuestion.of(servers, self.model, by_answer=self.identify == "all")

    def local(self) -> dict[str, Any]:
        """The arguments of decoders that load the model themselves."""
        return self.common() | {
            "dataset": self.dataset,
            "force_base_prompt": self.force_base_prompt,
            "dtype": self.dtype,
            "trust_remote_code": self.trust_remote_code,
        }


def reasoning_prompt(problem: str, instruction: str, tokenizer: "PreTrainedTokenizerBase") -> str:
    """The rendered chat for a reasoning model: EvalPlus's user turn, and the beginning of the model's turn."""
    content = f"{instruction}\n```\n{problem.strip()}\n```\n"
    return tokenizer.apply_chat_template(
        [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True, enable_thinking=True
    )


def code_from_reply(reply: str) -> str:
    """The code of a reasoning model's reply: the first fenced block of the answer, else all of it; "" without one."""
    answer, _ = split_reasoning(reply)
    return first_code_block(answer.strip()).replace("\t", "    ")


def first_code_block(text: str) -> str:
    """The content of the first fenced block, closed or not; all of the text where there is none."""
    block = FENCE.search(text)
    return block.group(1) if block else text
