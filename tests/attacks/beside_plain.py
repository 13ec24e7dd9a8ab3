"""Runs inside an outer jail, as its first process: plain EvalPlus judges one case in a scene; prints what came of it.

Standard input: JSON with `scene` (the text of scene.py), `scratch` (folders to mount), `problem`, `dataset`, `code`,
`limits`, `any_value`.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
import types


def main():
    job = json.load(sys.stdin)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.unshare(0x20000) == 0
    for folder, options in job["scratch"].items():
        assert libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, options.encode()) == 0
    assert libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()) == 0
    os.chdir("/tmp")
    for name, value in job["limits"].items():
        hard = resource.RLIM_INFINITY if name == "RLIMIT_STACK" else value
        resource.setrlimit(getattr(resource, name), (value, hard))
    names = {"__name__": "scene"}
    exec(job["scene"], names)  # noqa: S102  # our own file, which the jail does not show
    scene = names["Scene"]("/tmp/scene")
    for name, value in scene.values().items():
        job["code"] = job["code"].replace(f"@{name}@", str(value))
    receiver, sender = os.pipe()
    evaluator = os.fork()
    if evaluator == 0:
        os.close(receiver)
        os.write(sender, json.dumps(plain_statuses(job)).encode())
        os._exit(0)
    os.close(sender)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(evaluator, signal.SIGKILL))
    signal.alarm(60)
    os.waitpid(evaluator, 0)
    time.sleep(0.3)
    touched = scene.touched()
    scene.close()
    if outlived():
        touched.append("processes left")
    os.set_blocking(receiver, False)
    try:
        statuses = json.loads(os.read(receiver, 4096))
    except (OSError, ValueError):
        statuses = ["evaluator ended"]
    print(json.dumps({"statuses": statuses, "touched": touched}))


def plain_statuses(job):
    import evalplus.eval
    from evalplus.eval import untrusted_check
    from evalplus.gen.util import trusted_exec

    # The jail has no /proc.
    evalplus.eval.psutil.virtual_memory = lambda: types.SimpleNamespace(total=1 << 40)
    problem = job["problem"]
    canonical = problem["prompt"] + problem["canonical_solution"]
    statuses = []
    for suite in ("base", "plus"):
        inputs = problem[f"{suite}_input"]
        expected = trusted_exec(canonical, inputs, problem["entry_point"], output_not_none=job["any_value"])
        settings = (problem["entry_point"], expected, problem["atol"], [0.0] * len(inputs))
        statuses.append(untrusted_check(job["dataset"], job["code"], inputs, *settings, fast_check=True)[0])
    return statuses


def outlived():
    """Whether any process but this one is left, zombies reaped."""
    for _ in range(10):
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return False
        time.sleep(0.1)
    return True


if __name__ == "__main__":
    main()
