"""The `cultureval` command line, one module a sub-command."""
