"""Views of finished runs (`cultureval.runs`): summary, leaderboard, comparison, viewer, judging, plots."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cultureval.runs import Run as Run
    from cultureval.runs import load as load
    from cultureval.runs import scores_table as scores_table


def __getattr__(name: str) -> Any:
    """The public names of `cultureval.runs`, loaded on first use."""
    import cultureval.runs

    if name not in ("Run", "load", "scores_table"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(cultureval.runs, name)
