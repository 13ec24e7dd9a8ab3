"""Runs as entries of a leaderboard: what was run of one model in one way is one entry.

Scores that depend on different things are not in one column: entries whose signatures differ in more than the model
are in groups of their own, and the groups say in what they differ.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from cultureval.metrics.judges.items import JUDGED
from cultureval.reports.charts import short_names
from cultureval.runs.comparable import (
    JUDGES,
    NOT_TOLD,
    WORDS,
    Protocol,
    Texts,
    fields_that_differ,
    settings_that_differ,
    texts_that_differ,
)
from cultureval.runs.files import output_folder, told_apart
from cultureval.runs.record import Run
from cultureval.runs.reruns import Protocols, Track, agree_in_all, merged, tracks_of, with_older
from cultureval.runs.same_model import MOST_FACTS, ModelFacts, facts_of_runs, facts_that_differ
from cultureval.runs.table import suite_rows
from cultureval.runs.warnings import (
    RunWarning,
    is_partial,
    leaves_items_out,
    run_warnings,
)
from cultureval.runtime.errors import counted, shorten

PAPER = "paper"  # behind the name of a row of a paper


@dataclass(frozen=True)
class Entry:
    """What was run of one model in one way, of one suite with one number of few-shot examples.

    Attributes:
        model: The model's name as in the results file.
        label: The same in short; with what differs, where a model has several entries.
        run: Its scores of the suite, of one or several results files, the newest first.
        protocols: Task and metric -> everything but the model that the score depends on.
        sources: The task with `|k` -> the run that its scores are from.
        warnings: What a reader of its scores must know.
        unranked: Why it has no rank whatever its scores; "" where it may have one.
        facts: Its weights, dtype and the like: other ones under the same name are another model.
    """

    model: str
    label: str
    run: Run
    protocols: Protocols
    sources: Mapping[str, Run]
    warnings: tuple[RunWarning, ...] = ()
    unranked: str = ""
    facts: ModelFacts = ()

    @property
    def identity(self) -> tuple[str, ModelFacts]:
        """What models are counted by."""
        return self.model, self.facts

    @property
    def partial(self) -> bool:
        """Whether it is of other rows than published."""
        return is_partial(self.warnings)

    @property
    def proven(self) -> bool:
        """Whether its scores are those of its items."""
        return not self.unranked and not self.run.unchecked

    @property
    def may_be_best(self) -> bool:
        """Whether its scores may be called the best of a column: they are of all items, and are what its items give."""
        return not self.unranked and not leaves_items_out(self.warnings)

    @property
    def limit(self) -> float:
        """At most how many rows of a task were asked; infinite where all were."""
        limits = [one.limit for one in self.run.record.tasks.values() if one.limit is not None]
        return min(limits, default=math.inf)

    @property
    def rows(self) -> int:
        """How many rows were asked, the refused ones too."""
        return sum(task.rows + task.refused for task in self.run.record.tasks.values())

    @property
    def judges(self) -> set[str]:
        """The judges that have tables of their own, without other scores."""
        suites = {one.suite for one in self.run.record.tasks.values()}
        return {row.judge for suite in suites for row in suite_rows(self.run, suite) if row.judge}

    @property
    def marks(self) -> list[str]:
        """What stands beside its name: its warnings in a word each, and of how many runs its scores are."""
        runs = len({run.file for run in self.sources.values()})
        told = [f"of {runs} runs"] if runs > 1 else []
        return list(dict.fromkeys([*(one.mark for one in self.warnings if one.mark), *told]))


@dataclass(frozen=True)
class Group:
    """Entries of a suite that may be compared with each other.

    Attributes:
        entries: The comparable entries.
        differences: In what it differs from the first group of the suite, a sentence each; empty for the first.
        told: In what its entries differ that does not keep them apart: settings, versions; a sentence, or "".
    """

    entries: Sequence[Entry]
    differences: Sequence[str] = ()
    told: str = ""


@dataclass(frozen=True)
class Division:
    """A suite with one number of few-shot examples: the group of the most rows first, of such the largest."""

    suite: str
    shots: int
    groups: Sequence[Group]


def divisions(runs: Iterable[Run], allowed: Collection[str] = ()) -> list[Division]:
    """The suites of runs, their entries in groups that may be compared.

    Args:
        runs: In any order.
        allowed: Fields of signatures that may differ within a group, besides the model's own.

    Returns:
        One for each suite and number of few-shot examples, in the catalogue's order.
    """
    runs = with_older(runs, allowed)
    texts = texts_that_differ(runs)
    tracks = tracks_of(runs, facts_of_runs(runs), texts, allowed)
    return [
        Division(suite, shots, _groups(_entries(found), allowed, texts))
        for (suite, shots), found in sorted(tracks.items(), key=_order)
    ]


def judges_that_differ(one: Entry, other: Entry, judge: str) -> tuple[str, str] | None:
    """What the signatures of a judge of one name say otherwise of it, where it scored both; None where it is the same.

    Then scores of the two are not comparable, but those without a judge are.
    """
    for place in one.protocols.keys() & other.protocols.keys():
        if place[1].startswith(f"{JUDGED}{judge}_"):
            pair = [dict((name, value) for _, name, value in each.protocols[place].fields) for each in (one, other)]
            here, there = (re.split(",|; ", found.get(JUDGES, NOT_TOLD)) for found in pair)  # fields of one or more
            if here != there:
                alone = [part for part in here if part not in there], [part for part in there if part not in here]
                return ", ".join(alone[0]) or "nothing more", ", ".join(alone[1]) or "nothing more"
    return None


def _order(item: tuple[tuple[str, int], Any]) -> tuple[int, str, int]:
    from cultureval.tasks.catalogue import all_suites

    (suite, shots), _ = item
    names = list(all_suites())
    return names.index(suite) if suite in names else len(names), suite, shots


def _entries(tracks: Sequence[Track]) -> list[Entry]:
    entries = []
    for track, label in zip(tracks, _labels(tracks), strict=True):
        run = merged(track.sources)
        about = track.protocols, track.sources, tuple(run_warnings(run)), _unranked(track, run), track.facts
        entries.append(Entry(track.model, label, run, *about))
    return entries


def _labels(tracks: Sequence[Track]) -> list[str]:
    """The models' names in short, of several entries of a model with what tells each from the others."""
    short = short_names(list(dict.fromkeys(track.model for track in tracks)))
    newest = [track.runs[0] for track in tracks]
    dates = [run.date[:16] for run in newest]
    differing = [_what_differs(track, [one for one in tracks if one.model == track.model]) for track in tracks]
    told = [one or date for one, date in zip(differing, dates, strict=True)]
    folders = [str(output_folder(run.file) or run.file.parent) for run in newest]
    names = [_without_signs(short[track.model]) for track in tracks]
    return told_apart(names, told, dates, folders, [str(run.file) for run in newest])


def _without_signs(name: str) -> str:
    """A model's name that imitates no sign of the page: neither the star of the best nor the mark of a paper's row."""
    name = name.replace("★", "\\u2605")
    return f"{name} (a run)" if name.endswith(f"({PAPER})") else name


def _unranked(track: Track, run: Run) -> str:
    """Why an entry has no rank whatever its scores."""
    if run.claims:
        return run.claimed
    if run.impossible:
        return next(iter(run.impossible.values()))
    return next((one.unverified for one in track.protocols.values() if one.unverified), "")


def _what_differs(track: Track, others: Sequence[Track]) -> str:
    """What an entry has that the others of its model do not have; "" where nothing is known."""
    told = facts_that_differ(track.facts, [other.facts for other in others])
    if not told:
        fields = [_common(other.protocols.values()) for other in others]
        here = _common(track.protocols.values())
        told = [f"{name} {value[:24]}" for name, value in here.items() if {one.get(name) for one in fields} != {value}]
    return ", ".join(told[:MOST_FACTS])


def _common(protocols: Iterable[Protocol]) -> dict[str, str]:
    """The fields that all protocols share."""
    found = [{name: value for _, name, value in one.fields} | dict(one.told) for one in dict.fromkeys(protocols)]
    return {
        name: value
        for name, value in (found[0] if found else {}).items()
        if all(one.get(name) == value for one in found)
    }


def _groups(entries: Sequence[Entry], allowed: Collection[str], texts: Texts) -> list[Group]:
    """Entries in groups, in the order of `_place_of_group`.

    Two are in one group where they agree in every score that both have, whoever else is there: what agrees with two
    that do not agree with each other is in the groups of both. Judges that have tables of their own part these alone.
    """
    ordered = sorted(entries, key=lambda one: (-len(one.protocols), one.label))
    judges = [one.judges for one in ordered]
    found: list[set[int]] = []
    for number, entry in enumerate(ordered):
        others = [one.protocols for one in ordered[:number]]
        agreeing = {
            place
            for place, one in enumerate(others)
            if agree_in_all(entry.protocols, one, texts, judges[number] & judges[place])
        }
        sharing = {place for place in agreeing if not others[place].keys().isdisjoint(entry.protocols)}
        joined = [group & agreeing for group in found if group & sharing] if entry.protocols else found[:1]
        widest = [one for one in joined if not any(one < other for other in joined)]
        parts = {frozenset(one) for one in widest if one not in found} if joined else {frozenset[int]()}
        found = [group | {number} if group in widest else group for group in found]
        found += [{*part, number} for part in sorted(parts, key=sorted)]
    groups = [[ordered[place] for place in sorted(group)] for group in found]
    groups.sort(key=_place_of_group)
    differ = f"Its models may differ in {' and '.join(sorted(allowed))} (--allow)." if allowed else ""
    return [
        Group(members, _differences(members, groups[0], texts) if number else (), f"{differ} {_told(members)}".strip())
        for number, members in enumerate(groups)
    ]


def _place_of_group(group: Sequence[Entry]) -> tuple[bool, int, bool, int]:
    """First, of those of the published rows, that of the most rows; of such, one without runs of other rows."""
    others = [one.partial for one in group]
    return all(others), -max(one.rows for one in group), any(others), -len(group)


def _told(entries: Sequence[Entry]) -> str:
    """In what comparable entries differ, as one sentence; "" where they do not."""
    found = settings_that_differ(one for entry in entries for one in dict.fromkeys(entry.protocols.values()))
    if not found:
        return ""
    parts = [f"{name} ({shorten(' / '.join(values), 60)})" for name, values in found.items()]
    return f"Some of its models also differ in {', '.join(parts[:4])}" + (", ..." if parts[4:] else "") + "."


def _differences(members: Sequence[Entry], first: Sequence[Entry], texts: Texts) -> tuple[str, ...]:
    """In what a group differs from the first, a sentence a field."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for one, other in product(members, first):
        for place in one.protocols.keys() & other.protocols.keys():
            for name, (here, there) in fields_that_differ(one.protocols[place], other.protocols[place], texts).items():
                if name in WORDS and NOT_TOLD not in (here, there):  # two hashes tell a reader nothing
                    name, here, there = WORDS[name], "", ""
                found.setdefault((name, here, there), set()).add(place[0])
    if not found:
        return ("It has no task in common with the first group.",)
    fields: dict[str, list[tuple[str, str, int]]] = {}
    for (name, here, there), tasks in sorted(found.items()):
        fields.setdefault(name, []).append((here, there, len(tasks)))
    return tuple(_sentence(name, values) for name, values in fields.items())


def _sentence(name: str, values: Sequence[tuple[str, str, int]]) -> str:
    tasks = counted(sum(count for _, _, count in values), "task")
    here, there, _ = max(values, key=lambda one: one[2])
    others = f" and {counted(len(values) - 1, 'more pair')} of values" if len(values) > 1 else ""
    if not here:
        return f"{name} differs ({tasks})"
    return f"{name}: {here} here, {there} there{others} ({tasks})"
