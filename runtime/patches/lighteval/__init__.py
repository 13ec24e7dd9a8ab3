"""Everything that changes LightEval."""
