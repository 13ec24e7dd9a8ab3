"""Judge templates as text files, and the parsers of judges' replies."""
