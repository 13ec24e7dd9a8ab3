"""People's review of items: verdicts, files of other tools, the page on this machine."""
