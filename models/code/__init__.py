"""EvalPlus decoders for code generation."""
