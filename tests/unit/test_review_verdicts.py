"""Verdicts of people: majority, ties, agreement; files that survive a kill; forms of other tools, there and back."""

import csv
import io
import json
import xml.etree.ElementTree as ElementTree

import pytest

from cultureval.audit.items import AuditItem
from cultureval.audit.review.formats import read_verdicts, write_export
from cultureval.audit.review.verdicts import Verdict, VerdictsFile, decide, items_to_review, read_lines
from cultureval.metrics.agreement import gwet_ac1, krippendorff_alpha
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.manifest import Manifest, ManifestRow, read_manifest, write_manifest


def item_of(number, question="ما عاصمة مصر؟"):
    return AuditItem(
        *("org/data", "local", "s", f"s.csv:{number}", f"{number:064x}", "test", "mcq"),
        question,
        ("=HYPERLINK(1)", "القاهرة"),
        (1,),
        context="@نص" if number else "",
    )


def manifest_of(count, decision="review"):
    rows = [
        ManifestRow(
            **{"source": "org/data", "revision": "local", "subset": "s", "row": f"s.csv:{number}"},
            **{"hash": f"{number:064x}", "decision": decision, "reasons": ["check:gold"], "by": ["check"]},
        )
        for number in range(count)
    ]
    return Manifest("m.jsonl", tuple(rows))


def said(number, annotator, verdict, time=1):
    return Verdict(f"org/data/s.csv:{number}", f"{number:064x}", annotator, verdict, "", time)


def test_the_majority_decides_ties_stay_open_and_the_last_word_counts(tmp_path):
    verdicts = [
        *(said(0, name, "discard") for name in ("a", "b")),
        *(said(1, "a", "keep"), said(1, "b", "discard")),  # a tie
        *(said(2, "a", "discard", 5), said(2, "a", "keep", 9), said(2, "b", "keep")),  # a changed her mind
        *(said(3, "a", "unsure"), said(3, "b", "keep")),
        said(4, "a", "unsure"),
        *(said(5, "a", "keep"), said(5, "b", "discard"), said(5, "c", "discard")),
    ]
    found = decide(manifest_of(7), verdicts)
    decisions = [row.decision for row in found.manifest]
    assert decisions == ["discard", "review", "keep", "keep", "review", "discard", "review"]
    assert (found.kept, found.discarded, found.tied, found.waiting, found.verdicts) == (2, 2, 1, 2, 12)
    assert found.manifest[1].reasons == ["check:gold", "person:keep", "person:discard", "person:tie"]
    assert found.manifest[0].by == ["check", "person:a", "person:b"]
    table = [[1, 1, None], [0, 1, None], [0, 0, None], [0, 1, 1]]
    assert found.agreement["ac1"] == pytest.approx(gwet_ac1(table, [0, 1]))
    assert found.agreement["alpha"] == pytest.approx(krippendorff_alpha(table, [0, 1]))
    again = decide(Manifest("n", tuple(found.manifest)), [*verdicts, said(1, "c", "keep")])  # a third settles it
    assert again.manifest[1].decision == "keep" and "person:tie" not in again.manifest[1].reasons
    assert decide(manifest_of(7), verdicts, fewest=2).manifest[3].decision == "review"
    written = write_manifest(tmp_path / "m.jsonl", found.manifest)
    assert read_manifest(tmp_path / "m.jsonl").hash == written.hash
    with pytest.raises(CulturevalError, match=r"s\.csv:0 as decided also by a, b.* all annotators together"):
        decide(Manifest("n", tuple(found.manifest)), [said(0, "c", "keep")])  # one vote must not undo two
    with pytest.raises(CulturevalError, match="does not hold"):
        decide(manifest_of(1), [said(3, "a", "keep")])
    with pytest.raises(CulturevalError, match="another content"):
        decide(manifest_of(1), [Verdict("org/data/s.csv:0", "f" * 64, "a", "keep")])


def test_a_file_of_verdicts_survives_a_kill_in_the_middle_of_a_line(tmp_path):
    first = VerdictsFile(tmp_path, "amal")
    first.add("org/data/s.csv:0", "0" * 64, "keep", "ملاحظة\nمن سطرين")
    with pytest.raises(CulturevalError, match="open in another"):
        VerdictsFile(tmp_path, "amal")
    first.close()
    with first.path.open("ab") as stream:
        stream.write(b'{"item": "org/data/s.csv:1", "hash": "00')
    second = VerdictsFile(tmp_path, "amal")
    assert list(second.last) == ["org/data/s.csv:0"]
    second.add("org/data/s.csv:1", "1" * 64, "discard", "")
    second.close()
    assert [one.verdict for one in read_lines(first.path)] == ["keep", "discard"]
    for name in ("../x", "a/b", "", ".hidden", "a b", "a" * 61):
        with pytest.raises(CulturevalError, match="an annotator is named"):
            VerdictsFile(tmp_path, name)


def test_tables_for_people_compute_nothing_and_come_back(tmp_path):
    items = items_to_review([item_of(number, '=cmd|"/c calc"!A1') for number in range(3)], manifest_of(3))
    (file,) = write_export(items, "csv", tmp_path)
    text = file.read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())
    assert rows[0]["options"].splitlines() == ["  1. =HYPERLINK(1)", "* 2. القاهرة"]
    for row, verdict in zip(rows, ("keep", "Discard ", ""), strict=True):
        row["verdict"] = verdict
    with file.open("w", encoding="utf-8-sig", newline="") as stream:  # as a spreadsheet saves it in Europe
        writer = csv.DictWriter(stream, rows[0], delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    verdicts = read_verdicts([file], "basim")
    assert [(one.item, one.verdict, one.annotator) for one in verdicts] == [
        ("org/data/s.csv:0", "keep", "basim"),
        ("org/data/s.csv:1", "discard", "basim"),
    ]
    with pytest.raises(CulturevalError, match="an annotator is named"):
        read_verdicts([file])


def test_label_studio_there_and_back(tmp_path):
    tasks, labelling = write_export(items_to_review([item_of(0), item_of(1)], manifest_of(2)), "label-studio", tmp_path)
    sent = json.loads(tasks.read_text(encoding="utf-8"))
    tree = ElementTree.fromstring(labelling.read_text(encoding="utf-8"))
    shown = {tag.get("value").removeprefix("$") for tag in tree.iter("Text")}
    assert all(shown <= set(task["data"]) for task in sent) and "rtl" in tree.find("Style").text
    assert [tag.get("value") for tag in tree.iter("Choice")] == ["keep", "discard", "unsure"]

    def result(verdict):
        value = {"from_name": "verdict", "to_name": "question", "type": "choices", "value": {"choices": [verdict]}}
        note = {"from_name": "note", "to_name": "question", "type": "textarea", "value": {"text": ["خطأ"]}}
        return [value, note]

    annotations = [
        {"completed_by": 7, "was_cancelled": False, "result": result("keep")},
        {"completed_by": {"id": 8, "email": "b@x.org"}, "was_cancelled": False, "result": result("discard")},
        {"completed_by": 9, "was_cancelled": True, "result": []},
    ]
    back = tmp_path / "export.json"
    back.write_text(json.dumps([task | {"id": 1, "annotations": annotations} for task in sent]), encoding="utf-8")
    verdicts = read_verdicts([back])
    assert [(one.annotator, one.verdict, one.note) for one in verdicts[:2]] == [
        ("label-studio-7", "keep", "خطأ"),
        ("b@x.org", "discard", "خطأ"),
    ]
    assert len(verdicts) == 4

    first, second = ({"updated_at": f"2026-11-22T10:0{minute}:00.000000Z"} for minute in (1, 2))
    annotations = [annotations[0] | second | {"result": result("discard")}, annotations[0] | first]
    back = back.rename(tmp_path / "export.JSON")
    back.write_text(json.dumps([sent[0] | {"annotations": annotations}]), encoding="utf-8")
    assert [one.verdict for one in read_verdicts([back])] == ["keep", "discard"]  # an export has no order


def test_argilla_there_and_back(tmp_path):
    records, settings = write_export(items_to_review([item_of(0), item_of(1)], manifest_of(2)), "argilla", tmp_path)
    sent = json.loads(records.read_text(encoding="utf-8"))
    known = json.loads(settings.read_text(encoding="utf-8"))
    fields = {field["name"] for field in known["fields"]}
    assert all(set(one["fields"]) <= fields and "question" in one["fields"] for one in sent)
    assert {one["name"] for one in known["metadata"]} == set(sent[0]["metadata"]) == {"item", "hash"}
    users = ["c1a472ad-6268-448a-8908-ba0ce8615141", "c2331717-465d-43c3-b24e-4927096a2055"]
    answers = {
        "verdict": [{"value": value, "user_id": user} for value, user in zip(("keep", "discard"), users, strict=True)]
    }
    answers["note"] = [{"value": "ملاحظة", "user_id": users[1]}]
    back = tmp_path / "done.json"
    back.write_text(json.dumps([one | {"responses": answers} for one in sent]), encoding="utf-8")
    verdicts = read_verdicts([back])
    assert [(one.annotator, one.verdict, one.note) for one in verdicts[:2]] == [
        (f"argilla-{users[0]}", "keep", ""),
        (f"argilla-{users[1]}", "discard", "ملاحظة"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", '[{"annotations": 3}]', "not as its tool writes it"),
        ("a.json", '[{"data": [1], "annotations": []}]', "not as its tool writes it"),
        ("a.json", '[{"annotations": [{"result": [{"from_name": "verdict", "value": {"choices": 5}}]}]}]', "its tool"),
        ("a.json", '[{"responses": {"verdict": [{"user_id": {"a": 1}}], "note": [{"user_id": {}}]}}]', "keep, discard"),
        ("a.json", '{"x": 1}', "neither"),
        ("a.json", "[" * 100_000, "no JSON"),
        ("a.csv", "question,verdict\nx,keep\n", "has no column item, hash"),
        ("a.csv", f"item,hash,verdict,annotator\nx,{'0' * 64},maybe,a\n", "a verdict is keep, discard, unsure"),
        ("a.csv", "item,hash,verdict,annotator\nx,y,keep,a\n", "no item with its hash"),
        ("a.jsonl", "[1]\n", "is no verdict"),
        ("a.json", "[]", "there are no verdicts|neither"),
    ],
)
def test_files_of_other_forms_are_errors_that_say_what(tmp_path, name, content, message):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(CulturevalError, match=message):
        read_verdicts([tmp_path / name])


def test_only_rows_as_they_were_audited_are_asked_about():
    with pytest.raises(CulturevalError, match="not in these sources"):
        items_to_review([item_of(0)], manifest_of(2))
    with pytest.raises(CulturevalError, match="nothing to look at"):
        items_to_review([item_of(0)], manifest_of(1, "keep"))
    assert len(items_to_review([item_of(0)], manifest_of(1, "keep"), ("keep",))) == 1
