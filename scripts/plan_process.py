"""One process for several runs of a plan, which keeps libraries, rows and modules (`runtime.sweeps`).

Each line of standard input is a run as JSON: [words of the command, environment variables, log file]. Its exit status
is the answer on standard output. A run that fails ends the process.
"""

import gc
import json
import os
import sys
import traceback

from cultureval.runtime import sweeps


def serve() -> None:
    """Runs commands until standard input ends."""
    jobs, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    sweeps.begin()
    for line in jobs:
        words, environment, log = json.loads(line)
        os.environ.update(environment)
        with open(log, "wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        status = status_of(words)
        sys.stdout.flush()
        print(status, file=answers, flush=True)
        if status:
            return
        gc.unfreeze()  # `main` has frozen what it leaves
        gc.collect()


def status_of(words: list[str]) -> int:
    """The exit status of a command of `cultureval`."""
    from cultureval.scripts.main import main

    sys.argv = ["cultureval", *words]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    except Exception:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    serve()
