"""The agreement of raters, of the module `agreement`, under the name that programs import it by."""

from cultureval.metrics.agreement import gwet_ac1, krippendorff_alpha, rater_agreement

__all__ = ["gwet_ac1", "krippendorff_alpha", "rater_agreement"]
