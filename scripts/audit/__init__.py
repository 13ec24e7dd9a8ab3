"""`cultureval audit`: a module a sub-command."""
