"""Chromium or Chrome, driven by playwright: pages opened as files, with every request that leaves them written down."""

import functools
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from loopback import LoopbackServer

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="neither chromium nor google-chrome is installed: pages are not tried in a browser"
)


@contextmanager
def chromium() -> Iterator[Any]:
    """A running browser of playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM)
        try:
            yield browser
        finally:
            browser.close()


def barriers(page: Any, contrast: bool = True) -> dict[str, str]:
    """What axe-core finds on a page that is more than minor: its rule -> the first element.

    Args:
        contrast: Whether those of its texts and links are looked at too, which takes most of the time.
    """
    from axe_playwright_python.sync_playwright import Axe

    rules = {"target-size": {"enabled": True}}
    rules |= dict.fromkeys(("color-contrast", "link-in-text-block"), {"enabled": contrast})
    options = {"resultTypes": ["violations"], "rules": rules}
    found = Axe().run(page, options=options).response["violations"]
    return {one["id"]: one["nodes"][0]["html"] for one in found if one["impact"] != "minor"}


class Visited:
    """A page of a browser, of a folder or of an address.

    Attributes:
        page: Of playwright.
        outside: Addresses that it asked for which are no files of the folder or address.
        problems: Errors of scripts, messages of the console (but traces), dialogs.
    """

    def __init__(self, browser: Any, folder: Path | str, **context: Any) -> None:
        self.page = browser.new_context(**context).new_page()
        self.outside: list[str] = []
        self.problems: list[str] = []
        inside = folder if isinstance(folder, str) else folder.resolve().as_uri()
        self.page.on("request", lambda request: self._note(request.url, inside))
        self.page.on("console", lambda message: message.type == "trace" or self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.problems.append(dialog.message), dialog.dismiss()))

    def _note(self, url: str, inside: str) -> None:
        if not url.startswith((inside, "data:")):
            self.outside.append(url)

    def open(self, file: Path, anchor: str = "") -> Any:
        """Opens a file, and returns playwright's page."""
        self.page.goto(file.resolve().as_uri() + anchor, wait_until="load")
        return self.page


def served(folder: Path) -> LoopbackServer:
    """A web server of a folder that answers requests for parts of files."""
    return LoopbackServer(functools.partial(_Parts, directory=str(folder)), "/")


class _Parts(SimpleHTTPRequestHandler):
    """Serves files whole, or the part that a request names."""

    def do_GET(self) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        file = Path(self.translate_path(self.path))
        if not asked or not file.is_file():
            return super().do_GET()
        content = file.read_bytes()
        first, last = int(asked[1]), min(int(asked[2] or len(content)), len(content) - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        self.wfile.write(content[first : last + 1])
        return None

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""
