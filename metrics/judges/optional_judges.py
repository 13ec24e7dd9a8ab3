"""Judges of a run, whose code is loaded only if CULTUREVAL_JUDGE names one."""

from typing import TYPE_CHECKING

from cultureval.runtime.settings import current_settings

if TYPE_CHECKING:
    from lighteval.metrics.utils.metric_utils import SampleLevelMetric


def judges_wanted() -> bool:
    """Whether CULTUREVAL_JUDGE names a judge."""
    return bool(current_settings().judges)


def judge_metrics(*templates: str) -> "list[SampleLevelMetric]":
    """As `lighteval_metrics.judge_metrics`: the metrics of the configured judges, [] without one."""
    if not judges_wanted():
        return []
    from cultureval.metrics.judges import lighteval as lighteval_metrics

    return lighteval_metrics.judge_metrics(*templates)


def signatures_of_judges(*templates: str) -> str | None:
    """Everything that the configured judges' scores depend on, for a signature; None without a judge."""
    if not judges_wanted():
        return None
    from cultureval.metrics.judges import lighteval as lighteval_metrics

    return lighteval_metrics.signatures_of_judges(*templates)


def check_judges() -> None:
    """Check the configured judges without cost: settings, keys, and whether the servers answer and have the models."""
    if judges_wanted():
        from cultureval.metrics.judges import identity

        identity.check_judges()


def usable_judges() -> tuple[tuple[str, ...], dict[str, str]]:
    """As `identity.usable_judges`: which judges can be asked, and why the others cannot."""
    if not judges_wanted():
        return (), {}
    from cultureval.metrics.judges import identity

    return identity.usable_judges()
