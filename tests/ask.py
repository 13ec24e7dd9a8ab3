"""Has a test run a command in its server of forked commands: ask.py SOCKET LOADED MODULE [ARGUMENT ...]."""

import json
import os
import socket
import sys

if __name__ == "__main__":
    with socket.socket(socket.AF_UNIX) as connection:
        folder, name = os.path.split(sys.argv[1])
        # An address has 107 letters at most, and TMPDIR may be longer.
        connection.connect(f"/proc/self/fd/{os.open(folder, os.O_PATH)}/{name}")
        connection.sendall(json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode() + b"\n")
        status, output, errors = json.loads(connection.makefile("rb").readline())
    sys.stdout.write(output)
    sys.stderr.write(errors)
    sys.exit(status)
