"""Stand-ins for providers of models: what each takes, refuses, filters and counts, as its documentation says.

They were written from the documentation, not from the providers' answers. Faults are of a prompt's text alone, so that
a test can say what a right run must give.
"""

import hashlib
import json
import re
import time
from collections import Counter
from dataclasses import dataclass, field

from faulty_server import parts_of
from loopback import Handler, LoopbackServer

KEY = "sk-standin-0123456789"
NO_SAMPLING = {"temperature", "top_p", "frequency_penalty", "presence_penalty"}


@dataclass
class Style:
    """How one provider behaves.

    Attributes:
        limit: Its name for the limit of tokens.
        refused: Parameters that it answers with 400.
        usage: From tokens of prompt, reply and reasoning to its `usage`.
        blocked: Its answer to a prompt that its filter refuses: status and body.
        stopped: Finish reason of an answer that its filter stopped.
        message: Further fields of an answer's message.
        no_blank_stops: Whether stop strings of white space alone are refused.
    """

    limit: str = "max_tokens"
    refused: set = field(default_factory=set)
    usage: object = None
    blocked: tuple = (400, {"error": {"message": "filtered", "code": "content_filter"}})
    stopped: str = "content_filter"
    message: dict = field(default_factory=dict)
    no_blank_stops: bool = False


def openai_usage(prompt, reply, reasoning):
    """OpenAI's: half of the prompt is cached, and the reply's count includes reasoning."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": reply + reasoning,
        "total_tokens": prompt + reply + reasoning,
        "prompt_tokens_details": {"cached_tokens": prompt // 2},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def plain_usage(prompt, reply, reasoning):
    """Anthropic's and others': reasoning is in the reply's count, and not told."""
    total = prompt + reply + reasoning
    return {"prompt_tokens": prompt, "completion_tokens": reply + reasoning, "total_tokens": total}


def gemini_usage(prompt, reply, reasoning):
    """Gemini's: reasoning is in the total alone."""
    return {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply + reasoning}


def deepseek_usage(prompt, reply, reasoning):
    """DeepSeek's own names of cached tokens."""
    cached = {"prompt_cache_hit_tokens": prompt // 2, "prompt_cache_miss_tokens": prompt - prompt // 2}
    details = {"completion_tokens_details": {"reasoning_tokens": reasoning}}
    return plain_usage(prompt, reply, reasoning) | cached | details


def openrouter_usage(prompt, reply, reasoning):
    """OpenRouter says what an answer cost."""
    return openai_usage(prompt, reply, reasoning) | {"cost": 0.0025}


AZURE_BLOCKED = {"error": {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}
OPENROUTER_BLOCKED = {"error": {"code": 403, "message": "flagged", "metadata": {"reasons": ["violence"]}}}
DEEPSEEK_BLOCKED = {"error": {"message": "Content Exists Risk", "code": "invalid_request_error"}}
QWEN_BLOCKED = {"error": {"message": "may contain inappropriate content.", "code": "data_inspection_failed"}}
STYLES = {
    "openai": Style("max_completion_tokens", usage=openai_usage, blocked=(400, AZURE_BLOCKED)),
    "openai reasoning": Style("max_completion_tokens", NO_SAMPLING | {"stop", "logprobs"}, openai_usage),
    "anthropic": Style(usage=plain_usage, refused=NO_SAMPLING | {"n", "seed"}, stopped="refusal", no_blank_stops=True),
    "google": Style(usage=gemini_usage, blocked=(200, {"choices": None}), stopped="content_filter: PROHIBITED_CONTENT"),
    "openrouter": Style(usage=openrouter_usage, blocked=(403, OPENROUTER_BLOCKED), message={"reasoning": "thought"}),
    "together": Style(usage=plain_usage),
    "deepseek": Style(
        usage=deepseek_usage,
        refused={"seed", "n"},
        blocked=(400, DEEPSEEK_BLOCKED),
        message={"reasoning_content": "thought"},
    ),
    "dashscope": Style(usage=openai_usage, blocked=(400, QWEN_BLOCKED), message={"reasoning_content": "thought"}),
    "mistral": Style(usage=plain_usage, refused={"seed"}),
}
REPLY, REASONING = 10, 6  # tokens of each answer


def fault_of(prompt):
    """What becomes of a prompt: a twelfth each is blocked, stopped, refused, and limited at first; else ""."""
    number = int(hashlib.sha256(prompt.encode()).hexdigest(), 16) % 12
    return {0: "blocked", 1: "stopped", 2: "refused", 3: "rate", 4: "rate"}.get(number, "")


def tokens_of(prompt):
    """What a server counts of a prompt."""
    return 1 + len(prompt) // 3


def text_of(messages):
    """The text of chat messages; an image is `[image BYTES]`, by the length of its data URL."""
    return "\n".join(parts_of(messages, lambda url: f"[image {len(url)}]"))


class ProviderServer(LoopbackServer):
    """One provider on this machine, at `url`.

    Attributes:
        asked, answered: Prompt -> how often it came, and how often it was answered and is to be paid.
        bodies: Of all requests.
        wrong: What was asked against its documentation.
    """

    def __init__(self, style="openai", fault=fault_of, delay=0.0, reply=lambda prompt: "x"):
        super().__init__(_Handler, "/v1")
        self.style, self.fault, self.delay, self.reply = STYLES[style], fault, delay, reply
        self.asked, self.answered, self.bodies, self.wrong = Counter(), Counter(), [], []

    def objection(self, body):
        """What is wrong with a request, or ""."""
        other = {"max_tokens", "max_completion_tokens"} - {self.style.limit}
        wrong = sorted((self.style.refused | other) & body.keys())
        if self.style.no_blank_stops and any(not stop.strip() for stop in body.get("stop") or ()):
            wrong.append("stop")
        return f"Unsupported parameter: {', '.join(wrong)}" if wrong else ""


class _Handler(Handler):
    server: ProviderServer

    def do_GET(self):
        if not self._has_key():
            return
        self.reply(200, {"object": "list", "data": [{"id": "another-model", "object": "model"}]})

    def do_POST(self):
        state, body = self.server, json.loads(self.asked())
        prompt = text_of(body["messages"])
        if not self._has_key():
            return
        with state.lock:
            state.asked[prompt] += 1
            state.bodies.append(body)
            wrong = state.objection(body)
            state.wrong += [wrong] if wrong else []
            fault = state.fault(prompt)
            limited = fault == "rate" and state.asked[prompt] == 1
        if wrong:
            return self.reply(400, {"error": {"message": wrong, "code": "unsupported_parameter"}})
        if limited:
            return self.reply(429, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}})
        time.sleep(state.delay)
        status, content = state.style.blocked if fault == "blocked" else (200, self._answer(prompt, fault))
        if fault == "blocked" and status == 200:
            content = content | {"usage": {"prompt_tokens": tokens_of(prompt), "completion_tokens": 0}}
        with state.lock:
            state.answered[prompt] += 1
        self.reply(status, content)

    def _answer(self, prompt, fault):
        style = self.server.style
        message = {"role": "assistant", "content": self.server.reply(prompt)} | style.message
        if fault == "refused":
            message |= {"content": None, "refusal": "I cannot help with that."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        if fault == "stopped":
            choice |= {"finish_reason": style.stopped, "message": None}
        usage = style.usage(tokens_of(prompt), REPLY, REASONING)
        return {"id": "x", "object": "chat.completion", "model": "served", "choices": [choice], "usage": usage}

    def _has_key(self):
        given = re.sub("^Bearer ", "", self.headers["Authorization"] or "")
        if given != KEY:
            self.reply(401, {"error": {"message": f"Incorrect API key provided: {given}", "code": "invalid_api_key"}})
        return given == KEY
