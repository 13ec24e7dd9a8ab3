"""Real rows of ArabicMMLU as docs, where they are at hand; they are third-party data and no part of this repository."""

import csv
import json
from collections import defaultdict
from pathlib import Path

from cultureval.prompts.choices import choice_prompt
from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.data_options import DataOptions
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.reading import prepare_subset

TABLE = Path(__file__).parents[1].parent / "shared" / "data" / "arabicmmlu" / "ArabicMMLUs.csv"
GROUP = "qimma_arabicmmlu"
LEVELS = {"Primary": "Primary School", "Middle": "Middle School", "High": "High School", "Prof": "Professional"}
LEVELS |= {"Univ": "University"}


def subject_of(row):
    """The config of a row of the full table: `Biology` of level `High` is `Biology (High School)`."""
    level = row["Level"]
    return f"{row['Subject']} ({LEVELS.get(level, level)})" if level else row["Subject"]


def write_configs(root):
    """Writes the full table as the hub has it, below a data root: a folder a subject with `test.csv` and `dev.csv`."""
    folder = root / "MBZUAI" / "ArabicMMLU"
    files = defaultdict(list)
    for row in read_rows(TABLE):
        files[subject_of(row), "dev" if row["is_few_shot"] == "1" else "test"].append(row)
    configs = defaultdict(list)
    for (subject, split), rows in files.items():
        path = folder / subject / f"{split}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        configs[subject].append({"split": split, "path": f"{subject}/{split}.csv"})
    declared = [{"config_name": name, "data_files": files} for name, files in configs.items()]
    (folder / "README.md").write_text(f"---\n{json.dumps({'configs': declared})}\n---\n", encoding="utf-8")


def prepared_rows(folder):
    """The 2,480 rows of all subjects, prepared below the current cache.

    Args:
        folder: For a data root.
    """
    write_configs(folder)
    options = DataOptions(root=folder, form="original")
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
