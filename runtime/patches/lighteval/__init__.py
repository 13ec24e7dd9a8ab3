"""Everything that changes LightEval: its start-up and the deferral of its imports."""
