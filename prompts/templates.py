"""Prompt templates: text files with `$name` slots, in the folder `templates` of each suite.

A multiple-choice template defines the labels of options in its head, between two lines `---`:

    ---
    labels: 1 2 3 4
    ---
    $question
    $options
    Answer:

These labels are written before the options, and are scored. Settings of a head (YAML):

    labels: A B C D         the labels in order, separated by spaces
    separator: " "          white space between the prompt and the scored label; the default is none
    also: {passage: mcq_c}  further templates in the same folder; `passage` is for rows with a passage
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from cultureval.runtime.errors import BadRow, CulturevalError, did_you_mean, wrong_settings
from cultureval.runtime.text_templates import HeadedTemplate, short_hash

FOLDER = Path(__file__).parent


class Head(BaseModel):
    """The settings of a template."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    labels: tuple[str, ...] = ()
    separator: str = ""
    also: dict[str, str] = {}

    @field_validator("labels", mode="before")
    @classmethod
    def _in_order(cls, value: object) -> object:
        labels = value.split() if isinstance(value, str) else value
        if not labels or not isinstance(labels, list) or len(set(map(str, labels))) < len(labels):
            raise ValueError("is not a text of distinct labels, such as `labels: A B C D`")
        return tuple(labels)

    @field_validator("separator")
    @classmethod
    def _blank(cls, separator: str) -> str:
        if separator.strip():
            raise ValueError(f"{separator!r} is not white space")
        return separator


@dataclass(frozen=True)
class PromptTemplate(HeadedTemplate):
    """A prompt template with the settings of its head.

    Attributes:
        path: The file, UTF-8.
        name: Its name in tables and other templates.
    """

    name: str

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of options, in order; () for a template without options."""
        return self._head.labels

    @property
    def hash(self) -> str:
        """First eight hexadecimal digits of the SHA-256 of head, text and `also` templates."""
        return short_hash("\0".join([self.file_text, *(self.also(part).file_text for part in self._head.also)]))

    def scored_labels(self, count: int) -> list[str]:
        """The scored continuations of `count` options: the separator followed by each label."""
        if not self.labels:
            raise self._error("names no labels of options: add a head with `labels: A B C D` (between lines `---`)")
        if count > len(self.labels):
            raise BadRow("choices", count, f"counts more options than the {len(self.labels)} labels of {self.name}")
        return [self._head.separator + label for label in self.labels[:count]]

    def options(self, texts: Sequence[str]) -> str:
        """The options as listed in the prompt, one per line, with their labels: `A. text`."""
        return "\n".join(
            f"{label.strip()}. {text}" for label, text in zip(self.scored_labels(len(texts)), texts, strict=True)
        )

    def also(self, part: str) -> "PromptTemplate":
        """The template in the head for a variant of the prompt."""
        if part not in self._head.also:
            raise self._error(f"names no template for a {part}: add `also: {{{part}: FILE}}` to its head")
        return load_template(str(Path(self.name).with_name(self._head.also[part])))

    def has_slot(self, slot: str) -> bool:
        """Whether the text has the slot."""
        return slot in self.template.get_identifiers()

    @cached_property
    def _head(self) -> Head:
        try:
            return Head.model_validate(self.head())
        except ValidationError as error:
            raise self._error(f"has a wrong head: {wrong_settings(error)}") from error
        except ValueError as error:
            raise self._error(str(error)) from error

    def _error(self, problem: str) -> CulturevalError:
        return CulturevalError(f"The prompt template {self.name} ({self.path}) {problem}.")


@dataclass(frozen=True)
class _TextInCode(PromptTemplate):
    """The template of a benchmark in one file."""

    text: str

    @property
    def file_text(self) -> str:  # type: ignore[override]
        """Head and text."""
        return self.text


@cache
def load_template(name: str) -> PromptTemplate:
    """The template with this name, or of a text that begins with a head.

    Args:
        name: `FOLDER/FILE` below `cultureval.prompts`, such as `qimma/templates/mcq`, or an absolute path, without
            `.txt`.

    Raises:
        CulturevalError: There is no such file.
    """
    if name.startswith("---\n"):
        return _TextInCode(Path("of its benchmark"), "in code", name)
    file = FOLDER / f"{name}.txt"
    if not file.is_file():
        names = (str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.txt"))
        raise CulturevalError(
            f"There is no prompt template {name!r} ({file} is not a file).{did_you_mean(name, names)}"
        )
    return PromptTemplate(file, name)


def render(name: str, **slots: str) -> str:
    """The template with its slots filled; the filled-in texts are not read as templates."""
    return load_template(name).render(**slots)


def template_hash(name: str) -> str:
    """First eight hexadecimal digits of the SHA-256 of a template (text and labels), for score signatures."""
    return load_template(name).hash
