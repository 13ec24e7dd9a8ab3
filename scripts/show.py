"""`cultureval show`: one sample of a run, as text; of visual grounding also a picture with its boxes."""

import base64
import re
from pathlib import Path
from typing import Annotated, Any
from xml.etree import ElementTree

import typer

from cultureval.runtime.errors import CulturevalError

FONTS = "'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', 'WenQuanYi Micro Hei', SimHei, 'DejaVu Sans', sans-serif"
GOLD, PREDICTED = "#1a9850", "#d73027"
MIME = {".png": "image/png", ".jpg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif", ".bmp": "image/bmp"}
TOP, NARROWEST = 5, 560
Row = dict[str, Any]


def show(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="The --output-dir of a run.")],
    task: Annotated[str, typer.Argument(metavar="TASK", help="A task of that run, such as cvlue_vg.")],
    item: Annotated[str, typer.Argument(metavar="ITEM", help="Its id in the gold file, or #N for the Nth row from 0.")],
    output: Annotated[Path | None, typer.Option(help="The picture, .svg or .png; default: beside the results.")] = None,
) -> None:
    """Shows a sample; for grounding draws gold and predicted boxes. Example: cultureval show results cvlue_vg 2649"""
    row = find_row(results, task, item)
    print(describe(row))
    if "box" not in specific_of(row):
        return
    name = re.sub(r"[^\w.-]+", "_", f"{task}-{specific_of(row).get('id') or item}")
    path = output or results / "pictures" / f"{name}.svg"
    if path.suffix not in (".svg", ".png"):
        raise CulturevalError(f"The picture {path} must end in .svg or .png.")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".svg":
        path.write_text(boxes_as_svg(row), encoding="utf-8")
    else:
        draw_boxes(row, path)
    print(f"Picture (gold green, predicted red): {path.resolve()}")


def find_row(results: Path, task: str, item: str) -> Row:
    """The row of a sample in the newest details of a task.

    Raises:
        CulturevalError: No such details or sample.
    """
    import pyarrow.parquet

    name = task if "|" in task else f"{task}|0"
    files = [
        path
        for path in results.glob("details/**/details_*.parquet")
        if path.name.removeprefix("details_").rpartition("_")[0] == name
    ]
    if not files:
        raise CulturevalError(f"{results} holds no details of {name}: give the --output-dir of a run of that task.")
    rows = pyarrow.parquet.read_table(max(files, key=lambda path: path.stat().st_mtime)).to_pylist()
    if re.fullmatch(r"#\d+", item) and int(item[1:]) < len(rows):
        return rows[int(item[1:])]
    found = [row for row in rows if str(specific_of(row).get("id")) == item]
    if not found:
        ids = ", ".join(str(specific_of(row).get("id")) for row in rows[:5])
        raise CulturevalError(f"{name} has no item {item!r} among its {len(rows)}; there are {ids}, ... and #0, ...")
    return found[0]


def specific_of(row: Row) -> dict[str, Any]:
    """What a row's doc holds beyond LightEval's fields."""
    return row["doc"].get("specific") or {}


def describe(row: Row) -> str:
    """Prompt, gold, reply and scores as text."""
    doc, response = row["doc"], row["model_response"]
    lines = [f"prompt:\n{doc['query']}", f"image: {specific_of(row).get('image_path') or doc.get('images')}"]
    gold = doc["gold_index"] if isinstance(doc["gold_index"], list) else [doc["gold_index"]]
    lines.append("gold: " + " | ".join(doc["choices"][place].strip() for place in gold))
    if response.get("logprobs"):
        lines.append(f"first {TOP} by mean log-probability a token:")
        lines += _best_choices(doc["choices"], response)
    elif response.get("text"):
        lines.append(f"reply: {response['text'][0]}")
    # M2CQA's rows also hold verdicts, which are words.
    shown = {name: value if isinstance(value, str) else f"{value:.4g}" for name, value in row["metric"].items()}
    lines.append("scores: " + ", ".join(f"{name} {value}" for name, value in shown.items()))
    return "\n".join(_printable(line) for line in lines)


def boxes_as_svg(row: Row) -> str:
    """The image with its boxes and texts; letters are text, which a viewer draws with its own fonts."""
    doc, specific = row["doc"], specific_of(row)
    width, height = specific["size"]
    stroke = max(2, round(max(width, height) / 250))
    line = max(12, round(max(width, height) / 32))
    texts = [(_printable(doc["query"]), "#000000"), *_legend(row)]
    broad = max(width, NARROWEST)
    frame = {"width": str(broad), "height": str(height + round(line * (1.6 * len(texts) + 0.6)))}
    svg = ElementTree.Element("svg", frame | {"xmlns": "http://www.w3.org/2000/svg"})
    ElementTree.SubElement(svg, "rect", {"width": "100%", "height": "100%", "fill": "#ffffff"})
    image = _image_file(row)
    content = base64.b64encode(image.read_bytes()).decode("ascii")
    link = {"href": f"data:{MIME[image.suffix]};base64,{content}", "width": str(width), "height": str(height)}
    ElementTree.SubElement(svg, "image", link)
    for place, (box, colour) in enumerate(_boxes(row)):
        x, y, across, down = (f"{number:.2f}" for number in box)
        shape = {"x": x, "y": y, "width": across, "height": down, "fill": "none", "stroke": colour}
        dashes = {"stroke-dasharray": f"{stroke * 3}"} if place > 1 else {}
        ElementTree.SubElement(svg, "rect", shape | {"stroke-width": str(stroke)} | dashes)
    for place, (text, colour) in enumerate(texts, 1):
        style = {"x": str(line // 2), "y": str(height + round(1.6 * line * place)), "font-size": str(line)}
        words = ElementTree.SubElement(svg, "text", style | {"font-family": FONTS, "fill": colour})
        words.text = shorten_line(text, int(broad / line * 1.3))
    return ElementTree.tostring(svg, encoding="unicode") + "\n"


def draw_boxes(row: Row, path: Path) -> None:
    """The image with its boxes alone, as PNG: no font is shipped, so a PNG has no text."""
    from PIL import ImageDraw

    from cultureval.runtime.data.image_store import upright

    drawn = upright(_image_file(row)).convert("RGB")
    pen = ImageDraw.Draw(drawn)
    for (x, y, across, down), colour in _boxes(row):
        pen.rectangle([x, y, x + across, y + down], outline=colour, width=max(2, round(max(drawn.size) / 250)))
    drawn.save(path)


def shorten_line(text: str, letters: int) -> str:
    """A text as one line of so many letters at most."""
    flat = " ".join(text.split())
    return flat if len(flat) <= letters else flat[: max(letters - 1, 1)] + "…"


def _boxes(row: Row) -> list[tuple[list[float], str]]:
    """The gold box, then the predicted ones."""
    from cultureval.metrics.cvlue.lighteval import predicted_boxes

    specific = specific_of(row)
    predicted = predicted_boxes(_reply(row), specific)
    return [(specific["box"], GOLD), *((box, PREDICTED) for box in predicted)]


def _legend(row: Row) -> list[tuple[str, str]]:
    found = len(_boxes(row)) - 1
    values = f"IoU {row['metric']['iou']:.3f} (official), {row['metric']['iou_continuous']:.3f} (continuous)"
    what = values if found else "no box that can be read"
    return [("标注 gold", GOLD), (f"预测 predicted: {what}", PREDICTED), (_printable(_reply(row)), "#555555")]


def _reply(row: Row) -> str:
    texts = row["model_response"].get("text") or [""]
    return str(texts[0])


def _best_choices(choices: list[str], response: Row) -> list[str]:
    counts = [max(len(tokens), 1) for tokens in response["output_tokens"]]
    means = [total / count for total, count in zip(response["logprobs"], counts, strict=True)]
    order = sorted(range(len(means)), key=lambda place: -means[place])[:TOP]
    return [f"  {means[place]:8.3f}  {choices[place].strip()}" for place in order]


def _image_file(row: Row) -> Path:
    """The stored image of a row: whatever path a results file states, only images of the cache are opened."""
    from cultureval.runtime.data.image_store import stored_image

    return stored_image(Path(row["doc"]["images"][0]).name)


def _printable(text: str) -> str:
    """The text without control characters, which neither a terminal nor XML should get."""
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")
