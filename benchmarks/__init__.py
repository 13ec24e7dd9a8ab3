"""What `python -m benchmarks` runs: benchmarks ours against other harnesses. Beside the package, in a checkout only."""
