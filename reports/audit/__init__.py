"""What becomes of audits: texts for terminals and a page."""
