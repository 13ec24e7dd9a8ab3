"""`cultureval retrieval`: image-text retrieval by dual encoders, over the whole gallery, in LightEval's result form."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cultureval.runtime.data.hub import go_offline_if_unreachable
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.output_folder import require_output_folder
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.runtime.signatures import installed_versions, signature

if TYPE_CHECKING:
    import numpy as np

    from cultureval.models.encoders.dual_encoder import DualEncoder

TASKS = ("cvlue_itr", "cvlue_en_itr")
SUBMITTED = 10  # items of a ranked list in a submission file, as the contest asks


@dataclass
class Gallery:
    """All images and different captions of a task.

    Attributes:
        images: Paths of the stored images.
        names: The images' released paths.
        texts: The different captions.
        of_images: For each image the positions of its captions.
        of_texts: For each caption the positions of its images.
        report: Where the rows come from (`prepare_subset`).
    """

    images: list[str]
    names: list[str]
    texts: list[str]
    of_images: list[list[int]]
    of_texts: list[list[int]]
    report: dict[str, Any]


@dataclass
class Direction:
    """Queries of one direction: ranks of the best correct item, the first items, what is correct."""

    ranks: "np.ndarray"
    top: "np.ndarray"
    correct: list[list[int]]


def retrieval(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Hub id or folder of a dual encoder.")],
    tasks: Annotated[list[str] | None, typer.Argument(metavar="[TASKS...]", help=f"{', '.join(TASKS)}.")] = None,
    data: Annotated[str | None, typer.Option(help="Data root (DIR/cvlue), or `samples`.")] = None,
    output_dir: Annotated[Path, typer.Option(help="Where results and submission files are written.")] = Path("results"),
    device: Annotated[str, typer.Option(help="cpu, cuda, ...; default: the accelerator if there is one.")] = "auto",
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
    batch_size: Annotated[int, typer.Option(min=1, help="Items encoded at once.")] = 32,
    revision: Annotated[str, typer.Option(help="Of the model on the hub.")] = "main",
    rerank: Annotated[str | None, typer.Option(help="A VLM that orders the first items anew, as for `eval`.")] = None,
    top_k: Annotated[int, typer.Option(min=1, help="So many items are ordered anew.")] = 10,
) -> None:
    """Recall of images and captions by a dual encoder. Example: cultureval retrieval MODEL --data samples"""
    names = list(tasks or TASKS[:1])
    if unknown := [name for name in names if name not in TASKS]:
        raise CulturevalError(f"There is no retrieval task {unknown[0]!r}; there are {', '.join(TASKS)}.")
    go_offline_if_unreachable()
    with use_settings(current_settings().with_(data_root=data)):
        galleries = {name: read_gallery(name) for name in names}
    require_output_folder(output_dir)
    from cultureval.models.encoders.dual_encoder import DualEncoder, EncoderSettings

    encoder = DualEncoder(EncoderSettings(model, revision, device, dtype, batch_size))
    for name, gallery in galleries.items():
        scores = score_gallery(name, gallery, encoder, output_dir, rerank, top_k)
        path = write_results(name, gallery, encoder, scores, output_dir, rerank)
        print(summary(name, gallery, encoder, scores, rerank and f"{rerank}, first {top_k}"))
        print(f"Results: {path.resolve()}")


def read_gallery(name: str) -> Gallery:
    """The images and captions of a task, checked by its source's own conversion.

    Raises:
        CulturevalError: The data are not here or broken.
    """
    from cultureval.metrics.retrieval import correct_items
    from cultureval.runtime.data.image_store import stored_image
    from cultureval.tasks.catalogue import all_tasks
    from cultureval.tasks.options import read_data_options
    from cultureval.tasks.reading import prepare_subset

    subset = prepare_subset(all_tasks()[name], read_data_options())
    with (subset.folder / "test.jsonl").open(encoding="utf-8") as lines:
        rows = [_own_captions(json.loads(line)) for line in lines]
    texts, of_images, of_texts = correct_items([captions for _, _, captions in rows])
    images = [str(stored_image(image)) for image, _, _ in rows]
    return Gallery(images, [path for _, path, _ in rows], texts, of_images, of_texts, subset.report)


def score_gallery(
    name: str, gallery: Gallery, encoder: "DualEncoder", output_dir: Path, rerank: str | None, top_k: int
) -> dict[str, float]:
    """Encodes, ranks in both directions, writes submission files; the recalls by name, `_reranked` beside."""
    from cultureval.metrics.retrieval import best_ranks, top_items

    images, texts = encoder.encode_images(gallery.images), encoder.encode_texts(gallery.texts)
    kept = max(SUBMITTED, top_k)
    directions = {
        "TR": Direction(
            best_ranks(images, texts, gallery.of_images), top_items(images, texts, kept), gallery.of_images
        ),
        "IR": Direction(best_ranks(texts, images, gallery.of_texts), top_items(texts, images, kept), gallery.of_texts),
    }
    scores = recalls(directions)
    if rerank:
        directions = rerank_directions(gallery, directions, rerank, top_k)
        scores |= recalls(directions, "_reranked")
    write_submissions(name, gallery, directions, output_dir)
    write_details(name, gallery, encoder, directions, output_dir)
    return scores | {"gallery_images": float(len(gallery.images)), "gallery_captions": float(len(gallery.texts))}


def recalls(directions: dict[str, Direction], suffix: str = "") -> dict[str, float]:
    """Recall at 1, 5 and 10 of each direction, with standard errors; the suffix goes behind the metrics' names."""
    import numpy as np

    from cultureval.metrics.retrieval import KS
    from cultureval.metrics.standard_errors import clustered_standard_error

    values: dict[str, float] = {}
    for name, direction in directions.items():
        for k in KS:
            hits = (direction.ranks <= k).astype(float)
            values[f"{name}@{k}{suffix}"] = float(np.mean(hits))
            # Captions of one image are one cluster; an image is one of its own.
            clusters = [items[0] for items in direction.correct] if name == "IR" else range(len(hits))
            values[f"{name}@{k}{suffix}_stderr"] = clustered_standard_error(hits, list(clusters))
    return values


def rerank_directions(
    gallery: Gallery, directions: dict[str, Direction], model: str, top_k: int
) -> dict[str, Direction]:
    """Orders the first k items of every query anew by a vision-language model's probability that they match."""
    import numpy as np

    from cultureval.metrics.retrieval import reranked_ranks

    pairs: dict[tuple[int, int], float] = {}
    for image, texts in enumerate(directions["TR"].top[:, :top_k]):
        pairs |= dict.fromkeys(((image, int(text)) for text in texts), 0.0)
    for text, images in enumerate(directions["IR"].top[:, :top_k]):
        pairs |= dict.fromkeys(((int(image), text) for image in images), 0.0)
    asked = sorted(pairs)
    chinese = gallery.report["source"] == "cvlue"
    pairs = dict(zip(asked, match_probabilities(gallery, asked, model, "zh" if chinese else "en"), strict=True))
    anew: dict[str, Direction] = {}
    for name, direction in directions.items():
        first, rest = direction.top[:, :top_k], direction.top[:, top_k:]
        pair = (lambda query, item: (query, item)) if name == "TR" else (lambda query, item: (item, query))
        scores = np.array([[pairs[pair(query, int(item))] for item in row] for query, row in enumerate(first)])
        ranks, ordered = reranked_ranks(direction.ranks, first, scores, direction.correct)
        anew[name] = Direction(ranks, np.concatenate([ordered, rest], axis=1), direction.correct)
    return anew


def match_probabilities(gallery: Gallery, pairs: Sequence[tuple[int, int]], model: str, language: str) -> list[float]:
    """The probability of yes against no, of each pair of image and caption, by a vision-language model.

    Args:
        gallery: The images and captions.
        pairs: Their positions; pairs of one image should be neighbours.
        model: As for `cultureval eval`.
        language: Of the question: "zh" or "en".
    """
    import numpy as np
    from lighteval.tasks.requests import Doc

    from cultureval.models.choice import load_model
    from cultureval.prompts.templates import render

    answers = {"zh": ["是", "否"], "en": [" yes", " no"]}[language]
    docs = [
        Doc(
            task_name="retrieval re-ranking",
            query=render(f"cvlue/templates/{language}/match", caption=gallery.texts[text]),
            choices=answers,
            gold_index=0,
            images=[gallery.images[image]],
        )
        for image, text in pairs
    ]
    judge = load_model(model)
    logprobs = np.array([response.logprobs for response in judge.loglikelihood(docs)])
    return (1 / (1 + np.exp(logprobs[:, 1] - logprobs[:, 0]))).tolist()


def write_submissions(name: str, gallery: Gallery, directions: dict[str, Direction], output_dir: Path) -> None:
    """Ranked lists of ten in the official format, for `cultureval score cvlue-itr` or the data's authors."""
    folder = output_dir / "submissions" / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, queries, items, top in (
        ("i2t_submit.json", gallery.names, gallery.texts, directions["TR"].top),
        ("t2i_submit.json", gallery.texts, gallery.names, directions["IR"].top),
    ):
        ranked = {query: [items[place] for place in row[:SUBMITTED]] for query, row in zip(queries, top, strict=True)}
        (folder / file).write_text(json.dumps(ranked, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def write_details(
    name: str, gallery: Gallery, encoder: "DualEncoder", directions: dict[str, Direction], output_dir: Path
) -> None:
    """One row a query in a details file, as LightEval does: the query, its first ten items, its hits."""
    import pyarrow
    import pyarrow.parquet

    from cultureval.metrics.retrieval import KS

    rows = []
    for direction, queries, items in (("TR", gallery.names, gallery.texts), ("IR", gallery.texts, gallery.names)):
        found = directions[direction]
        for place, query in enumerate(queries):
            shown = [int(item) for item in found.top[place, :SUBMITTED]]
            doc = {
                "query": query,
                "task_name": f"{name}|0",
                "choices": [items[item] for item in shown],
                "gold_index": [rank for rank, item in enumerate(shown) if item in set(found.correct[place])],
                "specific": {"id": query, "direction": direction},
            }
            rank = int(found.ranks[place])
            metric = {f"{direction}@{k}": float(rank <= k) for k in KS} | {"rank": rank}
            rows.append({"doc": doc, "metric": metric, "model_response": {"text": [items[shown[0]]]}})
    date = _date()
    folder = output_dir / "details" / str(encoder.identity["name"]) / date
    folder.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / f"details_{name}|0_{date}.parquet")


def write_results(
    name: str, gallery: Gallery, encoder: "DualEncoder", scores: dict[str, float], output_dir: Path, rerank: str | None
) -> Path:
    """Writes a results file as LightEval does: results/<model>/results_<date>.json."""
    task = f"{name}|0"
    content = {
        "config_general": {
            "lighteval_sha": "?",
            "model_name": encoder.identity["name"],
            "model_config": {"model_name": encoder.identity["name"], **encoder.identity, "rerank": rerank},
        },
        "results": {task: scores, "all": scores},
        "versions": {task: 0},
        "config_tasks": {task: {"name": name, "rows_report": gallery.report, "truncated_texts": encoder.truncated}},
        "summary_tasks": {},
        "summary_general": {},
    }
    folder = output_dir / "results" / str(encoder.identity["name"])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"results_{_date()}.json"
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    return path


def summary(name: str, gallery: Gallery, encoder: "DualEncoder", scores: dict[str, float], rerank: str | None) -> str:
    """The table, what a reader must know, and the signature."""
    from cultureval.reports.terminal_tables import terminal_table

    title = f"\n{name}: {len(gallery.images)} images, {len(gallery.texts)} different captions"
    rows = [
        [metric, f"{value:.4f} ± {scores[f'{metric}_stderr']:.4f}"]
        for metric, value in scores.items()
        if "gallery" not in metric and not metric.endswith("_stderr")
    ]
    lines = [terminal_table((), rows, "lr", title, indent=2)]
    lines += [f"{name}: {note}" for note in gallery.report["notes"]]
    if encoder.truncated:
        lines.append(f"{encoder.truncated} captions are longer than the text encoder takes and were cut.")
    fields = {"task": f"{name}/full gallery", "rows": len(gallery.images), "rows_hash": gallery.report["fingerprint"]}
    model = f"{encoder.identity['name']}@{str(encoder.identity['version'])[:8]}"
    fields |= {"model": model, "dtype": encoder.identity["dtype"], "rerank": rerank}
    lines.append("Signature: " + signature(**fields, **installed_versions()))
    return "\n".join(lines)


def _date() -> str:
    """Now, as LightEval writes it into names of files."""
    return time.strftime("%Y-%m-%dT%H-%M-%S") + f".{time.time_ns() // 1000 % 10**6:06d}"


def _own_captions(row: dict[str, Any]) -> tuple[str, str, list[str]]:
    """(stored image, released path, captions) of a prepared row; English choices begin with a space."""
    return row["image"], row["image_path"], [row["choices"][place].strip() for place in row["correct"]]
