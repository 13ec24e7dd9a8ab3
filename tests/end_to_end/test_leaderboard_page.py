"""A leaderboard in a browser: opened as a file, sorted, filtered, hostile names, dark, narrow, keyboard, print."""

import json

import pytest
from board_runs import invented_models, write_run
from browser import Visited, chromium, needs_chromium

from cultureval.reports.leaderboard.board import read_board
from cultureval.reports.leaderboard.site import write_site
from cultureval.tasks.catalogue import all_tasks

pytestmark = needs_chromium
HOSTILE = (
    "<script>alert('name')</script>",
    '"><img src=https://evil.example/x.png onerror=alert(1)>',
    "{{7*7}}${alert(2)}</script><script>alert(3)</script>",
    "&lt;img src=x onerror=alert(4)&gt;",
    "\u202eكذب\u202c\u2066 <b onmouseover=alert(5)>",
    "javascript:alert(6)//" + "long " * 200,
    "surrogate SURROGATE \x00\x07\x1b[31m",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """QIMMA of seven hostile and five plain names, M2CQA and AL-QASIDA of three; broken texts in the files."""
    root, folder = tmp_path_factory.mktemp("results"), tmp_path_factory.mktemp("site")
    of = {
        suite: [task.task for task in all_tasks().values() if task.suite == suite]
        for suite in ("qimma", "m2cqa", "alqasida")
    }
    for number, name in enumerate(HOSTILE):
        fields = {"settings": "</script><script>alert(7)</script>"} if number == 3 else {}
        tasks = of["qimma"] if number in (0, 6) else of["qimma"][:7]  # two are in the charts too
        write_run(root, name, tasks, 0.1 * number, 4, folder=f"hostile-{number}", signed=fields, query="</td><script>")
    for file in root.rglob("results_*.json"):
        file.write_text(file.read_text(encoding="utf-8").replace("SURROGATE", "\\ud800"), encoding="utf-8")
    for name, able in invented_models(5).items():
        write_run(root, name, of["qimma"], able, 4, signed={})
    for name, able in list(invented_models(5).items())[:3]:
        write_run(root, name, [*of["m2cqa"], *of["alqasida"]], able, 4, signed={}, date="2026-11-02T10-00-00")
    board = read_board([root], published=True, partial=True)
    write_site(board, folder / "site", HOSTILE[2], ("svg",))
    return folder / "site"


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


def shown_rows(page, table="table.scores"):
    return page.eval_on_selector_all(f".panel.open {table} tbody tr", "rows => rows.filter(r => r.offsetHeight).length")


def test_a_page_works_from_a_file_and_asks_nothing_of_a_network(browser, site):
    visit = Visited(browser, site, viewport={"width": 1400, "height": 900})
    page = visit.open(site / "index.html")
    assert "default-src 'none'" in page.get_attribute("meta[http-equiv]", "content")
    names = page.eval_on_selector_all("[role=tab]", "tabs => tabs.map(tab => tab.textContent)")
    assert names == ["QIMMA", "M2CQA", "AL-QASIDA", "Subsets"]
    for name in names:
        page.click(f"[role=tab]:has-text('{name}')")
        drawn = "[...document.querySelectorAll('.panel.open .chart')].every(chart => chart.querySelector('svg'))"
        page.wait_for_function(drawn)
    page.click("[role=tab]:has-text('QIMMA')")
    page.fill("#search", "jais")
    assert shown_rows(page) == 3, "one of ours, two of the paper"
    page.fill("#search", "")
    page.select_option("#family", "Jais")
    assert page.text_content("#matching").startswith("1 model ")
    page.select_option("#family", "")
    page.click(".panel.open th:has-text('PalmX') .dt-column-order")
    page.wait_for_selector(".panel.open th.dt-ordering-asc:has-text('PalmX')")
    values = page.eval_on_selector_all(
        ".panel.open .board:first-of-type tbody tr", "rows => rows.map(r => Number(r.cells[7].dataset.order))"
    )
    assert values == sorted(values) and len(values) > 10
    page.click("[role=tab]:has-text('Subsets')")
    page.select_option("[data-field=domain]", "STEM")
    assert page.text_content("#chosen").startswith("51 of 109 subsets")
    link = page.get_attribute("#means tbody a", "href")
    visit.open(site / link)
    assert page.locator(".panel >> nth=0 >> tbody tr").count() == 109 and page.locator("svg.bar path").count() > 100
    visit.open(next((site / "tasks").glob("qimma-aratrust-*.html")))
    assert page.locator("table.scores tbody tr").count() >= 12
    assert visit.outside == [] and visit.problems == []


def test_hostile_names_do_nothing_and_are_shown_as_text(browser, site):
    visit = Visited(browser, site)
    hostile = [file for file in sorted((site / "models").iterdir()) if not file.name.startswith("lab-")]
    pages = [site / "index.html", *hostile]
    texts = []
    for file in pages:
        page = visit.open(file)
        texts.append(page.inner_text("body"))
        assert page.evaluate("document.querySelectorAll('main img, main b[onmouseover], bdi script').length") == 0
    text = "\n".join(texts)
    assert HOSTILE[0] in text and "onerror=alert(1)>" in text and HOSTILE[3] in text
    assert "\\u202eكذب" in text and "\u202e" not in text and "\x1b" not in text
    page.goto("about:blank")
    page.goto((site / "index.html").as_uri())
    page.fill("#search", "<img src=x onerror=alert(8)>")
    assert visit.outside == [] and visit.problems == []
    data = json.loads((site / "leaderboard.json").read_text(encoding="utf-8"))
    assert len(data["models"]) == 12


def test_narrow_dark_printed_and_by_keyboard(browser, site):
    visit = Visited(browser, site, viewport={"width": 400, "height": 800}, color_scheme="dark")
    page = visit.open(site / "index.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400, "tables scroll in themselves"
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(20, 24, 29)"
    page.click("#theme")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.focus("[role=tab][aria-selected=true]")
    page.keyboard.press("ArrowRight")
    assert page.text_content("[role=tab][aria-selected=true]") == "M2CQA"
    page.keyboard.press("End")
    assert page.text_content("[role=tab][aria-selected=true]") == "Subsets"
    page.emulate_media(media="print")
    printed = page.eval_on_selector_all(".panel:not(#subsets)", "panels => panels.map(one => one.offsetHeight > 0)")
    assert printed == [True] * 3 and not page.is_visible("#search")
    assert visit.outside == [] and visit.problems == []


def test_without_scripts_all_tables_are_there(browser, site):
    visit = Visited(browser, site, java_script_enabled=False)
    page = visit.open(site / "index.html")
    assert page.locator("table.scores tbody tr").count() > 20 and page.is_visible("table.scores >> nth=0")
    assert not page.is_visible("#search") and visit.outside == []
