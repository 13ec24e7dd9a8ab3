"""A local server that answers like the hub for the data sets and models of a folder: enough for `snapshot_download`."""

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Answering(BaseHTTPRequestHandler):
    """What the servers of these tests share: HEAD is GET without content, and nothing is logged."""

    def do_HEAD(self):
        self.do_GET()

    def reply(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_):
        pass


class HubHandler(Answering):
    """Answers of the hub's API (`/api/datasets`) and of its files (`/datasets/<repo>/resolve/<revision>/<file>`).

    Models, at addresses without `datasets`, are in the folder `models`; other files in `files`.
    """

    root: Path
    drop_after: int | None
    fetched: list[str]

    def do_GET(self):
        parts = self.path.split("?")[0].strip("/").split("/")
        if parts[:2] == ["api", "datasets"]:
            self.answer_api("/".join(parts[2:4]), parts[4:5] == ["tree"])
        elif parts[:2] == ["api", "models"]:
            self.answer_api("/".join(["models", *parts[2:4]]), parts[4:5] == ["tree"])
        elif parts[2:3] == ["resolve"]:
            self.answer_file(self.root.joinpath("models", *parts[:2], *parts[4:]))
        elif "resolve" in parts:
            self.answer_file(self.root.joinpath(*parts[1:3], *parts[5:]))
        elif parts[0] == "files":
            self.answer_file(self.root.joinpath(*parts))
        else:
            self.reply(200, b"{}")

    def answer_api(self, repo: str, tree: bool) -> None:
        folder = self.root / repo
        if not folder.is_dir():
            self.reply(404, b'{"error": "Repository not found"}', {"X-Error-Code": "RepoNotFound"})
            return
        files = {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
        siblings = [{"rfilename": name} for name in files]
        record = {
            "id": repo.removeprefix("models/"),
            "sha": COMMIT,
            "siblings": siblings,
            "private": False,
            "tags": [],
            "downloads": 0,
        }
        entries = [{"type": "file", "path": name, "size": size, "oid": "0" * 40} for name, size in files.items()]
        self.reply(200, json.dumps(entries if tree else record).encode())

    def answer_file(self, path: Path) -> None:
        content = path.read_bytes()
        if self.command == "GET":
            if self.drop_after is not None and len(self.fetched) >= self.drop_after:
                self.reply(503, b"busy")
                return
            self.fetched.append(path.name)
        etag = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        self.reply(200, content, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]):
    """Serves in a thread; yields the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


@contextmanager
def serve_hub(root: Path, drop_after: int | None = None):
    """Serves `root/<org>/<name>`; yields (address, names of files sent). After `drop_after` files it answers 503."""
    fetched: list[str] = []
    handler = type("Handler", (HubHandler,), {"root": root, "drop_after": drop_after, "fetched": fetched})
    with served(handler) as address:
        yield address, fetched
