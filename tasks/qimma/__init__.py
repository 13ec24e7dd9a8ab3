"""QIMMA: its table of benchmarks and readers of its code problems."""
