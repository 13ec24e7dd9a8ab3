"""Judge templates: text files with `$name` slots, in the folder of each suite, with their settings in the head.

    ---
    form: likert
    judged: generated
    criteria: [Consistency, Fluency]
    ---
    Rate the caption: $generated
    ...

The settings are the attributes of `JudgeTemplate` but name and text; the hash of a template is that of the text below
the head. Ours are `<suite>/<rest>.txt` below this folder and are named `<suite>_<rest>`; one of another package is
named `PACKAGE:FOLDER/FILE`, as prompt templates are.

The wording of the JEEM files is the paper's (arXiv 2503.21910, Figures 7-11; checked word for word). Ours are: the line
breaks, which the paper's text does not show; the MSA files (the captions of Figures 7 and 8 say that Dialect
Authenticity is left out, but print no such prompt); that the labelling prompts end before the slot that the judge
fills; topic_group, as no prompt is printed for grouping topics into the 13 categories of Table 7; and the delimiters of
`slots.py` around the texts, which a judge's setting `delimit: never` leaves out. AL-QASIDA's are ours: one template
per criterion, so that they are judged independently, on the scales of its people: Adherence from 1 to 3, the others
from 1 to 5. Fulfilment asks for Adherence from 1 to 5.

The wording of `mcq.txt` and `qa.txt` in `audit/` is that of QIMMA's paper (arXiv 2604.03395, Appendix C; checked word
for word); in `mcq_image.txt` and `qa_image.txt` the sentences on the image and on other languages are ours.
Ours are the line breaks, the bullets, the sign `=` before the two meanings of a score in `qa.txt` and the commas after
the scores in the form of the reply, all of which the paper's text shows only in part.
"""

import difflib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar, Literal

from cultureval.judge_prompts.binary_replies import read_binary, reply_pattern, reply_schema
from cultureval.judge_prompts.replies import HIGHEST, ReplyReading, read_label, read_line, read_scores
from cultureval.judge_prompts.slots import ASKED_AGAIN, FilledPrompt, fill
from cultureval.runtime.errors import CulturevalError, wrong_settings
from cultureval.runtime.text_templates import HeadedTemplate, packaged_folder, short_hash

FOLDER = Path(__file__).parent
Form = Literal["likert", "json", "label", "line", "binary"]
_SCORES = {"likert", "json"}  # forms of replies that score criteria on a scale


@dataclass(frozen=True)
class JudgeTemplate:
    """A prompt for a judge, and how its reply is parsed.

    Attributes:
        name: Its name in tables and files.
        short: Its part of a metric's name, by default the file's name; templates of one folder with the same question
            may share it.
        form: The reply's form: Likert lines, a JSON object, one of the labels, a line of free text, or "binary": a JSON
            object of criteria scored 0 or 1 with an explanation of each 0.
        judged: The slot of the judged text.
        criteria: The criteria, scored from 1 to 5, or with 0 and 1 in the form "binary".
        cascade: Criterion -> the criteria that must be 0 where it is, in the form "binary".
        highest: Criterion -> the highest score of its scale, where that is not 5.
        images: Whether the images of the item are sent.
        labels: Label -> further spellings of it in a reply.
        prefix: Text with which the reply may begin, before a colon.
        trusted: Slots that hold our own texts.
        reply_tokens: Approximate number of tokens of a valid reply, for estimates of cost.
        then: A template of the same folder that assigns the free text of the reply to a label: its slot of this
            template's short name has that text, `categories` its labels.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "arbitrary_types_allowed": True}

    name: str
    text: HeadedTemplate
    short: str
    form: Form
    judged: str
    criteria: tuple[str, ...] = ()
    images: bool = False
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prefix: str = ""
    trusted: tuple[str, ...] = ("country",)
    reply_tokens: int = 40
    highest: Mapping[str, int] = field(default_factory=dict)
    then: str = ""
    cascade: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots that the text has."""
        return tuple(dict.fromkeys(self.text.template.get_identifiers()))

    @property
    def hash(self) -> str:
        """First eight hexadecimal digits of the SHA-256 of the text below the head."""
        return short_hash(self.text.template.template)

    def prompt(self, slots: Mapping[str, str], delimit: bool = True) -> FilledPrompt:
        """The prompt for one item; without delimiters it is the paper's."""
        criteria = self.criteria if self.form in _SCORES else ()
        return fill(self.text, slots, self.judged, self.trusted, delimit, criteria)

    def asked_again(self, code: str) -> str:
        """What is added to the prompt where the reply to it was no verdict: the form alone, between marks with a code.

        No judged text may know the code. It is "" for templates without scores on scales or labels.
        """
        if self.form == "label":
            form = f"{self.prefix}: X" if self.prefix else "X"
            return ASKED_AGAIN.render(code=code, form=form, what="label")
        if self.form not in _SCORES:
            return ""
        forms = {name: f"X/{self.top(name)}" for name in self.criteria}
        lines = "\n".join(f"{name}: {form}" for name, form in forms.items())
        form = lines if self.form == "likert" else json.dumps(forms)
        return ASKED_AGAIN.render(code=code, form=form, what="scores")

    def read(self, reply: str, of_text: Collection[str] = (), code: str = "") -> ReplyReading:
        """The parsed reply of a judge to a text with the flags `of_text`; `code` is that of `asked_again`.

        Raises:
            DoubtfulReply: It is open whether the scores are the judge's own.
            JudgeReplyError: The reply is malformed.
        """
        if self.form in _SCORES:
            return read_scores(reply, self.criteria, self.highest, of_text, code)
        if self.form == "binary":
            return read_binary(reply, self.criteria, self.cascade)
        if self.form == "label":
            return read_label(reply, self.labels, self.prefix, code)
        return read_line(reply, self.prefix)

    @property
    def reply_pattern(self) -> str | None:
        """A regular expression of the requested reply, for servers that hold replies to one; None for other forms."""
        if self.form == "binary":
            return reply_pattern(self.criteria)
        if self.form != "likert" or any(self.top(name) > 9 for name in self.criteria):
            return None
        # Servers' expressions know no escaped space.
        names = {name: re.escape(name).replace("\\ ", " ") for name in self.criteria}
        return r"\n".join(f"{names[name]}: [1-{self.top(name)}]/{self.top(name)}" for name in self.criteria)

    @property
    def reply_schema(self) -> dict[str, Any] | None:
        """The JSON schema of the requested reply, for servers that hold replies to one; None for other forms."""
        return reply_schema(self.criteria) if self.form == "binary" else None

    @property
    def reply_properties(self) -> dict[str, Any]:
        """The scores as properties of a JSON object, for servers that hold replies to a schema; {} for other forms."""
        return {name: {"type": "integer", "enum": [*range(1, self.top(name) + 1)]} for name in self.criteria}

    def top(self, criterion: str) -> int:
        """The highest score of a criterion."""
        return self.highest.get(criterion, int(HIGHEST))


def judge_template(name: str) -> JudgeTemplate:
    """The template of a name: `<suite>_<file>` of ours, or `PACKAGE:FOLDER/FILE` of a package; without `.txt`.

    Raises:
        CulturevalError: There is none, and the message names the nearest; or its head is wrong.
    """
    own = own_templates()
    package, colon, path = name.rpartition(":")
    if not colon and name not in own:
        near = difflib.get_close_matches(name, own, n=3, cutoff=0.4)
        raise CulturevalError(f"There is no judge template {name!r}. There are: {', '.join(near or own)}.")
    return _packaged(name, package, path) if colon else own[name]


@cache
def own_templates() -> dict[str, JudgeTemplate]:
    """Our templates by name: the files in the suites' folders."""
    found = {f"{file.parent.name}_{file.stem}": file for file in sorted(FOLDER.glob("*/*.txt"))}
    return {name: _read(name, file) for name, file in found.items()}


def templates_beside(template: JudgeTemplate) -> list[JudgeTemplate]:
    """All templates of a template's folder, itself among them, in the order of their files."""
    if ":" not in template.name:
        return [row for row in own_templates().values() if row.text.path.parent == template.text.path.parent]
    package, _, path = template.name.rpartition(":")
    folder, slash, _ = path.rpartition("/")
    files = sorted(packaged_folder(package).joinpath(folder).iterdir(), key=lambda file: file.name)
    # The folder may also hold templates of prompts, whose heads name no form of replies.
    names = [file.name[:-4] for file in files if file.name.endswith(".txt") and "form" in HeadedTemplate(file).head()]
    return [judge_template(f"{package}:{folder}{slash}{name}") for name in names]


def following(template: JudgeTemplate) -> JudgeTemplate | None:
    """The template that is asked after this one (`then`); None where there is none."""
    if not template.then:
        return None
    return judge_template(template.name.removesuffix(template.text.path.name[:-4]) + template.then)


@cache
def _packaged(name: str, package: str, path: str) -> JudgeTemplate:
    try:
        file = packaged_folder(package).joinpath(f"{path}.txt")
    except CulturevalError as error:
        raise CulturevalError(f"The judge template {name!r}: {error}") from error
    if not file.is_file():
        raise CulturevalError(f"There is no judge template {name!r} ({file} is not a file).")
    return _read(name, file)


def _read(name: str, file: Path | Traversable) -> JudgeTemplate:
    """The template of a file.

    Raises:
        CulturevalError: Its head cannot be read or has wrong settings.
    """
    from pydantic import TypeAdapter, ValidationError

    text, of = HeadedTemplate(file), f"The judge template {name} ({file})"
    try:
        settings = {"name": name, "text": text, "short": file.name.removesuffix(".txt")} | text.head()
        row = TypeAdapter(JudgeTemplate).validate_python(settings)
    except ValidationError as error:
        raise CulturevalError(f"{of} has wrong settings in its head: {wrong_settings(error)}.") from None
    except ValueError as error:
        raise CulturevalError(f"{of} {error}.") from error
    needed = {"likert": "criteria", "json": "criteria", "label": "labels", "binary": "criteria"}.get(row.form)
    if needed and not getattr(row, needed):
        raise CulturevalError(f"{of} has the form {row.form!r} and no `{needed}` in its head.")
    if row.judged not in row.slots:
        raise CulturevalError(f"{of} has no slot ${row.judged}, so that the judge would not see what it judges.")
    return row
