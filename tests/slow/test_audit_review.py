"""The review page in a browser: right to left, keyboard only, two annotators apart, killed, resumed, hostile texts."""

import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys

import httpx
import pytest
from browser import barriers, chromium, needs_chromium
from starlette.testclient import TestClient
from waiting import PATIENCE, wait_until

from cultureval.audit.checks.table import manifest_row
from cultureval.audit.review.server import Review, listening, new_desk, review_app
from cultureval.audit.review.verdicts import read_lines
from cultureval.audit.sources import read_items
from cultureval.runtime.data_options import DataOptions
from cultureval.scripts.audit.review import import_verdicts
from cultureval.tasks.manifest import read_manifest, write_manifest

HOSTILE = '<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>'
ITEMS = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Items to review in a table, one of them hostile, and the manifest that asks for it."""
    place = tmp_path_factory.mktemp("review")
    with (place / "items.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Question", "A", "B", "answer"])
        writer.writerows(
            [f"سؤال رقم {number} عن المدن{HOSTILE if number == 1 else ''}", "القاهرة", f"دمشق {HOSTILE}", "A"]
            for number in range(ITEMS)
        )
    items = read_items([str(place / "items.csv")], DataOptions())
    write_manifest(place / "m.jsonl", [manifest_row(item, "review", ["check:x"], ["check"]) for item in items])
    return place


def variables(place):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CULTUREVAL_")}
    return {**kept, "CULTUREVAL_CACHE": str(place / "cache"), "OMP_NUM_THREADS": "1"}


class Started:
    """The command, running; `addresses` by annotator."""

    def __init__(self, place):
        command = [sys.executable, "-m", "cultureval.scripts.main", "audit", "review", "items.csv", "--manifest"]
        command += ["m.jsonl", "--annotator", "amal", "--annotator", "basim", "--output-dir", "out"]
        self.process = subprocess.Popen(
            command, cwd=place, env=variables(place), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        lines = [self.process.stdout.readline() for _ in range(2)]
        found = [
            re.fullmatch(r"(\w+) \((\d+) of \d+ done\): (http://127\.0\.0\.1:\d+/[\w-]{32}/)\n", line) for line in lines
        ]
        assert all(found), (lines, self.process.poll() is not None and self.process.stderr.read())
        self.addresses = {one[1]: one[3] for one in found}
        self.done = {one[1]: int(one[2]) for one in found}
        wait_until(self.answers)

    def answers(self):
        try:
            return bool(httpx.get(self.addresses["amal"]))
        except httpx.TransportError:
            return False

    def end(self, how):
        self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=PATIENCE)
        return errors


def open_page(browser, address):
    page = browser.new_context(viewport={"width": 900, "height": 720}).new_page()
    page.problems = []
    page.on("console", lambda message: page.problems.append(message.text))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("request", lambda request: page.problems.append(request.url) if not ours(request.url, address) else None)
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    return page


def ours(url, address):
    return url.startswith((address, "data:"))


def give(page, key, place):
    page.keyboard.press(key)
    page.wait_for_selector(f"body[data-place='{place}']")


def read_and_mark(amal):
    """Three items by keyboard, with a way back and a note; what is hostile stays text."""
    assert amal.get_attribute("html", "dir") == "rtl" and amal.title() == "مراجعة الأسئلة"
    option = amal.locator("li.gold").bounding_box()
    number = amal.locator("#options .number").first.bounding_box()
    assert number["x"] > option["x"] + option["width"] / 2  # numbers stand at the right
    assert barriers(amal) == {}
    give(amal, "k", 1)
    assert HOSTILE in amal.locator("#question").inner_text() and amal.title() != "owned"
    give(amal, "ArrowRight", 0)  # back, in a page from right to left
    assert amal.get_attribute("[data-verdict=keep]", "aria-pressed") == "true"
    give(amal, "ArrowLeft", 1)
    amal.keyboard.press("n")
    amal.keyboard.type("kd خطأ")  # letters of a note are no verdicts
    amal.keyboard.press("Escape")
    give(amal, "d", 2)


def see_nothing_of_others(basim):
    assert basim.locator("#progress").inner_text() == "0 من 6"
    assert basim.get_attribute("[data-verdict=keep]", "aria-pressed") == "false"
    give(basim, "d", 1)
    give(basim, "u", 2)


def finish(amal):
    amal.wait_for_selector("body[data-place='2']")
    for place in (3, 4, 5):
        give(amal, "k", place)
    amal.keyboard.press("k")
    amal.get_by_text("راجعت جميع الأسئلة").wait_for()


@needs_chromium
def test_two_annotators_by_keyboard_across_a_kill(folder, capsys):
    started = Started(folder)
    try:
        with chromium() as browser:
            amal, basim = (open_page(browser, started.addresses[name]) for name in ("amal", "basim"))
            read_and_mark(amal)
            see_nothing_of_others(basim)
            assert amal.problems == basim.problems == []
            started.end(signal.SIGKILL)
            amal.keyboard.press("k")
            amal.wait_for_selector("#status.failed")  # nothing is told to be saved that is not
            started = Started(folder)
            assert started.done == {"amal": 2, "basim": 2}
            finish(open_page(browser, started.addresses["amal"]))
        assert "saved: amal 6 of 6, basim 2 of 6" in started.end(signal.SIGINT)
    finally:
        started.process.kill()
    verdicts = read_lines(folder / "out" / "verdicts-amal.jsonl")
    assert [one.verdict for one in verdicts] == ["keep", "discard", "keep", "keep", "keep", "keep"]
    assert verdicts[1].note == "kd خطأ"
    manifest = folder / "decided.jsonl"
    import_verdicts([folder / "out"], [folder / "m.jsonl"], manifest, min_verdicts=1)
    assert "8 verdicts of 2 annotators" in capsys.readouterr().out
    decisions = [row.decision for row in read_manifest(manifest).rows]
    assert decisions == ["review", "discard", "keep", "keep", "keep", "keep"]  # the first is a tie


def test_other_sites_and_other_names_are_refused(folder):
    started = Started(folder)
    try:
        address = started.addresses["amal"]
        own = address.rpartition("/")[0].rpartition("/")[0]
        before = (folder / "out" / "verdicts-amal.jsonl").read_bytes()
        item = httpx.get(f"{address}items/0").json()["item"]
        body = {"item": item, "verdict": "keep", "note": ""}
        port = own.rpartition(":")[2]
        refused = {
            421: [("GET", address, {"Host": "evil.example"}), ("GET", address, {"Host": f"evil.example:{port}"})],
            403: [
                ("POST", f"{address}verdicts", {}),
                ("POST", f"{address}verdicts", {"Origin": "http://evil.example"}),
                ("POST", f"{address}verdicts", {"Origin": "null"}),
                ("GET", f"{address}state", {"Sec-Fetch-Site": "cross-site"}),
            ],
            415: [("POST", f"{address}verdicts", {"Origin": own, "Content-Type": "text/plain"})],
            404: [
                ("GET", f"{own}/{'a' * 32}/state", {}),
                ("GET", f"{own}/", {}),
                ("GET", f"{address}server.py", {}),
                ("GET", f"{address}..%2Fserver.py", {}),
                ("GET", f"{address}items/99", {}),
                ("GET", f"{own}/{'a' * 32}/items/{'9' * 5000}", {}),
                ("GET", f"{address}items/{'9' * 5000}", {}),
                ("GET", f"{address}items/0/image", {}),
            ],
        }
        for status, requests in refused.items():
            for method, url, headers in requests:
                content = json.dumps(body) if method == "POST" else None
                kind = {"Content-Type": "application/json"} if content else {}
                assert httpx.request(method, url, headers=kind | headers, content=content).status_code == status, url
        for wrong in ({}, [], body | {"verdict": "maybe"}, body | {"item": "x"}, body | {"note": "x" * 70_000}):
            sent = httpx.post(f"{address}verdicts", json=wrong, headers={"Origin": own})
            assert sent.status_code == 400, wrong
        assert (folder / "out" / "verdicts-amal.jsonl").read_bytes() == before
        policy = httpx.get(address).headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    finally:
        started.end(signal.SIGINT)


def test_a_broken_letter_in_an_item_or_a_note_does_not_stop_the_review(tmp_path):
    (tmp_path / "items.jsonl").write_text('{"question": "x \\ud800", "A": "a\\u0000", "B": "b", "answer": "A"}\n')
    items = read_items([str(tmp_path / "items.jsonl")], DataOptions())
    desk = new_desk(tmp_path, "amal")
    client = TestClient(review_app(Review([(items[0], ())], [desk], True), 80), base_url="http://127.0.0.1:80")
    sent = {"item": items[0].id, "verdict": "keep", "note": "\udc00"}
    headers = {"Origin": "http://127.0.0.1:80", "Host": "127.0.0.1:80", "Content-Type": "application/json"}
    assert client.post(f"/{desk.token}/verdicts", content=json.dumps(sent), headers=headers).status_code == 200
    shown = client.get(f"/{desk.token}/items/0", headers=headers).json()
    assert (shown["question"], shown["options"], shown["note"]) == ("x \ud800", ["a\x00", "b"], "\udc00")


def test_who_opens_the_page_before_the_server_runs_is_not_refused():
    with listening(0) as opened:
        socket.create_connection(opened.getsockname(), timeout=5).close()
