"""What QIMMA needs besides packages."""

from dataclasses import replace

from cultureval.metrics import semantic
from cultureval.reports.doctor import Finding, check_sandbox, scored_by, tried
from cultureval.runtime.extras import require_camel_tools
from cultureval.tasks.qimma.kinds import BERTSCORE, SANDBOX, WORDS


def findings() -> list[Finding]:
    """BERTScore's model, what splits words of poems, and the sandbox of generated code."""
    model = semantic.bertscore_model()
    cost = "QA and FannOrFlop tasks cannot be scored"
    poems = scored_by("qimma", WORDS)
    check, scored, code = semantic.check_bertscore_model, scored_by("qimma", BERTSCORE), scored_by("qimma", SANDBOX)
    return [
        tried("BERTScore model", lambda: check(model), cost, (*scored, *poems), model),
        tried("camel-tools", require_camel_tools, "FannOrFlop cannot be scored", poems),
        *(replace(one, tasks=code) for one in check_sandbox()),
    ]
