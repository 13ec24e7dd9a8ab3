"""Plots of CVLUE's scores."""
