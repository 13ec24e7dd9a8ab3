"""Reconciliation: one model, one benchmark, the forms of all boards on the same rows."""
