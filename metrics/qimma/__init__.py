"""QIMMA's LightEval metrics."""
