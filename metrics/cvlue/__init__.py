"""CVLUE's LightEval metrics and submission files."""
