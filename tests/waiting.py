"""How tests wait: for what they wait for, however loaded the machine is, and never for a while."""

import itertools
import os
import socket
import time
from collections.abc import Callable

PATIENCE = 240  # seconds, under the limit of one test
# Below the range from which the system takes ports for others, which might take one between its choice and its use.
_ports = itertools.count(20_100 + os.getpid() * 37 % 12_000)


def wait_until(happened: Callable[[], bool], seconds: float = PATIENCE, every: float = 0.01) -> None:
    """Returns as soon as it is true; fails the test where it never is."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, f"it has not happened within {seconds} s"
        time.sleep(every)


def own_port() -> int:
    """A port of the loopback address for a server that a test starts and that cannot choose one itself."""
    while True:
        with socket.socket() as trial:
            try:
                trial.bind(("127.0.0.1", port := next(_ports)))
            except OSError:
                continue
            return port
