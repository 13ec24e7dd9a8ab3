"""Finding bad benchmark items: checks, judging, decisions, manifests, cleaned data; it knows no command line."""
