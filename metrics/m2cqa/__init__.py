"""M2CQA's statement items and LightEval metrics."""
