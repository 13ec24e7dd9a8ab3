"""An OpenAI-compatible server that misbehaves as it is told to, and keeps count of what it is asked.

Its answers are functions of the request alone, so a test can say what a complete and right run must give.
"""

import base64
import gzip
import hashlib
import json
import socket
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from lighteval.tasks.requests import Doc
from loopback import Handler, LoopbackServer

from cultureval.models.server.abilities import LARGEST
from cultureval.runtime.servers.identity import PROBE, SCHEMA_QUESTION, SCHEMA_REPLY

MODEL = "org/tiny"


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


def _is_short_question(prompt: str) -> bool:
    of_ability = prompt.startswith(f"{PROBE} | [image") or prompt.endswith(f" | {PROBE}")
    return of_ability or prompt in (PROBE, SCHEMA_QUESTION) or prompt.startswith(LARGEST)


FIRST_TOKENS = {"ب": -1.0, "ج": -2.0, "x": -3.0}  # of every answer with "top_logprobs"


class FaultyServer(LoopbackServer):
    """A local server; `plan(prompt, time_asked)` names the fault of each request, None for none.

    Attributes:
        asked: Prompt -> how often it came; answered: prompt -> how often a right answer was sent in full.
        last_entry: What is said of a prompt's last token in place of its log-probability; "cut" leaves it out.
        requests: All request bodies; authorizations: their Authorization headers.
        arrivals: (time, fault) of each request; most_at_once: the largest number of requests in flight.
        probe_usage: What the short questions say that they used.
        probes: Number of questions who the server is (`runtime/servers/identity.py`), which are in no other count.
        entry: Further fields of its model in the list of models; probe_answer: its answer to the question who it is.
        features: "no_chat" refuses to be asked in a chat who it is; "mute" answers 500 to that question, "revoked" 401,
            "over_quota" 429 for two hours, "no_probe" 400, "page" a page, "empty" no choices; "busy_at_first" asks once
            to wait for four seconds; "loading" answers 503 to the first three questions for its list of models;
            "no_parts_of_letters" has none for options with Arabic letters, half of one for a text, as llama.cpp;
            "no_images", "no_system", "no_temperature", "rejects_prompt_logprobs" refuse these; "top_logprobs" has them
            of first tokens;
            "no_n" gives one answer to every short question, however many are asked for;
            "remembers" has lower log-probabilities for a prompt that it has seen, by 3 nats;
            "unknown_models" answers 404 to questions for a model that is not its own; "counts" counts a prompt's words
            as its tokens at /tokenize, refuses one that has more than `max_model_len` of its entry with its answer, and
            reads the end of one as vLLM does.
        served, fingerprint: What its answers call the model, and say of its build.
        shift: Nats by which its log-probabilities of prompts are lower than `token_logprob`.
        lists: How often its list of models was asked for; lost_lists: which of these are lost -> the
            reply instead, as the arguments of `reply`; None drops the connection.
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
        probe_answer="a fishmonger laid out his catch",
    ):
        super().__init__(_Handler, "/v1")
        self.plan, self.delay, self.features, self.reply = plan, delay, set(features), reply
        self.reasoning, self.last_entry = reasoning, last_entry
        self.entry, self.probe_answer, self.probes = entry or {}, probe_answer, 0
        self.asked, self.answered = Counter(), Counter()
        self.requests, self.authorizations, self.arrivals = [], [], []
        self.most_at_once = self.in_flight = self.dropped_while_down = self.lists = 0
        self.lost_lists: dict[int, tuple | None] = {}
        self.down, self.served, self.fingerprint, self.probe_usage = False, MODEL, None, None
        self.shift = 0.0


class _Handler(Handler):
    server: FaultyServer

    def do_GET(self):
        self.server.lists += 1
        lost = self.server.lost_lists.get(self.server.lists, ())
        if self.server.down or lost is None:
            return self._drop()
        if lost:
            return self.reply(*lost)
        if "loading" in self.server.features and self.server.lists <= 3:
            return self.reply(503, {"error": {"message": "Loading model"}})
        if "unknown_models" in self.server.features and not self.path.endswith(("/models", MODEL)):
            return self.reply(404, {"error": {"message": "no such model"}})
        models = [{"id": MODEL, "object": "model", "created": 0, "owned_by": "me"} | self.server.entry]
        self.reply(200, models if "bare_list" in self.server.features else {"object": "list", "data": models})

    def do_POST(self):
        state, body = self.server, json.loads(self.asked())
        prompt = flatten(body["messages"]) if "messages" in body else str(body["prompt"])
        if self.path == "/tokenize":
            counts = {"count": len(prompt.split()), "max_model_len": state.entry.get("max_model_len")}
            return self.reply(200, counts) if "counts" in state.features else self.reply(404, {"detail": "Not Found"})
        if "counts" in state.features:
            left, limit = body.get("truncate_prompt_tokens"), body.get("max_tokens", 1)
            prompt = " ".join(prompt.split()[-left:]) if left else prompt
            if len(prompt.split()) + limit > state.entry["max_model_len"]:
                return self.reply(400, {"error": {"message": "longer than the maximum model length"}})
        if _is_short_question(prompt) and not state.down:
            return self._asked_who(prompt, body)
        with state.lock:
            if state.down:
                state.dropped_while_down += 1
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

    def _asked_who(self, prompt, body):
        """Answers the short questions who the server is, and what it can do."""
        state = self.server
        state.probes += 1
        held = prompt == SCHEMA_QUESTION and "schema" in state.features
        refusals = {
            "mute": (500, "broken"),
            "revoked": (401, "revoked"),
            "over_quota": (429, "daily limit reached"),
            "no_probe": (400, "not allowed"),
            "no_schema": (400 if prompt == SCHEMA_QUESTION else 0, "response_format is not supported"),
            "no_images": (400 if "[image" in prompt else 0, "At most 0 image(s) may be provided"),
            "no_system": (400 if prompt.endswith(f" | {PROBE}") else 0, "System role not supported"),
            "no_temperature": (422 if "temperature" in body else 0, "Extra inputs are not permitted: temperature"),
            "no_chat": (400 if "messages" in body else 0, "a chat template must be provided"),
            "rejects_prompt_logprobs": (422 if "prompt_logprobs" in body else 0, "Unexpected keys: prompt_logprobs"),
        }
        for name, (status, words) in refusals.items():
            if name in state.features and status:
                return self.reply(
                    status, {"error": {"message": words}}, {"Retry-After": "7200"} if status == 429 else {}
                )
        if "busy_at_first" in state.features:
            state.features.remove("busy_at_first")
            return self.reply(429, {"error": {"message": "slow down"}}, {"Retry-After": "4"})
        if "page" in state.features:
            return self.reply(200, b"<html>gateway</html>", {"Content-Type": "text/html"})
        message = {"role": "assistant", "content": json.dumps(SCHEMA_REPLY) if held else state.probe_answer}
        if self._is_part_of_a_letter(prompt):
            message["content"] = "\ufffd"
        choice = {"index": 0, "finish_reason": "length"}
        choice |= {"message": message} if "messages" in body else {"text": state.probe_answer}
        if "prompt_logprobs" in body and "prompt_logprobs" in state.features:
            choice["prompt_logprobs"] = [None]
        if "top_logprobs" in body and "top_logprobs" in state.features and not self._is_part_of_a_letter(prompt):
            choice["logprobs"] = {"content": [{"token": "a", "top_logprobs": [{"token": "a", "logprob": -0.1}]}]}
        usage = {"usage": state.probe_usage} if state.probe_usage else {}
        count = 0 if "empty" in state.features else 1 if "no_n" in state.features else body.get("n") or 1
        self.reply(200, self._named([choice | {"index": index} for index in range(count)], **usage))

    def _is_part_of_a_letter(self, prompt):
        return "no_parts_of_letters" in self.server.features and "أ." in prompt

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
            "odd_date": lambda: self.reply(429, {}, {"Retry-After": "Wed, 45 Oct 20150 07:28:00 GMT"}),
            "a_day": lambda: self.reply(429, {"error": {"message": "enough for today"}}, {"Retry-After": "86400"}),
            "page": lambda: self.reply(200, b"<html>gateway</html>", {"Content-Type": "text/html"}),
            "page_with_header": lambda: self.reply(
                200, f"<html>{'x' * 90} {self.headers['Authorization']}".encode(), {"Content-Type": "text/html"}
            ),
            "filter_prompt": lambda: self.reply(400, {"error": {"message": "no", "code": "content_filter"}}),
            "other_filter": lambda: self.reply(400, {"error": {"message": "no", "code": "data_inspection_failed"}}),
            "bad_request": lambda: self.reply(
                400, {"error": {"message": f"bad; your header was {self.headers['Authorization']}"}}
            ),
            "elsewhere": lambda: self.reply(
                307, {}, {"Location": f"http://localhost:{self.server.server_port}/v1/chat/completions"}
            ),
            "circle": lambda: self.reply(307, {}, {"Location": self.path}),
            "large": lambda: self.reply(200, gzip.compress(b" " * 2**21), {"Content-Encoding": "gzip"}),
            "hang": self._hang,
            "wrong_key": lambda: self.reply(401, {"error": {"message": "Incorrect API key provided"}}),
            "forbidden": lambda: self.reply(403, {"error": {"message": "forbidden"}}),
            "not_found": lambda: self.reply(404, {"error": {"message": "no route"}}),
            "odd_status": lambda: self.reply(424, {"error": {"message": "generation failed"}}),
            "rate_for_one": lambda: self.reply(429, {"error": {"message": "slow"}}, {"Retry-After": "-5"}),
            "legal": lambda: self.reply(451, {"error": {"message": "legal reasons"}}),
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
        names = {"model": self.server.served, "system_fingerprint": self.server.fingerprint}
        return {"id": "x", "object": "chat.completion", **names, "choices": choices, **more}

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
            drift = len(self.server.requests) if "drifts" in self.server.features else self.server.shift
            drift += 3.0 if "remembers" in self.server.features and self.server.asked[str(tokens)] > 1 else 0.0
            entries = [
                {str(token): {"logprob": token_logprob(tokens[:i], token) - drift, "rank": 1 + token % 2}}
                for i, token in enumerate(tokens)
            ]
            choice["prompt_logprobs"] = [None, *entries[1:]]
            last = self.server.last_entry
            if last is not ...:
                choice["prompt_logprobs"][-1:] = [] if last == "cut" else [last and {str(tokens[-1]): last}]
        if body.get("logprobs") and "labels" in self.server.features:
            shift = 1.0 if "other_labels" in self.server.features else 0.0
            shift += 3.0 if "remembers" in self.server.features and self.server.asked[str(tokens)] > 1 else 0.0
            labels = body.get("logprob_token_ids", [])
            top = {f"token_id:{token}": token_logprob(tokens, token) - shift for token in labels}
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
