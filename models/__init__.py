"""Model files for `lighteval custom`: how a model is run."""
