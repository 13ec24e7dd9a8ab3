"""Debian's chromium, driven by playwright: pages opened as files, with every request that leaves them written down."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed (apt-get install chromium): pages are not tried in a browser"
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


class Visited:
    """A page of a browser.

    Attributes:
        page: Of playwright.
        outside: Addresses that it asked for which are no files of the folder.
        problems: Errors of scripts, messages of the console, dialogs.
    """

    def __init__(self, browser: Any, folder: Path, **context: Any) -> None:
        self.page = browser.new_context(**context).new_page()
        self.outside: list[str] = []
        self.problems: list[str] = []
        inside = folder.resolve().as_uri()
        self.page.on("request", lambda request: self._note(request.url, inside))
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.problems.append(dialog.message), dialog.dismiss()))

    def _note(self, url: str, inside: str) -> None:
        if not url.startswith((inside, "data:")):
            self.outside.append(url)

    def open(self, file: Path, anchor: str = "") -> Any:
        """Opens a file, and returns playwright's page."""
        self.page.goto(file.resolve().as_uri() + anchor, wait_until="load")
        return self.page
