"""Judge templates: text files with `$name` slots, in the folder of each suite, with their settings in the head.

    ---
    form: likert
    judged: generated
    criteria: [Consistency, Fluency]
    ---
    Rate the caption: $generated
    ...

The settings are the attributes of `JudgeTemplate` except name and text. A template's hash is that of the text below the
head. Our template `<suite>/<rest>.txt` below this folder has the name `<suite>_<rest>`; one of another package has
`PACKAGE:FOLDER/FILE`.

JEEM's wording is the paper's (arXiv 2503.21910, Figures 7-11; checked word for word). Ours are: the line breaks;
the MSA files without Dialect Authenticity (the captions of Figures 7 and 8 mention them, but print no prompt); that
labelling prompts end before the slot that the judge fills; topic_group, since no prompt is printed for the 13
categories of Table 7; the optional delimiters around texts.

AL-QASIDA's templates are ours: one for each criterion, with the scales of its human ratings (Adherence from 1 to 3, the
others from 1 to 5). Fulfilment is Adherence from 1 to 5.

The wording of `mcq.txt` and `qa.txt` in `audit/` is that of QIMMA's paper (arXiv 2604.03395, Appendix C; checked word
for word). Ours are: line breaks and bullets; in `qa.txt` the sign `=` before the two meanings of a score; the commas
after the scores in the form of the reply; in `mcq_image.txt` and `qa_image.txt` the sentences on the image and on other
languages.
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from cultureval.judge_prompts.replies import HIGHEST, ReplyReading, read_binary, read_label, read_line, read_scores
from cultureval.runtime.errors import CulturevalError, wrong_settings
from cultureval.runtime.text_templates import HeadedTemplate, TextTemplate, packaged_folder, short_hash

FOLDER = Path(__file__).parent
NOTICE = TextTemplate(FOLDER / "delimiter_notice.txt")
ASKED_AGAIN = TextTemplate(FOLDER / "asked_again.txt")  # added to a prompt if the first reply was no verdict


class JudgeTemplate(BaseModel):
    """A prompt for a judge, and the form of its reply.

    Attributes:
        name: Its name in tables and files.
        short: Its part of a metric's name, by default the file's name; templates of one folder with the same question
            may share it.
        form: The reply's form: "likert" (lines of scores, or a JSON object of them), "label" (one of `labels`), "line"
            (a free text), or "binary" (a JSON object of criteria scored 0 or 1 with an explanation of each 0).
        judged: The slot of the judged text.
        criteria: The criteria, scored from 1 to 5, or with 0 and 1 in the form "binary".
        cascade: Criterion -> the criteria that must be 0 if it is 0, in the form "binary".
        highest: Criterion -> the highest score of its scale, if it is not 5.
        images: Whether the images of the item are sent.
        labels: Label -> further spellings of it in a reply.
        prefix: Text with which the reply may begin, before a colon.
        trusted: Slots with our own texts.
        reply_tokens: Approximate number of tokens of a valid reply, for estimates of cost.
        then: A template of the same folder that maps the reply's free text to a label. Its slot with this template's
            short name gets the text, its slot `categories` the labels.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    name: str
    text: HeadedTemplate
    short: str
    form: Literal["likert", "label", "line", "binary"]
    judged: str
    criteria: tuple[str, ...] = ()
    images: bool = False
    labels: Mapping[str, tuple[str, ...]] = {}
    prefix: str = ""
    trusted: tuple[str, ...] = ("country",)
    reply_tokens: int = 40
    highest: Mapping[str, int] = {}
    then: str = ""
    cascade: Mapping[str, tuple[str, ...]] = {}

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needed = {"label": "labels", "line": "judged"}.get(self.form, "criteria")
        if not getattr(self, needed):
            raise ValueError(f"the form {self.form!r} needs `{needed}`")
        if self.judged not in self.slots:
            raise ValueError(f"the text has no slot ${self.judged} for the judged text")
        return self

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots that the text has."""
        return tuple(dict.fromkeys(self.text.template.get_identifiers()))

    @property
    def hash(self) -> str:
        """First eight hexadecimal digits of the SHA-256 of the text below the head."""
        return short_hash(self.text.template.template)

    def prompt(self, slots: Mapping[str, str], delimit: bool = False) -> str:
        """The prompt for one item: the paper's, word for word.

        Args:
            slots: Slot -> text; slots that the template does not have are ignored.
            delimit: Whether each foreign text is put between delimiters that it cannot close, after a notice.

        Raises:
            CulturevalError: A slot of the template is not given.
        """
        texts = {name: text if name in self.trusted else text.strip() for name, text in slots.items()}
        if not delimit:
            return self.text.render(**texts)
        marked = {name: text if name in self.trusted else _between_marks(text) for name, text in texts.items()}
        return f"{NOTICE.template.template}\n{self.text.render(**marked)}"

    def read(self, reply: str) -> ReplyReading:
        """The verdict of a judge's reply; JudgeReplyError if the reply has another form."""
        if self.form == "binary":
            return read_binary(reply, self.criteria, self.cascade)
        if self.form == "label":
            return read_label(reply, self.labels, self.prefix)
        if self.form == "line":
            return read_line(reply, self.prefix)
        return read_scores(reply, self.criteria, self.highest)

    def top(self, criterion: str) -> int:
        """The highest score of a criterion."""
        return self.highest.get(criterion, int(HIGHEST))


def _between_marks(text: str) -> str:
    """A text between marks with 32 digits of its SHA-256, which the text itself cannot contain."""
    code = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"<<<text {code}\n{text}\n{code} text>>>"


def judge_template(name: str) -> JudgeTemplate:
    """The template with this name: `<suite>_<file>`, or `PACKAGE:FOLDER/FILE` of another package, without `.txt`.

    Raises:
        CulturevalError: There is none, or its head is wrong.
    """
    package, colon, path = name.rpartition(":")
    if colon:
        return _packaged(name, package, path)
    if name not in (templates := own_templates()):
        raise CulturevalError(f"There is no judge template {name!r}. There are: {', '.join(templates)}.")
    return templates[name]


@cache
def own_templates() -> dict[str, JudgeTemplate]:
    """Our templates by name: the files in the suites' folders."""
    found = {f"{file.parent.name}_{file.stem}": file for file in sorted(FOLDER.glob("*/*.txt"))}
    return {name: _read(name, file) for name, file in found.items()}


def templates_beside(template: JudgeTemplate) -> list[JudgeTemplate]:
    """All templates of a template's folder, including itself, in the order of their files."""
    if ":" not in template.name:
        suite = template.name.removesuffix(template.text.path.name[:-4])
        return [row for name, row in own_templates().items() if name.startswith(suite)]
    package, _, path = template.name.rpartition(":")
    folder, slash, _ = path.rpartition("/")
    files = sorted(packaged_folder(package).joinpath(folder).iterdir(), key=lambda file: file.name)
    # The folder may also have prompt templates, which have no `form` in their heads.
    names = [file.name[:-4] for file in files if file.name.endswith(".txt") and "form" in HeadedTemplate(file).head()]
    return [judge_template(f"{package}:{folder}{slash}{name}") for name in names]


@cache
def _packaged(name: str, package: str, path: str) -> JudgeTemplate:
    file = packaged_folder(package).joinpath(f"{path}.txt")
    if not file.is_file():
        raise CulturevalError(f"There is no judge template {name!r} ({file} is not a file).")
    return _read(name, file)


def _read(name: str, file: Path | Traversable) -> JudgeTemplate:
    """The template of a file; CulturevalError if its head cannot be read or has wrong settings."""
    text, of = HeadedTemplate(file), f"The judge template {name} ({file})"
    try:
        settings = {"name": name, "text": text, "short": file.name.removesuffix(".txt")} | text.head()
        return JudgeTemplate.model_validate(settings)
    except ValidationError as error:
        raise CulturevalError(f"{of} has wrong settings in its head: {wrong_settings(error)}.") from None
    except ValueError as error:
        raise CulturevalError(f"{of} {error}.") from error
