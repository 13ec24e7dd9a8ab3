"""Draws docs/viewer/jeem.png: an invented answer to a sample of JEEM in Inspect's viewer, in chromium.

python docs/make_viewer_picture.py
"""

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser import Visited, chromium, served  # noqa: E402
from viewer_runs import row, save  # noqa: E402

from cultureval.reports.viewer.bundle import MARK, write_bundle  # noqa: E402
from cultureval.reports.viewer.logs import write_logs  # noqa: E402
from cultureval.runtime.data.image_store import store_image, stored_image  # noqa: E402
from cultureval.runtime.data_options import samples_root  # noqa: E402

REPLY = "في الصورة نخلة طويلة وفيها رطب أصفر، ووراها بيت طين قديم له باب خشب ودريشة صغيرة."
VERDICT = {"outcome": "scored", "reason": "", "reply": "Consistency: 5/5\nRelevance: 4/5\nFluency: 5/5", "asked": 1}


def main() -> None:
    """Writes the picture."""
    image = next(file for file in sorted(samples_root().rglob("*.png")) if "palm" in file.name)
    facts = {"images": [str(stored_image(store_image(image.read_bytes())))], "id": "ae_palm", "country": "AE"}
    metric = {"cider": 0.4, "rouge_l": 0.62, "judge_gpt": VERDICT, "judge_gpt_consistency": 5.0}
    gold = ["نخلة طويلة جدام بيت طين قديم."]
    with tempfile.TemporaryDirectory() as folder:
        query = "اوصف هالصورة باللهجة الإماراتية وصف مفصّل في فقرة وحدة."
        save(Path(folder, "run"), "jeem_caption:ae", [row(1, query, metric, answer=REPLY, choices=gold, **facts)])
        site = Path(folder, "site")
        write_bundle(write_logs([Path(folder, "run")]), site, gated=True)
        (name,) = json.loads((site / MARK).read_text())["logs"]
        with served(site) as address, chromium() as browser:
            page = Visited(browser, address, viewport={"width": 1000, "height": 560}).page
            page.goto(f"{address}index.html#/logs/{name}/samples/sample/ae_palm/1/messages")
            page.wait_for_selector("img[src^='data:image/']")
            page.wait_for_timeout(500)
            (ROOT / "docs" / "viewer").mkdir(exist_ok=True)
            page.screenshot(path=ROOT / "docs" / "viewer" / "jeem.png")


if __name__ == "__main__":
    main()
