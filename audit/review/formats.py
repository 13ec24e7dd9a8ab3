"""Items to review as files of other tools, and their verdicts back: CSV, Label Studio, Argilla, our review page.

Label Studio: tasks as JSON and a labelling interface as XML; back, the JSON export of a project. Argilla: records and
settings as its Python package (2.x) reads and writes them. Images are copied into a folder beside these files, under
the names of our store; no path of the data is written.
"""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from cultureval.audit.items import RIGHT_TO_LEFT, AuditItem
from cultureval.audit.review.verdicts import CHOICES, MOST_BYTES, Reviewable, Verdict, checked, read_lines
from cultureval.runtime.csv_files import csv_text, read_csv
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import CulturevalError

Form = Literal["csv", "label-studio", "argilla"]
COLUMNS = ("item", "hash", "reasons", "context", "image", "question", "options", "annotator", "verdict", "note")
TITLES = {"keep": "صالح / keep", "discard": "غير صالح / discard", "unsure": "لا أدري / unsure"}
ARGILLA_FIELDS = ("question", "options", "image", "context", "reasons")
KEYS = {"keep": "k", "discard": "d", "unsure": "u"}
GUIDE = (
    "Keep an item if it is clear, has exactly one right answer, which is the one marked with *, and is true and fair "
    "to the culture that it is about; discard it otherwise.\n\n"
    "أبقِ السؤال إن كان واضحا صحيحا منصفا، وله إجابة صحيحة واحدة هي المعلّمة بنجمة، واستبعده فيما عدا ذلك."
)
IMAGES = "images"  # folder beside the export's files
LOCAL_FILES = "/data/local-files/?d="  # where Label Studio serves the files below its document root
LABELLING = """<View>
  <Style>.lsf-main-view { direction: DIRECTION; }</Style>
  <Text name="reasons" value="$reasons"/>
  <Text name="context" value="$context"/>IMAGE
  <Text name="question" value="$question"/>
  <Text name="options" value="$options"/>
  <Choices name="verdict" toName="question" choice="single" required="true">
CHOICES
  </Choices>
  <TextArea name="note" toName="question" rows="2"/>
</View>
"""


def write_export(items: Reviewable, form: Form, folder: Path) -> list[Path]:
    """Writes the items of `items_to_review` for another tool into a folder, and returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    records = [_record(item, reasons) for item, reasons in items]
    _copy_images(items, folder)
    usual = Counter(item.written_in for item, _ in items).most_common(1)
    direction = "rtl" if usual and usual[0][0] in RIGHT_TO_LEFT else "ltr"
    made = {
        "csv": lambda: {"review.csv": f"\ufeff{csv_text(records, COLUMNS)}"},  # the mark by which Excel reads UTF-8
        "label-studio": lambda: {
            "tasks.json": _json([{"data": _served(record)} for record in records]),
            "labelling.xml": _labelling(direction, any(one["image"] for one in records)),
        },
        "argilla": lambda: {
            "records.json": _json([_argilla_record(record) for record in records]),
            "settings.json": _json(_argilla_settings()),
        },
    }[form]()
    for name, text in made.items():
        write_atomically(folder / name, text.encode("utf-8", "backslashreplace"))
    return [folder / name for name in made]


def _record(item: AuditItem, reasons: Sequence[str]) -> dict[str, str]:
    options = item.options or item.answers
    gold = set(item.gold) if item.form == "mcq" else set(range(len(options)))
    listed = [f"{'*' if place in gold else ' '} {place + 1}. {text}" for place, text in enumerate(options)]
    return {
        "item": item.id,
        "hash": item.hash,
        "reasons": ", ".join(reasons),
        "context": item.context,
        "question": item.question,
        "options": "\n".join(listed),
        "image": f"{IMAGES}/{item.image_file.name}" if item.image_file else "",
    }


def _copy_images(items: Reviewable, folder: Path) -> None:
    for file in dict.fromkeys(item.image_file for item, _ in items):
        if file and not (folder / IMAGES / file.name).exists():
            (folder / IMAGES).mkdir(exist_ok=True)
            shutil.copyfile(file, folder / IMAGES / file.name)


def _served(record: Mapping[str, str]) -> dict[str, str]:
    return dict(record) | ({"image": f"{LOCAL_FILES}{record['image']}"} if record["image"] else {})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _labelling(direction: str, images: bool) -> str:
    choices = "\n".join(
        f'    <Choice value="{name}" alias="{name}" hotkey="{KEYS[name]}" hint="{TITLES[name]}"/>' for name in CHOICES
    )
    image = '\n  <Image name="image" value="$image"/>' if images else ""
    return LABELLING.replace("DIRECTION", direction).replace("CHOICES", choices).replace("IMAGE", image)


def _argilla_record(record: Mapping[str, str]) -> dict[str, Any]:
    fields = {name: record[name] for name in ARGILLA_FIELDS if record[name]}
    metadata = {"item": record["item"], "hash": record["hash"]}
    return {"id": record["hash"][:16] + record["item"][-100:], "fields": fields, "metadata": metadata}


def _argilla_settings() -> dict[str, Any]:
    fields = [
        {"name": name, "title": name, "required": name == "question", "type": "text"}
        | {"settings": {"type": "text", "use_markdown": False}}
        for name in ARGILLA_FIELDS
    ]
    options = [{"text": TITLES[name], "value": name} for name in CHOICES]
    questions = [
        {"name": "verdict", "title": "verdict", "required": True, "type": "label_selection"}
        | {"settings": {"type": "label_selection", "options": options}},
        {"name": "note", "title": "note", "required": False, "type": "text"}
        | {"settings": {"type": "text", "use_markdown": False}},
    ]
    metadata = [
        {"name": name, "title": name, "visible_for_annotators": True}
        | {"settings": {"type": "terms", "visible_for_annotators": True}}
        for name in ("item", "hash")
    ]
    shared = {"vectors": [], "allow_extra_metadata": False, "distribution": {"strategy": "overlap", "min_submitted": 2}}
    return {"guidelines": GUIDE, "fields": fields, "questions": questions, "metadata": metadata} | shared


def read_verdicts(paths: Sequence[Path], annotator: str | None = None) -> list[Verdict]:
    """The verdicts of files, each in the form that its content shows; `annotator` filled in a CSV file without names.

    Files are CSV, exports of Label Studio and Argilla, verdicts files of the review page, or folders of these.
    """
    files = [file for path in paths for file in (sorted(path.glob("verdicts-*.jsonl")) if path.is_dir() else [path])]
    found = [verdict for file in files for verdict in _read(file, annotator)]
    if not found:
        raise CulturevalError(f"{', '.join(map(str, paths))}: there are no verdicts.")
    return found


def _read(file: Path, annotator: str | None) -> list[Verdict]:
    try:
        if file.stat().st_size > MOST_BYTES:
            raise CulturevalError(f"{file} is larger than a file of verdicts may be (256 MiB).")
        if file.suffix.lower() == ".jsonl":
            return read_lines(file)
        if file.suffix.lower() == ".csv":
            return list(_of_csv(file, annotator))
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CulturevalError(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CulturevalError(f"{file} is not UTF-8.") from error
    try:
        records = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CulturevalError(f"{file} is no CSV file (.csv) and no JSON ({error}).") from error
    if isinstance(records, list) and all(isinstance(one, dict) for one in records):
        if any("annotations" in one for one in records):
            return list(_of_label_studio(file, records))
        if any("responses" in one for one in records):
            return list(_of_argilla(file, records))
    raise CulturevalError(f"{file} is neither a JSON export of Label Studio nor records of Argilla.")


def _of_csv(file: Path, annotator: str | None) -> Iterator[Verdict]:
    for line, row in read_csv(file, ("item", "hash", "verdict")):
        if row["verdict"].strip():
            plain = {name: cell.strip() for name, cell in row.items()}
            plain["annotator"] = plain.get("annotator") or annotator or ""
            yield checked(plain, f"{file}, line {line}")


def _of_label_studio(file: Path, records: Sequence[Mapping[str, Any]]) -> Iterator[Verdict]:
    for number, record in enumerate(records):
        where = f"{file}, task {record.get('id', number)}"
        data = _mapping(record.get("data"), where)
        given = _listed(record.get("annotations"), where)
        for annotation in sorted(given, key=_changed_at):  # a project's export has them in no order
            if annotation.get("was_cancelled"):
                continue
            found = {"item": data.get("item"), "hash": data.get("hash"), "annotator": _person(annotation)}
            for result in _listed(annotation.get("result"), where):
                value = _mapping(result.get("value"), where)
                if result.get("from_name") == "verdict":
                    found["verdict"] = next(iter(_list(value.get("choices"), where)), "")
                elif result.get("from_name") == "note":
                    text = value.get("text") or ""
                    found["note"] = "\n".join(map(str, text)) if isinstance(text, list) else str(text)
            yield checked(found, where)


def _changed_at(annotation: Mapping[str, Any]) -> str:
    """When an annotation was last changed by the clock of the one server; "" where it does not say."""
    text = str(annotation.get("updated_at") or annotation.get("created_at") or "")
    return text.removesuffix("Z")  # with it, a whole second would come after its fractions


def _person(annotation: Mapping[str, Any]) -> str:
    who = annotation.get("completed_by")
    if isinstance(who, Mapping):
        who = who.get("email") or who.get("id")
    return f"label-studio-{who}" if isinstance(who, int) else str(who or "")


def _of_argilla(file: Path, records: Sequence[Mapping[str, Any]]) -> Iterator[Verdict]:
    for number, record in enumerate(records):
        where = f"{file}, record {record.get('id', number)}"
        metadata, responses = (_mapping(record.get(name), where) for name in ("metadata", "responses"))
        notes = {str(one.get("user_id")): one.get("value") for one in _listed(responses.get("note"), where)}
        for one in _listed(responses.get("verdict"), where):
            found = {"item": metadata.get("item"), "hash": metadata.get("hash"), "verdict": one.get("value")}
            found |= {"annotator": f"argilla-{one.get('user_id')}", "note": notes.get(str(one.get("user_id")))}
            yield checked(found, where)


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping | None):
        raise CulturevalError(f"{where} is not as its tool writes it.")
    return value or {}


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list | None):
        raise CulturevalError(f"{where} is not as its tool writes it.")
    return value or []


def _listed(value: Any, where: str) -> list[Mapping[str, Any]]:
    return [_mapping(one, where) for one in _list(value, where)]
