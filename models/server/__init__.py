"""Scoring and chat over OpenAI-compatible servers."""
