"""The site is built from the docs, and no link of theirs leads nowhere."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from browser import Visited, barriers, chromium, needs_chromium, served

ROOT = Path(__file__).parents[2]
SOURCES = ("docs", "mkdocs.yml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff")


def build(root, folder):
    command = [sys.executable, "-m", "mkdocs", "build", "--config-file", str(root / "mkdocs.yml"), "--site-dir", folder]
    variables = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, env=variables, check=False)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A copy of the docs beside a leaderboard of the demo."""
    folder = tmp_path_factory.mktemp("docs")
    for name in SOURCES:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    board = folder / "results" / "demo-leaderboard"
    board.mkdir(parents=True)
    for name in ("index.html", "README.md"):
        (board / name).write_text(f"the board's {name}", "utf-8")
    return folder


@pytest.fixture(scope="module")
def site(root):
    built = build(root, root / "site")
    assert built.returncode == 0, built.stderr
    assert "not included in the" not in built.stderr  # a page that the menu lacks
    return root / "site"


def test_every_link_leads_somewhere_and_every_page_is_in_the_menu(site):
    assert "<h1" in (site / "index.html").read_text("utf-8")


@needs_chromium
def test_the_site_keeps_nobody_out(site):
    """Every page; the colours, which all share, of those with tables and code, in both schemes; the search of one."""
    pages = sorted(file.name for file in site.glob("*.html"))
    coloured = [f"{name}.html" for name in ("index", "models", "speed")]

    def of_one(route):  # the search's index takes as long to read as the rest of a page
        route.continue_() if page.url.endswith("/index.html") else route.abort()

    with chromium() as browser, served(site) as server:  # the search needs a server
        for width, scheme, some in ((390, "dark", pages), (1400, "light", coloured)):
            page = Visited(browser, server.url, viewport={"width": width, "height": 900}, color_scheme=scheme).page
            page.route("**/search_index.json", of_one)
            for name in some:
                page.goto(f"{server.url}{name}")
                assert barriers(page, contrast=name in coloured) == {}, (name, width)


def test_the_demo_is_copied_as_it_is_and_a_broken_link_is_refused_with_its_page(root, site, tmp_path):
    board, copied = root / "results" / "demo-leaderboard", site / "demo" / "leaderboard"
    assert all((copied / file.name).read_bytes() == file.read_bytes() for file in board.iterdir())
    page = root / "docs" / "jeem.md"
    page.write_text(page.read_text("utf-8") + "\n[nowhere](no_such_page.md)\n", "utf-8")
    built = build(root, tmp_path / "site")
    assert built.returncode == 1
    assert "jeem.md" in built.stderr and "no_such_page.md" in built.stderr
