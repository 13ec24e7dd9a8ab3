"""A local server that answers like the hub for the data sets and models of a folder: enough for `snapshot_download`."""

import hashlib
from pathlib import Path

from loopback import Handler, LoopbackServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class HubServer(LoopbackServer):
    """Serves `root/<org>/<name>`; keeps the names of `fetched` files, and after `drop_after` of them answers 503."""

    def __init__(self, root: Path, drop_after: int | None = None) -> None:
        super().__init__(_Handler)
        self.root, self.drop_after = root, drop_after
        self.fetched: list[str] = []


class _Handler(Handler):
    """Answers of the hub's API (`/api/datasets`) and of its files (`/datasets/<repo>/resolve/<revision>/<file>`).

    Models, at addresses without `datasets`, are in the folder `models`; other files in `files`.
    """

    server: HubServer

    def do_GET(self):
        parts = self.path.split("?")[0].strip("/").split("/")
        if parts[:2] == ["api", "datasets"]:
            self.answer_api("/".join(parts[2:4]), parts[4:5] == ["tree"])
        elif parts[:2] == ["api", "models"]:
            self.answer_api("/".join(["models", *parts[2:4]]), parts[4:5] == ["tree"])
        elif parts[2:3] == ["resolve"]:
            self.answer_file(self.server.root.joinpath("models", *parts[:2], *parts[4:]))
        elif "resolve" in parts:
            self.answer_file(self.server.root.joinpath(*parts[1:3], *parts[5:]))
        elif parts[0] == "files":
            self.answer_file(self.server.root.joinpath(*parts))
        else:
            self.reply(200, {})

    def answer_api(self, repo: str, tree: bool) -> None:
        folder = self.server.root / repo
        if not folder.is_dir():
            self.reply(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
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
        self.reply(200, entries if tree else record)

    def answer_file(self, path: Path) -> None:
        content = path.read_bytes()
        if self.command == "GET":
            limit = self.server.drop_after
            if limit is not None and len(self.server.fetched) >= limit:
                self.reply(503, b"busy")
                return
            self.server.fetched.append(path.name)
        etag = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        self.reply(200, content, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})
