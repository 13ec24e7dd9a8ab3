"""Single answers in Inspect's log viewer: logs beside the results, and a static bundle for publishing."""
