"""`cultureval bench`: ours against other harnesses."""
