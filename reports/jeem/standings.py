"""The rows of JEEM's paper in a leaderboard: reference metrics of captions by variety (Table 3)."""

from cultureval.reports.jeem.headline import CAPTIONS, METRICS
from cultureval.reports.published import published_rows
from cultureval.reports.standings import Column, Standing
from cultureval.reports.summary import Cell


def published_standings() -> dict[str, list[Standing]]:
    """Model -> its row; the columns are those of the summary. The paper's judge is another, so it has no row there."""
    cells: dict[str, dict[Column, Cell | str | None]] = {}
    for row in published_rows(CAPTIONS):
        found = cells.setdefault(row["model"], {})
        for name, column in METRICS.values():
            if row[column]:
                found[Column(name, row["variety"])] = Cell(float(row[column]))
    return {model: [Standing("JEEM, captions", found)] for model, found in cells.items() if found}
