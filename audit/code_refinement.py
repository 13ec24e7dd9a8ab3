"""Refinement of Arabic code prompts: a model edits the Arabic of docstrings, and parsing proves that it edits no more.

QIMMA's paper (arXiv 2604.03395, Section 4.2 and Appendix C) discards no code problem: a model corrects the Arabic of
the docstring, and says where a person should look. The paper does not name the model. It reports 145 of 164 prompts of
HumanEval+ modified (88 %) and 308 of 378 of MBPP+ (81 %). The prompt is the paper's, `prompts/code.txt`. The proof is
ours (`check_refinement`): any other edit, and each that the model flags, goes to people. Until they accept it, the
source's prompt is used.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cultureval.judge_prompts.replies import JudgeReplyError
from cultureval.metrics.judges.asking import Asker, ModelQuestion, ModelReply
from cultureval.prompts.qimma.refined_prompts import check_refinement
from cultureval.runtime.csv_files import read_csv
from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.errors import BadRow, CulturevalError
from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.text_templates import TextTemplate

TEMPLATE = TextTemplate(Path(__file__).parent / "prompts" / "code.txt")
MAX_TOKENS = 4096
PERSON = "person"  # the reason of a prompt that a person decided on
Proposal = tuple[tuple[str, ...], bool]  # readings of the function, and whether the model asks for a person
Outcome = Literal["modified", "unchanged", "review"]

_FENCE = re.compile(r"\A```\w*\n(.*?)\n?```\Z", re.DOTALL)
_HEADER = re.compile(r'\A"?Fixed"?[ ]*(?:,[ ]*"?Human Check"?)?[ ]*:?[ ]*\r?\n', re.IGNORECASE)
_CHECK = re.compile(r'(?:,\s*|\n\s*(?:Human Check\s*[:,]?\s*)?)"?(yes|no)"?\s*\Z', re.IGNORECASE)


@dataclass(frozen=True)
class Refined:
    """What became of a problem's prompt.

    Attributes:
        prompt: The prompt to use: the refined one where the edit counts, else the source's.
        proposed: The model's, whether or not it counts; "" without a readable reply.
        outcome: "modified" and "unchanged" as the paper counts, or "review".
        reason: Why a person should look: "human_check", "not_only_arabic", "no_reply"; who decided: `PERSON`; else "".
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
    """Asks a model to refine prompts (problem -> prompt), and checks each edit; results in the order of the prompts."""
    replies = asker.ask(refinement_questions(prompts), lambda _, text: read_proposal(text), "refinements")
    return [refined_prompt(name, text, replies[name]) for name, text in prompts.items()]


def refined_prompt(task_id: str, original: str, reply: ModelReply[Proposal]) -> Refined:
    """What a reply makes of a prompt; line ends around the function are those of the source."""
    if reply.value is None:
        return Refined(task_id, original, original, "", "review", "no_reply", reply.problem)
    start = original[: len(original) - len(original.lstrip())]
    end = original[len(original.rstrip()) :]
    candidates = [f"{start}{text.strip()}{end}" for text in reply.value[0]]
    problems = [problem_of(original, candidate) for candidate in candidates]
    if "" not in problems:
        return Refined(task_id, original, original, candidates[0], "review", "not_only_arabic", problems[0])
    candidate = candidates[problems.index("")]
    if reply.value[1]:
        return Refined(task_id, original, original, candidate, "review", "human_check", "the model asks for a person")
    return Refined(task_id, original, candidate, candidate, "unchanged" if candidate == original else "modified")


def problem_of(original: str, candidate: str) -> str:
    """What a candidate changes besides the Arabic of the docstring, as a clause; "" if nothing."""
    try:
        check_refinement(original, candidate)
    except BadRow as error:
        return str(error)
    return ""


def read_proposal(text: str) -> Proposal:
    """The function and the flag of a reply "in a CSV-style format with two columns".

    Models quote the cell as CSV does, quote it without doubling its quotes, or do not quote it. Each reading is a
    candidate; the check of the edit accepts at most one.

    Raises:
        JudgeReplyError: There is no Yes or No at its end, or no function.
    """
    text = split_reasoning(text)[0].strip().removeprefix("\ufeff")
    if fenced := _FENCE.match(text):
        text = fenced[1].strip()
    body = _HEADER.sub("", text, count=1)
    flag = _CHECK.search(body)
    if flag is None:
        raise JudgeReplyError("the reply does not end with Yes or No, as its column Human Check should")
    found = dict.fromkeys(one for one in _candidates(body, body[: flag.start()].strip()) if one.strip())
    if not found:
        raise JudgeReplyError("the reply has no function")
    return tuple(found), flag[1].lower() == "yes"


def _candidates(body: str, cell: str) -> Iterator[str]:
    try:
        rows = [row for row in csv.reader(io.StringIO(body, newline=""), strict=True) if row]
    except csv.Error:
        rows = []
    if len(rows) == 1 and len(rows[0]) == 2:
        yield rows[0][0]
    if len(cell) > 1 and cell[0] == cell[-1] == '"':
        yield cell[1:-1]
        yield cell[1:-1].replace('""', '"')
    yield cell


def read_reviewed(file: Path, saved: Mapping[str, Path]) -> dict[str, list[Refined]]:
    """The prompts of the reviewed data sets after people have looked at those to review; the last verdict counts.

    Args:
        file: The filled table: task_id, verdict (accept, keep, or empty while open), and proposed, which people may
            edit. An accepted prompt is held to the rule by which prompts are scored.
        saved: Name of a data set -> the file of its refined prompts; those that are not there are left out.

    Raises:
        CulturevalError: A file cannot be read, a row is of no prompt to review, a verdict is unknown, there are none,
            or an accepted prompt changes more than the Arabic of its docstring.
    """
    try:
        refined = {name: [Refined(**row) for row in read_rows(path)] for name, path in saved.items() if path.is_file()}
    except TypeError:
        raise CulturevalError(f"{file}: the prompts beside it are not what `cultureval audit code` writes.") from None
    every = [prompt for some in refined.values() for prompt in some]
    waiting = {one.task_id: one for one in every if one.outcome == "review" or one.reason == PERSON}
    decided: dict[str, Refined] = {}
    for line, row in read_csv(file, ("task_id", "verdict", "proposed")):
        task_id, verdict, where = row["task_id"], row["verdict"].strip().lower(), f"{file}, line {line}"
        if task_id not in waiting or task_id in decided:
            why = "is there twice" if task_id in decided else "is no prompt to review"
            raise CulturevalError(f"{where}: {task_id!r} {why}.")
        if verdict not in ("accept", "keep", ""):
            raise CulturevalError(f"{where}: the verdict on {task_id} is {verdict!r}: write accept or keep.")
        if verdict:
            decided[task_id] = _reviewed(waiting[task_id], verdict, row["proposed"], where)
    if not decided:
        raise CulturevalError(f"{file}: there are no verdicts.")
    reviewed = {name: some for name, some in refined.items() if decided.keys() & {prompt.task_id for prompt in some}}
    return {name: [decided.get(prompt.task_id, prompt) for prompt in some] for name, some in reviewed.items()}


def _reviewed(waiting: Refined, verdict: str, proposed: str, where: str) -> Refined:
    original = prompt = waiting.original
    if verdict == "accept":
        prompt = f"{proposed.strip()}{original[len(original.rstrip()) :]}".replace("\r\n", "\n")
        if problem := problem_of(original, prompt):
            raise CulturevalError(f"{where}: the accepted prompt of {waiting.task_id} cannot be used: {problem}.")
    outcome: Outcome = "unchanged" if prompt == original else "modified"
    return Refined(waiting.task_id, original, prompt, proposed, outcome, PERSON, f"a person wrote: {verdict}")
