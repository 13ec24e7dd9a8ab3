"""Log-likelihoods of choices: token tree, prefix cache, lm_head, packed and fallback routes."""
