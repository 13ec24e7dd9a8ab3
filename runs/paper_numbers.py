"""The numbers of the suites' papers, for models of the same name: each suite ships the tables that it quotes as CSV."""

import csv
import re
from collections.abc import Iterable
from pathlib import Path

_INSTRUCTION_TUNED = re.compile(r"(?<=[-_\s])(it|inst)(?=$|[-_\s])")
_HUB_FOLDER = "models--"


def published_model(name: str, listed: Iterable[str]) -> str | None:
    """The one of a paper's models that has the same name as a model; None if the paper lists none.

    Names are compared without organisation or folder, case and punctuation; "+" is "plus", as in names on the hub,
    -it and -inst are -Instruct, and Meta-Llama is Llama. A name with more in it (a version, a size, "Instruct", -AWQ)
    is another model.

    Args:
        name: A run's model: a hub id, a folder or a server's name ("org/Model-7B").
        listed: The names in the paper's table.
    """
    wanted = _plain(name)
    return next((model for model in listed if _plain(model) == wanted), None)


def published_rows(file: Path) -> list[dict[str, str]]:
    """The rows of a paper's table, a CSV with a header, as texts; lines that start with "#" name its source."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def _plain(name: str) -> str:
    parts = re.split(r"[/\\]", name.rstrip("/\\"))
    hub = [part for part in parts if part.startswith(_HUB_FOLDER)]  # a folder of the hub's cache: models--ORG--NAME
    text = (hub or parts)[-1].split("--")[-1].casefold().replace("+", "plus")
    text = _INSTRUCTION_TUNED.sub("instruct", text).removeprefix("meta-")
    # Between digits punctuation stays: Qwen2.5-7B is not Qwen2-57B.
    return re.sub(r"(?<!\d)[^\w.]+|[^\w.]+(?!\d)|(?<!\d)\.|\.(?!\d)|_", "", re.sub(r"(?<=\d)_(?=\d)", "-", text))
