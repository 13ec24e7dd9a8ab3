"""Docs to which a server gives no usable answer: named, and unscored where the settings say so."""

from lighteval.tasks.requests import Doc

from cultureval.runtime.patches.lighteval.refused_docs import name_of
from cultureval.runtime.servers.errors import ServerError

REASONS = {
    "server": "the server refuses its prompt",
    "filter": "the provider's filter refuses its prompt",
    "no_answer": "the server gives no usable answer to it, but to others",
}
ADVICE = {
    "server": "Correct the settings that it names (max_new_tokens, chat_template, extra_body, leave_out, or the "
    "server's --max-model-len), or pass",
    "no_answer": "Look into the server's log, or pass",
}


class PromptRefused(ServerError):
    """A server refuses a prompt, for what it holds or for its length, or gives no usable answer to it.

    Args:
        doc: Of which the prompt is.
        cause: What the server said, in one line.
        kind: As of `RefusedResponse`.
    """

    def __init__(self, doc: Doc, cause: str, kind: str = "server") -> None:
        self.kind, self.reason = kind, f"{REASONS[kind]}: {cause.rstrip('.')}"
        super().__init__(
            f"{name_of(doc)}: {self.reason}. All answers so far are kept: the same command resumes from here. "
            f"{ADVICE.get(kind, 'Pass')} --on-refused unscored "
            "(CULTUREVAL_ON_REFUSED=unscored) to leave such rows unscored and count them.",
            cause,
            refuses_content=True,
        )
