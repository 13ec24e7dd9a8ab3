"""From a dataset row to a LightEval Doc: checks, templates and prompt functions."""
