"""Uploads to the hub: results as data sets, and a leaderboard as a static Space.

LightEval's own upload puts a run into the data set `ORG/details_<model>` (`..._private` if it is private). Details of
gated data are never uploaded. Pages and tables have scores, names and records, but no prompts and answers.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cultureval.reports.leaderboard.assets import shown
from cultureval.reports.viewer_links import gated_answers
from cultureval.runs.files import ResultsFile, find_results, read_details, read_results
from cultureval.runtime.errors import CulturevalError, counted, described, shown_names
from cultureval.runtime.saving import hub_problems
from cultureval.tasks.catalogue import all_tasks, is_gated, name_and_shots

CARD = """---
title: {title}
sdk: static
app_file: index.html
pinned: false
---

A leaderboard made by `cultureval leaderboard`: open `index.html`. It needs no server, and loads nothing from elsewhere.
"""


class Publication(NamedTuple):
    """The upload of one results file to a data set of the hub.

    `withheld` are the tasks without uploaded texts: their data are gated, or no loaded suite has them.
    """

    file: ResultsFile
    details: Mapping[str, Path]
    withheld: set[str]

    def sentence(self) -> str:
        """A sentence on what is uploaded, and what is withheld."""
        text = f"{self.file.path} and {counted(len(self.details), 'details file')}"
        reason = "since their data are gated, or no loaded suite has them (--custom-suites)"
        withheld = [task for task in self.file.details if task in self.withheld]
        return f"{text}; without the details of {shown_names(withheld, 3)}, {reason}" if withheld else text


def space_card(title: str) -> str:
    """The README.md of a static Space with the leaderboard's title."""
    return CARD.format(title=json.dumps(shown(title, 60)))  # a JSON string is one of YAML


def check_space(name: str) -> None:
    """Raises a CulturevalError if the name is not ORG/NAME, nobody is logged in, or the hub is off."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name, re.ASCII):
        raise CulturevalError(f"--space {shown(name)!r} is no Space: give ORG/NAME.")
    if problems := list(hub_problems("--space", name.partition("/")[0])):
        raise CulturevalError(" ".join(problems))


def push_space(folder: Path, name: str) -> str:
    """Uploads a site as the static Space ORG/NAME, made as a private one if it is missing; returns its address.

    Raises:
        CulturevalError: A bundle in the site has answers to gated data or no list of its logs, or the upload failed.
    """
    from huggingface_hub import HfApi

    if gated := gated_answers(folder):
        raise CulturevalError(
            f"{gated[0]} has, or may have, answers to gated data. They are not published: remove that folder, or write "
            "the bundle again with `cultureval show --web`."
        )
    hub = HfApi()
    try:
        hub.create_repo(name, repo_type="space", space_sdk="static", private=True, exist_ok=True)
        hub.upload_folder(repo_id=name, repo_type="space", folder_path=folder, commit_message="Leaderboard")
    except Exception as error:  # anything that a network or the hub's library can raise
        raise CulturevalError(f"The upload of {folder} to {name} failed ({described(error)}).") from error
    return f"{hub.endpoint}/spaces/{name}"


def publications(paths: Sequence[Path]) -> list[Publication]:
    """The uploads of some results (output folders or results files), the oldest first.

    Raises:
        CulturevalError: There are no results, or a file cannot be read.
    """
    files = {file.resolve(): file for path in paths for file in find_results(path)}
    found = []
    for file in sorted(map(read_results, files.values()), key=lambda file: (file.date, file.model)):
        configs = file.content.get("config_tasks")
        asked = {*file.details, *(configs if isinstance(configs, Mapping) else ())}
        withheld = {task for task in asked if _is_withheld(file, task)}
        details = {task: file for task, file in file.details.items() if task not in withheld}
        found.append(Publication(file, details, withheld))
    return found


def _is_withheld(file: ResultsFile, task: str) -> bool:
    name, record = name_and_shots(task)[0], file.record.tasks.get(task)
    return name not in all_tasks() or is_gated(name, record.source if record else "")


def publish(found: Sequence[Publication], org: str, say: Callable[[str], None]) -> None:
    """Uploads privately, file by file, to an account or organisation; `say` gets a sentence for each.

    Raises:
        CulturevalError: Nobody is logged in, the hub is off, or an upload failed.
    """
    from datasets import Dataset

    from cultureval.runtime.patches.lighteval.tracker import Tracker

    if problems := list(hub_problems("cultureval leaderboard --publish", org)):
        raise CulturevalError(" ".join(problems))
    for number, publication in enumerate(found):
        tracker = Tracker(output_dir=str(publication.file.path.parent), hub_results_org=org, public=False)
        tracker.general_config_logger.model_name = re.sub(r"[^\w./-]+", "_", publication.file.model, flags=re.ASCII)
        tracker.withheld = publication.withheld
        try:
            details = {task: Dataset(read_details(file)) for task, file in publication.details.items()}
            tracker.push_to_hub(publication.file.date, details, dict(publication.file.content))
        except CulturevalError:
            raise
        except Exception as error:  # anything that a network or the hub's library can raise
            done = f"{counted(number, 'file')} before it {'is' if number == 1 else 'are'} there"
            raise CulturevalError(
                f"The upload of {publication.file.path} failed ({described(error)}); {done}."
            ) from error
        say(f"{publication.sentence()}: sent to {org}")
