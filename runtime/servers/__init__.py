"""OpenAI-compatible servers: client, answers, errors, settings."""
