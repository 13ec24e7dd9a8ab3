"""The page of an audit: counts, reasons, agreement, scores before and after; what is hostile in it stays text."""

import re

import pytest
from browser import Visited, barriers, chromium, needs_chromium

from cultureval.audit.items import AuditItem
from cultureval.audit.judging import Audit, JudgedItem, Opinion, Rule
from cultureval.judge_prompts.templates import judge_template
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.reports.audit.page import before_and_after, read_audit, write_page
from cultureval.reports.audit.verdicts import write_audit
from cultureval.runtime.servers.costs import Budget

CRITERIA = judge_template("audit_mcq").criteria
HOSTILE = '<script>document.title="x"</script> \u202e"\' أين تقع القاهرة؟'


def audit_of(count):
    """Items of two subsets of a known benchmark; the judges disagree on every third."""
    items = []
    for number in range(count):
        subset = "Egypt" if number % 2 else "Syria"
        question = HOSTILE if number == 0 else f"ما عاصمة البلد رقم {number}؟"
        item = AuditItem(
            *("QCRI/AraDiCE-Culture", "abc", subset, f"{subset}/test.csv:{number}", f"{number:064x}", "test", "mcq"),
            question,
            ("القاهرة", "دمشق", "<b>عمان</b>"),
            (1,),
            benchmark="AraDiCE-Culture",
        )
        low = {name: int(place < 5) for place, name in enumerate(CRITERIA)}
        high = dict.fromkeys(CRITERIA, 1)
        issues = {name: f"<img src=x onerror=alert(1)> {name}" for name in CRITERIA[5:]}
        opinions = (
            Opinion("one", low if number % 3 == 0 else high, issues if number % 3 == 0 else {}),
            Opinion("two", low if number % 6 == 0 else high, issues if number % 6 == 0 else {}),
        )
        decision, reasons = Rule().decide({one.judge: one.total for one in opinions})
        items.append(JudgedItem(item, opinions, decision, tuple(reasons)))
    budgets = {name: Budget(JudgeSettings(model="m", name=name)) for name in ("one", "two")}
    return Audit(tuple(items), Rule(), ("signature of one",), budgets)


def text_of(page):
    return page.read_text(encoding="utf-8")


def test_the_page_counts_as_the_papers_table_and_escapes_what_it_shows(tmp_path):
    text = write_audit(audit_of(24), tmp_path / "audit")
    assert re.search(r"AraDiCE-Culture +16 +4 +4 +24", text) and "AC1" in text
    page = write_page(read_audit([tmp_path / "audit"]), tmp_path / "page", "Audit <1>")
    html = text_of(page)
    assert "24 items audited: 16 kept, 4 discarded, 4 to review" in html and "Audit &lt;1&gt;" in html
    assert "<script>document" not in html and "<img src=x" not in html and "<b>عمان" not in html
    assert "\u202e" not in html and "&lt;script&gt;" in html and 'dir="auto"' in html
    assert re.search(r"AraDiCE-Culture</bdi></th>.*MCQ.*>2<.*Cultural.*>16<.*>4<.*>4<.*>16.7<", html)
    assert not re.search(r"(?:src|href)=\"https?:", html)
    bare = write_page(read_audit([tmp_path / "audit" / "manifest.jsonl"]), tmp_path / "bare", "x", examples=False)
    assert "القاهرة" not in text_of(bare) and "24 items audited" in text_of(bare)


@needs_chromium
def test_the_page_in_a_browser(tmp_path):
    write_audit(audit_of(24), tmp_path / "audit")
    page_file = write_page(read_audit([tmp_path / "audit"]), tmp_path / "page", "Audit")
    with chromium() as browser:
        visited = Visited(browser, page_file.parent, viewport={"width": 1200, "height": 900})
        page = visited.open(page_file)
        page.wait_for_selector("html[data-ready]")
        assert page.title() == "Audit" and not visited.problems and not visited.outside
        assert page.locator("#inventory tbody tr").count() == 1
        page.click("#tab-examples")
        article = page.locator("article.example p[dir=auto]").nth(1)
        assert article.is_visible()
        assert page.evaluate("getComputedStyle(document.querySelectorAll('article.example ol')[0]).direction") == "rtl"
        for tab in page.locator("[role=tab]").all():
            tab.click()
            assert barriers(page) == {}, tab.inner_text()


def test_scoresbefore_and_after_are_means_of_the_rows_that_are_left(tmp_path, monkeypatch):
    from cultureval.reports.audit import page

    rows = [
        {"doc": {"specific": {"source_row": f"test.csv:{number}"}}, "metric": {"acc": float(number % 2)}}
        for number in range(4)
    ]
    monkeypatch.setattr(page, "details_of_run", lambda run, task: rows)

    class Saved:
        def value(self, task, metric):
            return 0.5

    assert before_and_after(Saved(), "t|0", "acc", {"test.csv:0"}) == pytest.approx((0.5, 2 / 3, 1 / 6, 4, 1))
    rows[0]["metric"]["acc"] = 1.0  # the score is no mean of these rows
    assert [value != value for value in before_and_after(Saved(), "t|0", "acc", {"test.csv:0"})][1:3] == [True, True]
