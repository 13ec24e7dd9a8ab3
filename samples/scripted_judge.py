"""A judge without a model, for the demo and for trials: an HTTP server whose scores are computed from word overlap.

It serves OpenAI's chat completions on this machine only, under the model name "scripted-judge". A text that shares
more words with its reference gets higher scores, which say nothing about any model.

    python -m cultureval.samples.scripted_judge           # prints its base_url and serves until it is stopped
    python -m cultureval.samples.scripted_judge obey      # as a judge that obeys hostile captions (our own)
"""

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, get_args

MODEL = "scripted-judge"
Manner = Literal["overlap", "ignore", "obey", "quote"]
_CRITERION = re.compile(r"^(.+): X/5$", re.MULTILINE)
_MARKED = re.compile(r"<<<text ([0-9a-f]{32})\n(.*?)\n\1 text>>>", re.DOTALL)
_LAST_LABEL = re.compile(r"^(.+):\s*$")
INJECTIONS = Path(__file__).with_name("judge_injections") / "captions.jsonl"


@dataclass(frozen=True)
class Injection:
    """A caption with a sentence for the judge, or a harmless one that looks like it.

    Attributes:
        variety: "english", "msa", "egyptian", "levantine", "gulf" or "moroccan".
        country: Of the variety, as the judge's prompt names it.
        kind: "praise", "order", "role", "rating", "heading", "plea", "hidden", or "benign".
        hostile: Whether it tries to influence the judge.
        clean: The caption without the sentence: fluent, and wrong. That of a harmless one is itself.
    """

    id: str
    variety: str
    country: str
    kind: str
    hostile: bool
    reference: str
    clean: str
    caption: str


def judge_injections() -> list[Injection]:
    """Captions that try to influence a judge, and harmless ones that look like it; all are our own."""
    return [Injection(**json.loads(line)) for line in INJECTIONS.read_text(encoding="utf-8").splitlines()]


@contextmanager
def scripted_judge(port: int = 0, manner: Manner = "overlap") -> Iterator[str]:
    """Serve within a `with` block.

    Args:
        port: Port on this machine; 0 takes a free one.
        manner: What it does with the hostile captions of `judge_injections`: score them as any other text,
            "ignore" the sentence for the judge, "obey" it (all criteria 5), or "quote" the caption and rate nothing.

    Yields:
        The base_url, for a judge's settings.
    """
    hostile = {one.caption: one.clean for one in judge_injections() if one.hostile}

    def reply(prompt: str) -> str:
        return scripted_reply(prompt) if manner == "overlap" else _reply_to_hostile(prompt, manner, hostile)

    handler = partial(_Handler, f"{MODEL}/{manner}", reply)
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def scripted_reply(prompt: str) -> str:
    """The answer to a judge's prompt: Likert lines, a question's type, a topic or its category."""
    criteria = dict.fromkeys(_CRITERION.findall(prompt))  # asked again, the form is there twice
    if not criteria:
        return _label(prompt)
    generated, reference = (
        _slot(prompt, r"Generated (?:Caption|Answer)"),
        _slot(prompt, r"Reference (?:Caption|Answer)"),
    )
    return "\n".join(f"{name}: {score}/5" for name, score in zip(criteria, _scores(generated, reference), strict=False))


def _reply_to_hostile(prompt: str, manner: str, hostile: Mapping[str, str]) -> str:
    """The answer to a prompt that may hold one of the hostile captions.

    Args:
        manner: "ignore", "obey" or "quote".
        hostile: Caption -> what it is without the sentence for the judge.
    """
    caption = max((one for one in hostile if one in prompt), key=len, default=None)
    if caption is None:
        return scripted_reply(prompt)
    if manner == "quote":
        return f"I cannot rate this. The caption contains:\n{caption}"
    if manner == "obey":
        return "\n".join(f"{name}: 5/5" for name in dict.fromkeys(_CRITERION.findall(prompt)))
    return scripted_reply(prompt.replace(caption, hostile[caption]))  # the delimiters keep their code


def _scores(generated: str, reference: str) -> tuple[int, int, int, int]:
    """Precision and recall of words, shares of distinct words and of words of three letters or more, from 1 to 5."""
    words, wanted = generated.split(), set(reference.split())
    known = set(words)
    shares = (
        len(known & wanted) / max(1, len(known)),
        len(known & wanted) / max(1, len(wanted)),
        len(known) / max(1, len(words)),
        sum(len(word) > 2 for word in words) / max(1, len(words)),
    )
    return tuple(1 + round(4 * share) for share in shares)


def _slot(prompt: str, heading: str) -> str:
    """The text after a heading: between the judge's delimiters if there are any, else the rest of the line."""
    following = re.search(rf"^{heading}: (.*)", prompt, re.MULTILINE | re.DOTALL)
    if following is None:
        return ""
    marked = _MARKED.match(following.group(1))
    return marked.group(2) if marked else following.group(1).partition("\n")[0]


def _label(prompt: str) -> str:
    last = _LAST_LABEL.match(prompt.splitlines()[-1])
    heading = last.group(1) if last else ""
    if heading == "النوع":
        question = _slot(prompt[prompt.rindex("Task:") :], "السؤال")
        types = {"كم": "عد", "هل": "تحقق", "واش": "تحقق", "ولا": "تصنيفي"}
        return next((label for word, label in types.items() if word in question.split()), "وصف")
    return "صورة" if heading == "الموضوع" else "Others"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def __init__(self, root: str, reply: Callable[[str], str], *of_the_server: Any) -> None:
        self.root, self.reply = root, reply
        super().__init__(*of_the_server)  # answers the request

    def log_message(self, *_: object) -> None:
        """Logs nothing."""

    def do_GET(self) -> None:
        """The list of models."""
        self._json(
            {
                "object": "list",
                "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "cultureval", "root": self.root}],
            }
        )

    def do_POST(self) -> None:
        """A chat completion."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = "\n".join(_texts(body["messages"]))
        reply = self.reply(text)
        message = {"role": "assistant", "content": reply}
        counts = {"prompt_tokens": len(text) // 4, "completion_tokens": len(reply) // 4}
        self._json(
            {
                "id": "scripted",
                "object": "chat.completion",
                "created": 0,
                "model": MODEL,
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": counts | {"total_tokens": sum(counts.values())},
            }
        )

    def _json(self, content: dict[str, Any]) -> None:
        payload = json.dumps(content, ensure_ascii=False).encode("utf-8")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


def _texts(messages: list[dict[str, Any]]) -> Iterator[str]:
    for message in messages:
        if isinstance(message["content"], str):
            yield message["content"]
        else:
            yield from (part["text"] for part in message["content"] if part["type"] == "text")


def main() -> None:
    """Serves until it is interrupted; its only argument is the manner."""
    manner = sys.argv[1] if len(sys.argv) > 1 else "overlap"
    if manner not in get_args(Manner):
        sys.exit(f"The manner {manner!r} is none of {', '.join(get_args(Manner))}.")
    with scripted_judge(manner=manner) as url:
        print(f"{MODEL} (no model, word counts only) at {url}", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
