"""Samples and plots of `cultureval analyze alqasida`."""
