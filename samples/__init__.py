"""Small synthetic data sets of our own, laid out as a data root."""
