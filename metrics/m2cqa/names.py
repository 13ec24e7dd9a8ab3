"""The metrics of M2CQA: `cfhr` under the strict profile is the headline; the other profiles are suffixes."""

from cultureval.metrics.declared import declare

CFHR, Q_PLUS_ACC, Q_MINUS_ACC, F1, COMBINED_ACC = "cfhr", "q_plus_acc", "q_minus_acc", "f1", "combined_acc"
INVALID_RATE, CFHR_VALID_ONLY = "invalid_rate", "cfhr_valid_only"
N_ITEMS, N_Q_PLUS = "n_items", "n_q_plus"

STRICT = (CFHR, Q_PLUS_ACC, Q_MINUS_ACC, F1, COMBINED_ACC, INVALID_RATE, CFHR_VALID_ONLY)
COUNTS = (N_ITEMS, N_Q_PLUS)
LAX = (CFHR, Q_PLUS_ACC, Q_MINUS_ACC, INVALID_RATE)
LAX_PROFILES = ("tolerant", "lenient", "organisers")

_NAMES = (*STRICT, *COUNTS, *(f"{name}_{profile}" for profile in LAX_PROFILES for name in LAX))
STATEMENTS = declare(*_NAMES, counts=COUNTS, lower=[name for name in _NAMES if name.startswith(("cfhr", "invalid"))])
