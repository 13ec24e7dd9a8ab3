"""Evaluation of generated code on EvalPlus's problems: verdicts, pass@k, reports."""
