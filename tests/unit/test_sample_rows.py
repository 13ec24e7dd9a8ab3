"""The shipped samples are known by what their rows are, which `tasks/sample_rows.txt` lists.

`python tests/unit/test_sample_rows.py` writes that file, where samples or the preparation of rows change.
"""

import itertools

import pytest

from cultureval.runs.record import SAMPLE_ROWS
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.tasks.catalogue import all_suites, all_tasks
from cultureval.tasks.options import read_data_options
from cultureval.tasks.qimma.code_data import CODE_DATASETS, load_problems
from cultureval.tasks.reading import prepare_subset


def variants():
    """The suites with each form of their data, and each value of one of their options."""
    for name, suite in all_suites().items():
        for option in (None, *suite.part("options")):
            values = [value for value in option.values if value != option.default] if option else [None]
            for form, value in itertools.product(("curated", "original"), values):
                yield name, form, {option.name: value} if option else {}


def hashes_of_samples():
    """The hashes that a record may have of the rows of each task, in order."""
    found = {load_problems(name, "samples").fingerprint[:16] for name in CODE_DATASETS}  # of `score humaneval`
    for suite, form, options in variants():
        unchanged = set()  # groups whose first subset is as it was
        with use_settings(current_settings().with_(options, data_root=samples_root(), form=form)):
            for task in (one for one in all_tasks().values() if one.suite == suite):
                try:
                    subset = None if task.group in unchanged else prepare_subset(task, read_data_options())
                except CulturevalError:  # no sample of it
                    continue
                hashes = {subset.report["fingerprint"], subset.with_examples} if subset else set()
                unchanged |= {task.group} if options and hashes <= found else set()
                found |= hashes
    return sorted(found)


@pytest.mark.slow
def test_the_listed_rows_are_those_of_the_samples(own_cache):
    listed = SAMPLE_ROWS.read_text("utf-8").split()
    assert listed == hashes_of_samples(), f"python {__file__} writes {SAMPLE_ROWS.name}"


if __name__ == "__main__":
    SAMPLE_ROWS.write_text("\n".join(hashes_of_samples()) + "\n", encoding="utf-8")
