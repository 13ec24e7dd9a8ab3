"""QIMMA's shipped samples: golds are those of the originals, and at no one place.


That every row is sound, test_checking.py shows; test_sample_rows.py pins what the rows hold.
"""

import json
from collections import Counter, defaultdict

from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import SourceUnavailable
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.reading import prepare_subset

SAMPLES = samples_root()
CHOICES = ("MCQ", "multi-select")


def prepared(task, form):
    """The rows of a task as a run asks them; none where the samples lack its curated form."""
    try:
        folder = prepare_subset(task, DataOptions(root=SAMPLES, form=form)).folder
    except SourceUnavailable:
        assert form == "curated"
        return []
    return [json.loads(line) for line in (folder / "test.jsonl").read_text(encoding="utf-8").splitlines()]


def test_curated_golds_are_those_of_the_originals_and_at_no_one_place(own_cache):
    """The two forms hold the same questions; of MedArabiQ, whose options are in its questions, other ones."""
    places, compared = defaultdict(set), Counter()
    for task in (one for one in all_tasks().values() if one.suite == "qimma" and one.kind.task_type in CHOICES):
        golds = {"original": Counter(), "curated": Counter()}
        for form, counted in golds.items():
            for row in prepared(task, form):
                places[task.benchmark].update(row["index"])
                right = frozenset(row["choices"][gold] for gold in row["index"])
                counted[frozenset(row["choices"]), right] += 1  # each form has an order of its own
        if task.benchmark != "MedArabiQ":
            assert golds["curated"] <= golds["original"], task.task
            compared[task.benchmark] += golds["curated"].total()
    assert min(map(len, places.values())) >= 3, "a model that always picks one label must not do well"
    assert len(compared) == 9 and min(compared.values()) >= 6
