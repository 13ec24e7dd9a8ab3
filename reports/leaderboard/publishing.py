"""What is put on the hub: finished results as data sets, and a leaderboard as a static Space where it is asked for.

A run becomes one commit to the data set `ORG/details_<model>` (`details_<model>_private` where it is private), in the
layout of LightEval's `--push-to-hub`: its results file as JSON and as parquet, and
`<date>/details_<task>_<date>.parquet`. Details of gated data are never sent. Pages and tables hold scores, names and
signatures; no prompt and no answer is in them.
"""

import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from cultureval.reports.leaderboard.assets import shown
from cultureval.reports.viewer_links import gated_answers
from cultureval.runs.files import details_by_task, own_details, read_details
from cultureval.runs.load_runs import load_all, read_file
from cultureval.runs.record import Run
from cultureval.runtime.errors import CulturevalError, counted, described, shown_names
from cultureval.runtime.saving import hub_problems
from cultureval.tasks.catalogue import all_tasks, is_gated

CARD = """---
title: {title}
sdk: static
app_file: index.html
pinned: false
---

A leaderboard made by `cultureval leaderboard`: open `index.html`. It needs no server, and loads nothing from elsewhere.
"""
_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
LONGEST = 90  # letters of a repository's name, of 96 that the hub takes
_ORG = re.compile(r"\w[\w.-]*", re.ASCII)


@dataclass(frozen=True)
class Publication:
    """What would be sent of one run.

    Attributes:
        run: The run.
        repo: The data set, ORG/NAME.
        details: The task with `|k` -> its details, those that may be sent.
        gated: Tasks whose details stay here, since their data are gated.
        unknown: Tasks whose details stay here, since no loaded suite has them.
    """

    run: Run
    repo: str
    details: Mapping[str, Path]
    gated: Sequence[str]
    unknown: Sequence[str]

    def sentence(self) -> str:
        """What is sent, and what is not."""
        text = f"{self.run.file} and {counted(len(self.details), 'details file')} -> {self.repo}"
        if self.gated:
            text += f"; not the details of {shown_names(self.gated, 3)}, whose data are gated"
        if self.unknown:
            text += f"; not the details of {shown_names(self.unknown, 3)}, which no suite here has (--custom-suites)"
        return text


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
        raise CulturevalError(
            f"The upload of {folder} to {name} failed ({described(error)}); the site is there."
        ) from error
    return f"{hub.endpoint}/spaces/{name}"


def publications(paths: Sequence[Path], org: str, public: bool) -> list[Publication]:
    """What of some results would be sent, the oldest run first.

    Args:
        paths: Output folders or results files.
        org: Account or organisation on the hub.

    Raises:
        CulturevalError: There are no results, or a file cannot be read.
    """
    if not _ORG.fullmatch(org):
        raise CulturevalError(f"--results-org {org!r} is no account or organisation.")
    files_of_runs = {
        file.resolve(): file for run in load_all(paths, strict=True) for file in (run.file, *run.judgements)
    }
    found = []
    for run in sorted(map(read_file, files_of_runs.values()), key=lambda one: (one.date, one.model)):
        model = re.sub(r"[^\w.-]+|-{2,}|\.{2,}", "_", run.model.replace("/", "__"), flags=re.ASCII)
        name = f"details_{model}"[:LONGEST].rstrip("-.") + ("" if public else "_private")
        files = details_by_task(own_details(run.file))
        gated, unknown = _withheld(run, files)
        kept = {task: file for task, file in files.items() if task not in (*gated, *unknown)}
        found.append(Publication(run, f"{org}/{name}", kept, gated, unknown))
    return found


def _withheld(run: Run, tasks: Iterable[str]) -> tuple[list[str], list[str]]:
    """Of a run's tasks, named with `|k`, those whose data are gated, and those that no loaded suite has."""
    sources = {task: record.source for task, record in run.record.tasks.items()}
    names = {task: task.partition("|")[0] for task in tasks}
    gated = [task for task, name in names.items() if is_gated(name, sources.get(task, ""))]
    return gated, [task for task, name in names.items() if name not in all_tasks()]


def publish(found: Sequence[Publication], public: bool, say: Callable[[str], None]) -> None:
    """Uploads, run by run.

    Args:
        public: Whether data sets that are not there yet become public.
        say: Gets a sentence for each run.

    Raises:
        CulturevalError: Nobody is logged in, the hub is off, or an upload failed.
    """
    if problems := list(hub_problems("cultureval publish", found[0].repo.partition("/")[0])):
        raise CulturevalError(" ".join(problems))
    for number, one in enumerate(found):
        try:
            address = _upload(one, public)
        except CulturevalError:
            raise
        except Exception as error:  # anything that a network or the hub's library can raise
            done = f"{counted(number, 'run')} before it {'is' if number == 1 else 'are'} there"
            raise CulturevalError(f"The upload of {one.run.file} failed ({described(error)}); {done}.") from error
        say(f"{one.sentence()}: {address}")


def _upload(one: Publication, public: bool) -> str:
    from huggingface_hub import CommitOperationAdd, HfApi

    from cultureval.runtime.patches.lighteval.tracker import Tracker, public_results, upload_public

    name, content = f"results_{one.run.date}", one.run.content
    content = public_results(content, {*chain(*_withheld(one.run, content.get("config_tasks") or {}))})
    files: list[tuple[str, Path | bytes]] = [
        (f"{name}.json", json.dumps(content, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")),
        (f"{name}.parquet", _table(content)),
    ]
    for task, file in one.details.items():
        read_details(file, ("metric",))  # what is no details file is not sent
        files.append((f"{one.run.date}/details_{task}_{one.run.date}.parquet", file))
    hub = HfApi()
    hub.create_repo(one.repo, repo_type="dataset", private=not public, exist_ok=True)
    hub.create_commit(
        one.repo,
        [CommitOperationAdd(name, content) for name, content in files],
        repo_type="dataset",
        commit_message=f"Results of {one.run.date}",
    )
    tracker = Tracker(output_dir=str(one.run.file.parent), hub_results_org=one.repo.partition("/")[0], public=public)
    tracker.general_config_logger.model_name = one.run.model
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
