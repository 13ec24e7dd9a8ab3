"""A leaderboard in a browser: opened as a file, sorted, searched, hostile names, dark, narrow, keyboard, print."""

import json

import pytest
from browser import Visited, barriers, chromium, needs_chromium
from planted import plant, text_row

from cultureval.reports.leaderboard.board import read_board
from cultureval.reports.leaderboard.site import write_site
from cultureval.tasks.catalogue import all_tasks

pytestmark = needs_chromium
HOSTILE = (
    "<script>alert('name')</script>",
    '"><img src=https://evil.example/x.png onerror=alert(1)>',
    "&lt;img src=x onerror=alert(4)&gt;",
    "\u202eكذب\u202c\u2066 <b onmouseover=alert(5)>",
    "javascript:alert(6)//" + "long " * 200,
)
OURS = {"lab/Qwen2.5-1B-v1": 1, "lab/علّام-المحسَّن-9B": 2, "lab/Jais-2-32B-v1": 3, f"lab/{'the-same-words-' * 5}first": 2}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """QIMMA and CFHR of hostile and plain names, some with other prompts and without details."""
    root, folder = tmp_path_factory.mktemp("results"), tmp_path_factory.mktemp("site")
    tasks = [task for task in all_tasks().values() if task.suite == "qimma"]
    others = [task for task in all_tasks().values() if task.task.startswith("m2cqa:tf_")]
    for number, (name, right) in enumerate([*OURS.items(), *((name, 1) for name in HOSTILE)]):
        rows = {
            f"{task.task}|0": [text_row(place, dict.fromkeys(task.metrics, float(place < right))) for place in range(4)]
            for task in tasks
        }
        fooled = [text_row(place, {"cfhr": float(place < right)}) for place in range(4)]
        rows |= {f"{one.task}|0": fooled for one in others}
        changed = {name: {"prompt": HOSTILE[0]} for name in rows} if number == 5 else {}
        date = f"2026-11-0{number + 1}T10-00-00.000000"
        file = plant(root, rows, f"m{number}", date, reports=changed, details=number != 6)
        text = file.read_text("utf-8")
        content = json.loads(text)
        content["config_general"]["model_name"] = name
        file.write_text(json.dumps(content), "utf-8")
    write_site(read_board([root], papers=True), folder / "site", HOSTILE[1], ("svg",))
    return folder / "site"


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


def test_a_page_works_from_a_file_and_asks_nothing_of_a_network(browser, site):
    visit = Visited(browser, site, viewport={"width": 1400, "height": 900})
    page = visit.open(site / "index.html")
    assert page.eval_on_selector_all("[role=tab]", "tabs => tabs.map(tab => tab.textContent)") == ["QIMMA", "M2CQA"]
    rows = ".panel.open tbody tr:not([hidden])"
    page.fill("#search", "jais")
    assert page.locator(rows).count() == 3 + 1, "one of ours, two of the paper, and the line above other settings"
    assert page.text_content("#matching") == "3 rows shown"
    page.fill("#search", "")
    place = page.eval_on_selector(".panel.open th:has-text('PalmX')", "head => head.cellIndex")
    page.click(".panel.open th:has-text('PalmX') button")
    values = page.eval_on_selector_all(
        ".panel.open tbody:first-of-type tr", f"rows => rows.map(row => Number(row.cells[{place}].dataset.order))"
    )
    assert values == sorted(values, reverse=True) and len(values) > 14
    assert page.get_attribute(".panel.open th:has-text('PalmX')", "aria-sort") == "descending"
    page.click("[role=tab]:has-text('M2CQA')")
    assert page.locator(".panel.open .chart svg").count() == 1
    visit.open(site / page.get_attribute(".panel.open tbody a", "href"))
    assert page.locator("details[open] tbody tr").count() > 100
    assert visit.outside == [] and visit.problems == []


def test_hostile_names_do_nothing_and_are_shown_as_text(browser, site):
    visit = Visited(browser, site)
    texts = []
    for file in [site / "index.html", *(site / "models").iterdir()]:
        page = visit.open(file)
        texts.append(page.inner_text("body"))
        assert page.evaluate("document.querySelectorAll('main img, main b[onmouseover], bdi script').length") == 0
    text = "\n".join(texts)
    assert HOSTILE[0] in text and "onerror=alert(1)>" in text and HOSTILE[2] in text
    assert "\\u202eكذب" in text and "\u202e" not in text
    assert visit.outside == [] and visit.problems == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (768, "light"), (1400, "light")])
def test_nothing_is_wider_than_the_page_and_nobody_is_kept_out(browser, site, width, scheme):
    visit = Visited(browser, site, viewport={"width": width, "height": 900}, color_scheme=scheme)
    for file in (site / "index.html", sorted((site / "models").iterdir())[-1]):
        page = visit.open(file)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "tables scroll in themselves"
        assert barriers(page) == {}, file.name
    page = visit.open(site / "index.html")
    background = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(background)
    page.click("#theme")
    assert {before, page.evaluate(background)} == {"rgb(20, 24, 29)", "rgb(255, 255, 255)"}
    assert barriers(page) == {}
    assert visit.problems == []


def test_headers_and_names_stay_in_view(browser, site):
    page = Visited(browser, site, viewport={"width": 768, "height": 500}).open(site / "index.html")
    at = page.evaluate("""() => {
        const region = document.querySelector('.panel.open .scroll'), box = region.getBoundingClientRect();
        region.scrollLeft = 900; region.scrollTop = 300;
        const name = region.querySelector('tbody tr:last-child th.model').getBoundingClientRect();
        const head = region.querySelector('thead').getBoundingClientRect();
        return [region.scrollLeft, region.scrollTop, head.top - box.top, name.left - box.left];
    }""")
    assert min(at[:2]) > 100 and 0 <= at[2] < 5 and 0 <= at[3] < 5
    cut = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"
    assert page.eval_on_selector_all(".panel.open th.model", cut) == 0, "long names are whole"


def test_tabs_and_warnings_by_keyboard_without_scripts_and_printed(browser, site):
    visit = Visited(browser, site)
    page = visit.open(site / "index.html")
    page.focus("[role=tab][aria-selected=true]")
    page.keyboard.press("ArrowRight")
    assert page.text_content("[role=tab][aria-selected=true]") == "M2CQA"
    page.emulate_media(media="print")
    printed = page.eval_on_selector_all(".panel", "panels => panels.map(one => one.offsetHeight > 0)")
    assert printed == [True, True] and not page.is_visible("#search")
    page = Visited(browser, site, java_script_enabled=False).open(site / "index.html")
    assert page.locator("table tbody tr").count() > 20 and not page.is_visible("#search")
    page.click("button.marks >> nth=0")
    assert page.locator("[popover]:popover-open").count() == 1, "the words of warnings"
    assert visit.problems == []
