"""Checks of a suite at registration: the types of its fields, and names that files and commands can hold."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cultureval.metrics.declared import Declared
from cultureval.runtime.doc_fields import PARITIES
from cultureval.runtime.errors import CulturevalError, shorten
from cultureval.runtime.settings import Option
from cultureval.tasks.suite import FUNCTIONS, Benchmark, MetricSet, Source, Subset, Suite

PUNCTUATION = " _-&()+."
JOINED = re.compile(r"(?<=\w)\u200c(?=\w)")  # zero-width non-joiners inside words, as Persian writes them
RESERVED = "all"  # LightEval's name for the mean of all tasks


def check_suite(suite: Any) -> None:
    """Checks a suite and its tables, all but the kinds, which are slow to load; the error lists all that is wrong."""
    if not isinstance(suite, Suite):
        raise CulturevalError(f"SUITE must be a cultureval.tasks.suite.Suite, not {type(suite).__name__}.")
    wrong = [*_fields(suite), *_benchmarks(suite.part("benchmarks")), *_options(suite.part("options"))]
    if wrong:
        raise CulturevalError(f"The suite {shorten(suite.name)} cannot be used: {'; '.join(dict.fromkeys(wrong))}.")


def _fields(suite: Suite) -> Iterator[str]:
    yield from _name("the suite's name", suite.name)
    if suite.name == RESERVED:
        yield f"the suite's name is {RESERVED!r}, which LightEval uses"
    yield from _typed("`title`", suite.title, str, "a text")
    yield from _typed("`page`", suite.page, str, "a text")
    if not isinstance(suite.order, int):
        yield f"`order` is {shorten(suite.order)}, not a whole number"
    if not isinstance(suite.kinds, str | Mapping):
        yield f"`kinds` is {shorten(suite.kinds)}, neither a mapping nor the name of one"
    for field in FUNCTIONS:
        value = getattr(suite, field)
        if value is not None and not isinstance(value, str) and not callable(value):
            yield f"`{field}` is {shorten(value)}, neither a function nor the name of one"


def _options(options: Any) -> Iterator[str]:
    if not _is_list(options, Option):
        yield f"`options` is {shorten(options)}, not a list of cultureval.runtime.settings.Option"
        return
    for option in options:
        if not isinstance(option.name, str) or not option.name.isidentifier():
            yield f"the option name {shorten(option.name)} is not a Python name"
        if not isinstance(option.variable, str) or not re.fullmatch("CULTUREVAL_[A-Z0-9_]+", option.variable):
            yield f"the variable {shorten(option.variable)} of an option is not of the form CULTUREVAL_NAME"


def _benchmarks(benchmarks: Any) -> Iterator[str]:
    if not _is_list(benchmarks, Benchmark) or not benchmarks:
        yield f"`benchmarks` is {shorten(benchmarks)}, not a list of cultureval.tasks.suite.Benchmark"
        return
    for benchmark in benchmarks:
        at = f"benchmark {shorten(benchmark.name)}"
        yield from _name(f"{at}: the group", benchmark.group)
        if benchmark.group == RESERVED:
            yield f"{at}: the group is {RESERVED!r}, which LightEval uses"
        for field in ("name", "domain", "template", "language"):
            yield from _typed(f"{at}: `{field}`", getattr(benchmark, field), str, "a text")
        metrics = benchmark.metric_set
        if not isinstance(metrics, MetricSet) or not metrics.names or not _are_metrics(metrics.names):
            yield f"{at}: `metric_set` is {shorten(metrics)}, not a MetricSet with metrics or a tuple of names"
        elif metrics.parity not in ("", *PARITIES) and not re.fullmatch(r"\{\w+\}", str(metrics.parity)):
            yield f"{at}: `parity` is {shorten(metrics.parity)}, not paper, sound, or the name of an option in braces"
        if not _is_list(benchmark.subsets, Subset) or not benchmark.subsets:
            yield f"{at}: `subsets` is {shorten(benchmark.subsets)}, not a list of Subset"
            continue
        if not all(subset.sources for subset in benchmark.subsets):
            yield from _sources(at, benchmark.sources)
        for subset in benchmark.subsets:
            yield from _subset(at, subset)


def _subset(at: str, subset: Subset) -> Iterator[str]:
    at = f"{at}, subset {shorten(subset.name)}"
    if subset.key is None:
        yield from _key(f"{at}: the name, which is also its key,", subset.name)
    else:
        yield from _plain(f"{at}: the name", subset.name)
        if subset.key != "":
            yield from _key(f"{at}: the key", subset.key)
    if not isinstance(subset.rows, int | None):
        yield f"{at}: `rows` is {shorten(subset.rows)}, not a whole number"
    if not _is_list(subset.aliases, str):
        yield f"{at}: `aliases` is {shorten(subset.aliases)}, not a tuple of texts"
    if subset.sources:
        yield from _sources(at, subset.sources)


def _sources(at: str, sources: Any) -> Iterator[str]:
    if not _is_list(sources, Source):
        yield f"{at}: `sources` is {shorten(sources)}, not a tuple of Source"
        return
    if not any(source.form == "original" for source in sources):
        yield f'{at}: `sources` holds none of the form "original"'
    for source in sources:
        yield from _plain(f"{at}: the `repo` of a source", source.repo)
        if isinstance(source.repo, str) and (source.repo.startswith("/") or ".." in source.repo.split("/")):
            yield f"{at}: the `repo` {shorten(source.repo)} is not of the form organisation/name"
        if source.form not in ("original", "curated"):
            yield f'{at}: the `form` {shorten(source.form)} of a source is neither "original" nor "curated"'
        if not callable(source.prepare):
            yield f"{at}: `prepare` of a source is {shorten(source.prepare)}, not a function"


def _key(what: str, key: Any) -> Iterator[str]:
    yield from _name(what, key)
    if isinstance(key, str) and key.startswith("_"):
        yield f"{what} {shorten(key)} begins with _, as the names of means do"


def _name(what: str, name: Any) -> Iterator[str]:
    """What is wrong with a name that becomes part of file names and of LightEval's names of tasks."""
    if problems := list(_plain(what, name)):
        yield from problems
        return
    others = [letter for letter in JOINED.sub("", name) if not _may_be_in_a_name(letter)]
    if others:
        yield (
            f"{what} {shorten(name)} holds {' '.join(map(repr, dict.fromkeys(others)))}: use letters, digits, spaces "
            f"and {' '.join(PUNCTUATION.strip())}"
        )
    if ".." in name or name == ".":
        yield f"{what} {shorten(name)} means another folder"


def _may_be_in_a_name(letter: str) -> bool:
    return unicodedata.category(letter)[0] in "LMN" or letter in PUNCTUATION


def _plain(what: str, text: Any) -> Iterator[str]:
    """What is wrong with a text of one line."""
    if not isinstance(text, str) or not text or text != text.strip():
        yield f"{what} is {shorten(text)}, not a text without spaces around it"
    elif any(unicodedata.category(letter) in ("Cc", "Zl", "Zp", "Cs") for letter in text):
        yield f"{what} {shorten(text)} holds control characters"


def _typed(what: str, value: Any, kind: type, words: str) -> Iterator[str]:
    if not isinstance(value, kind):
        yield f"{what} is {shorten(value)}, not {words}"


def _are_metrics(names: Any) -> bool:
    declared = not isinstance(names, dict) or all(isinstance(one, Declared) for one in names.values())
    return declared and _is_list(tuple(names) if isinstance(names, dict) else names, str)


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(one, kind) for one in value)
