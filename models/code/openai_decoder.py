"""EvalPlus's decoder for OpenAI-compatible servers, with the queue and the journal of models and judges.

EvalPlus 0.3.1 asks for one problem after the other, retries for ever, whatever the error, so that a run with a misspelt
model never ends; and a reply without text stops its run. The request is EvalPlus's.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from evalplus.provider.base import DecoderBase

from cultureval.models.code.settings import DecoderSettings, code_from_reply
from cultureval.models.server.long_prompts import ask_to_fit
from cultureval.models.server.refused_answers import PromptRefused, naming, refused_answers
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import answer_key, open_journal
from cultureval.runtime.patches.evalplus import chat_request
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse
from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.servers.answers import Answer
from cultureval.runtime.servers.identity import IdentityQuestion, ServerIdentity
from cultureval.runtime.servers.identity_watch import IdentityWatch
from cultureval.runtime.servers.journalled_answers import answer_all, ask_unconfirmed_anew
from cultureval.runtime.servers.openai_client import OpenAIClient
from cultureval.runtime.servers.providers import provider_at
from cultureval.runtime.settings import current_settings

ADVICE = "What the first model answered is kept: serve it again, and repeat the command to go on."
Call = tuple[str, int]  # the first and the last argument of `codegen`


class OpenAICodeDecoder(DecoderBase):
    """Code from an OpenAI-compatible server."""

    def __init__(self, settings: DecoderSettings) -> None:
        super().__init__(**settings.common())
        self.thinking = settings.thinking
        self.servers = settings.servers()
        self.identity: dict[str, Any] = {"revision": settings.revision}
        self._question = settings.identity_question()
        self._watch: IdentityWatch | None = None
        self.samples = 1
        self._answers: dict[Call, Answer] = {}

    def ask_all(
        self, calls: Mapping[Call, str], samples: int, server: ServerIdentity | None
    ) -> dict[Call, RefusedResponse]:
        """Asks the server for all that it will be called for, many requests at a time.

        Args:
            calls: The first and last argument of each call of `codegen` -> the problem's name in messages.
            samples: Solutions of each problem, those of earlier runs included.
            server: What the server says of itself: answers of another one are not used again.

        Returns:
            Calls without a usable answer, of which `codegen` must not be called; only with `--on-refused unscored`.

        Raises:
            AnswersRefused: There are such answers, and the settings do not say that they are unscored.
            ServerError: As `codegen`, or the server has changed its model; answers so far are in the journal.
            CulturevalError: It is gone at the end, so that nobody knows whose the last answers are.
        """
        self.samples, self.identity = samples, self.identity | {"server": server.known if server else None}
        self._watch = IdentityWatch(server, self._question, advice=ADVICE) if server else None
        self._answers, refused = self._asked(calls, silent=False)
        if self._watch and self._watch.others:
            raise CulturevalError(f"{self.name} does not say any more who it is. {ADVICE}")
        return refused

    def codegen(self, prompt: str, do_sample: bool = True, num_samples: int = 200) -> list[str]:
        """Replies to one problem without reasoning, `num_samples` or `batch_size` of them, whichever is less.

        Raises:
            ServerError: The server rejected the request, or did not answer within the allowed retries and time.
        """
        call = prompt, num_samples
        answer = self._answers.get(call) or self._asked({call: "a problem"}, silent=True)[0][call]
        replies = [completion["text"] for completion in answer["completions"]]
        if self.thinking:
            return [code_from_reply(reply) for reply in replies]
        return [split_reasoning(reply)[0].strip() for reply in replies]

    def _asked(self, calls: Mapping[Call, str], silent: bool) -> tuple[dict[Call, Answer], dict[Call, RefusedResponse]]:
        keys = {call: self._key(call) for call in calls}
        short = self._question or IdentityQuestion.of(self.servers, self.name)
        questions = {
            keys[call]: naming(name, partial(self._ask, call), self._watch, short) for call, name in calls.items()
        }
        reasons: dict[str, RefusedResponse] = {}

        def skip(key: str, error: CulturevalError) -> bool:
            if not isinstance(error, PromptRefused) or current_settings().on_refused != "unscored":
                return False
            reasons[key] = RefusedResponse(reason=error.reason, kind=error.kind)
            return True

        journal = open_journal(of=self.name)
        ask_unconfirmed_anew(journal, questions)
        watch = self._watch
        answers = answer_all(self.servers, questions, journal, "generating", None, skip, silent=silent, watch=watch)
        none = refused_answers([*calls.values()], [[key] for key in keys.values()], answers)
        refused = {call: none[place] for place, call in enumerate(keys) if place in none}
        refused |= {call: reasons[key] for call, key in keys.items() if key in reasons}
        return {call: answers[key] for call, key in keys.items() if call not in refused}, refused

    def _key(self, call: Call) -> str:
        first = self.samples - call[1]  # how many solutions there are already, which these must differ from
        return answer_key(code=self._request(*call), first=first, **self.identity)

    async def _ask(self, call: Call, client: OpenAIClient) -> Answer:
        request = self._request(*call)
        if provider_at(self.servers.base_urls):
            return await client.chat(**request)
        return await ask_to_fit(client, {"messages": request.pop("messages")}, request, "max_tokens")

    def _request(self, prompt: str, num_samples: int) -> dict[str, Any]:
        return chat_request(
            message=f"{self.instruction_prefix}\n```python\n{prompt.strip()}\n```",
            model=self.name,
            max_tokens=self.max_new_tokens,
            temperature=self.temperature,
            n=min(self.batch_size, num_samples),
        )

    def is_direct_completion(self) -> bool:
        """Always False: requests are chats."""
        return False
