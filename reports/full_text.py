"""A run in full: every score of every task and average, judges' means, notes on the data, signatures."""

from collections.abc import Iterator

from cultureval.metrics.judges.items import JUDGED
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.judged import judge_scores
from cultureval.runs.means import count_of
from cultureval.runs.record import Run
from cultureval.runs.warnings import run_notes
from cultureval.runtime.rounding import printed, printed_or_na
from cultureval.tasks.catalogue import OVERALL


def full_text(run: Run, width: int | None) -> str:
    """The long table of a run and everything below it.

    Args:
        run: A results file.
        width: Of the terminal in cells; None: no limit.
    """
    cut = width is not None
    header = ("Task", "metric", "value", "±", "n")
    lines = [terminal_table(header, _score_rows(run), "llrrr", width=width, cut_words=cut)]
    lines += [*left_out_of_means(run), *judges_means(run), *run_notes(run)]
    if run.record.signatures:
        lines += ["Signatures:", *(f"  {signature.text}" for signature in run.record.signatures)]
    return "\n".join(filter(None, lines))


def left_out_of_means(run: Run) -> list[str]:
    """For each task, how many rows some metrics exclude from their means, because they have no value there.

    Judges' metrics have separate counts (`judges_means`).
    """
    lines = []
    for task in run.record.tasks.values():
        metrics_of: dict[int, list[str]] = {}
        for metric, count in task.scored.items():
            if count < task.rows and not metric.startswith(JUDGED):
                metrics_of.setdefault(task.rows - count, []).append(metric)
        for count, metrics in metrics_of.items():
            who = metrics[0] if len(metrics) == 1 else f"{metrics[0]} and {len(metrics) - 1} more"
            lines.append(f"{task.task}: {who} exclude {count} of {task.rows} rows.")
    return lines


def judges_means(run: Run) -> list[str]:
    """Judges' scores of a run: a line for each judge and task with the mean of each criterion."""
    lines = []
    for one in sorted(judge_scores(run), key=lambda one: one.task):
        cells = [f"{name} {printed_or_na(found.mean and found.mean.value)}" for name, found in one.criteria.items()]
        if not cells:
            continue
        name = f"judge_{one.judge}_{one.template}"
        lines.append("  ".join([f"  {one.task}  {name}", *cells, f"scored {one.scored}/{one.items}"]))
        if one.flagged:
            cells = [f"{name} {printed_or_na(found.unflagged)}" for name, found in one.criteria.items()]
            lines.append("  ".join(["    without flagged texts:", *cells, f"{one.scored_unflagged} scored"]))
    return ["Judges' means, from 1 to 5 (the table above has their bounds and errors):", *lines] if lines else []


def _score_rows(run: Run) -> Iterator[tuple[str, str, str, str, str]]:
    for task in sorted(run.scores):
        values, shown = run.scores[task], task
        for metric, value in values.items():
            if task == OVERALL or metric.endswith("_stderr"):
                continue
            error, (n, _) = run.stderr(task, metric), count_of(run, task, metric)
            told = "" if error is None else printed(error, 4), "" if n is None else f"{n:,}"
            yield shown, metric, printed_or_na(value, 4), *told
            shown = ""
        for metric in run.record.tasks[task].left_out if task in run.record.tasks else ():
            yield "", metric, "left out", "", ""
