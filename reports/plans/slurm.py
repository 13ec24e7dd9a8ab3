"""A Slurm array job of a plan: one job a run."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from cultureval.reports.plans.plan_file import PlanFile, PlannedRun

NAME = "array_job.sh"


def write_array_job(plan: PlanFile, runs: Sequence[PlannedRun], file: Path) -> Path:
    """Writes the script of an array job beside the plan's results, and returns it.

    Each job of the array calls `cultureval run PLAN --only NUMBER`, which leaves out what is finished. Names from the
    plan are quoted; options of sbatch are single words (`plan_file.Word`).

    Args:
        plan: The plan.
        runs: Its runs.
        file: Its file.
    """
    folder = Path(plan.output_dir).expanduser().absolute()
    at_once = f"%{plan.at_once}" if plan.at_once else ""
    options = {"job-name": "cultureval", "array": f"0-{len(runs) - 1}{at_once}"}
    options |= {name.replace("_", "-"): value for name, value in plan.slurm.items()}
    words = [sys.executable, "-m", "cultureval", "run", str(file.absolute())]
    command = " ".join(map(shlex.quote, words))
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH --{name}={value}" for name, value in options.items()),
        "# One job a run of the plan; those that are finished end at once. Submit it again to go on.",
        "set -euo pipefail",
        f"cd -- {shlex.quote(str(Path.cwd()))}",
        f'exec {command} --only "${{SLURM_ARRAY_TASK_ID:?submit this script with sbatch}}"',
    ]
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / NAME
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    script.chmod(0o755)
    return script
