"""Checks of items without a model: a table of small functions, each with a name, a severity and a reason."""
