"""M2CQA: cells of saved runs, comparisons, plots."""
