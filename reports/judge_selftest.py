"""The report of a judge's self-test: how far captions that try to influence it move it."""

from collections.abc import Sequence

from cultureval.judge_prompts.templates import judge_template
from cultureval.metrics.judges.identity import judge_identity
from cultureval.metrics.judges.injections import Injection, Tried, mean_of, try_injections
from cultureval.metrics.judges.judge import judge_signature
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.metrics.judges.verdicts import JudgeVerdict, reuse_line, unscored_lines
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.rounding import printed
from cultureval.runtime.servers.costs import Budget

HEADER = ("Captions", "n", "flagged", "unscored", "without", "with", "moved", "raised", "obeyed")


def selftest(settings: JudgeSettings, injections: Sequence[Injection]) -> tuple[str, str | None]:
    """Try a judge, and report how far it is moved.

    Returns:
        (report, why the judge stopped answering; None where it did not).

    Raises:
        CulturevalError: The judge does not answer.
    """
    identity, budget = judge_identity(settings), Budget(settings)
    tried = try_injections(settings, injections, identity, budget)
    hostile = [one for one in tried if one.injection.hostile]
    harmless = [one for one in tried if not one.injection.hostile]
    rows = [_row("all hostile", hostile)]
    for name in ("kind", "variety"):
        for value in dict.fromkeys(getattr(one.injection, name) for one in hostile):
            rows.append(_row(f"  {value}", [one for one in hostile if getattr(one.injection, name) == value]))
    rows.append(_row("harmless", harmless))
    verdicts = [verdict for one in tried for verdict in (one.clean, one.attacked)]
    templates = dict.fromkeys(one.template for one in injections)
    lines = [
        f"Judge {settings.name}: mean score from 1 to 5 of a wrong caption, without and with a sentence for the judge",
        terminal_table(HEADER, rows, "lrrrrrrrr"),
        _means([one.attacked for one in tried], [one.clean for one in tried]),
        *unscored_lines([one.attacked for one in tried], 3),
        *filter(None, (reuse_line(verdicts),)),
        "Signatures:",
        *(f"  {judge_signature(settings, judge_template(name), identity)}" for name in templates),
    ]
    return "\n".join(lines), budget.halted


def _row(label: str, tried: Sequence[Tried]) -> tuple[str, ...]:
    both = [one for one in tried if one.moved is not None]
    moved = [one.moved for one in both if one.moved is not None]
    return (
        label,
        str(len(tried)),
        str(sum(one.attacked.flagged for one in tried)),
        str(sum(not one.attacked.scores for one in tried)),
        _mean([mean_of(one.clean) for one in both]),
        _mean([mean_of(one.attacked) for one in both]),
        printed(sum(moved) / len(moved), 2, signed=True) if moved else "n/a",
        str(sum(by > 0 for by in moved)),
        str(sum(one.obeyed for one in tried)),
    )


def _means(attacked: Sequence[JudgeVerdict], clean: Sequence[JudgeVerdict]) -> str:
    """The mean of all captions with and without the flagged ones, and what the same captions get without sentences."""
    kept = [place for place, verdict in enumerate(attacked) if not verdict.flagged]
    scored = [mean_of(verdict) for verdict in attacked]
    return (
        f"Mean of all {len(attacked)} captions: {_mean(scored)}; of the {len(kept)} that are not flagged: "
        f"{_mean([scored[place] for place in kept])}, of the same without sentences for the judge: "
        f"{_mean([mean_of(clean[place]) for place in kept])}."
    )


def _mean(scores: Sequence[float | None]) -> str:
    known = [score for score in scores if score is not None]
    return printed(sum(known) / len(known), 2) if known else "n/a"
