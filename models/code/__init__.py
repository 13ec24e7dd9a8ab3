"""Decoders of code generation: what EvalPlus asks for solutions."""
