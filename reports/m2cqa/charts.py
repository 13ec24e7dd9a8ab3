"""M2CQA's charts: accuracy on Q+ and CFHR with the four regimes (the paper's Figure 3), and CFHR against model size.

A row of panels for each variety, a column for each prompt; a model or a family has its own colour and mark.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cultureval.metrics.m2cqa.names import CFHR, Q_PLUS_ACC
from cultureval.reports.charts import Chart, Point, chart_names, scatter, without_size
from cultureval.reports.model_sizes import family
from cultureval.tasks.m2cqa.benchmarks import PROMPTS

Cell = Mapping[str, Any]  # of `comparison.cells_of`
VARIETIES = {
    "en": "English · الإنجليزية",
    "msa": "MSA · العربية الفصحى",
    "ajp": "Levantine · الشامية",
    "arz": "Egyptian · المصرية",
    "dialect": "Dialects, mean · متوسط اللهجتين",
}
OF_SIZES = ("en", "msa", "dialect")  # paper, Figure 5
REGIMES = (  # where no point can be
    (1.02, -0.08, "strong grounding", "right"),
    (1.02, 1.08, "over-acceptance", "right"),
    (-0.02, -0.08, "conservative rejection", "left"),
    (-0.02, 1.08, "frequent hallucination", "left"),
)
LIMITS = (-0.15, 1.15)
Q_PLUS, LOW_IS_BETTER = "accuracy on Q+", "CFHR (lower is better)"


def regimes(cells: Iterable[Cell], borders: tuple[float, float]) -> list[Chart]:
    """Each model as a point of Q+ accuracy (x) and CFHR (y) with standard errors, and the thresholds.

    Cells without a CFHR and means of dialects are not drawn; [] if nothing is left.
    """
    shown = [cell for cell in cells if cell[CFHR] is not None and cell["variety"] != "dialect"]
    points = _points(shown, lambda cell: cell["model"], lambda cell: (cell[Q_PLUS_ACC], cell[f"{Q_PLUS_ACC}_error"]))
    settings: dict[str, Any] = {"borders": borders, "names": REGIMES, "limits": LIMITS}
    settings["note"] = f"The borders at {borders[0]:g} and {borders[1]:g} are ours."
    return [scatter("regimes", "Q+ accuracy and CFHR", (Q_PLUS, LOW_IS_BETTER), points, **settings)] if points else []


def size_charts(cells: Iterable[Cell]) -> list[Chart]:
    """CFHR with standard errors against parameters, a line for each family: the models' names without the size.

    Models of unknown size are named in the note; of the dialects the mean is drawn (paper, Figure 5).
    """
    rated = [cell for cell in cells if cell[CFHR] is not None and cell["variety"] in OF_SIZES]
    shown = [cell for cell in rated if cell["size_b"]]
    unknown = list(dict.fromkeys(cell["model"] for cell in rated if not cell["size_b"]))
    points = _points(shown, lambda cell: family(cell["model"]), lambda cell: (cell["size_b"], None))
    settings: dict[str, Any] = {"sizes": True, "lines": True, "limits": (-0.04, 1.04), "note": without_size(unknown)}
    axes = ("parameters", LOW_IS_BETTER)
    return [scatter("cfhr_by_size", "CFHR and model size", axes, points, **settings)] if points else []


def _points(
    cells: Sequence[Cell], series: Callable[[Cell], str], across: Callable[[Cell], tuple[float, float | None]]
) -> list[Point]:
    """Points of CFHR in panels of varieties and prompts; `across` is a cell's value, with error, on the other axis."""
    short = chart_names(list(dict.fromkeys(map(series, cells))))
    varieties, prompts = list(VARIETIES), list(PROMPTS)
    ordered = sorted(cells, key=lambda cell: (varieties.index(cell["variety"]), prompts.index(cell["prompt"])))
    return [
        Point(
            cell["model"],
            *(across(cell)[0], cell[CFHR], across(cell)[1], cell[f"{CFHR}_error"]),
            group=short[series(cell)],
            panel=(PROMPTS[cell["prompt"]], VARIETIES[cell["variety"]]),
        )
        for cell in ordered
    ]
