"""Prompt templates: text files beside this module, by language, with `$name` slots."""

import hashlib
from functools import cache
from pathlib import Path
from string import Template

FOLDER = Path(__file__).parent


@cache
def load_template(name: str) -> Template:
    """The template `<language>/<file>` without `.txt`; the file's own last newline is not part of it.

    Raises:
        FileNotFoundError: There is no such template.
    """
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    return Template(text.removesuffix("\n"))


def render(name: str, **slots: str) -> str:
    """The template with its slots filled; what fills a slot is never read as a template.

    Raises:
        KeyError: A slot of the template is not given.
    """
    return load_template(name).substitute(slots)


def template_hash(name: str) -> str:
    """First eight hexadecimal digits of the SHA-256 of a template's text, for score signatures."""
    return hashlib.sha256(load_template(name).template.encode("utf-8")).hexdigest()[:8]
