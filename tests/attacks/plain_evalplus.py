"""Puts every case before plain EvalPlus 0.3.1 as well and prints the table: ours beside plain.

`cd tests && python -m attacks.plain_evalplus [part of a name]`. Plain EvalPlus has no jail, so each case gets one
around all of it, with a scene inside: what a case touches there, it would touch on your machine.
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attacks.problems import IN_MBPP, PROBLEMS, cases
from cultureval.runtime.sandbox.jail import SandboxLimits, jail_command, scratch_options
from cultureval.runtime.settings import current_settings, use_settings

HERE = Path(__file__).parent
PACKAGES = ("numpy", "evalplus", "psutil")


def plain(case):
    """Statuses of the suites and a list of what was touched."""
    limits = SandboxLimits()
    with use_settings(current_settings().with_(code_packages=PACKAGES)):
        command = jail_command(limits)
    program = (HERE / "beside_plain.py").read_text(encoding="utf-8")
    start = command.index("-c", command.index("--as-pid-1"))
    command[start + 1] = f"import sys; sys.path += sys.argv[1:]\n{program}"
    problem = PROBLEMS[case["problem"]]
    job = {
        "scene": (HERE / "scene.py").read_text(encoding="utf-8"),
        "problem": problem,
        "dataset": "mbpp" if case["problem"] in IN_MBPP else "humaneval",
        "code": case["code"],
        "any_value": problem["entry_point"] == "check_str",
        "limits": limits.resource_limits(100) | {"RLIMIT_FSIZE": 400 << 20},
        "scratch": {folder: "size=400m,mode=1777" for folder in scratch_options(limits)},
    }
    try:
        done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, timeout=120)
        return json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError):
        return {"statuses": ["evaluator ended"], "touched": ["the run itself"]}


def ours(folder):
    """By name, the verdicts of `judge_all`; and what the whole batch touched."""
    environment = os.environ | {"CULTUREVAL_CACHE": f"{folder}/cache", "PYTHONPATH": str(HERE.parent)}
    command = [sys.executable, "-m", "attacks.judge_all", folder, "2"]
    report = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
    return {verdict["name"]: verdict for verdict in report["verdicts"]}, report["touched"] + report["orphans"]


def main(part=""):
    everything = [case for case in cases("hostile") + cases("honest") if part in case["name"]]
    with tempfile.TemporaryDirectory() as folder:
        verdicts, touched = ours(folder)
    with ThreadPoolExecutor(2) as pool:
        others = dict(zip((case["name"] for case in everything), pool.map(plain, everything), strict=True))
    print("| case | must be | ours | plain EvalPlus 0.3.1 | plain touched |\n|---|---|---|---|---|")
    for case in everything:
        own, other = verdicts[case["name"]], others[case["name"]]
        suites = ("base",) if case["group"] == "exhaust" else ("base", "plus")
        verdict = "pass" if {own[suite] for suite in suites} == {"pass"} else "fail"
        status = "pass" if set(other["statuses"][: len(suites)]) == {"pass"} else other["statuses"][0]
        print(f"| {case['name']} | {case['expect']} | {verdict} | {status} | {', '.join(other['touched'])} |")
    print(f"\nOurs touched: {touched or 'nothing'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
