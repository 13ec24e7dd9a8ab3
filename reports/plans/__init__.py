"""Plans of many runs: models with their settings by suites, what of it is finished, and what runs it."""
