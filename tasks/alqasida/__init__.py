"""AL-QASIDA: its table of benchmarks and readers of its sources."""
