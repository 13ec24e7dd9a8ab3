"""A local server that takes uploads as the hub does (huggingface_hub's endpoints for creating, committing, reading)."""

import base64
import json
from contextlib import contextmanager
from urllib.parse import unquote

from fake_hub import COMMIT, Answering, served


class Handler(Answering):
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
            self.reply_json({"url": f"{self.here}/{asked['type']}s/{name}"})
            return
        repo = self.files.get("/".join(parts[1:4]))
        if parts[:2] == ["api", "validate-yaml"]:
            self.reply_json({"errors": [], "warnings": []})
        elif parts[4:5] == ["preupload"]:
            asked = json.loads(body)["files"]
            self.reply_json(
                {"files": [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False} for one in asked]}
            )
        elif parts[4:5] == ["paths-info"]:
            wanted = json.loads(body)["paths"] if body.startswith(b"{") else []
            self.reply_json([self.entry(path, repo) for path in wanted if path in repo])
        elif parts[4:5] == ["commit"]:
            for line in filter(None, body.splitlines()):
                operation = json.loads(line)
                if operation["key"] == "file":
                    repo[operation["value"]["path"]] = base64.b64decode(operation["value"]["content"])
            url = f"{self.here}/{'/'.join(parts[1:4])}/commit/{COMMIT}"
            self.reply_json({"success": True, "commitOid": COMMIT, "commitUrl": url})
        else:
            self.reply_json({"error": self.path}, 404)

    def do_GET(self):
        parts = unquote(self.path.split("?")[0]).strip("/").split("/")
        repo = self.files.get("/".join(parts[1:4] if parts[0] == "api" else parts[:3]))
        if repo is None:
            self.reply_json({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})
        elif parts[4:5] == ["tree"]:
            self.reply_json([self.entry(path, repo) for path in repo])
        elif parts[0] == "api":
            siblings = [{"rfilename": path} for path in repo]
            about = {"id": "/".join(parts[2:4]), "sha": COMMIT, "private": True, "tags": [], "downloads": 0}
            self.reply_json(about | {"siblings": siblings})
        elif "/".join(parts[5:]) in repo:
            self.reply(200, repo["/".join(parts[5:])], {"ETag": f'"{COMMIT}"', "X-Repo-Commit": COMMIT})
        else:
            self.reply_json({"error": "Entry not found"}, 404, {"X-Error-Code": "EntryNotFound"})

    @staticmethod
    def entry(path, repo):
        return {"type": "file", "path": path, "size": len(repo[path]), "oid": COMMIT}

    @property
    def here(self):
        return f"http://{self.headers['Host']}"

    def reply_json(self, content, status=200, headers=None):
        self.reply(status, json.dumps(content).encode(), headers)


@contextmanager
def serve_writable_hub():
    """Serves an empty hub; yields (address, handler), whose `files`, `created` and `tokens` grow."""
    handler = type("Hub", (Handler,), {"files": {}, "created": [], "tokens": set()})
    with served(handler) as address:
        yield address, handler
