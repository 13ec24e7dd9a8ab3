"""What a model may write around the asked line of a reply, and whether it is still read."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Wrapping:
    """What a model may write around the asked line of a reply.

    Attributes:
        name: What it is.
        wrap: From the asked line, `Final answer: LABEL`, and the label to a reply.
        strict: Whether the strict reading still reads it; the lenient one always does.
    """

    name: str
    wrap: Callable[[str, str], str] = field(repr=False)
    strict: bool = True


WRAPPINGS: tuple[Wrapping, ...] = (
    Wrapping("bold", lambda line, _: f"**{line}**"),
    Wrapping("a heading", lambda line, _: f"### {line}"),
    Wrapping("a quotation", lambda line, _: f"> {line}"),
    Wrapping("a bullet", lambda line, _: f"- {line}"),
    Wrapping("a fence with a language", lambda line, _: f"```text\n{line}\n```"),
    Wrapping("LaTeX around the label", lambda line, label: line.removesuffix(label) + rf"\(\boxed{{{label}}}\)"),
    Wrapping("quotation marks", lambda line, label: f"{line.removesuffix(label)}«{label}»"),
    Wrapping("brackets", lambda line, label: f"{line.removesuffix(label)}({label})"),
    Wrapping("the label on the next line", lambda line, label: f"{line.removesuffix(label)}\n{label}"),
    Wrapping("an exclamation mark", lambda line, _: f"{line}!"),
    Wrapping("an emoji", lambda line, _: f"{line} ✅"),
    Wrapping("direction marks", lambda line, label: f"{line.removesuffix(label)}\u2067{label}\u2069"),
    Wrapping("tatweel and a vowel mark", lambda line, _: f"{line}\u0640\u064f"),
    Wrapping("line ends of Windows", lambda line, _: f"...\r\n{line}\r\n"),
    Wrapping("reasoning before", lambda line, _: f"لنفكر في كل خيار على حدة.\n\n{line}"),
    Wrapping("politeness after", lambda line, _: f"{line}\n\nأتمنى أن يكون هذا مفيدًا!", strict=False),
    Wrapping("a next question", lambda line, _: f"{line}\n\nالسؤال التالي: ما هو؟\nالإجابة النهائية: ؟", strict=False),
    Wrapping("JSON", lambda line, label: f'{{"answer": "{label}"}}', strict=False),
    Wrapping("a tag", lambda line, label: f"<answer>{label}</answer>"),
)
