"""Fields of details by item, to join with the frame."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.runs.files import read_details
from cultureval.runs.frame import NAMES, leaf, row_names

if TYPE_CHECKING:
    import pandas


def fields_of_items(file: Path, fields: Sequence[str]) -> "pandas.DataFrame":
    """Fields of `doc.specific` of the rows of a details file.

    Returns:
        A row for each item, with the frame's item names as index; None for a missing field.

    Raises:
        CulturevalError: It cannot be read, or is not a details file of LightEval.
    """
    import pandas

    names = dict.fromkeys((*NAMES, "direction", *fields))
    table = read_details(file, ["metric", "doc.id", *(f"doc.specific.{name}" for name in names)])
    columns = {name: leaf(table, f"doc.specific.{name}") for name in names}
    values = {name: column.to_pylist() for name, column in columns.items() if column is not None}
    items = row_names(values, table.num_rows)
    return pandas.DataFrame({name: values.get(name, [None] * len(items)) for name in fields}, index=items)
