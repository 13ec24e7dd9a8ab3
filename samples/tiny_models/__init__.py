"""Builders of tiny random models, which the demo, the benchmarks and the tests run."""
