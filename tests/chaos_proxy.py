"""A proxy with the faults between us and a server that the `openai` package retries."""

import http.client
import random
import socket
import time
from collections import Counter
from urllib.parse import urlsplit

from loopback import Handler, LoopbackServer

FAULTS = ("reset", "429", "500", "half", "drip")


class ChaosProxy(LoopbackServer):
    """Passes requests on to `upstream`; faults are of the requests to `/v1/chat/completions` and `/v1/completions`.

    Attributes:
        upstream: Address up to `/v1`.
        faults: Injected, by kind, of each as many; the third try of a request gets none.
        tries, answered: Body of a request -> how often it came, and how often a whole answer was sent.
    """

    def __init__(self, upstream):
        super().__init__(_Proxied, "/v1")
        self.upstream, self.numbers = upstream, random.Random(0)
        self.faults, self.tries, self.answered = Counter(), Counter(), Counter()
        self._next: list[str] = []

    def fault(self, body):
        """The fault of a request, "" for none."""
        with self.lock:
            self.tries[body] += 1
            if self.tries[body] >= 3:
                return ""
            self._next = self._next or self.numbers.sample(FAULTS, len(FAULTS))
            self.faults[fault := self._next.pop()] += 1
            return fault


def through_faults(upstream, journal, answer):
    """What `answer(url)` gives through a proxy with faults, once more with the journal, and straight without it.

    Prints how many requests and faults there were.

    Returns:
        The proxy; body -> how often it was answered before the second time; the three.
    """
    with ChaosProxy(upstream) as proxy:
        through, answered = answer(proxy.url), Counter()
        answered.update(proxy.answered)
        asked = sum(proxy.tries.values())
        again = answer(proxy.url)
    print(f"{asked} requests, faults: {dict(proxy.faults)}")
    journal.rename(journal.with_name("journal of the proxy"))
    return proxy, answered, (through, again, answer(upstream))


class _Proxied(Handler):
    server: ChaosProxy

    def do_GET(self):
        self.reply(*self._passed_on("GET", None))

    def do_POST(self):
        body = self.asked()
        fault = self.server.fault(body) if self.path.endswith("completions") else ""
        if fault == "429":
            return self.reply(429, {"error": {"message": "slow down"}}, {"Retry-After": "0.05"})
        if fault == "500":
            return self.reply(500, {"error": {"message": "broken"}})
        if fault == "reset":
            return self._reset()
        status, content, _ = self._passed_on("POST", body)
        if fault == "half":
            self.reply(200, content[: len(content) // 2], {"Content-Length": str(len(content))})
            return self._reset()
        if fault == "drip":
            time.sleep(0.3)
        self.reply(status, content)
        with self.server.lock:
            self.server.answered[body] += status == 200

    def _reset(self):
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def _passed_on(self, method, body):
        upstream = urlsplit(self.server.upstream)
        connection = http.client.HTTPConnection(upstream.hostname, upstream.port, timeout=120)
        path = self.path.replace("/v1", upstream.path, 1)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, content, {}
