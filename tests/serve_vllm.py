"""vLLM servers that load vLLM once: each is a fork of this process, and so is its engine.

serve_vllm.py JSON, by the Python of vLLM's environment: a list of {"log": FILE, "arguments": [...]}, one a server.
"""

import json
import os
import sys
from importlib import import_module
from multiprocessing import resource_tracker

USED = (
    *("v1.engine.async_llm", "v1.engine.core", "v1.executor.uniproc_executor", "v1.worker.cpu_worker"),
    *("model_executor.models.llama", "model_executor.models.llava", "v1.attention.backends.cpu_attn"),
)


def serve(log: str, arguments: list[str]) -> None:
    """Becomes a server, in a fork; its output goes to the log."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.argv = ["vllm", *arguments]
    import_module("vllm.entrypoints.launchers.api_server.entry").main()


def main(servers: list[dict]) -> None:
    """Starts the servers, in a session of their own, and ends when one of them ends."""
    resource_tracker.ensure_running()  # outside the session: when that is killed, it removes what is left in /dev/shm
    os.setsid()
    os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "fork"
    for name in USED:
        import_module(f"vllm.{name}")
    import_module("vllm.entrypoints.launchers.api_server.entry")
    # In a process of its own lest it initialises CUDA, which is not here.
    import_module("vllm.model_executor.models.registry")._run_in_subprocess = lambda function: function()
    for server in servers:
        if os.fork() == 0:
            return serve(**server)
    os.wait()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
