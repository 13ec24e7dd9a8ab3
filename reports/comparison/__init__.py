"""Comparisons of runs: what keeps them apart, paired tests, items that flipped, the size of what can be seen."""
