"""LLM judges: settings, questions to models on servers, verdicts, metrics."""
