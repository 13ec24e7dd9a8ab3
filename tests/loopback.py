"""HTTP servers on this machine, of which the tests' stand-ins for hubs, providers and judges are made."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class LoopbackServer(ThreadingHTTPServer):
    """Serves at `url` within a `with` block; its handlers find it, and what it keeps, in `self.server`."""

    request_queue_size = 128

    def __init__(self, handler, path="", host="127.0.0.1", port=0):
        super().__init__((host, port), handler)
        self.lock = threading.Lock()
        self.url = f"http://{host}:{self.server_port}{path}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), OSError):  # as of the broken pipe that a killed client leaves
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Answers with bytes or with JSON, to HEAD as to GET but without content; nothing is logged."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def asked(self) -> bytes:
        """The content of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def reply(self, status: int, content: object, headers: dict[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        standard = {"Content-Type": "application/json", "Content-Length": str(len(data))}
        for name, value in (standard | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
