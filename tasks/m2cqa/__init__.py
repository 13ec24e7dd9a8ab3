"""M2CQA: its table of benchmarks."""
