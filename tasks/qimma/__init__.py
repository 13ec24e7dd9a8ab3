"""QIMMA: its table of benchmarks, and the readers of its code problems."""
