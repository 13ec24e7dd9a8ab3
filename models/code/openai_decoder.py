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
from cultureval.models.server.refused_answers import naming, refused_answers, skipping
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import answer_key, open_journal
from cultureval.runtime.patches.evalplus import chat_request
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse
from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.servers.answers import Answer
from cultureval.runtime.servers.costs import RequestSize, counted, text_tokens
from cultureval.runtime.servers.identity import IdentityQuestion, ServerIdentity
from cultureval.runtime.servers.identity_watch import IdentityWatch
from cultureval.runtime.servers.journalled_answers import answer_all
from cultureval.runtime.servers.openai_client import OpenAIClient
from cultureval.runtime.servers.providers import provider_at
from cultureval.runtime.settings import current_settings

Call = tuple[str, int]  # the first and the last argument of `codegen`


class OpenAICodeDecoder(DecoderBase):
    """Code from an OpenAI-compatible server."""

    def __init__(self, settings: DecoderSettings) -> None:
        super().__init__(**settings.common())
        self.thinking = settings.thinking
        self.servers = settings.servers()
        self.revision = settings.revision
        self.server: Mapping[str, Any] | None = None
        self._question = settings.identity_question()
        self._watch: IdentityWatch | None = None
        self.samples = 1
        self.others: dict[Call, str] = {}
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
            `others` then has the calls that another model answered, or may have, only with `--on-change continue`.

        Raises:
            AnswersRefused: There are such answers, and the settings do not say that they are unscored.
            ServerError: As `codegen`, or the server has changed its model; answers so far are in the journal.
            CulturevalError: It is gone at the end, so that nobody knows whose the last answers are.
        """
        self.samples, self.server = samples, server.known if server else None
        goes_on = current_settings().on_change == "continue"
        self._watch = IdentityWatch(server, self._question, goes_on) if server else None
        self._answers, refused = self._asked(calls, silent=False)
        others = self._watch.others if self._watch else {}
        if others and not goes_on:
            raise CulturevalError(
                f"{self.name} does not say any more who it is: once it does, repeat the command, which asks anew for "
                f"the last {len(others):,} answers."
            )
        self.others = {call: others[key] for call in calls if (key := self._key(call, self.server)) in others}
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
        keys = {call: self._key(call, self.server) for call in calls}
        asked = {key: call for call, key in keys.items()}
        short = self._question or IdentityQuestion.of(self.servers, self.name)
        questions = {
            keys[call]: naming(name, partial(self._ask, call), self._watch, short) for call, name in calls.items()
        }
        reasons: dict[str, RefusedResponse] = {}

        answers = answer_all(
            self.servers,
            questions,
            open_journal(of=self.name),
            lambda key, answer: counted(answer or {}, self._size(asked[key])).tokens,
            "generating",
            on_failure=skipping(reasons),
            silent=silent,
            watch=self._watch,
            key_under=lambda key, server: self._key(asked[key], server),
        )
        none = refused_answers([*calls.values()], [[key] for key in keys.values()], answers)
        refused = {call: none[place] for place, call in enumerate(keys) if place in none}
        refused |= {call: reasons[key] for call, key in keys.items() if key in reasons}
        return {call: answers[key] for call, key in keys.items() if call not in refused}, refused

    def _key(self, call: Call, server: Mapping[str, Any] | None) -> str:
        first = self.samples - call[1]  # how many solutions there are already, which these must differ from
        return answer_key(code=self._request(*call), first=first, revision=self.revision, server=server)

    def _size(self, call: Call) -> RequestSize:
        most = self.max_new_tokens * min(self.batch_size, call[1])
        return RequestSize(text_tokens(self.instruction_prefix + call[0]), 0, most, reasons=self._question is None)

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
