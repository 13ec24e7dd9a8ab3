"""Finished runs: read, write, sign, summarise, compare, plot."""
