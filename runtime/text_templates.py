"""Text files with `$name` slots, for model prompts and judge prompts."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from cultureval.runtime.errors import CulturevalError, described

HEAD = re.compile(r"\A---\n(.*?)^---(?:\n|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class TextTemplate:
    """A UTF-8 text file with slots `$name`, without its last newline."""

    path: Path | Traversable

    @cached_property
    def file_text(self) -> str:
        """The file's text without its last newline; raises CulturevalError where it is no UTF-8."""
        try:
            return self.path.read_text(encoding="utf-8").removesuffix("\n")
        except UnicodeDecodeError as error:
            raise CulturevalError(f"The template {self.path} is not UTF-8: save it as UTF-8.") from error

    @cached_property
    def template(self) -> Template:
        """The text with its slots."""
        return Template(self.file_text)

    def render(self, **slots: str) -> str:
        """The text with its slots filled, as by `fill`; `$` in a filled-in text stays as it is."""
        return fill(self.template, slots, self.path)

    @property
    def hash(self) -> str:
        """First eight hexadecimal digits of the SHA-256 of the file's text, for score signatures."""
        return short_hash(self.file_text)


@dataclass(frozen=True)
class HeadedTemplate(TextTemplate):
    """A text file with settings in its head: YAML between two lines `---` at the beginning of the file."""

    @cached_property
    def template(self) -> Template:
        """The text below the head, with its slots."""
        return Template(HEAD.sub("", self.file_text))

    def head(self) -> dict[str, object]:
        """The settings of the head, all values texts; {} without one; raises a ValueError ("has a head that ...")."""
        import yaml

        found = HEAD.match(self.file_text)
        try:
            head = yaml.load(found[1], yaml.BaseLoader) if found else {}  # BaseLoader: every value is text
        except yaml.YAMLError as error:
            raise ValueError(f"has a head that is not YAML ({' '.join(str(error).split())})") from error
        if not isinstance(head, dict) or (self.file_text.startswith("---\n") and not found):
            raise ValueError("has a head that is not lines `name: value` between two lines `---`")
        return head


def fill(template: Template, slots: Mapping[str, str], path: Path | Traversable) -> str:
    """A template's text with its slots filled; raises a CulturevalError on an unknown slot, or `$5`."""
    try:
        return template.substitute(slots)
    except (KeyError, ValueError) as error:
        known = ", ".join(f"${slot}" for slot in slots) or "none"
        raise CulturevalError(
            f"The template {path} has an unknown slot ({error}); known slots: {known}. Write `$$` for a dollar sign."
        ) from error


def short_hash(text: str) -> str:
    """First eight hexadecimal digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:8]


def packaged_folder(package: str) -> Traversable:
    """The folder of a package or of a module's file; raises CulturevalError where its import fails."""
    try:
        module = import_module(package)
        return files(module) if hasattr(module, "__path__") else Path(str(module.__file__)).parent
    except Exception as error:  # the package may raise anything
        raise CulturevalError(
            f"the package {package!r} of a template cannot be loaded ({described(error)}): install its suite."
        ) from error
