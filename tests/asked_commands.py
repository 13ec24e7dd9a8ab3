"""Programs for a shell or another command that are forked by the test process, as its own commands are."""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer
from tempfile import TemporaryDirectory
from threading import Thread

from forked_commands import run_forked, short_path

ASK = f"{shlex.quote(sys.executable)} -IS {shlex.quote(str(Path(__file__).with_name('ask.py')))} $COMMANDS"
# A `python` that runs `-m MODULE ARGUMENTS`.
PYTHON = f"""#!/bin/sh
shift
case "$1" in lighteval) loaded=stock ;; lm_eval) loaded=lm_eval ;; *) loaded=ours ;; esac
exec {ASK} $loaded "$@"
"""


@contextmanager
def forking_server(own: Mapping[str, str] = {}, network: bool = False) -> Iterator[str]:
    """A server that runs what `ask.py` asks for, with these variables too; yields what COMMANDS must be."""

    class Handler(StreamRequestHandler):
        def handle(self):
            (loaded, module, *arguments), folder, variables = json.loads(self.rfile.readline())
            variables |= {"HF_HOME": f"{folder}/hf", **own}
            done = run_forked(module, arguments, Path(folder), variables, network, loaded=loaded)
            self.wfile.write(json.dumps([done.returncode, done.stdout, done.stderr]).encode() + b"\n")

    with (
        TemporaryDirectory() as place,
        short_path(place) as short,
        ThreadingUnixStreamServer(f"{short}/commands", Handler) as server,
    ):
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"{place}/commands"
        server.shutdown()
        thread.join()
