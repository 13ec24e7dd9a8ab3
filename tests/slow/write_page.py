"""Writes docs/metamorphic.md: the table of changes, their effects, and for how many tasks of the samples each is made.

Run it in its folder: `python write_page.py`.
"""

import os
import tempfile
from collections import Counter
from pathlib import Path

from test_changes import CURATED, ORIGINALS, copy_of
from wrappings import WRAPPINGS

from cultureval.runtime.data_options import samples_root
from cultureval.testing import CHANGES, assert_metamorphic

PAGE = Path(__file__).parents[2] / "docs" / "metamorphic.md"
HEAD = """# What means nothing changes nothing

Written by `tests/slow/write_page.py`. Each change is made in a copy of a task's data, and what `eval`, `check`,
`audit` and the exports then read is compared with what they read before: prepared rows, prompts, choices, golds and
examples (in any order), their number, the task's own metrics and errors of answers that a hash of the row gives (not
where a model scores them), notes, duplicates, skipped rows, unread files, the items of the audit and what each of its
checks finds. For some changes the tasks that lm-eval and Inspect ask are compared too, and what `score` gives. Runs of
the same rows in the same order are compared (`cultureval compare`) and ranked whatever their files are called; of rows
in another order `rows_hash` is another, and `compare` refuses them, since it knows items by file and row.

*Nothing changes*: all of it is equal. *Told and refused*: the task stops with a sentence that says what and where.
*Told and counted*: it is read, and the results and the summary say how many.

A suite of another package has the same test by one call, which `cultureval new-benchmark` writes:

```python
from cultureval.testing import assert_metamorphic

def test_changes_that_mean_nothing_change_nothing(tmp_path):
    assert_metamorphic(task, SAMPLES, tmp_path)
```

"""


def main() -> None:
    """Makes all changes of all tasks and writes the page."""
    made: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CULTUREVAL_CACHE"] = f"{folder}/cache"
        for form, names in (("original", ORIGINALS), ("curated", CURATED)):
            for name in names:
                made.update(assert_metamorphic(copy_of(name, form), samples_root(), Path(folder) / "copy"))
    lines = ["| change of the data | effect | cases |", "|---|---|---|"]
    lines += [
        f"| {one.name} | {one.effect}{', or refused where the column does not tell' * one.unless_evident}"
        f"{', or read once and counted' * (one.effect == 'told and refused' and bool(one.counted))} "
        f"| {made[one.name]} |"
        for one in CHANGES
    ]
    tasks = len(ORIGINALS) + len(CURATED)
    text = f"{HEAD}{made.total()} cases on {tasks} tasks of the samples; a change that has no meaning for a task is\n"
    text += "left out. Five are made on real ArabicMMLU too, and three at a time on rows that hypothesis draws.\n\n"
    replies = ["| around the asked line of a reply | strict reading | lenient reading |", "|---|---|---|"]
    replies += [f"| {one.name} | {'read' if one.strict else 'invalid'} | read |" for one in WRAPPINGS]
    PAGE.write_text(text + "\n".join([*lines, "", *replies]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
