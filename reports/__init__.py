"""What becomes of finished runs: read, write, sign, summarise, compare, plot."""
