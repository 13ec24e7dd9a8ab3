"""Has a test run a command in its server of forked commands: ask.py SOCKET LOADED MODULE [ARGUMENT ...]."""

import json
import os
import socket
import sys

if __name__ == "__main__":
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        connection.sendall(json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode() + b"\n")
        status, output, errors = json.loads(connection.makefile("rb").readline())
    sys.stdout.write(output)
    sys.stderr.write(errors)
    sys.exit(status)
