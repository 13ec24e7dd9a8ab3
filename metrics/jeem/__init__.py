"""JEEM's LightEval metrics."""
