"""What judges generated code: its name for signatures, and the check before a run."""

import contextlib
import logging

from cultureval.metrics.code.report import scorer_name
from cultureval.runtime.settings import Settings, current_settings

logger = logging.getLogger(__name__)


def judge_name() -> str:
    """The name of the judge, for signatures."""
    return scorer_name(is_sandboxed())


def check_sandbox() -> None:
    """Check, before a run, that solutions can be judged.

    Raises:
        SandboxUnavailable: bubblewrap is missing or may not create namespaces; the message says what to install.
    """
    if is_sandboxed():
        from cultureval.runtime.sandbox.sandbox import Sandbox

        with contextlib.closing(Sandbox()) as probe:
            probe.start()
    else:
        logger.warning("%s is set: generated code runs WITHOUT A SANDBOX.", Settings.unsafe_no_sandbox.variable)


def is_sandboxed() -> bool:
    """Whether generated code runs in a sandbox."""
    return not current_settings().unsafe_no_sandbox
