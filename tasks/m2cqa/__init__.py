"""M2CQA and AynVQA: their tables of benchmarks."""
