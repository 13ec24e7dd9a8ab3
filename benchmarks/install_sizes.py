"""What LightEval, the core and each extra install: the table in docs/commands.md, "Installing".

    python benchmarks/install_sizes.py

Makes an environment each in a temporary folder (2 GB in all), with pip and constraints.txt; every one sees those that
it builds upon, so that a row is what it adds.
"""

import os
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
TORCH = "torch==2.13.0"


def installed(folder: Path, below: list[Path], requirements: list[str]) -> tuple[int, float, float]:
    """Installs into a new environment; returns the number of packages, megabytes and seconds."""
    venv.create(folder, with_pip=True, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "below.pth").write_text("\n".join(map(str, below)))
    count, before = _count(packages), _size(packages)
    start = time.perf_counter()
    pip = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--constraint", ROOT / "constraints.txt", *requirements], cwd=ROOT, check=True)
    seconds = time.perf_counter() - start
    below.append(packages)
    return _count(packages) - count, (_size(packages) - before) / 1e6, seconds


def _count(packages: Path) -> int:
    return len(list(packages.glob("*.dist-info")))


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def main() -> None:
    """Prints the table."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lighteval = next(one for one in project["dependencies"] if one.startswith("lighteval"))
    below: list[Path] = []
    with tempfile.TemporaryDirectory() as place:
        rows = {"LightEval and torch": installed(Path(place, "lighteval"), below, [TORCH, lighteval])}
        rows["the core"] = installed(Path(place, "core"), below, ["."])
        for extra in ("vision", "code", "page", "audit"):
            requirements = project["optional-dependencies"][extra]
            rows[f"`[{extra}]`"] = installed(Path(place, extra), below, requirements)
    rows["`[all]`: the sum"] = tuple(map(sum, zip(*rows.values(), strict=True)))
    print(f"{len(os.sched_getaffinity(0))} cores, Python {sys.version.split()[0]}")
    print("| install | packages | MB on disk | seconds |\n|---|---|---|---|")
    for name, (count, megabytes, seconds) in rows.items():
        print(f"| {name} | {count} | {megabytes:,.0f} | {seconds:.0f} |")


if __name__ == "__main__":
    main()
