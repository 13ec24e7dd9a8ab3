"""An OpenAI-compatible server that misbehaves as it is told to, and keeps count of what it is asked.

Its answers are functions of the request alone, so a test can say what a complete and right run must give.
"""

import base64
import hashlib
import json
import socket
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import openai
from lighteval.tasks.requests import Doc
from loopback import Handler, LoopbackServer

MODEL = "org/tiny"
openai._base_client.INITIAL_RETRY_DELAY = 0.01  # of all tests that have a faulty server: retries come at once


def answer_text(prompt: str, index: int = 0) -> str:
    """What the server answers to a prompt, as its choice number `index`."""
    return f"answer {index} to {prompt} " + hashlib.sha256(prompt.encode()).hexdigest()[:8]


def docs_of(queries: list[str], **fields: object) -> list[Doc]:
    """A doc for each query; their ids are the queries' places."""
    given = {"choices": ["x"], "gold_index": 0, "task_name": "t"}
    return [Doc(**given | {"query": query, "id": str(place)} | fields) for place, query in enumerate(queries)]


def token_logprob(prefix: list[int], token: int) -> float:
    """Log-probability of a token behind a prefix: any fixed function of both, of which a few sum to less than 1."""
    digest = hashlib.sha256(json.dumps([prefix, token]).encode()).digest()
    return -3.0 - int.from_bytes(digest[:2], "big") / 4096


def flatten(messages: list[dict]) -> str:
    """Messages as one string; an image becomes `[image <first digits of its bytes' hash>]`."""
    return " | ".join(parts_of(messages, _image))


def parts_of(messages: list[dict], image: Callable[[str], str]) -> list[str]:
    """The texts of messages, and what `image` makes of each image's URL."""
    contents = [message["content"] for message in messages]
    parts = [part for one in contents for part in ([{"type": "text", "text": one}] if isinstance(one, str) else one)]
    return [part["text"] if part["type"] == "text" else image(part["image_url"]["url"]) for part in parts]


def _image(url: str) -> str:
    head, _, data = url.partition(",")
    digest = hashlib.sha256(base64.b64decode(data)).hexdigest()[:12]
    return f"[image {head.removeprefix('data:').removesuffix(';base64')} {digest}]"


FIRST_TOKENS = {"ب": -1.0, "ج": -2.0, "x": -3.0}  # of every answer with "top_logprobs"


class FaultyServer(LoopbackServer):
    """A local server; `plan(prompt, time_asked)` names the fault of each request, None for none.

    Attributes:
        asked: Prompt -> how often it came; answered: prompt -> how often a right answer was sent in full.
        last_entry: What is said of a prompt's last token in place of its log-probability; "cut" leaves it out.
        requests: All request bodies; authorizations: their Authorization headers.
        arrivals: (time, fault) of each request; most_at_once: the largest number of requests in flight.
        entry: Further fields of its model in the list of models; lists: how often that was asked for.
        features: "prompt_logprobs", "labels" and "top_logprobs" are the log-probabilities that it gives; "no_list" has
            no list of models, "bare_list" an unusual one.
        served: What its answers call the model.
        down: While True, every connection is dropped.
    """

    def __init__(
        self,
        plan=lambda prompt, count: None,
        delay=0.0,
        features=("prompt_logprobs", "labels"),
        reply=answer_text,
        reasoning="hm",
        last_entry=...,
        entry=None,
    ):
        super().__init__(_Handler, "/v1")
        self.plan, self.delay, self.features, self.reply = plan, delay, set(features), reply
        self.reasoning, self.last_entry, self.entry = reasoning, last_entry, entry or {}
        self.asked, self.answered = Counter(), Counter()
        self.requests, self.authorizations, self.arrivals = [], [], []
        self.most_at_once = self.in_flight = self.lists = 0
        self.down, self.served = False, MODEL


class _Handler(Handler):
    server: FaultyServer

    def do_GET(self):
        self.server.lists += 1
        if self.server.down:
            return self._drop()
        if "no_list" in self.server.features:
            return self.reply(404, {"error": {"message": "no route"}})
        models = [{"id": MODEL, "object": "model", "created": 0, "owned_by": "me"} | self.server.entry]
        self.reply(200, models if "bare_list" in self.server.features else {"object": "list", "data": models})

    def do_POST(self):
        state, body = self.server, json.loads(self.asked())
        prompt = flatten(body["messages"]) if "messages" in body else str(body["prompt"])
        with state.lock:
            if state.down:
                return self._drop()
            state.asked[prompt] += 1
            fault = state.plan(prompt, state.asked[prompt])
            state.requests.append(body)
            state.authorizations.append(self.headers["Authorization"])
            state.arrivals.append((time.monotonic(), fault))
            state.in_flight += 1
            state.most_at_once = max(state.most_at_once, state.in_flight)
        try:
            self._answer(prompt, body, fault)
        finally:
            with state.lock:
                state.in_flight -= 1

    def _answer(self, prompt, body, fault):
        time.sleep(self.server.delay)
        faults = {
            "drop": self._drop,
            "500": lambda: self.reply(500, {"error": {"message": "broken"}}),
            "503": lambda: self.reply(503, {"error": {"message": "loading"}}),
            "408": lambda: self.reply(408, {"error": {"message": "too slow"}}),
            "409": lambda: self.reply(409, {"error": {"message": "locked"}}),
            "rate": lambda: self.reply(429, {"error": {"message": "slow down"}}, {"Retry-After": "1"}),
            "rate_without_header": lambda: self.reply(429, {"error": {"message": "slow down"}}),
            "cut_json": lambda: self.reply(200, b'{"id": "x", "choices": [{"index": 0, "mess'),
            "cut_body": lambda: (
                self.reply(200, b'{"id": "x", "cho', {"Content-Length": "500"}),
                self._drop(),
            ),
            "no_choices": lambda: self.reply(200, {"id": "x", "object": "chat.completion", "choices": []}),
            "error_body": lambda: self.reply(200, {"error": {"message": "no GPU is free", "code": 503}}),
            "no_message": lambda: self.reply(
                200, {"choices": [{"index": 0, "message": None, "finish_reason": "stop"}]}
            ),
            "bad_utf8": lambda: self.reply(200, b'{"choices": [{"message": {"content": "\xff"}}]}'),
            "page": lambda: self.reply(200, b"<html>gateway</html>", {"Content-Type": "text/html"}),
            "filter_prompt": lambda: self.reply(400, {"error": {"message": "no", "code": "content_filter"}}),
            "other_filter": lambda: self.reply(400, {"error": {"message": "no", "code": "data_inspection_failed"}}),
            "bad_request": lambda: self.reply(
                400, {"error": {"message": f"bad; your header was {self.headers['Authorization']}"}}
            ),
            "elsewhere": lambda: self.reply(
                307, {}, {"Location": f"http://localhost:{self.server.server_port}/v1/chat/completions"}
            ),
            "hang": self._hang,
            "wrong_key": lambda: self.reply(401, {"error": {"message": "Incorrect API key provided"}}),
            "forbidden": lambda: self.reply(403, {"error": {"message": "forbidden"}}),
            "not_found": lambda: self.reply(404, {"error": {"message": "no route"}}),
            "no_credit": lambda: self.reply(429, {"error": {"message": "pay", "code": "insufficient_quota"}}),
        }
        if fault in faults:
            return faults[fault]()
        if fault == "delay":
            time.sleep(0.3)
        reply = self._chat(prompt, body, fault) if "messages" in body else self._completion(prompt, body, fault)
        self.reply(200, reply)
        with self.server.lock:
            self.server.answered[prompt] += 1

    def _named(self, choices, **more):
        return {"id": "x", "object": "chat.completion", "model": self.server.served, "choices": choices, **more}

    def _chat(self, prompt, body, fault):
        choices = []
        for index in range(body.get("n") or 1):
            message = {
                "role": "assistant",
                "content": self.server.reply(prompt, index),
                "reasoning_content": self.server.reasoning,
            }
            finish = "stop"
            if fault == "filter_answer":
                message["content"], finish = None, "content_filter"
            if fault == "broken_off":
                message["content"], finish = "answer 0 t", "error"
            if fault == "refusal":
                message |= {"content": None, "refusal": "I will not."}
            choices.append({"index": index, "message": message, "finish_reason": finish})
            if "top_logprobs" in body and "top_logprobs" in self.server.features:
                top = [{"token": token, "logprob": logprob} for token, logprob in FIRST_TOKENS.items()]
                choices[-1]["logprobs"] = {"content": [top[0] | {"top_logprobs": top}]}
        usage = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
        return self._named(choices[::-1], usage=usage)

    def _completion(self, prompt, body, fault):
        finish = "content_filter" if fault == "filter_answer" else "length"
        choice = {"index": 0, "text": answer_text(prompt), "finish_reason": finish, "logprobs": None}
        tokens = body["prompt"]
        if "prompt_logprobs" in body and "prompt_logprobs" in self.server.features:
            entries = [
                {str(token): {"logprob": token_logprob(tokens[:i], token), "rank": 1 + token % 2}}
                for i, token in enumerate(tokens)
            ]
            choice["prompt_logprobs"] = [None, *entries[1:]]
            last = self.server.last_entry
            if last is not ...:
                choice["prompt_logprobs"][-1:] = [] if last == "cut" else [last and {str(tokens[-1]): last}]
        if body.get("logprobs") and "labels" in self.server.features:
            labels = body.get("logprob_token_ids", [])
            top = {f"token_id:{token}": token_logprob(tokens, token) for token in labels}
            choice["logprobs"] = {"tokens": [max(top, key=top.get)], "top_logprobs": [top]}
        usage = {"prompt_tokens": len(tokens), "completion_tokens": 1} if isinstance(tokens, list) else None
        return self._named([choice], object="text_completion", usage=usage)

    def _hang(self):
        with suppress(OSError):
            self.connection.recv(1)  # until the client gives up
            self._drop()

    def _drop(self):
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
