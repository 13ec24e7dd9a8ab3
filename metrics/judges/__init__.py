"""LLM judges: settings, costs, sessions, verdicts."""
