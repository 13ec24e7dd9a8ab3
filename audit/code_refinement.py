"""Refinement of Arabic code prompts: a model rewrites the Arabic of docstrings, and an edit counts only if it is that.

QIMMA's paper (arXiv 2604.03395, Section 4.2 and Appendix C) discards no code problem: a model corrects the Arabic
inside the docstring, and says where a person should look. It reports 145 of 164 prompts of HumanEval+ modified (88 %)
and 308 of 378 of MBPP+ (81 %), and not which model did it. The prompt is the paper's, `prompts/code.txt`. Ours is that
no reply is believed: an edit counts only if nothing but the Arabic of the docstring changed, found by parsing
(`check_refinement`); any other reply, and each that asks for a person, goes to review, and until then the
source's prompt is used.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cultureval.judge_prompts.replies import JudgeReplyError
from cultureval.metrics.judges.asking import Asker, ModelQuestion, ModelReply
from cultureval.prompts.qimma.refined_prompts import check_refinement, code_and_docstrings
from cultureval.runtime.csv_files import read_csv
from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.errors import BadRow, CulturevalError
from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.text_templates import TextTemplate

TEMPLATE = TextTemplate(Path(__file__).parent / "prompts" / "code.txt")
MAX_TOKENS = 4096
LONGEST_REPLY = 100_000  # characters
Outcome = Literal["modified", "unchanged", "review"]

_FENCE = re.compile(r"\A```\w*\n(.*?)\n?```\Z", re.DOTALL)
_HEADER = re.compile(r'\A"?Fixed"?[ ]*(?:[,;\t|][ ]*"?Human Check"?)?[ ]*:?[ ]*\r?\n', re.IGNORECASE)
_CHECK = re.compile(r'(?:[,;\t|]\s*|\n\s*(?:Human Check\s*[:,]?\s*)?)"?(yes|no)"?\s*\Z', re.IGNORECASE)


@dataclass(frozen=True)
class Proposal:
    """What a reply proposes.

    Attributes:
        candidates: The function as it may be meant: a cell of CSV quotes its text, or does not.
        human_check: Whether the model asks for a person.
    """

    candidates: tuple[str, ...]
    human_check: bool


@dataclass(frozen=True)
class Refined:
    """What became of a problem's prompt.

    Attributes:
        prompt: The prompt to use: the refined one where the edit counts, else the source's.
        proposed: The model's, whether or not it counts; "" without a readable reply.
        outcome: "modified" and "unchanged" as the paper counts, or "review".
        reason: Why a person should look: "human_check", "not_only_arabic", "no_reply"; "" otherwise.
        detail: The same as a clause.
    """

    task_id: str
    original: str
    prompt: str
    proposed: str
    outcome: Outcome
    reason: str = ""
    detail: str = ""


def refinement_questions(prompts: Mapping[str, str]) -> list[ModelQuestion]:
    """One question a problem, with the paper's prompt."""
    return [ModelQuestion(name, TEMPLATE.render(full_function_code=text.strip())) for name, text in prompts.items()]


def refine(asker: Asker, prompts: Mapping[str, str]) -> list[Refined]:
    """Asks a model to refine prompts (problem -> prompt), and checks what it changed; one for each, in their order."""
    replies = asker.ask(refinement_questions(prompts), lambda _, text: read_proposal(text), "refinements")
    return [refined_prompt(name, text, replies[name]) for name, text in prompts.items()]


def refined_prompt(task_id: str, original: str, reply: ModelReply[Proposal]) -> Refined:
    """What a reply makes of a prompt; line ends around the function are those of the source."""
    if reply.value is None:
        return Refined(task_id, original, original, "", "review", "no_reply", reply.problem)
    start = original[: len(original) - len(original.lstrip())]
    end = original[len(original.rstrip()) :]
    candidates = [f"{start}{one.strip()}{end}" for one in reply.value.candidates]
    problems: list[str] = []
    for candidate in candidates:
        try:
            check_refinement(original, candidate)
        except BadRow as error:
            problems.append(str(error))
            continue
        if reply.value.human_check:
            detail = "the model asks for a person"
            return Refined(task_id, original, original, candidate, "review", "human_check", detail)
        return Refined(task_id, original, candidate, candidate, "unchanged" if candidate == original else "modified")
    place = next((place for place, one in enumerate(candidates) if _is_python(one)), 0)
    return Refined(task_id, original, original, candidates[place], "review", "not_only_arabic", problems[place])


def read_proposal(text: str) -> Proposal:
    """The function and the flag of a reply "in a CSV-style format with two columns".

    Models quote the cell as CSV does, quote it without doubling its quotes, or do not quote it: all readings are
    candidates, of which the check of the edit takes at most the one that fits the source.

    Raises:
        JudgeReplyError: There is no Yes or No at its end, or no function.
    """
    text = split_reasoning(text)[0].strip().removeprefix("\ufeff")
    if len(text) > LONGEST_REPLY:
        raise JudgeReplyError(f"the reply has {len(text):,} characters")
    if fenced := _FENCE.match(text):
        text = fenced[1].strip()
    body = _HEADER.sub("", text, count=1)
    flag = _CHECK.search(body)
    if flag is None:
        raise JudgeReplyError("the reply does not end with Yes or No, as its column Human Check should")
    found = dict.fromkeys(one for one in _candidates(body, body[: flag.start()].strip()) if one.strip())
    if not found:
        raise JudgeReplyError("the reply has no function")
    return Proposal(tuple(found), flag[1].lower() == "yes")


def _candidates(body: str, cell: str) -> Iterator[str]:
    for delimiter in ",;\t|":
        try:
            rows = [row for row in csv.reader(io.StringIO(body, newline=""), delimiter=delimiter, strict=True) if row]
        except csv.Error:
            continue
        if len(rows) == 1 and len(rows[0]) == 2:
            yield rows[0][0]
    yield cell
    if len(cell) > 1 and cell[0] == cell[-1] == '"':
        yield cell[1:-1]
        yield cell[1:-1].replace('""', '"')


def _is_python(prompt: str) -> bool:
    try:
        code_and_docstrings(prompt)
    except BadRow:
        return False
    return True


def read_reviewed(file: Path, saved: Mapping[str, tuple[str, Path]]) -> dict[str, list[Refined]]:
    """The prompts of earlier refinements after people have looked at those to review.

    Args:
        file: The filled table: task_id, verdict, proposed.
        saved: Name of a data set -> the beginning of its problems' names, and the file of its refined prompts.

    Returns:
        Name of a data set -> its prompts; without those that were neither refined nor reviewed.

    Raises:
        CulturevalError: A file cannot be read, or a row is of no data set or breaks a rule of `with_reviews`.
    """
    rows = [row for _, row in read_csv(file, ("task_id", "verdict", "proposed"))]
    found: dict[str, list[Refined]] = {}
    for name, (prefix, prompts) in saved.items():
        mine = [row for row in rows if row["task_id"].startswith(prefix)]
        if not mine and not prompts.is_file():
            continue
        rows = [row for row in rows if not row["task_id"].startswith(prefix)]
        try:
            refined = [Refined(**row) for row in read_rows(prompts)]
        except TypeError:
            raise CulturevalError(f"{prompts} is not what `cultureval audit code` writes.") from None
        found[name] = with_reviews(refined, mine)
    if rows:
        raise CulturevalError(f"{file}: {rows[0]['task_id']!r} is no problem of these data sets.")
    return found


def with_reviews(refined: Sequence[Refined], reviews: Sequence[Mapping[str, object]]) -> list[Refined]:
    """The prompts after people have looked at those to review.

    `reviews` are rows with `task_id`, `verdict` (accept, keep, or empty while open) and `proposed`, which may have been
    edited; an accepted one is held to the lenient rule by which prompts are scored.

    Raises:
        CulturevalError: An unknown problem, one that is not to be reviewed, an unknown verdict, or an accepted prompt
            that changes more than the Arabic of its docstring.
    """
    waiting = {one.task_id: one for one in refined if one.outcome == "review"}
    decided: dict[str, Refined] = {}
    for number, row in enumerate(reviews, start=1):
        name, verdict = str(row.get("task_id") or ""), str(row.get("verdict") or "").strip().lower()
        if name not in waiting or name in decided:
            why = "twice" if name in decided else "and it is not one of those to review"
            raise CulturevalError(f"Row {number} of the reviews names {name!r} {why}.")
        if verdict not in ("accept", "keep", ""):
            raise CulturevalError(
                f"Row {number} of the reviews ({name}): the verdict {verdict!r} is not accept or keep."
            )
        if verdict:
            decided[name] = _decided(waiting[name], verdict, str(row.get("proposed") or ""))
    return [decided.get(one.task_id, one) for one in refined]


def _decided(one: Refined, verdict: str, proposed: str) -> Refined:
    original = one.original
    prompt = original
    if verdict == "accept":
        prompt = f"{proposed.strip()}{original[len(original.rstrip()) :]}".replace("\r\n", "\n")
        try:
            check_refinement(original, prompt)
        except BadRow as error:
            raise CulturevalError(
                f"The review of {one.task_id} accepts a prompt that cannot be used: {error}."
            ) from error
    outcome: Outcome = "unchanged" if prompt == original else "modified"
    return Refined(one.task_id, original, prompt, proposed, outcome, "person", f"a person said: {verdict}")
