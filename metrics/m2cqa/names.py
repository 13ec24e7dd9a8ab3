"""The metrics of M2CQA: `cfhr` under the strict profile is the headline; the lax profiles are suffixes."""

from cultureval.metrics.declared import declare

STRICT = ("cfhr", "q_plus_acc", "q_minus_acc", "f1", "combined_acc", "invalid_rate", "cfhr_valid_only")
COUNTS = ("n_items", "n_q_plus")
LAX = ("cfhr", "q_plus_acc", "q_minus_acc", "invalid_rate")
LAX_PROFILES = ("tolerant", "lenient")

_NAMES = (*STRICT, *COUNTS, *(f"{name}_{profile}" for profile in LAX_PROFILES for name in LAX))
STATEMENTS = declare(*_NAMES, counts=COUNTS, lower=[name for name in _NAMES if name.startswith(("cfhr", "invalid"))])
