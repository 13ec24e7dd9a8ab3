"""A local server that takes uploads as the hub does (huggingface_hub's endpoints for creating, committing, reading)."""

import base64
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Handler(BaseHTTPRequestHandler):
    """Repositories are in `files`: "datasets/org/name" -> path -> content; `created` holds what was asked for."""

    files: dict
    created: list
    tokens: set

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = unquote(self.path.split("?")[0]).strip("/").split("/")
        if parts != ["api", "validate-yaml"]:
            self.tokens.add(self.headers.get("authorization"))
        if parts[:3] == ["api", "repos", "create"]:
            asked = json.loads(body)
            self.created.append(asked)
            name = f"{asked['organization']}/{asked['name']}"
            self.files.setdefault(f"{asked['type']}s/{name}", {})
            self.reply({"url": f"{self.here}/{asked['type']}s/{name}"})
            return
        repo = self.files.get("/".join(parts[1:4]))
        if parts[:2] == ["api", "validate-yaml"]:
            self.reply({"errors": [], "warnings": []})
        elif parts[4:5] == ["preupload"]:
            asked = json.loads(body)["files"]
            self.reply(
                {"files": [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False} for one in asked]}
            )
        elif parts[4:5] == ["paths-info"]:
            wanted = json.loads(body)["paths"] if body.startswith(b"{") else []
            self.reply([self.entry(path, repo) for path in wanted if path in repo])
        elif parts[4:5] == ["commit"]:
            for line in filter(None, body.splitlines()):
                operation = json.loads(line)
                if operation["key"] == "file":
                    repo[operation["value"]["path"]] = base64.b64decode(operation["value"]["content"])
            url = f"{self.here}/{'/'.join(parts[1:4])}/commit/{COMMIT}"
            self.reply({"success": True, "commitOid": COMMIT, "commitUrl": url})
        else:
            self.reply({"error": self.path}, 404)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        parts = unquote(self.path.split("?")[0]).strip("/").split("/")
        repo = self.files.get("/".join(parts[1:4] if parts[0] == "api" else parts[:3]))
        if repo is None:
            self.reply({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})
        elif parts[4:5] == ["tree"]:
            self.reply([self.entry(path, repo) for path in repo])
        elif parts[0] == "api":
            siblings = [{"rfilename": path} for path in repo]
            about = {"id": "/".join(parts[2:4]), "sha": COMMIT, "private": True, "tags": [], "downloads": 0}
            self.reply(about | {"siblings": siblings})
        elif "/".join(parts[5:]) in repo:
            self.reply(repo["/".join(parts[5:])], 200, {"ETag": f'"{COMMIT}"', "X-Repo-Commit": COMMIT})
        else:
            self.reply({"error": "Entry not found"}, 404, {"X-Error-Code": "EntryNotFound"})

    @staticmethod
    def entry(path, repo):
        return {"type": "file", "path": path, "size": len(repo[path]), "oid": COMMIT}

    @property
    def here(self):
        return f"http://{self.headers['Host']}"

    def reply(self, content, status=200, headers=None):
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_):
        pass


@contextmanager
def serve_writable_hub():
    """Serves an empty hub; yields (address, handler), whose `files`, `created` and `tokens` grow."""
    handler = type("Hub", (Handler,), {"files": {}, "created": [], "tokens": set()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", handler
    finally:
        server.shutdown()
