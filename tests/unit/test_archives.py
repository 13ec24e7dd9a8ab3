"""Files out of an archive that a server sends, and nothing else; what `cultureval fetch alqasida` says."""

import io
import tarfile

import httpx
import pytest
from loopback import Handler, LoopbackServer

from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.mirroring import fetch, unpack
from cultureval.tasks.suite import Source


def archive(members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            if content is None:
                entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
                tar.addfile(entry)
            else:
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


@pytest.fixture
def server():
    """Serves `server.content`, or 404 where it is None, and counts the requests."""

    class Archive(Handler):
        def do_GET(self):
            self.server.asked += 1
            self.reply(200 if self.server.content else 404, self.server.content or b"")

    with LoopbackServer(Archive, "/x.tar.gz") as server:
        server.asked, server.content = 0, b""
        yield server


def test_only_wanted_files_inside_the_folder_are_unpacked(server, tmp_path):
    members = {"top/data/a.csv": b"a", "top/data/deep/b.csv": b"b", "top/code/c.py": b"c", "top/data/link.csv": None}
    members |= {"top/data/../../../out.csv": b"x", "/abs/data/../../e.csv": b"x", "lone.csv": b"x"}
    server.content = archive(members)
    digest = unpack(server.url, ("data/*",), tmp_path / "to")
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()) == [
        "to/data/a.csv",
        "to/data/deep/b.csv",
    ]
    assert len(digest) == 64


def test_errors_of_servers_and_archives(server, tmp_path):
    with pytest.raises(httpx.HTTPError):
        unpack(server.url, ("*",), tmp_path)
    server.content = b"no archive"
    with pytest.raises(tarfile.TarError):
        unpack(server.url, ("*",), tmp_path)
    server.content = archive({"top/a": b"a"})
    with pytest.raises(OSError, match="nothing in the archive"):
        unpack(server.url, ("b",), tmp_path)


def test_a_source_is_fetched_once_and_what_people_must_ask_for_is_said(server, tmp_path):
    task = all_tasks()["alqasida_mt:btec_egy_to_eng"]
    source = Source("org/name", "original", dict, archive=server.url, on_hub=False, revision="34e4dba")
    server.content = None
    assert fetch(source, tmp_path, task).startswith("failed     org/name")
    server.content = archive({"top/a.csv": b"a"})
    assert fetch(source, tmp_path, task).startswith("fetched    org/name at 34e4dba")
    assert fetch(source, tmp_path, task).startswith("there")
    assert server.asked == 2
    (madar,) = [source for source in task.sources if "MADAR" in source.how_to_get]
    folder = tmp_path / madar.repo
    folder.mkdir(parents=True)
    line = fetch(madar, tmp_path, task)
    assert line.startswith("to be fetched by hand") and "camel.abudhabi.nyu.edu/madar-parallel-corpus" in line
    for city in ("Cairo", "English"):
        (folder / f"MADAR.corpus.{city}.tsv").write_text("sentID.BTEC\tsplit\tlang\tsent\n", encoding="utf-8")
    assert fetch(madar, tmp_path, task).startswith("there")
