"""A leaderboard in a browser: opened as a file, sorted, filtered, hostile names, dark, narrow, keyboard, print."""

import json

import pytest
from board_runs import write_run
from browser import Visited, barriers, chromium, needs_chromium

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
OURS = {"lab/Qwen2.5-1B-v1": 0.3, "lab/Llama-3.1-9B-v1": 0.47, "lab/Jais-2-32B-v1": 0.63}  # families of the papers
ALIKE = [f"lab/{'the-same-words-' * 9}{end}" for end in ("first", "second")]  # differ only at the end


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """QIMMA of seven hostile and three plain names, M2CQA and AL-QASIDA of three; broken texts in the files."""
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
    for name in ALIKE:
        write_run(root, name, of["m2cqa"], 0.4, 4, signed={}, date="2026-11-02T10-00-00", folder=name[-6:])
    for name, able in OURS.items():
        write_run(root, name, of["qimma"], able, 4, signed={})
        write_run(root, name, [*of["m2cqa"], *of["alqasida"]], able, 4, signed={}, date="2026-11-02T10-00-00")
    board = read_board([root], published=True, partial=True)
    write_site(board, folder / "site", HOSTILE[2], ("svg",))
    return folder / "site"


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


def shown_rows(page, table="table.scores"):
    return page.eval_on_selector_all(
        f".panel.open {table} tbody tr:has(th)", "rows => rows.filter(r => r.offsetHeight).length"
    )


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
    assert page.text_content("#matching") == "1 model shown, 2 of papers" and shown_rows(page) == 3
    page.fill("#search", "jais")
    page.select_option("#licence", "unknown")
    assert page.text_content("#matching") == "1 model shown, 2 of papers" and shown_rows(page) == 3
    page.fill("#search", "nothing has this name")
    assert page.text_content("#matching") == "0 models shown" and shown_rows(page) == 0
    page.fill("#search", "")
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
    assert page.text_content("#matching") == f"{shown_rows(page)} models shown" == "7 models shown"
    link = page.get_attribute("#means tbody a", "href")
    visit.open(site / link)
    assert page.locator(".panel >> nth=0 >> tbody tr").count() == 109 and page.locator("svg.plot circle").count() > 100
    visit.open(next((site / "tasks").glob("qimma-aratrust-*.html")))
    assert page.locator("table.scores tbody tr").count() >= 10
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
    page.goto(next((site / "models").glob("*Jais*")).as_uri())
    assert "qimma_<wbr>aradice:<wbr>Egypt" in page.inner_html("th.model a >> nth=0"), "a name breaks between its parts"
    page.goto((site / "index.html").as_uri())
    page.emulate_media(media="print")
    printed = page.eval_on_selector_all(".panel:not(#subsets)", "panels => panels.map(one => one.offsetHeight > 0)")
    assert printed == [True] * 3 and not page.is_visible("#search")
    assert visit.outside == [] and visit.problems == []


@pytest.mark.parametrize("width", [390, 1400])
def test_no_chart_is_wider_than_its_page_also_with_long_names(browser, site, width):
    visit = Visited(browser, site, viewport={"width": width, "height": 900})
    page = visit.open(site / "index.html")
    for name in ("QIMMA", "M2CQA", "AL-QASIDA"):
        page.click(f"[role=tab]:has-text('{name}')")
        page.wait_for_function("[...document.querySelectorAll('.panel.open .chart')].every(one => one.dataset.drawn)")
        room = page.eval_on_selector(".panel.open", "one => one.clientWidth")
        widths = "all => all.map(one => [one.closest('.chart').id, one.getBoundingClientRect().width])"
        drawn = page.eval_on_selector_all(".panel.open .chart svg", widths)
        assert drawn and [one for one in drawn if one[1] > room + 1] == []
    assert visit.problems == []


def test_without_scripts_all_tables_are_there(browser, site):
    visit = Visited(browser, site, java_script_enabled=False)
    page = visit.open(site / "index.html")
    assert page.locator("table.scores tbody tr").count() > 20 and page.is_visible("table.scores >> nth=0")
    assert not page.is_visible("#search") and visit.outside == []
    page.click("button.marks >> nth=0")
    assert page.locator("[popover]:popover-open").count() == 1, "the words of warnings"


def test_headers_and_names_stay_in_view_and_long_names_are_whole(browser, site):
    visit = Visited(browser, site, viewport={"width": 768, "height": 500})
    page = visit.open(site / "index.html")
    at = page.evaluate("""() => {
        const region = document.querySelector('.panel.open .scroll'), box = region.getBoundingClientRect();
        region.scrollLeft = 900; region.scrollTop = 300;
        const group = [...region.querySelectorAll('.group')].map(one => one.getBoundingClientRect());
        const name = region.querySelector('tbody tr:last-child th.model').getBoundingClientRect();
        const rows = [...region.querySelectorAll('thead tr')].map(row => row.getBoundingClientRect());
        return {scrolled: [region.scrollLeft, region.scrollTop], rows: rows.map(row => [row.top - box.top, row.height]),
                name: name.left - box.left, group: group.some(one => one.left >= name.right && one.right <= box.right)};
    }""")
    assert min(at["scrolled"]) > 100 and at["group"] and 0 <= at["name"] < 100
    assert len(at["rows"]) == 2 and all(0 <= top < 60 and height >= 24 for top, height in at["rows"]), "no empty band"
    page.click("[role=tab]:has-text('M2CQA')")
    names = page.locator(".panel.open .board >> nth=0 >> th.model bdi:has-text('the-same-words')")
    assert len({*names.all_inner_texts()}) == names.count() == 2
    cut = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1 || one.offsetWidth > 260).length"
    assert page.eval_on_selector_all(".panel.open th.model", cut) == 0


def test_a_table_is_one_tab_stop_and_its_warnings_are_told_by_keyboard_and_touch(browser, site):
    visit = Visited(browser, site, viewport={"width": 1400, "height": 900}, has_touch=True)
    page = visit.open(site / "index.html")
    stops = "regions => regions.map(one => [one, ...one.querySelectorAll('*')].filter(e => e.tabIndex === 0).length)"
    assert set(page.eval_on_selector_all(".panel.open .scroll", stops)) == {1}
    focused = "document.activeElement.closest('tr') && document.activeElement.closest('tr').rowIndex"
    page.locator(".panel.open tbody th.model a").first.focus()
    row = page.evaluate(focused)
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) > row
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    told = page.locator("[popover]:popover-open")
    assert "original source" in told.inner_text() or "rows" in told.inner_text()
    page.keyboard.press("Escape")
    assert told.count() == 0
    page.locator(".panel.open button.marks").nth(1).tap()
    assert told.count() == 1
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("!document.activeElement.closest('.scroll')")
    assert visit.outside == [] and visit.problems == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1400, "light")])
def test_nothing_on_any_kind_of_page_keeps_people_out(browser, site, width, scheme):
    visit = Visited(browser, site, viewport={"width": width, "height": 900}, color_scheme=scheme)
    pages = [site / "index.html", *(sorted((site / kind).iterdir())[-1] for kind in ("models", "tasks"))]
    for file in pages:
        page = visit.open(file)
        tabs = page.locator("[role=tab]").all() or [None]
        for tab in dict.fromkeys((tabs[0], tabs[-1])) if width == 390 else tabs[:1]:
            if tab:
                tab.click()
            assert barriers(page) == {}, file.name
            small = "all => all.map(one => one.getBoundingClientRect()).filter(box => box.height && box.height < 23.9)"
            assert page.eval_on_selector_all("button, select, input, summary, table a, .exports a", small) == []
