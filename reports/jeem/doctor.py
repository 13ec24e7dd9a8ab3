"""What JEEM needs besides packages."""

from cultureval.metrics import semantic
from cultureval.reports.doctor import Finding, tried


def findings() -> list[Finding]:
    """BERTScore's model of captions."""
    model, _ = semantic.caption_bertscore_model()
    check, cost = semantic.check_caption_bertscore, "JEEM's tasks cannot be scored"
    return [tried("BERTScore model of captions", check, cost, name=model)]
