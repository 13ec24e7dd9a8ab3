"""A local server that takes uploads as the hub does (huggingface_hub's endpoints for creating, committing, reading)."""

import base64
import json
from urllib.parse import unquote

from fake_hub import COMMIT
from loopback import Handler, LoopbackServer


class WritableHub(LoopbackServer):
    """Serves a hub that is empty at first.

    Attributes:
        files: "datasets/org/name" -> path -> content.
        created: What was asked for.
        tokens: Headers of those who uploaded.
    """

    def __init__(self):
        super().__init__(_Handler)
        self.files, self.created, self.tokens = {}, [], set()


class _Handler(Handler):
    server: WritableHub

    def do_POST(self):
        body = self.asked()
        parts = unquote(self.path.split("?")[0]).strip("/").split("/")
        if parts != ["api", "validate-yaml"]:
            self.server.tokens.add(self.headers.get("authorization"))
        if parts[:3] == ["api", "repos", "create"]:
            asked = json.loads(body)
            self.server.created.append(asked)
            name = f"{asked['organization']}/{asked['name']}"
            self.server.files.setdefault(f"{asked['type']}s/{name}", {})
            self.reply(200, {"url": f"{self.server.url}/{asked['type']}s/{name}"})
            return
        repo = self.server.files.get("/".join(parts[1:4]))
        if parts[:2] == ["api", "validate-yaml"]:
            self.reply(200, {"errors": [], "warnings": []})
        elif parts[4:5] == ["preupload"]:
            asked = json.loads(body)["files"]
            self.reply(
                200, {"files": [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False} for one in asked]}
            )
        elif parts[4:5] == ["paths-info"]:
            wanted = json.loads(body)["paths"] if body.startswith(b"{") else []
            self.reply(200, [self.entry(path, repo) for path in wanted if path in repo])
        elif parts[4:5] == ["commit"]:
            for line in filter(None, body.splitlines()):
                operation = json.loads(line)
                if operation["key"] == "file":
                    repo[operation["value"]["path"]] = base64.b64decode(operation["value"]["content"])
            url = f"{self.server.url}/{'/'.join(parts[1:4])}/commit/{COMMIT}"
            self.reply(200, {"success": True, "commitOid": COMMIT, "commitUrl": url})
        else:
            self.reply(404, {"error": self.path})

    def do_GET(self):
        parts = unquote(self.path.split("?")[0]).strip("/").split("/")
        repo = self.server.files.get("/".join(parts[1:4] if parts[0] == "api" else parts[:3]))
        if repo is None:
            self.reply(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
        elif parts[4:5] == ["tree"]:
            self.reply(200, [self.entry(path, repo) for path in repo])
        elif parts[0] == "api":
            siblings = [{"rfilename": path} for path in repo]
            about = {"id": "/".join(parts[2:4]), "sha": COMMIT, "private": True, "tags": [], "downloads": 0}
            self.reply(200, about | {"siblings": siblings})
        elif "/".join(parts[5:]) in repo:
            self.reply(200, repo["/".join(parts[5:])], {"ETag": f'"{COMMIT}"', "X-Repo-Commit": COMMIT})
        else:
            self.reply(404, {"error": "Entry not found"}, {"X-Error-Code": "EntryNotFound"})

    @staticmethod
    def entry(path, repo):
        return {"type": "file", "path": path, "size": len(repo[path]), "oid": COMMIT}
