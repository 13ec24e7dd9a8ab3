"""`cultureval code` and its sub-commands."""
