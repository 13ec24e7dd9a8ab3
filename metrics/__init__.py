"""Pure scoring functions, and the LightEval Metric objects that wrap them."""
