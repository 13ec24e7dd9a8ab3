"""How a scoring function becomes a LightEval metric: one shared pass, clustered means."""
