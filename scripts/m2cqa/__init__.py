"""`cultureval compare m2cqa`: cells of saved runs, comparisons, plots."""
