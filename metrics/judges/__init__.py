"""How items reach LLM judges and what comes back: settings, costs, sessions, verdicts."""
