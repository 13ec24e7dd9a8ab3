"""The scripts and styles of a leaderboard's pages: all from installed packages or from here, none from a network."""

import re
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.errors import CulturevalError

OWN = ("page.js", "page.css")
TABLES, TABLES_STYLE, CHARTS = "datatables.js", "datatables.css", "vega.js"
_EXPORT = re.compile(r"export\s*\{([^{}]*)\};?")


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
