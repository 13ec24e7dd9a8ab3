"""The command `cultureval`, also `python -m cultureval`: Ctrl-C ends it with a sentence while its modules load, too."""

import gc
import os
import signal
from typing import Any

STOPPED = "cultureval: stopped by Ctrl-C.\n"


def main() -> None:
    """Imports the command line and runs it (`cultureval.scripts.main`)."""
    gc.set_threshold(50_000, 20, 20)  # the usual 700 look a thousand times while libraries load: 3 s of CPU
    ended_by_ctrl_c = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not where it is ignored (nohup)
    if ended_by_ctrl_c:
        signal.signal(signal.SIGINT, _end)

    from cultureval.scripts.main import main as command

    if ended_by_ctrl_c:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        command()
    except KeyboardInterrupt:
        _end()
    finally:
        if ended_by_ctrl_c:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left is the end of Python itself


def _end(*_: Any) -> None:
    """Ends the process: an exception may get lost in what imports modules, or become another one."""
    os.write(2, STOPPED.encode("ascii"))
    os._exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
