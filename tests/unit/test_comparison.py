"""Comparisons of saved runs: what is refused, what is allowed, what is found, and what people see of it."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from caption_scores import corpus_scores
from inspect_ai.log import read_eval_log
from item_runs import METRIC, save_run
from m2cqa_runs import drawn_verdicts, write_run

from cultureval.metrics.alqasida.translation import bleu, chrf_plus_plus
from cultureval.metrics.m2cqa.counterfactual import paired_cfhr_difference
from cultureval.metrics.m2cqa.statement_items import cell_report, right_judgements
from cultureval.reports.comparison import paired_runs
from cultureval.reports.comparison.compared_models import sides_of
from cultureval.reports.comparison.leaderboard_distance import compare_boards
from cultureval.reports.comparison.planning import plan
from cultureval.reports.comparison.report import compare_all
from cultureval.reports.leaderboard.entries import divisions
from cultureval.reports.viewer.logs import write_logs
from cultureval.runs.files import find_details, find_saved_tasks
from cultureval.runs.items import item_scores
from cultureval.runs.load_runs import load, newest_runs
from cultureval.runs.record import Run
from cultureval.runs.task_records import task_records
from cultureval.runs.writing import write_details
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_tasks

VG = "cvlue_vg|0"  # METRIC is a share there
TASK, CLUSTERED = "own:a|0", "own:b|0"


def items(seed: int, share: float, count: int = 300) -> dict[str, list]:
    """Items of two tasks, the second in clusters of three."""
    right = np.random.default_rng(seed).random((2, count)) < share
    rows = [(f"row {place}", None, float(one)) for place, one in enumerate(right[0])]
    return {
        TASK: rows,
        CLUSTERED: [(f"row {place}", f"image {place // 3}", float(one)) for place, one in enumerate(right[1])],
    }


def compare(folder: Path, *names: str, **options) -> tuple[str, dict, list[str]]:
    return compare_all([folder / name for name in names], folder / "out", draws=500, **options)


def test_a_difference_is_found_and_both_ways_of_flips_are_shown_with_texts(tmp_path: Path) -> None:
    hostile = "\x1b[2J\u202e<script>alert(1)</script> مرحبا"
    save_run(tmp_path / "a", "strong", items(0, 0.8), answer="left", prompt=hostile + "{name}")
    save_run(tmp_path / "b", "weak", items(1, 0.5), answer="right " + hostile, prompt=hostile + "{name}")
    text, document, notes = compare(tmp_path, "a", "b", isolate=True, charts=("svg", "pdf"))
    assert "strong minus weak" in (tmp_path / "out" / "differences_1.svg").read_text("utf-8")
    assert (tmp_path / "out" / "differences_1.pdf").read_bytes().startswith(b"%PDF")
    group, *subsets = document["differences"]
    assert (group["level"], group["name"], group["metric"], group["subsets"]) == ("group", "own|0", METRIC, 2)
    assert group["low"] > 0.15 and group["p_value"] < 0.01 and group["clusters"] == 400
    assert [(row["name"], row["test"], row["clusters"]) for row in subsets] == [
        (TASK, "McNemar mid-p", 300),
        (CLUSTERED, "permutation", 100),
    ]
    assert all(row["p_holm"] >= row["p_value"] for row in subsets) and document["seed"] == 0
    flips = [json.loads(line) for line in (tmp_path / "out" / "items.jsonl").read_text("utf-8").splitlines()]
    counted = sum(flip["task"] == TASK and flip["first_score"] == 1 for flip in flips)
    assert counted == subsets[0]["only_first_right"] and flips[0]["prompt"].startswith("\x1b")
    assert "strong minus weak" in text and "Higher with strong than with weak" in text
    assert "Higher with weak than with strong" in text and "strong: left" in text and "gold: gold" in text
    assert not {"\x1b", "\u202e"} & set(text) and r"\x1b[2J\u202e" in text
    assert TASK not in text.partition("Higher")[0] and any("--subsets" in note for note in notes)
    assert TASK in compare(tmp_path, "a", "b", subsets=True).text.partition("Higher")[0]


def test_identical_runs_have_no_difference_and_three_runs_three_pairs(tmp_path: Path) -> None:
    for name, date in (("a", "2026-01-01T00-00-00"), ("b", "2026-01-02T00-00-00")):
        save_run(tmp_path / name, "model", items(0, 0.6), date=date)
    save_run(tmp_path / "c", "other", items(3, 0.6))
    text, document, notes = compare(tmp_path, "a", "b", "c")
    pairs = {(row["first"], row["second"]) for row in document["differences"]}
    assert pairs == {("model (a)", "model (b)"), ("model (a)", "other"), ("model (b)", "other")}
    same = [row for row in document["differences"] if row["second"] == "model (b)"]
    assert all((row["difference"], row["p_value"], row["identical"]) == (0, 1, True) for row in same)
    assert all(row["low"] == -row["high"] < 0 and "Bonett-Price" in row["interval"] for row in same)
    assert any(note.startswith("95% intervals: ") and "Bonett-Price" in note for note in notes)
    assert "identical on every item" in text and "Higher with model (a) than with model (b): 0 items" in text


def test_a_folder_with_the_name_of_a_command_can_be_compared(tmp_path: Path, run_here) -> None:
    """`compare runs`, of a folder `runs`, printed how `compare runs` is used."""
    for name in ("left", "right"):
        save_run(tmp_path / "runs" / name, name, items(0, 0.6))
    for words in (("runs",), ("runs", "./runs")):
        told = run_here("compare", *words, "--charts", "none", "--output-dir", "compared")
        assert not told.returncode and "left" in told.stdout, told.stderr


def test_models_that_share_no_task_are_told_in_one_sentence(tmp_path: Path) -> None:
    """Models of texts and of images in one folder had a table without rows, and "0 items", for each two of them."""
    for name, task in (("text a", TASK), ("text b", TASK), ("vision", "other:tiles|0")):
        save_run(tmp_path / name, name, {task: items(0, 0.6)[TASK]})
    text, document, notes = compare(tmp_path, "text a", "text b", "vision")
    assert {(row["first"], row["second"]) for row in document["differences"]} == {("text a", "text b")}
    assert "vision" not in text and [note for note in notes if "vision" in note] == [
        "not compared, since they share no task: text a / vision, text b / vision."
    ]


RECORD = {"tasks": {TASK: {"task": TASK, "suite": "own", "benchmark": "own", "group": "own", "subset": "a"}}}


def signed(**changed: object) -> dict:
    task = RECORD["tasks"][TASK] | {name: value for name, value in changed.items() if name != "scorer"}
    fields = {"task": "own/0-shot/v0", "scorer": changed.get("scorer", "none")}
    return {"schema": 1, "tasks": {TASK: task}, "signatures": [{"group": "own|0", "fields": fields, "text": ""}]}


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"count": 250}, "items", "50 only in one"),
        (
            {"prompt": "Prompt of {name}"},
            "prompts",
            "300 of 300 prompts differ, such as that of 'row 0': 'prompt of row 0' /",
        ),
        ({"record": {"parity": "paper"}}, "prompts", "parity differs: 'not told' / 'paper'"),
        ({"record": {"shots": 5}}, "prompts", "shots differs: '0' / '5'"),
        ({"record": {"scorer": "bert@2"}}, "scorers", "scorer differs: 'none' / 'bert@2'"),
        ({"record": {"rows_hash": "cd"}}, "items", "order of examples) differs: 'ab' / 'cd'"),
    ],
)
def test_what_else_differs_is_refused_with_its_place_unless_it_is_allowed(
    tmp_path: Path, changes: dict, kind: str, words: str
) -> None:
    rows = items(0, 0.6)[TASK]
    save_run(tmp_path / "a", "one", {TASK: rows}, record=signed(rows_hash="ab"))
    record = signed(**{"rows_hash": "ab"} | changes.get("record", {}))
    other = {name: value for name, value in changes.items() if name == "prompt"}
    save_run(tmp_path / "b", "other", {TASK: rows[: changes.get("count", 300)]}, record=record, **other)
    with pytest.raises(CulturevalError) as refused:
        compare(tmp_path, "a", "b")
    assert f"one / other, {kind}: {TASK}: " in str(refused.value) and words in str(refused.value)
    assert f"--allow {kind} compares them all the same" in str(refused.value)
    _, document, notes = compare(tmp_path, "a", "b", allowed=[kind])
    assert document["differences"][0]["items"] == changes.get("count", 300)
    assert any(note.startswith(f"compared all the same, {kind}: ") for note in notes)


def of_file(file: str, rows: list, places: list[int] | None = None) -> list:
    """Items as those of a file are named, their scores those of `rows`."""
    return [(f"{file}:{place}", None, rows[place][2]) for place in places or range(len(rows))]


@pytest.mark.parametrize("named", [True, False])  # `score alqasida` hashes rows without their files' names
def test_the_same_rows_in_files_of_other_names_are_one_set_of_items(tmp_path: Path, named: bool) -> None:
    files = {"a": ("test.jsonl", "ab"), "b": ("test.csv", "cd"), "c": ("test-00000-of-00002.parquet", "ef")}
    for seed, (name, (file, rows_hash)) in enumerate(files.items()):
        scored = items(seed, 0.8 - 0.2 * seed)[TASK]
        hashes = {"rows_hash": rows_hash, "content_hash": "same"} if named else {"rows_hash": "same"}
        record = signed(**hashes, metrics=[METRIC])
        save_run(tmp_path / "x", name, {TASK: of_file(file, scored)}, "asked {place}", record=record)
        save_run(tmp_path / "usual", name, {TASK: scored}, "asked {place}", record=signed(metrics=[METRIC]))
    _, document, notes = compare(tmp_path, "x")
    usual = compare(tmp_path, "usual").document["differences"]
    assert [row["items"] for row in document["differences"]] == [300] * 3
    for row, one in zip(document["differences"], usual, strict=True):
        assert (row["difference"], row["p_value"]) == (one["difference"], one["p_value"])
    assert not any("left out" in note or "differ in more" in note for note in notes)
    board = tmp_path / "paper.csv"
    board.write_text("model,average\na,3\nb,2\nc,1\n")
    assert compare_boards([board, tmp_path / "x"], []).startswith("Kendall distance 0.000 of 3 models")


@pytest.mark.parametrize("case", ["other content", "no content", "another order", "refused rows"])
def test_items_of_files_of_other_names_are_not_matched_by_place_where_that_may_be_wrong(
    tmp_path: Path, case: str
) -> None:
    rows = items(0, 0.6)[TASK]
    first = signed(rows_hash="ab", content_hash="same", metrics=[METRIC])
    second = signed(rows_hash="cd", content_hash="same", metrics=[METRIC])
    if case in ("other content", "no content"):
        second = signed(rows_hash="cd", content_hash="other" if case == "other content" else "", metrics=[METRIC])
    places, prompt = list(range(300)), "asked {place}"
    if case == "another order":
        prompt = "asked again {place}"
    if case == "refused rows":
        places = places[10:]
    save_run(tmp_path / "a", "one", {TASK: of_file("test.jsonl", rows)}, "asked {place}", record=first)
    save_run(tmp_path / "b", "other", {TASK: of_file("test.csv", rows, places)}, prompt, record=second)
    with pytest.raises(CulturevalError, match="rows; 300 only in one .such as 'test.jsonl:0'., [0-9]+ only in other"):
        compare(tmp_path, "a", "b")


def test_settings_of_all_runs_of_all_models_are_compared_and_every_warning_is_told(tmp_path: Path) -> None:
    rows, files = items(0, 0.6), {}
    for model, newer in (("one", {}), ("other", {"options": {"max_new_tokens": 9}}), ("third", {})):
        older = signed(reused=300) | {"seeds": {"rows": 1 + (model == "other")}}
        save_run(tmp_path / "a run", model, {TASK: rows[TASK]}, record=older)
        newest = {**older, "tasks": {}, "signatures": []} | newer
        later = {CLUSTERED: rows[CLUSTERED]}
        files[model] = save_run(tmp_path / "a run", model, later, record=newest, date="2027-01-01T00-00-00").file
    _, document, notes = compare(tmp_path, "a run", metrics=[METRIC], allowed=["items", "prompts", "scorers"])
    for first, second in (("one", "other"), ("other", "third")):  # doctor is given the two files that differ most
        command = f"cultureval doctor '{files[first]}' '{files[second]}'"
        names = "seeds.rows, options.max_new_tokens"
        assert f"{first} and {second} also differ in {names} ({command} shows all)." in notes
    assert not [note for note in notes if note.startswith("one and third also")]
    for model in files:
        assert [
            note for note in document["notes"] if model in note.partition(": ")[0].split(", ") and "300 answers" in note
        ]


def test_no_difference_that_is_larger_than_the_metric_s_range_is_promised(tmp_path: Path) -> None:
    rows = [[(f"row {place}", None, float(score)) for place, score in enumerate(one)] for one in ([1, 0, 1], [0, 1, 0])]
    for name, some in zip("ab", rows, strict=True):
        save_run(tmp_path / name, name, {VG: some})
    (pairs,) = paired_runs.pair_sides(sides_of([tmp_path / "a", tmp_path / "b"]), [METRIC], ())
    (row,) = paired_runs.tested_differences([pairs], 500, 0)
    assert paired_runs.POWER * row.result.stderr > 1 and row.can_show is None


def test_a_line_break_in_the_name_of_a_model_forges_no_line(tmp_path: Path) -> None:
    rows = items(0, 0.6)[TASK]
    for name in ("one\nforged", "other"):
        save_run(tmp_path / name[:3], name, {TASK: rows})
    text, _, notes = compare(tmp_path, "one", "oth")
    assert r"one\nforged minus other" in text and "\nforged" not in "\n".join([text, *notes])


def test_two_models_of_one_name_below_a_folder_are_two(tmp_path: Path) -> None:
    rows = items(0, 0.6)
    for folder, version, date in (
        ("base", "aa", "2026-01-01"),
        ("tuned", "bb", "2026-01-02"),
        ("more", "bb", "2026-01-03"),
    ):
        record = signed() | {"model": {"version": version}}
        tasks = {CLUSTERED: rows[CLUSTERED]} if folder == "more" else rows
        save_run(tmp_path / "plan" / folder, "final", tasks, record=record, date=f"{date}T00-00-00")
    _, document, _ = compare(tmp_path, "plan")
    whole = document["differences"][0]
    assert (whole["first"], whole["second"], whole["subsets"]) == ("final (version aa)", "final (version bb)", 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"version": "bb"}, "version"),
        ({"dtype": "bfloat16"}, "dtype"),
        ({"quantisation": "gptq"}, "quantisation"),
        ({"chat_template": True}, "chat template"),
    ],
)
def test_one_folder_is_one_model_where_the_page_says_so(tmp_path: Path, changed: dict, told: str) -> None:
    first = {"version": "aa", "dtype": "float32", "quantisation": "", "chat_template": False}
    names = [f"{task}|0" for task in list(all_tasks())[:3]]
    rows = {name: items(0, 0.6)[TASK] for name in names}

    def save(model: dict, asked: list[str], day: int) -> Run:
        tasks = {name: one.model_dump() for name, one in task_records(dict.fromkeys(asked), None).items()}
        record = {"schema": 1, "tasks": tasks, "model": model}
        kept = {name: rows[name] for name in asked}
        return save_run(tmp_path / "r", "tiny", kept, record=record, date=f"2026-01-0{day}T00-00-00")

    runs = [save(first, names[:2], 1), save(first | changed, names[:1], 2), save({}, names[2:], 3)]
    (division,) = divisions(runs)
    labels = {entry.label for group in division.groups for entry in group.entries}
    sides = sides_of([tmp_path / "r"])
    assert {side.name for side in sides} == labels and len(sides) == 2
    assert all(f"({told} " in side.name for side in sides)
    assert sorted(len(side.tasks) for side in sides) == [2, 2], "what tells nothing is of the newest that does"
    saved, notes = find_saved_tasks([tmp_path]), []
    assert {one.label for one in saved} == labels and len(saved) == 4, "judges, logs and exports take both"
    assert {name for name, _ in newest_runs(load(tmp_path))} == labels, "show prints both"
    logs = {str(log.file) for log in write_logs([tmp_path], names[0])}
    assert {read_eval_log(one, header_only=True).eval.model for one in logs} == labels, "and the viewer has both"
    newest = find_details(tmp_path, names[0], notes.append)
    assert newest.run_name.startswith(f"tiny ({told} ") and newest.date.startswith("2026-01-02")
    assert len(notes) == 1 and f"tiny ({told} " in notes[0].partition("Another is")[2]
    assert str(tmp_path / "r/results/tiny/results_2026-01-01T00-00-00.json") in notes[0]
    newest.results_file.unlink()
    gone = find_details(tmp_path, names[0], notes.append)
    assert gone.date.startswith("2026-01-01") and len(notes) == 1, "details whose results file is gone stand behind"
    for file in (tmp_path / "r").rglob("results_2026-01-01*.json"):
        file.unlink()
    assert find_details(tmp_path, names[0], notes.append).date.startswith("2026-01-02")
    assert "its results file is gone" in notes[-1]


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    rows = items(0, 0.6)
    save_run(tmp_path / "a", "one", rows)
    save_run(tmp_path / "b", "other", {TASK: rows[TASK], "else|0": rows[TASK]}, **{TASK: 0.123})
    with pytest.raises(CulturevalError, match="there is one model"):
        compare(tmp_path, "a")
    with pytest.raises(CulturevalError, match="--allow prompt: it takes items, prompts, scorers. Did you mean prompts"):
        compare(tmp_path, "a", "b", allowed=["prompt"])
    with pytest.raises(CulturevalError, match="share no task .*\n.* do not give the acc@0.5 of its results"):
        compare(tmp_path, "a", "b")
    with pytest.raises(CulturevalError, match=r"--metric acc@0.55: no run has it. Did you mean acc@0.5"):
        compare(tmp_path, "a", "a", metrics=["acc@0.55"])
    twice = compare(tmp_path, "a", "a")
    assert twice.document["differences"][0]["second"] == "one (2)"
    assert "one (1) and one (2) are the same results, named twice." in twice.notes


def test_no_number_or_name_is_cut_on_a_narrow_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, share in (("one", 0.6), ("other", 0.7)):
        save_run(tmp_path / name, name, items(len(name), share))
    for width, gone in ((130, ""), (66, "(first, second:"), (52, "(first, second, can show:")):
        for module in ("comparison.report", "terminal_tables"):
            monkeypatch.setattr(f"cultureval.reports.{module}.terminal_width", lambda wide=width: wide)
        text = compare(tmp_path, "one", "other").text
        table = text.split("one minus other\n")[1].split("\n\n")[0]
        *rows, last = table.splitlines()
        assert max(map(len, rows)) <= width and "own|0" in table and " 600 " in f"{table} "
        assert len(re.findall(r"[+-]0\.\d{4}\b", table)) == 3  # the difference and the bounds of its interval
        assert last.startswith(gone) and ("no room here" in table) == bool(gone)


def test_plans_count_items_tasks_and_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_run(tmp_path / "a", "one", items(0, 0.6))
    save_run(tmp_path / "b", "other", items(1, 0.6))
    text = plan(["5000", "qimma_palmx", str(tmp_path / "a"), str(tmp_path / "b"), "3"], 0.2, 0.8, None)
    rows = {line.split("  ")[0]: line.split() for line in text.splitlines()[3:]}
    assert rows["5000 items"][4] == "0.0177" and "too few items" in text
    assert rows["own|0"][1] == "600" and float(rows["own|0"][2]) == pytest.approx(0.48, abs=0.12)
    assert "where 4 differences are tested together" in " ".join(text.split())
    assert max(map(len, text.splitlines()[:4])) <= 100
    assert "one alone: an upper bound" in plan([str(tmp_path / "a")], 0.2, 0.8, 1)
    scaled = {"own:a|0": [(name, None, 100 * score) for name, _, score in items(0, 0.6)["own:a|0"]]}  # such as BLEU
    save_run(tmp_path / "c", "one", scaled)
    found = plan([str(tmp_path / "c")], 0.2, 0.8, 1).splitlines()[-1].split()
    assert 10 < float(found[3]) < 20 and found[3] == found[4]
    impossible = plan(["20"], 0.2, 0.8, None).splitlines()[-1]  # of 4 items that differ, no 0.26 can be the difference
    assert impossible.count("none: too few items") == 2
    for model in ("x", "y"):
        save_run(tmp_path / "few", model, {TASK: items(0, 0.6, 6)[TASK]})
    assert "too few items" in plan([str(tmp_path / "few")], 0.2, 0.8, 1).splitlines()[-1]
    lines = [line.split() for line in plan(["m2cqa", "m2cqa:tf_en", "alqasida_cross"], 0.2, 0.8, 1).splitlines()[-3:]]
    assert [line[1] for line in lines] == ["9990", "9990", "299"], "items, not rows; those of several tasks once"
    for wrong, words in ((["0"], "--plan 0: give"), (["qima"], "Did you mean qimma")):
        with pytest.raises(CulturevalError, match=words):
            plan(wrong, 0.2, 0.8, None)
    with pytest.raises(CulturevalError, match="--discordant"):
        plan(["10"], 0.0, 0.8, None)
    save_run(tmp_path / "d", "third", items(0, 1.0))  # an empty table, "where 0 differences are tested"
    with pytest.raises(CulturevalError, match="no score varies"):
        plan([str(tmp_path / "d")], 0.2, 0.8, None)
    capsys.readouterr()
    text = plan([str(tmp_path / "d"), "500"], 0.2, 0.8, None)
    assert "do not vary over the items: own:a|0, own:b|0" in capsys.readouterr().err and "1 difference is" in text


def test_the_distance_of_two_leaderboards(tmp_path: Path) -> None:
    for folder, shares in (("x", (0.9, 0.6, 0.3)), ("y", (0.9, 0.3, 0.6))):
        for name, share in zip("abc", shares, strict=True):
            save_run(tmp_path / folder, name, items(0, share), record={**RECORD, "schema": 1})
    text = compare_boards([tmp_path / "x", tmp_path / "y"], [METRIC])
    assert "Kendall distance 0.333 of 3 models" in text and "ordered differently: " in text
    board = tmp_path / "paper.csv"
    board.write_text("model,average\na,3\nb,2\nc,1\nd,0\n")
    text = compare_boards([board, tmp_path / "x"], [METRIC])
    assert "Kendall distance 0.000" in text and "Only one of them has d." in text
    board.write_text('model,average\n"a\n  and 9 more pairs",1\nb,2\n')
    other = tmp_path / "other.csv"
    other.write_text('model,average\n"a\n  and 9 more pairs",2\nb,1\n')
    lines = compare_boards([board, other], []).splitlines()
    assert lines[1:] == [r"  ordered differently: a\n  and 9 more pairs / b"]
    board.write_text("model,rank,warnings,AraTrust\na,1,,90\nb,2,,80\n")
    with pytest.raises(CulturevalError, match="a rank is no score"):  # the order was turned
        compare_boards([board, other], [])
    board.write_text("model,average\na,many\n")
    with pytest.raises(CulturevalError, match="a model and its score"):
        compare_boards([board, board], [])
    with pytest.raises(CulturevalError, match="two leaderboards"):
        compare_boards([board], [])


def test_models_that_may_not_be_compared_are_not_one_order_of_a_leaderboard(tmp_path: Path) -> None:
    """Models of other rows, and one whose file claims what its items do not give, were ordered with the rest."""
    for name, share in zip("abc", (0.9, 0.6, 0.3), strict=True):
        save_run(tmp_path / "x", name, {TASK: items(0, share)[TASK]}, record=signed(rows_hash="ab", metrics=[METRIC]))
    other, edited = signed(rows_hash="cd", metrics=[METRIC]), signed(rows_hash="ab", metrics=[METRIC])
    save_run(tmp_path / "x", "other rows", {TASK: items(0, 0.99)[TASK]}, record=other)
    save_run(tmp_path / "x", "edited", {TASK: items(0, 0.5)[TASK]}, record=edited, **{TASK: 0.97})
    board = tmp_path / "paper.csv"
    board.write_text("model,average\nother rows,5\nedited,4\na,3\nb,2\nc,1\n")
    lines = compare_boards([board, tmp_path / "x"], []).splitlines()
    assert lines[0].startswith("Kendall distance 0.000 of 3 models")
    assert any("without other rows: own: the fingerprint of the rows" in line for line in lines)
    assert any("without edited: own: own:a|0 acc@0.5: its file says 97.00, its items" in line for line in lines)
    assert "Only one of them has edited, other rows." in lines or "Only one of them has other rows, edited." in lines


def test_m2cqa_is_a_case_whose_items_are_three_rows_and_whose_score_is_a_ratio(tmp_path: Path) -> None:
    cells = [drawn_verdicts(300, 0.8, 0.7, 1, invalid=0.05), drawn_verdicts(300, 0.8, 0.6, 2)]
    for name, verdicts in zip("ab", cells, strict=True):
        write_run(tmp_path / name, name, {"tf_en": verdicts}, model_name=name)
    read = cells[0][:, 0] != "invalid"  # the items of both; an unreadable Q+ has no score of CFHR
    wanted = paired_cfhr_difference(*right_judgements(cells[0][read]), *right_judgements(cells[1][read]))
    text, document, _ = compare(tmp_path, "a", "b")
    (row,) = document["differences"]
    assert (row["items"], row["left_out_first"]) == (read.sum(), 300 - read.sum()) and row["metric"] == "cfhr"
    assert row["difference"] == pytest.approx(wanted["delta"])
    assert (row["low"], row["high"]) == pytest.approx((wanted["ci_low"], wanted["ci_high"]), abs=0.02)
    assert row["p_value"] == pytest.approx(wanted["p_value"], abs=0.03)
    assert "prompt: ? / ? / ?" in text
    counted = [int((cell[read, 0] == "true").sum()) for cell in cells]  # as other views count CFHR: right on Q+
    assert [row["first_counted"], row["second_counted"]] == counted
    assert f" {counted[0]} and {counted[1]} of {read.sum()}, " in text
    file = next((tmp_path / "a").rglob("*.parquet"))
    for name, value in cell_report(cells[0]).items():
        if not name.endswith("_stderr") and not name.startswith("n_"):
            items = item_scores(file, "m2cqa:tf_en|0", name)
            assert items.score(items.parts.sum(axis=0)) == pytest.approx(value), name


SAID, MEANT = (
    ["قال الولد كلمة اليوم", "رأيت قطة سوداء في البيت"],
    ["قال الولد كلمة واحدة اليوم", "رأيت قطة سوداء كبيرة في البيت"],
)


@pytest.mark.parametrize(
    ("task", "metric", "wanted"),
    [
        ("jeem_caption:eg|0", "bleu_4", lambda: corpus_scores(SAID, MEANT)["bleu_4"]),
        ("jeem_caption:eg|0", "bleu_1_raw", lambda: corpus_scores(SAID, MEANT, normalize=False)["bleu_1"]),
        ("alqasida_mt:btec_eng_to_egy|0", "chrf_plus_plus", lambda: chrf_plus_plus(SAID, MEANT)),
        ("alqasida_mt:btec_eng_to_egy|0", "bleu", lambda: bleu(SAID, MEANT)),
        ("cvlue_en_itr|0", "IR@1", lambda: (0.5 * 2 + 1 * 1) / 3),
    ],
)
def test_corpus_scores_follow_from_what_their_items_are_made_of(tmp_path: Path, task: str, metric: str, wanted) -> None:
    rows = [
        {
            "doc": {
                "choices": [gold] * 2,
                "gold_index": [0, 1][: 2 - place],
                "specific": {"source": "a", "gallery": 0},
            },
            "metric": {"IR@1": [0.5, 1.0][place]},
            "model_response": {"text": [said], "text_post_processed": [said]},
        }
        for place, (said, gold) in enumerate(zip(SAID, MEANT, strict=True))
    ]
    file = write_details(tmp_path, "model", "2026-01-01", task, pyarrow.Table.from_pylist(rows))
    items = item_scores(file, task, metric)
    assert items.score(items.parts.sum(axis=0)) == pytest.approx(wanted())
    assert items.score(np.stack([items.parts.sum(axis=0)] * 3)).shape == (3,) and len(items.keys) == 2


def test_names_of_models_compute_nothing_in_a_spreadsheet(tmp_path: Path) -> None:
    save_run(tmp_path / "a", "=1+1", items(0, 0.8, 9))
    save_run(tmp_path / "b", "@x", items(1, 0.5, 9))
    _, document, _ = compare(tmp_path, "a", "b")
    first, *rows = (tmp_path / "out" / "differences.csv").read_text("utf-8").splitlines()
    assert "first,second" in first and rows and all(",'=1+1,'@x," in row for row in rows)
    assert document["differences"][0]["first"] == "=1+1"


def test_a_half_written_results_file_is_named_with_its_remedy(tmp_path: Path) -> None:
    save_run(tmp_path / "a", "model", items(0, 0.6))
    save_run(tmp_path / "b", "other", items(1, 0.6))
    broken = next((tmp_path / "b").rglob("results_*.json"))
    broken.write_text(broken.read_text("utf-8")[:-20], "utf-8")
    with pytest.raises(CulturevalError, match=r"move it and the run.s details out of the folder") as found:
        compare(tmp_path, "a", "b")
    assert str(broken) in str(found.value)
