"""A judge without a model, for the demo and for trials: an HTTP server that scores by word overlap.

It serves OpenAI's chat completions on this machine only, with the model name "scripted-judge". A text that shares more
words with its reference gets higher scores. The scores say nothing about any model.

    python -m cultureval.samples.scripted_judge           # prints its base_url and serves until it is stopped
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "scripted-judge"
_CRITERION = re.compile(r"^(.+): X/5$", re.MULTILINE)
_MARKED = re.compile(r"<<<text ([0-9a-f]{32})\n(.*?)\n\1 text>>>", re.DOTALL)
_LAST_LABEL = re.compile(r"^(.+):\s*$")
_NEXT = re.compile(r"\n(?:Generated|Output|النوع)")


@contextmanager
def scripted_judge(port: int = 0) -> Iterator[str]:
    """Serve within a `with` block.

    Args:
        port: Port on this machine; 0 takes a free one.

    Yields:
        The base_url, for a judge's settings.
    """
    server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def scripted_reply(prompt: str) -> str:
    """The answer to a judge's prompt: Likert lines, a question's type, a topic or its category."""
    criteria = _CRITERION.findall(prompt)
    if not criteria:
        return _label(prompt)
    generated, reference = (
        _slot(prompt, r"Generated (?:Caption|Answer)"),
        _slot(prompt, r"Reference (?:Caption|Answer)"),
    )
    return "\n".join(f"{name}: {score}/5" for name, score in zip(criteria, _scores(generated, reference), strict=False))


def _scores(generated: str, reference: str) -> tuple[int, int, int, int]:
    """Precision and recall of words, shares of distinct words and of words of three letters or more, from 1 to 5."""
    words, reference_words = generated.split(), set(reference.split())
    distinct = set(words)
    shares = (
        len(distinct & reference_words) / max(1, len(distinct)),
        len(distinct & reference_words) / max(1, len(reference_words)),
        len(distinct) / max(1, len(words)),
        sum(len(word) > 2 for word in words) / max(1, len(words)),
    )
    return tuple(1 + round(4 * share) for share in shares)


def _slot(prompt: str, heading: str) -> str:
    """The text after a heading: between the judge's delimiters if there are any, else up to the next heading."""
    following = re.search(rf"^{heading}: (.*)", prompt, re.MULTILINE | re.DOTALL)
    if following is None:
        return ""
    marked = _MARKED.match(following.group(1))
    return marked.group(2) if marked else _NEXT.split(following.group(1), maxsplit=1)[0]


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

    def log_message(self, *_: object) -> None:
        """Logs nothing."""

    def do_GET(self) -> None:
        """The list of models."""
        self._json(
            {
                "object": "list",
                "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "cultureval", "root": MODEL}],
            }
        )

    def do_POST(self) -> None:
        """A chat completion."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = "\n".join(_texts(body["messages"]))
        reply = scripted_reply(text)
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
    """Serves until it is interrupted."""
    with scripted_judge() as url:
        print(f"{MODEL} (no model, word counts only) at {url}", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
