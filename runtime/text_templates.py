"""Text files with `$name` slots, for model prompts and judge prompts."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template


@dataclass(frozen=True)
class TextTemplate:
    """A text file whose slots are written `$name`; the file's own last newline is not part of it.

    Attributes:
        path: The file, UTF-8.
    """

    path: Path | Traversable

    @cached_property
    def file_text(self) -> str:
        """The file's text without its last newline.

        Raises:
            FileNotFoundError: There is no such file.
        """
        return self.path.read_text(encoding="utf-8").removesuffix("\n")

    @cached_property
    def template(self) -> Template:
        """The text with its slots."""
        return Template(self.file_text)

    def render(self, **slots: str) -> str:
        """The text with its slots filled; the filled-in texts are not read as templates.

        Raises:
            KeyError: A slot of the template is not given.
        """
        return self.template.substitute(slots)

    @property
    def hash(self) -> str:
        """First eight hexadecimal digits of the SHA-256 of the file's text, for score signatures."""
        return short_hash(self.file_text)


def short_hash(text: str) -> str:
    """First eight hexadecimal digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:8]
