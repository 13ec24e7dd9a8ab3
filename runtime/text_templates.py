"""Text files with `$name` slots: the one mechanism of model prompts and judge prompts."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Template


@dataclass(frozen=True)
class TextTemplate:
    """A text file whose slots are written `$name`; the file's own last newline is not part of it.

    Attributes:
        path: The file, UTF-8.
    """

    path: Path

    @cached_property
    def template(self) -> Template:
        """The file's text as a template.

        Raises:
            FileNotFoundError: There is no such file.
        """
        return Template(self.path.read_text(encoding="utf-8").removesuffix("\n"))

    def render(self, **slots: str) -> str:
        """The text with its slots filled; what fills a slot is never read as a template.

        Raises:
            KeyError: A slot of the template is not given.
        """
        return self.template.substitute(slots)

    @property
    def hash(self) -> str:
        """First eight hexadecimal digits of the SHA-256 of the text, for score signatures."""
        return hashlib.sha256(self.template.template.encode("utf-8")).hexdigest()[:8]
