"""The agreement of raters: functions of `agreement` under the name that other programs import."""

from cultureval.metrics.agreement import gwet_ac1, krippendorff_alpha, rater_agreement

__all__ = ["gwet_ac1", "krippendorff_alpha", "rater_agreement"]
