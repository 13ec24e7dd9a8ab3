"""Writes constraints.txt and constraints-dev.txt anew: `make constraints`, after ranges in pyproject.toml changed.

uv resolves for all Pythons from the oldest that pyproject.toml admits, and keeps what both files hold where it still
fits; to take a newer version, delete or change its line first. Left out is what comes with torch's builds, which
differ from machine to machine.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from install import settings_of_pip

ROOT = Path(__file__).resolve().parents[1]
USERS, DEVELOPERS = ROOT / "constraints.txt", ROOT / "constraints-dev.txt"
HEADER = "# {} on Python 3.11.2 to 3.13. Made by `make constraints`:\n# {}\n"
TOLD = {
    USERS: "The tested versions of what users install, '.[all,lm-eval,quantised]',",
    DEVELOPERS: "The tested versions of what '.[dev]' adds to constraints.txt,",
}
OF_TORCH = re.compile(r"(cuda|nvidia|triton|setuptools)\b")


def compiled(file: Path, *options: str) -> list[str]:
    """The lines that uv resolves for a file, whose versions are kept where they fit."""
    command = ["uv", "pip", "compile", "--universal", "--python-version", "3.11.2", "--no-annotate", *options]
    told = " ".join([*command, "pyproject.toml", "-o", file.name])
    variables = {"UV_INDEX_STRATEGY": "unsafe-best-match"} | settings_of_pip() | os.environ
    quiet = ["--quiet", "--no-header", "pyproject.toml", "-o", file.name]
    subprocess.run([sys.executable, "-m", *command, *quiet], cwd=ROOT, env=variables, check=True)
    lines = [line for line in file.read_text("utf-8").splitlines() if not OF_TORCH.match(line)]
    return [HEADER.format(TOLD[file], told), *(f"{line}\n" for line in lines)]


def main() -> None:
    """Writes both files; what users install too is in theirs alone."""
    of_users = compiled(USERS, "--extra", "all", "--extra", "lm-eval", "--extra", "quantised")
    USERS.write_text("".join(of_users), "utf-8")
    named = {line.partition("==")[0] for line in of_users}
    of_developers = compiled(DEVELOPERS, "--extra", "dev", "--constraint", USERS.name)
    DEVELOPERS.write_text("".join(line for line in of_developers if line.partition("==")[0] not in named), "utf-8")


if __name__ == "__main__":
    main()
