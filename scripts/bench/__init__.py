"""`cultureval bench`: benchmarks ours against other harnesses."""
