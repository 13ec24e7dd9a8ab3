"""Judging of generated code with EvalPlus's problems: verdicts, pass@k, reports."""
