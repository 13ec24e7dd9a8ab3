"""What JEEM needs besides packages."""

from cultureval.metrics import semantic
from cultureval.reports.doctor import Finding, tried
from cultureval.runtime.extras import require_camel_tools


def findings() -> list[Finding]:
    """BERTScore's model of captions, and what splits words."""
    model, _ = semantic.caption_bertscore_model()
    check, cost = semantic.check_caption_bertscore, "JEEM's tasks cannot be scored"
    words = tried("camel-tools", require_camel_tools, cost)
    return [tried("BERTScore model of captions", check, cost, name=model), words]
