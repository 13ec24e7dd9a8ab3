"""Filling a judge template's slots so that the judged text cannot act as part of the prompt.

All items of a run have one prompt. By default each text is put between delimiters that hold a hash of the text, so
that the text cannot close them, and our notice is put before the prompt; or nothing is, and the prompt is the paper's
word for word. It never depends on what a text holds. Texts that look like an attempt to influence the judge (a rating,
one of the prompt's headings, a delimiter, an instruction to the judge, praise of itself) are flagged in both.
"""

import hashlib
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from cultureval.judge_prompts.suspicions import suspicions
from cultureval.runtime.text_templates import TextTemplate

NOTICE = TextTemplate(Path(__file__).with_name("delimiter_notice.txt"))
ASKED_AGAIN = TextTemplate(Path(__file__).with_name("asked_again.txt"))
CODE_DIGITS = 32  # hexadecimal: no text is found by trial that holds the code of itself

_HEADING = re.compile(r"^([^:$\n]{2,40}?)(?:\s*\([^:\n]*\))?:", re.MULTILINE)


@dataclass(frozen=True)
class FilledPrompt:
    """A prompt for a judge, and signs of manipulation in the judged text (`suspicions`)."""

    text: str
    flags: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        """Of the marks between which scores are requested again: of the whole prompt, which no judged text knows."""
        return code_of(self.text)


def fill(
    template: TextTemplate,
    slots: Mapping[str, str],
    judged: str,
    trusted: Collection[str] = (),
    delimit: bool = True,
    criteria: Collection[str] = (),
) -> FilledPrompt:
    """Fill a template's slots.

    Args:
        slots: Slot -> text; slots that the template does not have are ignored.
        judged: The slot of the judged text, which is the one that is flagged.
        trusted: Slots whose texts are ours, such as a country's name.
        delimit: Delimiters around every slot that is not trusted.

    Raises:
        CulturevalError: A slot of the template is not given.
    """
    source = template.template.template
    headings = _headings(source)
    names = _slots_of(template.template)
    given = {name: slots[name] if name in trusted else slots[name].strip() for name in names}
    marked = [name for name in names if delimit and name not in trusted]
    texts = given | {name: _between_marks(given[name]) for name in marked}
    notice = NOTICE.template.template + "\n" if marked else ""
    return FilledPrompt(notice + template.render(**texts), suspicions(slots.get(judged, ""), headings, criteria))


def share_of_arabic(text: str) -> float:
    """Share of a text's letters that are Arabic; 1 for a text without letters."""
    letters = [character for character in text if character.isalpha()]
    arabic = sum(unicodedata.name(letter, "").startswith("ARABIC") for letter in letters)
    return arabic / len(letters) if letters else 1.0


def _headings(source: str) -> frozenset[str]:
    return frozenset(match.strip() for match in _HEADING.findall(source))


def _slots_of(template: Template) -> list[str]:
    return list(dict.fromkeys(template.get_identifiers()))


def code_of(text: str) -> str:
    """The code of marks: the first 32 hexadecimal digits of the SHA-256 of a text, lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:CODE_DIGITS]


def _between_marks(text: str) -> str:
    code = code_of(text)
    return f"<<<text {code}\n{text}\n{code} text>>>"
