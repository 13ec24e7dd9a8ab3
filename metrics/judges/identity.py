"""Which judge it is that gives verdicts: its configured name, and what its servers list of the model.

Before a run the judges are checked and asked who they are, once.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cultureval.judge_prompts.templates import JudgeTemplate
from cultureval.metrics.judges.settings import JudgeSettings, configured_judges, find_judges
from cultureval.runtime.errors import CulturevalError, all_of
from cultureval.runtime.journal import Journal, open_journal
from cultureval.runtime.servers.identity import ServerIdentity, identify
from cultureval.runtime.settings import current_settings

# Fields of a request that force the form of a reply.
_FORMS = {"structured_outputs", "response_format", "regex", "json_schema", "grammar"}


def judge_identity(settings: JudgeSettings) -> ServerIdentity:
    """What a judge's servers list of its model.

    Raises:
        CulturevalError: None of the servers answers, or they serve different models.
    """
    return identify(f"The judge {settings.name}", settings)


def judge_journal(settings: JudgeSettings, identity: ServerIdentity | None) -> Journal:
    """The journal of a judge's replies."""
    about = {name: getattr(settings, name) for name in ("model", "revision", "extra_body")}
    return open_journal(f"judge-{settings.name}", **about, server=identity.known if identity else None)


def identities_of(judges: Sequence[JudgeSettings]) -> dict[str, ServerIdentity]:
    """Name of a judge -> its identity; the error names all judges that do not answer."""
    found: dict[str, ServerIdentity] = {}

    def ask(judge: JudgeSettings) -> None:
        found[judge.name] = judge_identity(judge)

    all_of([partial(ask, judge) for judge in judges])
    return found


def form_fields(settings: JudgeSettings, template: JudgeTemplate, identity: ServerIdentity | None) -> dict[str, Any]:
    """Fields of a request by which vLLM and SGLang hold the reply to the template's form; {} for other servers."""
    pattern = template.reply_pattern
    if identity is None or not pattern or not holds_to_form(settings):
        return {}
    expressions = {"vllm": {"structured_outputs": {"regex": pattern}}, "sglang": {"regex": pattern}}
    return expressions.get(identity.owner or "", {})


def holds_to_form(settings: JudgeSettings) -> bool:
    """Whether we ask for a form; not where the judge's own fields of requests do."""
    own = any(name in _FORMS or name.startswith("guided_") for name in settings.extra_body)
    return settings.hold_to_form and not own


def check_judges() -> None:
    """Check the configured judges: settings, keys, and whether the servers answer, as whom, and have the models."""
    all_of([partial(_check_judge, judge) for judge in configured_judges()])


def usable_judges() -> tuple[tuple[str, ...], dict[str, str]]:
    """The entries of CULTUREVAL_JUDGE whose judges can all be asked; and why not, by the name of each other judge."""
    usable, reasons = [], {}
    for entry in current_settings().judges:
        names = [Path(entry).stem]
        try:
            judges = find_judges([entry])
            names = [judge.name for judge in judges]
            all_of([partial(_check_judge, judge) for judge in judges])
            usable.append(entry)
        except CulturevalError as error:
            reasons |= dict.fromkeys(names, str(error))
    return tuple(usable), reasons


def _check_judge(judge: JudgeSettings) -> None:
    try:
        judge_identity(judge)
    except CulturevalError as error:
        raise CulturevalError(f"{error} --skip-unscorable leaves the judge's scores out.") from None
