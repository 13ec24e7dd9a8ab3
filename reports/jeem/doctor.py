"""What JEEM needs besides packages."""

from cultureval.metrics import semantic
from cultureval.reports.doctor import Finding, tried


def findings() -> list[Finding]:
    """BERTScore's model of captions."""
    model, layer = semantic.caption_bertscore_model()
    what = f"BERTScore model of captions {model}, layer {layer}"
    return [tried(what, semantic.check_caption_bertscore, "JEEM's tasks cannot be scored")]
