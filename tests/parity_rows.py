"""Real rows of ArabicMMLU as docs, where they are at hand; they are third-party data and no part of this repository."""

from pathlib import Path

from benchmarks.end_to_end_runs import data_root, subject_of
from cultureval.prompts.choices import choice_prompt
from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.data_options import DataOptions
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.reading import prepare_subset

TABLE = Path(__file__).parents[1].parent / "shared" / "data" / "arabicmmlu" / "ArabicMMLUs.csv"
GROUP = "qimma_arabicmmlu"


def prepared_rows(folder):
    """The 2,480 rows of all subjects, prepared below the current cache.

    Args:
        folder: For a data root.
    """
    options = DataOptions(root=Path(data_root(folder, TABLE)), form="original")
    subjects = sorted({subject_of(row) for row in read_rows(TABLE)})
    return [row for name in subjects for row in prepare_subset(all_tasks()[f"{GROUP}:{name}"], options).rows()]


def docs_of(rows, **specific):
    """The docs of prepared rows, with more fields in `specific`."""
    docs = [choice_prompt(row, GROUP) for row in rows]
    for number, doc in enumerate(docs):
        doc.id, doc.specific = str(number), doc.specific | specific
    return docs


def texts_that_merge(rows):
    """Texts of which a tokenizer learns to merge the end of these rows' prompts, and of chats, with the first label."""
    ends = [f"{end}{row['labels'][0]}" for row in rows for end in (row["prompt"][-20:], "[assistant]:")]
    return [row["prompt"] for row in rows] + ends * 2
