"""What people judge: files for them and back, majority, ties, agreement; images are those of our store."""

import csv
import io
import json
import xml.etree.ElementTree as ElementTree

import pytest

from cultureval.audit.items import AuditItem
from cultureval.audit.review import Verdict, decide, read_verdicts, write_review
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


def rows_of(count, decision="review"):
    return [
        ManifestRow(
            **{"source": "org/data", "revision": "local", "subset": "s", "row": f"s.csv:{number}"},
            **{"hash": f"{number:064x}", "decision": decision, "reasons": ["check:gold"], "by": ["check"]},
        )
        for number in range(count)
    ]


def manifest_of(count):
    return Manifest("m.jsonl", tuple(rows_of(count)))


def said(number, annotator, verdict):
    return Verdict(f"org/data/s.csv:{number}", f"{number:064x}", annotator, verdict)


def test_the_majority_decides_ties_stay_open_and_the_last_word_counts(tmp_path):
    verdicts = [
        *(said(0, name, "discard") for name in ("a", "b")),
        *(said(1, "a", "keep"), said(1, "b", "discard")),  # a tie
        *(said(2, "a", "discard"), said(2, "a", "keep"), said(2, "b", "keep")),  # a changed her mind
        *(said(3, "a", "unsure"), said(3, "b", "keep")),
        said(4, "a", "unsure"),
        *(said(5, "a", "keep"), said(5, "b", "discard"), said(5, "c", "discard")),
    ]
    found = decide(manifest_of(7), verdicts)
    decisions = [row.decision for row in found.rows]
    assert decisions == ["discard", "review", "keep", "keep", "review", "discard", "review"]
    assert found.counts == {"kept": 2, "discarded": 2, "tied": 1, "waiting": 2}
    assert found.annotators == {"a": 6, "b": 5, "c": 1}
    assert found.rows[1].reasons == ["check:gold", "person:keep", "person:discard", "person:tie"]
    assert found.rows[0].by == ["check", "person:a", "person:b"]
    table = [[1, 1, None], [0, 1, None], [0, 0, None], [0, 1, 1]]
    assert found.ac1 == pytest.approx(gwet_ac1(table, [0, 1]))
    assert found.alpha == pytest.approx(krippendorff_alpha(table, [0, 1]))
    again = decide(manifest_of(7), [*verdicts, said(1, "c", "keep")])  # a third settles it
    assert again.rows[1].decision == "keep" and "person:tie" not in again.rows[1].reasons
    assert decide(manifest_of(7), verdicts, min_verdicts=2).rows[3].decision == "review"
    written = write_manifest(tmp_path / "m.jsonl", found.rows)
    assert read_manifest(tmp_path / "m.jsonl").hash == written.hash
    with pytest.raises(CulturevalError, match="holds decisions of people"):
        decide(Manifest("n", tuple(found.rows)), [said(0, "c", "keep")])  # one vote must not undo two
    with pytest.raises(CulturevalError, match="does not hold"):
        decide(manifest_of(1), [said(3, "a", "keep")])
    with pytest.raises(CulturevalError, match="another content"):
        decide(manifest_of(1), [Verdict("org/data/s.csv:0", "f" * 64, "a", "keep")])


def test_tables_for_people_compute_nothing_and_come_back(tmp_path):
    items = [item_of(0, "ا" * 200_000), *(item_of(number, '=cmd|"/c calc"!A1') for number in (1, 2, 3))]
    assert write_review(items, [*rows_of(3), rows_of(4, "keep")[3]], tmp_path) == 3
    file = tmp_path / "review.csv"
    csv.field_size_limit(1 << 20)
    rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8-sig"))))
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())
    assert rows[0]["options"].splitlines() == ["  1. =HYPERLINK(1)", "* 2. القاهرة"]
    for row, verdict in zip(rows, ("keep", "Discard ", ""), strict=True):
        row["verdict"] = verdict
    with file.open("w", encoding="utf-8-sig", newline="") as stream:  # as a spreadsheet saves it in Europe
        writer = csv.DictWriter(stream, rows[0], delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    assert read_verdicts([file.rename(tmp_path / "basim.csv")]) == [
        said(0, "basim", "keep"),
        said(1, "basim", "discard"),
    ]
    by_name = [tmp_path / "أمل.csv", tmp_path / "王.csv", tmp_path / "अमित.csv"]
    for one in by_name:
        one.write_text(f"item,hash,verdict\norg/data/s.csv:0,{0:064x},keep\n", encoding="utf-8")
    names = ["أمل", "王", "अमित"]
    assert [verdict.annotator for verdict in read_verdicts(by_name)] == names
    write_manifest(tmp_path / "m.jsonl", decide(manifest_of(1), read_verdicts(by_name)).rows)
    assert read_manifest(tmp_path / "m.jsonl").rows[0].by[1:] == [f"person:{name}" for name in sorted(names)]
    with pytest.raises(CulturevalError, match="Two files have the same name"):
        read_verdicts([file, tmp_path / "again" / file.name])
    with pytest.raises(CulturevalError, match="nobody.csv does not exist"):
        read_verdicts([tmp_path / "nobody.csv"])
    for name in ("../x", "a/b", ".hidden", "a b", "a" * 61):
        file.write_text(f"item,hash,verdict,annotator\nx,y,keep,{name}\n", encoding="utf-8")
        with pytest.raises(CulturevalError, match="an annotator is named"):
            read_verdicts([file])


def test_label_studio_there_and_back(tmp_path):
    write_review([item_of(0), item_of(1)], rows_of(2), tmp_path)
    sent = json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8"))
    tree = ElementTree.fromstring((tmp_path / "labelling.xml").read_text(encoding="utf-8"))
    shown = {tag.get("value").removeprefix("$") for tag in tree.iter("Text")}
    assert all(shown <= set(task["data"]) for task in sent)

    def annotation(who, verdict, minute, **more):
        value = {"from_name": "verdict", "to_name": "question", "type": "choices", "value": {"choices": [verdict]}}
        note = {"from_name": "note", "to_name": "question", "type": "textarea", "value": {"text": ["خطأ"]}}
        when = {"updated_at": f"2026-11-22T10:0{minute}:00.000000Z"}
        return {"completed_by": who, "was_cancelled": False, "result": [note, value]} | when | more

    annotations = [
        annotation(7, "discard", 2),
        annotation(7, "keep", 1),
        annotation({"id": 8, "email": "b@x.org"}, "unsure", 3),
        annotation(9, "keep", 4, was_cancelled=True),
        annotation(9, "keep", 5, result=[]),
    ]
    back = tmp_path / "export.json"
    back.write_text(json.dumps([task | {"id": 1, "annotations": annotations} for task in sent[:1]]), encoding="utf-8")
    assert read_verdicts([back]) == [
        said(0, "label-studio-7", "keep"),
        said(0, "label-studio-7", "discard"),
        said(0, "b@x.org", "unsure"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", '[{"annotations": 3}]', "no JSON export of Label Studio"),
        ("a.json", '[{"data": [1], "annotations": [{"completed_by": 1, "result": [{}]}]}]', "no JSON export"),
        ("a.json", '{"x": 1}', "no JSON export"),
        ("a.json", "[" * 100_000, "no JSON export"),
        ("a.json", "[]", "there are no verdicts"),
        ("a.csv", "question,verdict\nx,keep\n", "has no column item, hash"),
        ("a.csv", f"item,hash,verdict,annotator\nx,{'0' * 64},maybe,a\n", "line 2: a verdict is keep, discard, unsure"),
    ],
)
def test_other_files_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(CulturevalError, match=message):
        read_verdicts([tmp_path / name])
