"""Our tasks in the forms that other harnesses read, made from the catalogue."""
