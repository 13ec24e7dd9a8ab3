"""The check of the judges before a run, and who they are, asked once in a run."""

import logging
from functools import partial
from pathlib import Path

from cultureval.metrics.judges.identity import anonymity, judge_identity
from cultureval.metrics.judges.settings import JudgeSettings, configured_judges, find_judges
from cultureval.runtime.errors import CulturevalError, all_of
from cultureval.runtime.servers.identity import ServerIdentity
from cultureval.runtime.servers.openai_client import health_check
from cultureval.runtime.settings import current_settings

logger = logging.getLogger(__name__)

_IDENTITIES: dict[str, ServerIdentity] = {}


def check_judges() -> None:
    """Check the configured judges: settings, keys, and whether the servers answer, as whom, and have the models.

    Raises:
        CulturevalError: Names those that cannot be asked.
    """
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
    for url, why in health_check(judge.servers(), judge.model).items():
        raise CulturevalError(
            f"The judge {judge.name} at {url} cannot be asked ({why}). Start its server or correct its address; "
            "--skip-unscorable leaves its scores out."
        )
    _IDENTITIES.pop(_key(judge), None)
    identity_in_run(judge)


def identity_in_run(judge: JudgeSettings) -> ServerIdentity:
    """Who a judge is, asked once in a run; says so where its servers tell nothing.

    Raises:
        CulturevalError: It does not answer.
    """
    if _key(judge) not in _IDENTITIES:
        _IDENTITIES[_key(judge)] = judge_identity(judge)
        if told := anonymity(judge, _IDENTITIES[_key(judge)]):
            logger.warning("%s", told)
    return _IDENTITIES[_key(judge)]


def known_identity(judge: JudgeSettings) -> ServerIdentity | None:
    """Who a judge is, if it was asked in this run."""
    return _IDENTITIES.get(_key(judge))


def _key(judge: JudgeSettings) -> str:
    return judge.model_dump_json()
