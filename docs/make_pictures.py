"""Draws all pictures of the docs: `make pictures`.

Summaries of the samples as terminals of 80 and 120 columns (docs/summaries), the leaderboard's pages of invented runs
(docs/leaderboard), and an invented answer in Inspect's viewer (docs/viewer).
"""

import io
import json
import re
import sys
import tempfile
from contextlib import chdir
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from cultureval.reports.leaderboard.board import read_board
from cultureval.reports.leaderboard.site import write_site
from cultureval.reports.summary_text import shown_run
from cultureval.reports.viewer.bundle import write_bundle
from cultureval.reports.viewer_links import MARK
from cultureval.runtime.data.hub import go_offline
from cultureval.runtime.data.image_store import store_image, stored_image
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.settings import use_settings
from cultureval.runtime.smollm2 import INSTALL, NAME, gguf_file, smollm2
from cultureval.samples.scripted_judge import scripted_judge
from cultureval.samples.tiny_models.language_models import build_tiny_vision_lm
from cultureval.scripts.demo import EXPECTED, RESULTS, ROWS, evaluate_samples, sample_tasks, tiny_settings
from cultureval.tasks.catalogue import all_tasks

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS.parent), str(DOCS.parent / "tests")]

from browser import Visited, chromium, served  # noqa: E402
from planted import plant  # noqa: E402
from viewer_runs import row  # noqa: E402

from benchmarks.leaderboard import plant_suite  # noqa: E402

WIDTHS = (80, 120)
SHOWN = {"qimma": "QIMMA", "alqasida": "AL-QASIDA", "m2cqa": "M2CQA"}  # suite -> its tab
PICTURES = (("qimma", 1400, "light"), ("alqasida", 1400, "dark"), ("qimma", 400, "dark"), ("m2cqa", 400, "light"))
MODELS, ITEMS = 20, 60
REPLY = "في الصورة نخلة طويلة وفيها رطب أصفر، ووراها بيت طين قديم له باب خشب ودريشة صغيرة."
VERDICT = {"outcome": "scored", "reason": "", "reply": "Consistency: 5/5\nRelevance: 4/5\nFluency: 5/5", "asked": 1}


def main() -> None:
    """Draws all of them."""
    with tempfile.TemporaryDirectory() as scratch:
        draw_summaries(Path(scratch))
        answers = invented_answer(Path(scratch, "viewer"))  # before the browser, beside whose event loop none runs
        with chromium() as browser:
            draw_leaderboard(browser, Path(scratch, "leaderboard"))
            draw_viewer(browser, answers)


def draw_summaries(scratch: Path) -> None:
    """What `make demo` prints of the first text model, which is real, and of the first vision model, a suite a run."""
    go_offline()
    if gguf_file() is None:
        raise SystemExit(f"The pictures are of a real model ({NAME}): {INSTALL}")
    text, vision = smollm2(), build_tiny_vision_lm(scratch / "tiny-random-llava", max_position_embeddings=2048)
    with scripted_judge() as judge, chdir(scratch), use_settings(tiny_settings(scratch, judge)):
        tasks = [*sample_tasks(images=False), *sample_tasks(images=True)]
        for suite, some in groupby(tasks, lambda task: all_tasks()[task].suite):
            names = list(some)
            model, limit = (vision, None) if all_tasks()[names[0]].images else (text, ROWS)
            run = evaluate_samples(model, names, limit).run
            for width in WIDTHS:
                svg = terminal_as_svg(shown_run(run, width, hidden=EXPECTED), width, f"cultureval show {RESULTS}")
                (DOCS / "summaries" / f"{suite}_{width}.svg").write_text(svg, "utf-8")


def terminal_as_svg(text: str, width: int, title: str) -> str:
    """A terminal that shows a text; it loads no fonts from the web."""
    console = Console(record=True, width=width, file=io.StringIO(), color_system=None)
    console.print(Text(text))
    drawn = console.export_svg(title=title).replace("font-family: arial;", "font-family: arial, sans-serif;")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)


def draw_leaderboard(browser: Any, scratch: Path) -> None:
    """The pages of invented runs of invented models."""
    results, site = scratch / "results", scratch / "site"
    for suite in SHOWN:
        plant_suite(results / suite, suite, MODELS, ITEMS)
    write_site(read_board([results]), site, "Invented models and scores", ("svg",))
    for suite, width, scheme in PICTURES:
        page = Visited(browser, site, viewport={"width": width, "height": 900}, color_scheme=scheme).page
        page.goto((site / "index.html").as_uri())
        page.locator("[role=tab]", has_text=re.compile(f"^{SHOWN[suite]}$")).click()
        page.screenshot(path=DOCS / "leaderboard" / f"{suite}_{width}_{scheme}.png")


def invented_answer(scratch: Path) -> Path:
    """The folder of Inspect's viewer of an invented answer to a sample of JEEM."""
    image = next(file for file in sorted(samples_root().rglob("*.png")) if "palm" in file.name)
    facts = {"images": [str(stored_image(store_image(image.read_bytes())))], "id": "ae_palm", "country": "AE"}
    metric = {"cider": 0.4, "rouge_l": 0.62, "judge_gpt": VERDICT, "judge_gpt_consistency": 5.0}
    gold = ["نخلة طويلة جدام بيت طين قديم."]
    query = "اوصف هالصورة باللهجة الإماراتية وصف مفصّل في فقرة وحدة."
    plant(scratch / "run", {"jeem_caption:ae|0": [row(1, query, metric, answer=REPLY, choices=gold, **facts)]})
    site = scratch / "site"
    write_bundle([scratch / "run"], site, gated=True)
    return site


def draw_viewer(browser: Any, site: Path) -> None:
    """The invented answer."""
    (name,) = json.loads((site / MARK).read_text())["logs"]
    with served(site) as server:
        page = Visited(browser, server.url, viewport={"width": 1000, "height": 560}).page
        page.goto(f"{server.url}index.html#/logs/{name}/samples/sample/ae_palm/1/messages")
        page.wait_for_selector("img[src^='data:image/']")
        page.wait_for_timeout(500)
        page.screenshot(path=DOCS / "viewer" / "jeem.png")


if __name__ == "__main__":
    main()
