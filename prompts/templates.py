"""Prompt templates: text files beside this module, by language, with `$name` slots."""

from functools import cache
from pathlib import Path

from cultureval.runtime.text_templates import TextTemplate

FOLDER = Path(__file__).parent


@cache
def load_template(name: str) -> TextTemplate:
    """The template `<language>/<file>`, named without `.txt`."""
    return TextTemplate(FOLDER / f"{name}.txt")


def render(name: str, **slots: str) -> str:
    """The template with its slots filled; what fills a slot is never read as a template.

    Raises:
        FileNotFoundError: There is no such template.
        KeyError: A slot of the template is not given.
    """
    return load_template(name).render(**slots)


def template_hash(name: str) -> str:
    """First eight hexadecimal digits of the SHA-256 of a template's text, for score signatures."""
    return load_template(name).hash
