"""QIMMA: its table of benchmarks, and the reader of its code problems."""
