"""Single answers in Inspect's log viewer: logs, and a static bundle for publishing."""
