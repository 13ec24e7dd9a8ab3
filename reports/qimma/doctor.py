"""What QIMMA needs besides packages."""

from dataclasses import replace

from cultureval.metrics import semantic
from cultureval.reports.doctor import Finding, check_sandbox, scored_by, tried
from cultureval.tasks.qimma.kinds import BERTSCORE, SANDBOX


def findings() -> list[Finding]:
    """BERTScore's model, and the sandbox of generated code."""
    model = semantic.bertscore_model()
    cost = "QA and FannOrFlop tasks cannot be scored"
    check, scored, code = semantic.check_bertscore_model, scored_by("qimma", BERTSCORE), scored_by("qimma", SANDBOX)
    return [
        tried("BERTScore model", lambda: check(model), cost, scored, model),
        *(replace(one, tasks=code) for one in check_sandbox()),
    ]
