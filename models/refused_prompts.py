"""Docs whose prompts a server refuses: named, and unscored where the settings say so."""

from lighteval.tasks.requests import Doc

from cultureval.runtime.lighteval_patches.refused_docs import name_of
from cultureval.runtime.servers.errors import ServerError


class PromptRefused(ServerError):
    """A server refuses a prompt, for what it holds or for its length.

    Args:
        doc: Of which the prompt is.
        cause: What the server said, in one line.
    """

    def __init__(self, doc: Doc, cause: str) -> None:
        self.reason = f"the server refuses its prompt: {cause.rstrip('.')}"
        super().__init__(
            f"{name_of(doc)}: {self.reason}. All answers so far are kept. Correct the settings that it names "
            "(max_new_tokens, chat_template, extra_body, leave_out, or the server's --max-model-len), or pass "
            "--on-refused unscored (CULTUREVAL_ON_REFUSED=unscored) to leave such rows unscored and count them.",
            cause,
            refuses_content=True,
        )
