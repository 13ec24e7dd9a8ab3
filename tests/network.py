"""A command prefix that cuts the network."""

import shutil
import subprocess
from functools import cache

import pytest


@cache
def without_network() -> list[str]:
    """What to put in front of a command so that it has no network; the test fails where that is not permitted."""
    # Not as a mapped root: the sandbox of generated code is started by root as nobody, whom such a namespace lacks.
    for command in (["unshare", "--net"], ["unshare", "--map-current-user", "--net"]):
        if shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True).returncode == 0:
            return command
    pytest.fail("`unshare --net` (util-linux) is missing or not permitted: the tests prove that no network is needed.")
