"""Prompt templates: text files with `$name` slots, in the folder `templates` of each suite.

A multiple-choice template defines the labels of options in its head, between two lines `---`:

    ---
    labels: 1 2 3 4
    ---
    $question
    $options
    Answer:

These labels are written before the options, and are scored. Settings of a head (YAML):

    labels: A B C D         the labels in order, separated by spaces, or a list: [A, B, C, D]
    option: "$label. $text" how an option is written; this is the default
    separator: " "          white space between the prompt and the scored label; the default is none
    also: {passage: mcq_c}  further templates in the same folder; `passage` is that of rows with a passage
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from string import Template

from cultureval.runtime.errors import BadRow, CulturevalError
from cultureval.runtime.text_templates import HeadedTemplate, fill, packaged_folder, short_hash

FOLDER = Path(__file__).parent
SETTINGS = ("labels", "option", "separator", "also")


@dataclass(frozen=True)
class PromptTemplate(HeadedTemplate):
    """A prompt template with the settings of its head.

    Attributes:
        path: The file, UTF-8.
        name: Its name in tables and other templates.
    """

    name: str

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The labels of options, in order; none where the template lists no options.

        Raises:
            CulturevalError: The head cannot be read, or a label is empty or repeated.
        """
        if "labels" not in self._head:
            return ()
        given = self._head["labels"]
        labels = tuple(given.split() if isinstance(given, str) else given if isinstance(given, list) else ())
        if not labels or not all(isinstance(label, str) and label.strip() for label in labels):
            raise self._error("has `labels` that are not one text or a list of texts, such as `labels: A B C D`")
        labels = tuple(label.strip() for label in labels)
        if len(set(labels)) < len(labels):
            raise self._error(f"has a duplicated label ({' '.join(labels)})")
        return labels

    @cached_property
    def separator(self) -> str:
        """White space between the prompt and the scored label."""
        separator = self._text("separator", "")
        if separator.strip():
            raise self._error(f"has the separator {separator!r}, which is not white space")
        return separator

    @property
    def hash(self) -> str:
        """First eight hexadecimal digits of the SHA-256 of head, text and `also` templates."""
        return short_hash("\0".join([self.file_text, *(load_template(name).file_text for name in self._also.values())]))

    def scored_labels(self, count: int) -> list[str]:
        """The scored continuations of `count` options: the separator followed by each label."""
        return [self.separator + label for label in self._first_labels(count)]

    def options(self, texts: Sequence[str]) -> str:
        """The options as listed in the prompt, one per line, with their labels."""
        layout = Template(self._text("option", "$label. $text"))
        if not {"label", "text"} <= {*layout.get_identifiers()}:
            raise self._error(
                "has an `option` without $label or $text: the prompt must show the labels that are scored"
            )
        pairs = zip(self._first_labels(len(texts)), texts, strict=True)
        return "\n".join(fill(layout, {"label": label, "text": text}, self.path) for label, text in pairs)

    def also(self, part: str) -> "PromptTemplate":
        """The template that the head names for a variant of the prompt."""
        if part not in self._also:
            raise self._error(f"names no template for a {part}: add `also: {{{part}: FILE}}` to its head")
        return load_template(self._also[part])

    def has_slot(self, slot: str) -> bool:
        """Whether the text has the slot."""
        return slot in self.template.get_identifiers()

    def check_slots(self, *slots: str) -> None:
        """Checks that the text has slots without which a question would not be asked."""
        for slot in slots:
            if not self.has_slot(slot):
                raise self._error(f"has no slot ${slot}, so that the model would not see it: add ${slot} to its text")

    def _first_labels(self, count: int) -> tuple[str, ...]:
        if not self.labels:
            raise self._error("names no labels of options: add a head with `labels: A B C D` (between lines `---`)")
        if count > len(self.labels):
            raise BadRow("choices", count, f"counts more options than the {len(self.labels)} labels of {self.name}")
        return self.labels[:count]

    @cached_property
    def _also(self) -> dict[str, str]:
        folder = re.sub(r"[^/:]*$", "", self.name)
        also = self._head.get("also", {})
        if not isinstance(also, Mapping):
            raise self._error("has an `also` that is not a mapping such as {passage: mcq_c}")
        return {str(part): f"{folder}{file}" for part, file in also.items()}

    @cached_property
    def _head(self) -> dict[str, object]:
        try:
            head = self.head()
        except ValueError as error:
            raise self._error(str(error)) from error
        if not set(head) <= set(SETTINGS):
            raise self._error(f"has a head with other settings than {', '.join(SETTINGS)}")
        return head

    def _text(self, setting: str, default: str) -> str:
        value = self._head.get(setting, default)
        if not isinstance(value, str):
            raise self._error(f"has a `{setting}` that is not a text")
        return value

    def _error(self, what: str) -> CulturevalError:
        return CulturevalError(f"The prompt template {self.name} ({self.path}) {what}.")


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
    """The template of a name, or of a text that begins with a head.

    Args:
        name: `FOLDER/FILE` below `cultureval.prompts`, such as `qimma/templates/mcq`; `PACKAGE:FOLDER/FILE` in any
            package that can be imported, or beside a module of one file;
            or an absolute path. All names are without `.txt`.

    Raises:
        CulturevalError: There is no such package or file.
    """
    if name.startswith("---\n"):
        return _TextInCode(Path("of its benchmark"), "in code", name)
    package, colon, path = name.rpartition(":")
    in_package = bool(colon) and not Path(name).is_absolute()
    try:
        folder = packaged_folder(package) if in_package else FOLDER
    except CulturevalError as error:
        raise CulturevalError(f"The prompt template {name!r}: {error}") from error
    file = folder.joinpath(f"{path if in_package else name}.txt")
    if not name or not file.is_file():
        near = difflib.get_close_matches(name, _own_templates(), n=1)
        hint = f" Do you mean {near[0]!r}?" if near else ""
        raise CulturevalError(f"There is no prompt template {name!r} ({file} is not a file).{hint}")
    return PromptTemplate(file, name)


def render(name: str, **slots: str) -> str:
    """The template with its slots filled; the filled-in texts are not read as templates."""
    return load_template(name).render(**slots)


def template_hash(name: str) -> str:
    """First eight hexadecimal digits of the SHA-256 of a template (text and labels), for score signatures."""
    return load_template(name).hash


def _own_templates() -> list[str]:
    return [str(file.relative_to(FOLDER).with_suffix("")) for file in FOLDER.rglob("*.txt")]
