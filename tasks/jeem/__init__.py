"""JEEM: its table of benchmarks."""
