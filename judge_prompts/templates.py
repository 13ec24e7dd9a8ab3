"""The judge templates: a text file and a table row each.

The wording of the JEEM files is the paper's (arXiv 2503.21910, Figures 7-11; checked word for word). Ours are: the line
breaks, which the paper's text does not show; the MSA files (the captions of Figures 7 and 8 say that Dialect
Authenticity is left out, but print no such prompt); that the labelling prompts end before the slot that the judge
fills; topic_group, as no prompt is printed for grouping topics into the 13 categories of Table 7; and the delimiters of
`slots.py` around texts that could be taken for a part of the prompt.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cultureval.judge_prompts.replies import HIGHEST, Reading, read_json_scores, read_label, read_likert, read_line
from cultureval.judge_prompts.slots import FilledPrompt, fill
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.text_templates import TextTemplate

FOLDER = Path(__file__).parent
Form = Literal["likert", "json", "label", "line"]


@dataclass(frozen=True)
class JudgeTemplate:
    """A prompt for a judge, and how its reply is parsed.

    Attributes:
        name: Its name; the text file below this folder is `<suite>/<rest of the name>.txt`.
        short: Its part of a metric's name; two templates of one suite with the same question may share it.
        form: The reply's form: Likert lines, a JSON object, one of the labels, or a line of free text.
        judged: The slot of the judged text.
        criteria: The criteria, scored from 1 to 5.
        highest: Criterion -> the highest score of its scale, where that is not 5.
        images: Whether the images of the item are sent.
        labels: Label -> further spellings of it in a reply.
        prefix: Text with which the reply may begin, before a colon.
        trusted: Slots that hold our own texts.
        reply_tokens: Approximate number of tokens of a valid reply, for estimates of cost.
    """

    name: str
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

    @property
    def text(self) -> TextTemplate:
        """The text file."""
        suite, _, rest = self.name.partition("_")
        return TextTemplate(FOLDER / suite / f"{rest}.txt")

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots that the text has."""
        return tuple(dict.fromkeys(self.text.template.get_identifiers()))

    @property
    def hash(self) -> str:
        """First eight hexadecimal digits of the SHA-256 of the text."""
        return self.text.hash

    def prompt(self, slots: Mapping[str, str], always_delimit: bool = False) -> FilledPrompt:
        """The prompt for one item.

        Raises:
            CulturevalError: A slot of the template is not given.
        """
        return fill(self.text, slots, self.judged, self.trusted, always_delimit)

    def read(self, reply: str) -> Reading:
        """The parsed reply.

        Raises:
            JudgeReplyError: The reply is malformed.
        """
        if self.form == "likert":
            return read_likert(reply, self.criteria, self.highest)
        if self.form == "json":
            return read_json_scores(reply, self.criteria, self.highest)
        return read_label(reply, self.labels, self.prefix) if self.form == "label" else read_line(reply, self.prefix)

    def top(self, criterion: str) -> int:
        """The highest score of a criterion."""
        return self.highest.get(criterion, int(HIGHEST))


MSA_CRITERIA = ("Consistency", "Relevance", "Fluency")
CRITERIA = (*MSA_CRITERIA, "Dialect Authenticity")
# One template per criterion, so that they are judged independently. The wording is ours: in AL-QASIDA people rate
# Adherence from 1 to 3, the others from 1 to 5; here all are from 1 to 5.
ALQASIDA_CRITERIA = ("Adherence", "Adequacy", "Fluency", "Dialectal Fidelity")
QUESTION_TYPES = {"وصف": ("Descriptive",), "عد": ("Quantitative",), "تحقق": ("Yes/No",), "تصنيفي": ("Categorical",)}
TOPICS = (
    *("Places", "Celebrations", "Arts and Culture", "Nature", "Education", "Transport", "Characters"),
    *("Food and Beverages", "Sports", "Trade", "Technology", "Games", "Others"),
)

TEMPLATES: dict[str, JudgeTemplate] = {
    row.name: row
    for row in (
        JudgeTemplate("jeem_caption_image_reference", "image_reference", "likert", "generated", CRITERIA, images=True),
        JudgeTemplate("jeem_caption_reference", "reference", "likert", "generated", CRITERIA),
        JudgeTemplate(
            "jeem_caption_image_reference_msa", "image_reference", "likert", "generated", MSA_CRITERIA, images=True
        ),
        JudgeTemplate("jeem_caption_reference_msa", "reference", "likert", "generated", MSA_CRITERIA),
        JudgeTemplate("jeem_vqa", "vqa", "likert", "generated", CRITERIA, images=True),
        JudgeTemplate(
            "jeem_question_type", "question_type", "label", "question", labels=QUESTION_TYPES, prefix="النوع"
        ),
        JudgeTemplate("jeem_topic", "topic", "line", "caption_msa", prefix="الموضوع", reply_tokens=10),
        JudgeTemplate(
            *("jeem_topic_group", "topic_group", "label", "caption_msa"),
            labels=dict.fromkeys(TOPICS, ()),
            prefix="Category",
            trusted=("categories",),
            reply_tokens=5,
        ),
        *(
            JudgeTemplate(
                f"alqasida_{name.lower().replace(' ', '_')}",
                name.lower().replace(" ", "_"),
                "likert",
                "reply",
                (name,),
                trusted=("dialect",),
                reply_tokens=10,
            )
            for name in ALQASIDA_CRITERIA
        ),
    )
}


def judge_template(name: str) -> JudgeTemplate:
    """The template of a name.

    Raises:
        CulturevalError: There is none; the message names the nearest.
    """
    if name not in TEMPLATES:
        near = difflib.get_close_matches(name, TEMPLATES, n=3, cutoff=0.4)
        raise CulturevalError(f"There is no judge template {name!r}. There are: {', '.join(near or TEMPLATES)}.")
    return TEMPLATES[name]
