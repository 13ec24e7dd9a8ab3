"""Samples and result files of code generation."""
