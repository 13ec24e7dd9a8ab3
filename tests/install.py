"""As `python -m pip install ARGUMENT ...`, in a third of pip's time: by uv, and by pip where uv cannot be had or fails.

install.py ARGUMENT ..., by the Python of the environment to install into. uv reads none of pip's settings, so it is
told them: where packages are looked for, what constrains their versions, and whose certificates are trusted.
"""

import ast
import os
import subprocess
import sys

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
VARIABLES = {
    "find-links": ("UV_FIND_LINKS", ","),
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "constraint": ("UV_CONSTRAINT", " "),
    "cert": ("SSL_CERT_FILE", " "),
}


def settings_of_pip() -> dict[str, str]:
    """pip's files and variables as uv's variables; a command's own section counts more than `global`, `PIP_*` most."""
    lines = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=True).stdout.splitlines()
    found = {}
    for section in ("global", "install", ":env:"):
        for name, (variable, separator) in VARIABLES.items():
            for line in lines:
                if line.startswith(f"{section}.{name}="):
                    found[variable] = separator.join(ast.literal_eval(line.partition("=")[2]).split())
    return found


def main(arguments: list[str]) -> int:
    """Installs; the exit status."""
    if subprocess.run([*PIP, "install", "--quiet", "uv"]).returncode == 0:
        uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable]
        # As pip does, the best version of all indexes is taken.
        variables = {"UV_INDEX_STRATEGY": "unsafe-best-match"} | settings_of_pip() | os.environ
        if subprocess.run([*uv, *arguments], env=variables).returncode == 0:
            return 0
    print("uv cannot be had or failed: pip installs instead, which takes longer", file=sys.stderr)
    return subprocess.run([*PIP, "install", "--quiet", "--no-compile", *arguments]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
