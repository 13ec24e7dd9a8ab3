"""What is put on the hub: finished results as data sets, and a leaderboard as a static Space where it is asked for.

A run becomes one commit to the data set `ORG/details_<model>` (`details_<model>_private` where it is private), in the
layout of LightEval's `--push-to-hub`. Details of gated data are never sent. Pages and tables hold scores, names and
records; no prompt and no answer is in them.
"""

import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_ORG = re.compile(r"\w[\w.-]*", re.ASCII)
LONGEST = 90  # letters of a repository's name, of 96 that the hub takes


@dataclass(frozen=True)
class Publication:
    """What would be sent of one results file.

    Attributes:
        file: The results file.
        repo: The data set, ORG/NAME.
        details: Task with `|k` -> its details, those that may be sent.
        withheld: Tasks of which no texts are sent: their data are gated, or no loaded suite has them.
    """

    file: ResultsFile
    repo: str
    details: Mapping[str, Path]
    withheld: Sequence[str]

    def sentence(self) -> str:
        """What is sent, and what is not."""
        text = f"{self.file.path} and {counted(len(self.details), 'details file')} -> {self.repo}"
        why = "whose data are gated, or which no suite here has (--custom-suites)"
        kept = [task for task in self.file.details if task in self.withheld]
        return f"{text}; not the details of {shown_names(kept, 3)}, {why}" if kept else text


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
        raise CulturevalError(f"The upload of {folder} to {name} failed ({described(error)}).") from error
    return f"{hub.endpoint}/spaces/{name}"


def publications(paths: Sequence[Path], org: str, public: bool) -> list[Publication]:
    """What of some results would be sent, the oldest first.

    Args:
        paths: Output folders or results files.
        org: Account or organisation on the hub.

    Raises:
        CulturevalError: There are no results, or a file cannot be read.
    """
    if not _ORG.fullmatch(org):
        raise CulturevalError(f"--results-org {org!r} is no account or organisation.")
    files = {file.resolve(): file for path in paths for file in find_results(path)}
    found = []
    for one in sorted(map(read_results, files.values()), key=lambda file: (file.date, file.model)):
        model = re.sub(r"[^\w.-]+|-{2,}|\.{2,}", "_", one.model.replace("/", "__"), flags=re.ASCII)
        name = f"details_{model}"[:LONGEST].rstrip("-.") + ("" if public else "_private")
        configs = one.content.get("config_tasks")
        asked = dict.fromkeys([*one.details, *(configs if isinstance(configs, Mapping) else ())])
        withheld = [task for task in asked if _is_withheld(one, task)]
        kept = {task: file for task, file in one.details.items() if task not in withheld}
        found.append(Publication(one, f"{org}/{name}", kept, withheld))
    return found


def _is_withheld(file: ResultsFile, task: str) -> bool:
    name, record = name_and_shots(task)[0], file.record.tasks.get(task)
    return name not in all_tasks() or is_gated(name, record.source if record else "")


def publish(found: Sequence[Publication], public: bool, say: Callable[[str], None]) -> None:
    """Uploads, file by file.

    Args:
        public: Whether data sets that are not there yet become public.
        say: Gets a sentence for each file.

    Raises:
        CulturevalError: Nobody is logged in, the hub is off, or an upload failed.
    """
    if problems := list(hub_problems("cultureval publish", found[0].repo.partition("/")[0])):
        raise CulturevalError(" ".join(problems))
    for number, one in enumerate(found):
        try:
            say(f"{one.sentence()}: {_upload(one, public)}")
        except CulturevalError:
            raise
        except Exception as error:  # anything that a network or the hub's library can raise
            done = f"{counted(number, 'file')} before it {'is' if number == 1 else 'are'} there"
            raise CulturevalError(f"The upload of {one.file.path} failed ({described(error)}); {done}.") from error


def _upload(one: Publication, public: bool) -> str:
    from huggingface_hub import CommitOperationAdd, HfApi

    from cultureval.runtime.patches.lighteval.tracker import Tracker, public_results, upload_public

    date = one.file.date
    content = public_results(one.file.content, {*one.withheld})
    text = json.dumps(content, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")
    files: list[tuple[str, Path | bytes]] = [
        (f"results_{date}.json", text),
        (f"results_{date}.parquet", _table(content)),
    ]
    for task, file in one.details.items():
        read_details(file, ("metric",))  # what is no details file is not sent
        files.append((f"{date}/details_{task}_{date}.parquet", file))
    hub = HfApi()
    hub.create_repo(one.repo, repo_type="dataset", private=not public, exist_ok=True)
    operations = [CommitOperationAdd(name, data) for name, data in files]
    hub.create_commit(one.repo, operations, repo_type="dataset", commit_message=f"Results of {date}")
    folder, org = str(one.file.path.parent), one.repo.partition("/")[0]
    tracker = Tracker(output_dir=folder, hub_results_org=org, public=public)
    tracker.general_config_logger.model_name = one.file.model
    upload_public(lambda: tracker.recreate_metadata_card(one.repo), one.details)
    return f"{hub.endpoint}/datasets/{one.repo}"


def _table(content: Mapping[str, Any]) -> bytes:
    """A results file's content as LightEval's parquet: a column a section, a row of JSON."""
    import pyarrow
    import pyarrow.parquet

    columns = {name: [json.dumps(section, indent=2)] for name, section in content.items()}
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), stream)
    return stream.getvalue()
