"""Ends with a sentence where the Python that runs it is older than pyproject.toml asks; any Python 3 can read this."""

import re
import sys
from pathlib import Path

pyproject = Path(__file__).resolve().parents[1] / "pyproject.toml"
needed = re.search('^requires-python = ">=([0-9.]+)"', pyproject.read_text("utf-8"), re.MULTILINE).group(1)
if sys.version_info < tuple(map(int, needed.split("."))):
    found = ".".join(map(str, sys.version_info[:3]))
    name = "python" + ".".join(needed.split(".")[:2])
    sys.exit(
        f"{sys.executable} is Python {found}, and cultureval needs {needed} or newer. Name another: "
        f"make demo PYTHON={name} (or its path), or {name} -m venv .venv before pip."
    )
