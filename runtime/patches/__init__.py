"""Every place where we change another library or use its private parts, a module a library."""
