"""What pages are made of: texts of others, visible, of bounded length and without power over their surroundings.

And scripts and styles: all from installed packages or from here, none from a network.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from cultureval.reports.charts import without_middle
from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.errors import CulturevalError, escaped

OWN = ("page.js", "page.css")
TABLES, TABLES_STYLE, CHARTS = "datatables.js", "datatables.css", "vega.js"
_EXPORT = re.compile(r"export\s*\{([^{}]*)\};?")
LONGEST = 300  # letters of a text in a page
LONGEST_NAME = 80  # of a model's name
ESCAPED = 10  # letters of an escaped one, at most


def write_assets(folder: Path, charts: bool) -> None:
    """Writes the scripts and styles of pages, with or without charts, to an existing folder."""
    here = Path(__file__).parent / "templates"
    for name in OWN:
        (folder / name).write_text((here / name).read_text(encoding="utf-8"), encoding="utf-8")
    html = files("itables") / "html"
    (folder / TABLES).write_text(tables_script(html.joinpath("dt_bundle.js").read_text("utf-8")), encoding="utf-8")
    (folder / TABLES_STYLE).write_text(html.joinpath("dt_bundle.css").read_text("utf-8"), encoding="utf-8")
    if charts:
        (folder / CHARTS).write_text(charts_script(), encoding="utf-8")


def tables_script(module: str) -> str:
    """The bundle of itables as a plain script: a page that is opened from a file system may not load modules.

    Raises:
        CulturevalError: It does not export what it did.
    """
    exports = list(_EXPORT.finditer(module))
    names = dict(reversed(part.split(" as ")) for part in exports[-1][1].split(",")) if exports else {}
    if "jQuery" not in names:
        raise CulturevalError(f"The bundle of itables {version('itables')} has no jQuery: install a tested version.")
    code = module[: exports[-1].start()] + module[exports[-1].end() :]
    return f"(()=>{{{code}\n;window.cultureval={{jQuery:{names['jQuery']}}};}})();\n"


def charts_script() -> str:
    """Vega-Embed with Vega and Vega-Lite as a plain script, bundled once for each version of vl-convert."""
    import vl_convert

    file = user_cache() / "charts" / f"vega-{version('vl-convert-python')}.js"
    if not file.is_file():
        code = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(f"(()=>{{{code}\n}})();\n", encoding="utf-8")
        part.replace(file)
    return file.read_text(encoding="utf-8")


def shown(text: str, longest: int = LONGEST) -> str:
    """A text with control characters and signs of direction as escapes, cut where it is too long."""
    plain = escaped(text.encode("utf-8", "backslashreplace").decode("utf-8"))
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def shown_apart(texts: Iterable[str]) -> dict[str, str]:
    """Names for pages, of which long ones lack their middle; whole where two would be alike."""
    whole = {text: shown(text, len(text) * ESCAPED + 1) for text in dict.fromkeys(texts)}
    cut = {text: without_middle(name, LONGEST_NAME) for text, name in whole.items()}
    taken = Counter(cut.values())
    return {text: name if taken[name] == 1 else whole[text] for text, name in cut.items()}


def file_name(text: str) -> str:
    """A file's name for a text: ASCII letters and digits of it, and a hash, so that no two texts share one."""
    letters = re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:48]
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{letters}-{digest}" if letters else digest
