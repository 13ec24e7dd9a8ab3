"""What QIMMA needs besides packages."""

from cultureval.metrics import semantic
from cultureval.reports.doctor import Finding, check_sandbox, tried


def findings() -> list[Finding]:
    """BERTScore's model, and the sandbox of generated code."""
    model = semantic.bertscore_model()
    cost = "QA and FannOrFlop tasks cannot be scored"
    return [tried(f"BERTScore model {model}", lambda: semantic.check_bertscore_model(model), cost), *check_sandbox()]
