"""Our tasks for other harnesses, made from the catalogue."""
