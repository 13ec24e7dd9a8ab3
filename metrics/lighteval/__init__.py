"""Turn scoring functions into LightEval metrics: shared pass, clustered means."""
