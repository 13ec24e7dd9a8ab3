"""M2CQA's items of statements and LightEval metrics."""
