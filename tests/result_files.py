"""Readers of the files that LightEval writes."""

import json
from pathlib import Path


def results_of(folder: Path) -> dict:
    """The one results file below an output folder."""
    (file,) = folder.glob("results/**/results_*.json")
    return json.loads(file.read_text(encoding="utf-8"))


def summary_of(folder: Path) -> str:
    """The summary with all scores beside the one results file below an output folder."""
    (file,) = folder.glob("results/**/summary_*.txt")
    return file.read_text(encoding="utf-8")


def details_of(folder: Path) -> dict[str, list[dict]]:
    """Rows of each task's details file: `doc`, `model_response` and `metric`, in LightEval's order."""
    import pyarrow.parquet

    files = folder.glob("details/**/details_*.parquet")
    return {
        file.name.removeprefix("details_").rpartition("_")[0]: pyarrow.parquet.read_table(file).to_pylist()
        for file in files
    }
