"""The shipped samples are known by what their rows are, which `tasks/sample_rows.txt` lists.

`python tests/unit/test_sample_rows.py` writes that file, where samples or the preparation of rows change.
"""

import itertools
import re
from dataclasses import replace

import pytest
from summary_runs import run_of

from cultureval.runs.record import SAMPLE_ROWS
from cultureval.runs.warnings import is_partial, run_warnings
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.tasks.catalogue import all_suites, all_tasks
from cultureval.tasks.options import read_data_options
from cultureval.tasks.qimma.code_data import CODE_DATASETS, load_problems
from cultureval.tasks.reading import prepare_subset

TASK, HASHES = "qimma_aratrust", ("content", "fingerprint")


def variants():
    """The suites with each form of their data, and each value of one of their options."""
    for name, suite in all_suites().items():
        for option in (None, *suite.part("options")):
            values = [value for value in option.values if value != option.default] if option else [None]
            for form, value in itertools.product(("auto", "original"), values):
                yield name, form, {option.name: value} if option else {}


def hashes_of_samples():
    """The hashes that a record may have of the rows of each task, in order."""
    found = {load_problems(name, "samples").fingerprint[:16] for name in CODE_DATASETS}  # of `code evaluate`
    for suite, form, options in variants():
        unchanged = set()  # groups whose first subset is as it was
        with use_settings(current_settings().with_(options, data_root=samples_root(), form=form)):
            for task in (one for one in all_tasks().values() if one.suite == suite):
                try:
                    subset = None if task.group in unchanged else prepare_subset(task, read_data_options())
                except CulturevalError:  # no sample of it
                    continue
                hashes = {subset.content, subset.fingerprint, *map(subset.report.get, HASHES)} if subset else set()
                unchanged |= {task.group} if options and hashes <= found else set()
                found |= hashes
    return sorted(found)


@pytest.mark.slow
def test_the_listed_rows_are_those_of_the_samples(own_cache):
    listed = SAMPLE_ROWS.read_text("utf-8").split()
    assert listed == hashes_of_samples(), f"python {__file__} writes {SAMPLE_ROWS.name}"


def test_samples_are_known_by_their_rows_and_not_by_their_folder():
    """A copy of the samples elsewhere passed for real rows, and real rows in a folder named samples did not."""
    (sample,) = re.findall(r"\w+", SAMPLE_ROWS.read_text("utf-8"))[:1]
    for rows, root, partial in ((sample, "/data/real", True), ("0" * len(sample), "/data/samples", False)):
        run = run_of([TASK], content_hash=rows)
        run = replace(run, record=run.record.model_copy(update={"options": {"data_root": root}}))
        assert is_partial(run_warnings(run)) is partial
        assert any("shipped samples" in warning for warning in run_warnings(run)) is partial


if __name__ == "__main__":
    SAMPLE_ROWS.write_text("\n".join(hashes_of_samples()) + "\n", encoding="utf-8")
