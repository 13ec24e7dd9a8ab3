"""A leaderboard on the hub: its folder is a static Space, uploaded only where `--space` asks for it.

Pages and tables hold scores, names and signatures; no prompt and no answer is in them.
"""

import json
import re
from pathlib import Path

from cultureval.reports.leaderboard.texts import shown
from cultureval.reports.viewer_links import gated_answers
from cultureval.runtime.errors import CulturevalError, described
from cultureval.runtime.saving import hub_problems

CARD = """---
title: {title}
sdk: static
app_file: index.html
pinned: false
---

A leaderboard made by `cultureval leaderboard`: open `index.html`. It needs no server, and loads nothing from elsewhere.
"""
_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


def space_card(title: str) -> str:
    """The README.md by which the hub serves a folder as a static Space, with the leaderboard's title."""
    return CARD.format(title=json.dumps(shown(title, 60)))  # a JSON string is one of YAML


def check_space(name: str) -> None:
    """Checks before anything is read that a Space can be uploaded.

    Raises:
        CulturevalError: The name is none, nobody is logged in, or the hub is off.
    """
    if not _NAME.fullmatch(name):
        raise CulturevalError(f"--space {shown(name)!r} is no Space: give ORG/NAME.")
    if problems := list(hub_problems("--space", name.partition("/")[0])):
        raise CulturevalError(" ".join(problems))


def push_space(folder: Path, name: str, public: bool) -> str:
    """Uploads a site as a static Space; returns its address.

    Args:
        folder: From `write_site`.
        name: ORG/NAME of the Space, which is made where it is missing.
        public: Whether a new Space is public.

    Raises:
        CulturevalError: A bundle in it has answers to gated data, or no list of them, or the upload failed; the site
            stays on the disk.
    """
    from huggingface_hub import HfApi

    if gated := gated_answers(folder):
        raise CulturevalError(
            f"{gated[0]} holds answers to gated data, or answers of which that is unknown. They are not published: "
            "remove that folder, or write the bundle again with `cultureval view`."
        )
    hub = HfApi()
    try:
        hub.create_repo(name, repo_type="space", space_sdk="static", private=not public, exist_ok=True)
        hub.upload_folder(repo_id=name, repo_type="space", folder_path=folder, commit_message="Leaderboard")
    except Exception as error:  # anything that a network or the hub's library can raise
        raise CulturevalError(
            f"The upload of {folder} to {name} failed ({described(error)}); the site is there."
        ) from error
    return f"{hub.endpoint}/spaces/{name}"
