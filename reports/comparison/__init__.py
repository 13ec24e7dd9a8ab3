"""Comparisons of runs: differences of protocols, paired tests, items that flipped, power of a test."""
