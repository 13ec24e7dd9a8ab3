"""What is put on the hub: finished results as data sets, and a leaderboard as a static Space where it is asked for.

A run goes to the data set `ORG/details_<model>` (`..._private` where it is private) by LightEval's own upload. Details
of gated data are never sent. Pages and tables hold scores, names and records; no prompt and no answer is in them.
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
    """What would be sent of one results file to a data set of the hub.

    `withheld` are the tasks of which no texts are sent: their data are gated, or no loaded suite has them.
    """

    file: ResultsFile
    details: Mapping[str, Path]
    withheld: set[str]

    def sentence(self) -> str:
        """What is sent, and what is not."""
        text = f"{self.file.path} and {counted(len(self.details), 'details file')}"
        why = "whose data are gated, or which no suite here has (--custom-suites)"
        kept = [task for task in self.file.details if task in self.withheld]
        return f"{text}; not the details of {shown_names(kept, 3)}, {why}" if kept else text


def space_card(title: str) -> str:
    """The README.md by which the hub serves a folder as a static Space, with the leaderboard's title."""
    return CARD.format(title=json.dumps(shown(title, 60)))  # a JSON string is one of YAML


def check_space(name: str) -> None:
    """Raises a CulturevalError where ORG/NAME is no name of a Space, nobody is logged in, or the hub is off."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name, re.ASCII):
        raise CulturevalError(f"--space {shown(name)!r} is no Space: give ORG/NAME.")
    if problems := list(hub_problems("--space", name.partition("/")[0])):
        raise CulturevalError(" ".join(problems))


def push_space(folder: Path, name: str) -> str:
    """Uploads a site as the static Space ORG/NAME, which is made where it is missing; returns its address.

    Raises:
        CulturevalError: A bundle in it has answers to gated data, or no list of them, or the upload failed; the site
            stays on the disk.
    """
    from huggingface_hub import HfApi

    if gated := gated_answers(folder):
        raise CulturevalError(
            f"{gated[0]} holds answers to gated data, or answers of which that is unknown. They are not published: "
            "remove that folder, or write the bundle again with `cultureval show --web`."
        )
    hub = HfApi()
    try:
        hub.create_repo(name, repo_type="space", space_sdk="static", private=True, exist_ok=True)
        hub.upload_folder(repo_id=name, repo_type="space", folder_path=folder, commit_message="Leaderboard")
    except Exception as error:  # anything that a network or the hub's library can raise
        raise CulturevalError(f"The upload of {folder} to {name} failed ({described(error)}).") from error
    return f"{hub.endpoint}/spaces/{name}"


def publications(paths: Sequence[Path]) -> list[Publication]:
    """What of some results (output folders or results files) would be sent, the oldest first.

    Raises:
        CulturevalError: There are no results, or a file cannot be read.
    """
    files = {file.resolve(): file for path in paths for file in find_results(path)}
    found = []
    for one in sorted(map(read_results, files.values()), key=lambda file: (file.date, file.model)):
        configs = one.content.get("config_tasks")
        asked = {*one.details, *(configs if isinstance(configs, Mapping) else ())}
        withheld = {task for task in asked if _is_withheld(one, task)}
        kept = {task: file for task, file in one.details.items() if task not in withheld}
        found.append(Publication(one, kept, withheld))
    return found


def _is_withheld(file: ResultsFile, task: str) -> bool:
    name, record = name_and_shots(task)[0], file.record.tasks.get(task)
    return name not in all_tasks() or is_gated(name, record.source if record else "")


def publish(found: Sequence[Publication], org: str, say: Callable[[str], None]) -> None:
    """Uploads, file by file, to an account or organisation; `say` gets a sentence for each.

    Raises:
        CulturevalError: Nobody is logged in, the hub is off, or an upload failed.
    """
    from datasets import Dataset

    from cultureval.runtime.patches.lighteval.tracker import Tracker

    if problems := list(hub_problems("cultureval leaderboard --publish", org)):
        raise CulturevalError(" ".join(problems))
    for number, one in enumerate(found):
        tracker = Tracker(output_dir=str(one.file.path.parent), hub_results_org=org, public=False)
        tracker.general_config_logger.model_name = re.sub(r"[^\w./-]+", "_", one.file.model, flags=re.ASCII)
        tracker.withheld = one.withheld
        try:
            details = {task: Dataset(read_details(file)) for task, file in one.details.items()}
            tracker.push_to_hub(one.file.date, details, dict(one.file.content))
        except CulturevalError:
            raise
        except Exception as error:  # anything that a network or the hub's library can raise
            done = f"{counted(number, 'file')} before it {'is' if number == 1 else 'are'} there"
            raise CulturevalError(f"The upload of {one.file.path} failed ({described(error)}); {done}.") from error
        say(f"{one.sentence()}: sent to {org}")
