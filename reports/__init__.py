"""Views of finished runs (`cultureval.runs`): summary, leaderboard, comparison, viewer, judging, plots."""
