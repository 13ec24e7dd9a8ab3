"""Judges every case with `judge_solutions` in one go, inside a scene; prints verdicts, touches and orphans as JSON."""

import ctypes
import json
import os
import sys
import time

from attacks.problems import IN_MBPP, PROBLEMS, cases, filled
from attacks.scene import Scene
from cultureval.metrics.code.judging import Solution, judge_solutions

PR_SET_CHILD_SUBREAPER = 36


def main(root, workers):
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    scene = Scene(root)
    everything = cases("hostile") + cases("honest")
    solutions = [
        Solution(case["problem"], i, filled(case["code"], scene.values())) for i, case in enumerate(everything)
    ]
    verdicts = []
    for dataset in ("humaneval", "mbpp"):
        own = [s for s in solutions if (s.task_id in IN_MBPP) == (dataset == "mbpp")]
        verdicts += judge_solutions(PROBLEMS, own, dataset, workers=workers, progress=False)
    found = [
        {"name": everything[v.sample_index]["name"], "base": v.base, "plus": v.plus, "reason": v.reason}
        for v in verdicts
    ]
    report = {"verdicts": found, "touched": scene.touched(), "orphans": orphans(scene.victim)}
    scene.close()
    print(json.dumps(report))


def reap(known):
    """Take note of the dead among them, as init would."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        for pid in map(int, file.read().split()):
            if pid != known:
                os.waitpid(pid, os.WNOHANG)


def orphans(known):
    """Living processes that came down to us: what a sandbox left behind."""
    for _ in range(50):
        reap(known)
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            left = [int(pid) for pid in file.read().split() if int(pid) != known]
        if not left:
            return []
        time.sleep(0.1)
    return left


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
