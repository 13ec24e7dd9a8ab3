"""Where this machine's reader finds a page of the documentation, which the wheel does not hold."""

from importlib.metadata import metadata, version
from pathlib import Path

import cultureval


def documented(page: str, otherwise: str = "") -> str:
    """The page as one can open it: its file in a checkout, else its address.

    Args:
        page: A path below the repository, or an address.
        otherwise: What is said where there is neither; "": that the page is the source's.
    """
    if page.startswith("https://"):
        return page
    file = Path(cultureval.__file__).resolve().parents[2] / page
    if file.is_file():
        return str(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)
    links = dict(one.split(", ", 1) for one in metadata("cultureval").get_all("Project-URL") or ())
    if home := links.get("Repository"):
        return f"{home}/blob/v{version('cultureval')}/{page}"
    return otherwise or f"{page} of cultureval's source"
