"""Rendering of prompts and generation of answers."""
