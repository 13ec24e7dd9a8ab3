"""What QIMMA needs besides packages."""

from cultureval.metrics import semantic
from cultureval.reports.doctor import Finding, tried


def findings() -> list[Finding]:
    """BERTScore's model."""
    model = semantic.bertscore_model()
    cost = "QA and FannOrFlop tasks cannot be scored"
    return [tried(f"BERTScore model {model}", lambda: semantic.check_bertscore_model(model), cost)]
