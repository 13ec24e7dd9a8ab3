"""AL-QASIDA: its table of benchmarks, and the readers of its sources."""
