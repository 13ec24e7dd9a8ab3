"""What a reader of a run must know: each problem is told once, with its groups and what to do; a clean run has none."""

from dataclasses import replace

import pytest
from summary_runs import run_of

from cultureval.reports.alqasida.table import tables as alqasida_tables
from cultureval.reports.jeem.table import tables
from cultureval.reports.summary_text import shown_run
from cultureval.runs.load_runs import scores_table
from cultureval.runs.record import RunRecord, TimingRecord
from cultureval.runs.warnings import run_notes, run_warnings, task_warnings
from cultureval.tasks.catalogue import groups

TASK = "qimma_palmx:islamic"


def warnings_of(run):
    """All but that the run is of some subsets."""
    return [one for one in run_warnings(run) if one.kind != "in_part"]


def test_a_complete_run_has_no_warnings():
    assert warnings_of(run_of(["qimma", "jeem"], skipped_rows=0)) == []
    assert warnings_of(run_of([TASK], unparsable=20, rows=1001)) == [], "up to 2 % of the answers may be unreadable"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"limit": 20, "rows": 20}, ["At most 20 rows", "--limit", "run without it"]),
        ({"duplicate_rows": 3}, ["3 rows with the same question as an earlier one"]),
        ({"unread_files": ("copy.csv",)}, ["1 data file that no task reads"]),
        ({"not_selected": {"no task has the subset 'islamik'": 4, "of another subset": 9}}, ["In no task: 4 rows;"]),
        (
            {"rows": 999, "refused": 2, "bounds": {"acc_norm": (0.25, 0.5)}},
            ["unscored: qimma_palmx 2. With them, the means would be between: qimma_palmx from 0.25 to 0.5."],
        ),
        ({"rows": 998, "skipped_rows": 3}, ["3 of 1,001 rows left out: qimma_palmx 3", "reasons"]),
        (
            {"rows": 1000},
            ["qimma_palmx:islamic|0 (1,000 rows, published: 1,001)", "Compare with runs on the same data only"],
        ),
        ({"shots": 5, "few_shot_rows": 3}, ["Few-shot examples are missing", "qimma_palmx", "TASK|0"]),
        ({"shots": 5, "few_shot_rows": 9, "skipped_few_shot_rows": 1}, ["missing or broken: qimma_palmx"]),
        ({"scored": {"acc_norm": 900}}, ["in no mean of the headline: qimma_palmx 101.", "cultureval show"]),
        ({"unparsable": 21}, ["Unreadable answers: qimma_palmx 2.1%", "chat template"]),
        ({"cut_prompts": 7}, ["read their ends alone: qimma_palmx 7.", "longer context"]),
        ({"short_limits": 7}, ["fewer tokens than their task allows", "qimma_palmx 7.", "longer context"]),
        ({"skipped_rows": 1, "rows": 1000}, ["1 of 1,001 rows left out: qimma_palmx 1"]),
        ({"reused": 1}, ["1 of 1,001 answers reused"]),
        ({"truncated": 7}, ["the end of the model's context: qimma_palmx 7.", "max_new_tokens"]),
        (
            {"verdicts_reused": 7, "verdicts_reused_since": "2026-01-02"},
            ["7 verdicts reused, oldest of 2026-01-02", "--no-resume"],
        ),
        (
            {"reused": 1001, "reused_since": "2026-01-02"},
            ["1,001 of 1,001 answers reused, oldest of 2026-01-02", "--no-resume"],
        ),
    ],
)
def test_each_problem_is_one_sentence_with_what_to_do(fields, words):
    (sentence,) = warnings_of(run_of([TASK], **fields))
    assert all(word in sentence for word in words), sentence


def test_a_sum_of_rows_of_two_forms_is_that_of_neither():
    """86 rows of ArabicMMLU, in two forms, were held to no published number."""
    names = groups()["qimma_arabicmmlu"]
    for rows, told in ((2, True), (14000 / len(names), False)):
        run = run_of(names, rows=int(rows), expected_rows=None, expected_group_rows=14575)
        tasks = run.record.tasks
        curated = {"form": "curated", "expected_group_rows": 13727}
        tasks |= {name: task.model_copy(update=curated) for name, task in list(tasks.items())[:8]}
        sentences = [one for one in warnings_of(run) if one.kind == "other_counts"]
        assert len(sentences) == told, sentences
        assert not told or "qimma_arabicmmlu has 80 of 13,727 (curated) or 14,575 (original)" in sentences[0]


def test_other_numbers_of_rows_are_told_once_of_tasks_and_groups():
    whole = groups()["qimma_arabicmmlu"]
    run = run_of([*whole, "qimma_aratrust"], rows=3, expected_rows=None, expected_group_rows=99)  # which counts nothing
    (told,) = [one for one in warnings_of(run) if "rows than published" in one]
    assert "qimma_aratrust|0 (3 rows, published: 522); qimma_arabicmmlu has 120 of 14,575." in told


@pytest.mark.parametrize(("refused", "low", "high"), [(0, 0.4496, 0.5504), (100, 0.4087, 0.5913)])
def test_means_with_unscored_rows_are_bounded(refused, low, high):
    """Bounds of problems that were not judged stood only in the terminal of `code evaluate`."""
    run = run_of([TASK], lambda task, metric: 0.5, scored={"acc_norm": 900}, refused=refused)
    told = [one for one in warnings_of(run) if one.kind in ("unscored", "refused")]
    assert len(told) == 1 + bool(refused) and all(f"qimma_palmx from {low} to {high}." in one for one in told), told


def test_bounds_of_a_rate_of_some_items_count_those_it_may_count_alone():
    """An instability of .5 of 20 items, with ten unreadable ones, was said to be at most .625."""
    name = "contrastive_instability"
    run = run_of(["m2cqa_aynvqa:en"], lambda task, metric: 0.5, rows=120, scored={name: 90}, counted={name: 20})
    (told,) = [one for one in run_warnings(run) if one.kind == "unscored"]
    assert "m2cqa_aynvqa from 0.3333 to 0.6667." in told


def test_a_subset_without_any_answer_is_in_the_counts_and_bounds_of_its_group():
    run = run_of([TASK], rows=1, refused=3, bounds={"acc_norm": (0.0, 0.75)}, limit=4)
    lost = run.record.tasks[f"{TASK}|0"].model_copy(
        update={"task": "qimma_palmx:culture|0", "subset": "culture", "rows": 0, "refused": 4}
    )
    lost = lost.model_copy(update={"bounds": {"acc_norm": (0.0, 1.0)}})
    told = {"unscorable": {lost.task: "No row has an answer (why)."}, "unanswered": {lost.task: lost}}
    found = warnings_of(replace(run, record=run.record.model_copy(update=told)))
    (refused,) = [one for one in found if one.kind == "refused"]
    assert "unscored: qimma_palmx 7. With them" in refused and "qimma_palmx from 0 to 0.875." in refused
    assert any("cannot be scored: qimma_palmx:culture. No row has an answer (why)." in one for one in found)


def test_rows_of_a_group_that_are_published_in_sum_are_known_whatever_the_file_says():
    """A stock file's 800 rows of ArabicMMLU stood unmarked above the papers' models."""
    for form in ("original", ""):
        run = run_of(groups()["qimma_arabicmmlu"], rows=20, expected_rows=None, expected_group_rows=None, form=form)
        (told,) = [one for one in run_warnings(run) if one.kind == "other_counts"]
        assert "qimma_arabicmmlu has 800 of 14,575" in told or "800 of 13,727 (curated) or 14,575 (original)" in told


@pytest.mark.parametrize("subsets", [1, 3])
def test_a_mean_of_some_subsets_is_told(subsets):
    """A benchmark without some of its nine subsets had a higher score in `show`, without a word."""
    names = [f"qimma_gat:{name}" for name in ("Algebra", "Analogy", "Arithmetic")][:subsets]
    run = run_of([*names, "qimma_aratrust"])
    (told,) = [one for one in run_warnings(run) if one.kind == "in_part"]
    assert "some subsets only" in told and told.endswith(f": qimma_gat {subsets} of 9.") and told.mark == "some subsets"
    assert not any(one.kind == "in_part" for one in task_warnings(run, f"{names[0]}|0"))
    several = run_of(groups()["qimma_gat"])
    more = {
        f"{name}|3": several.record.tasks[f"{name}|0"].model_copy(
            update={"task": f"{name}|3", "shots": 3, "scored": {"acc_norm": 4}, "rows": 5}
        )
        for name in names
    }
    both = replace(several, record=several.record.model_copy(update={"tasks": {**several.record.tasks, **more}}))
    told_of_both = [str(one) for one in run_warnings(both)]
    assert any(f": qimma_gat (3-shot) {subsets} of 9." in one for one in told_of_both)
    assert any(f"headline: qimma_gat (3-shot) {subsets}." in one for one in told_of_both)
    told_of = scores_table([run]).set_index("task").warnings.str.contains(told, regex=False)
    assert {*told_of[told_of].index} == {"qimma_gat:_average|0"}
    complete = run_warnings(run_of(groups("m2cqa")["m2cqa"]))  # whose varieties are asked in three prompts each
    assert "in_part" not in [one.kind for one in complete]


def test_all_limits_of_a_merged_run_are_told():
    run = run_of([TASK, "qimma_aratrust"], limit=20)
    tasks = {
        name: task.model_copy(update={"limit": 2 + place})
        for place, (name, task) in enumerate(run.record.tasks.items())
    }
    (sentence,) = [
        one
        for one in warnings_of(replace(run, record=run.record.model_copy(update={"tasks": tasks})))
        if one.kind == "limited"
    ]
    assert sentence.startswith("At most 2 or 3 rows") and sentence.mark == "limit 2 and 3"


def test_a_cost_without_tokens_as_somebody_edited_it_stops_no_summary():
    run = run_of([TASK])
    record = run.record.model_copy(update={"timing": TimingRecord(cost=1.25, tokens_cached=7)})
    (sentence,) = warnings_of(replace(run, record=record))
    assert sentence.startswith("All answers cost 1.25,") and "0 tokens of prompts (7 cached)" in sentence


def test_counts_that_are_lacking_are_told_as_estimated():
    run = run_of([TASK])
    timing = TimingRecord(cost=1.25, tokens_paid_in=9, tokens_paid_out=3, missing_usage=2)
    (cost,) = warnings_of(replace(run, record=run.record.model_copy(update={"timing": timing})))
    assert "3 of answers (2 answers without counts: estimated)" in cost
    anew = run.record.model_copy(update={"timing": timing, "options": {"resume": False}})
    (told,) = warnings_of(replace(run, record=anew))
    assert "those of earlier runs included" in cost and "those of earlier runs not counted" in told


def test_what_was_not_run_and_not_judged():
    run = run_of(["jeem_vqa:eg"], lambda task, metric: 0.5)
    run.scores["jeem_vqa:eg|0"].update({"judge_a_vqa_n_unscored": 2.0, "judge_b_vqa_n_unscored": 3.0})
    missing = ("jeem_vqa:jo|0", "jeem_vqa:ma|0", "qimma_gat:Algebra|0")
    record = run.record.model_copy(update={"missing": missing, "unscorable": {"alqasida_mono:x|0": "No NADI model."}})
    sentences = warnings_of(replace(run, record=record))
    assert sentences[0].startswith("Incomplete, so not comparable: jeem_vqa, qimma_gat (3 tasks without data).")
    assert sentences[1] == "Left out, since they cannot be scored: alqasida_mono. No NADI model."
    assert sentences[2].startswith("Verdicts without a judge's score: jeem_vqa 5.")


def test_a_judge_that_stopped_and_texts_that_try_to_influence_it():
    run = run_of(["jeem_vqa:eg"], lambda task, metric: 0.5)
    counts = {"n_items": 9.0, "n_parsed": 4.0, "n_unscored": 5.0, "n_not_asked": 5.0, "n_flagged": 1.0}
    counts |= {"fluency": 3.0, "fluency_missing_as_1": 1.89, "fluency_missing_as_5": 4.11}
    run.scores["jeem_vqa:eg|0"].update({f"judge_a_vqa_{name}": value for name, value in counts.items()})
    stopped, flagged, bounded = warnings_of(run)
    assert [one.mark for one in (stopped, flagged, bounded)] == ["judged in part (4 of 9)", "flagged", ""], "each once"
    assert "fluency 3.00 [1.89, 4.11], n/a" in bounded
    assert "not comparable: jeem_vqa 5 verdicts of 9 were not asked for" in stopped and "cultureval judge" in stopped
    assert "influence the judge: jeem_vqa:eg|0 judge_a_vqa 1." in flagged and "_unflagged" in flagged
    table = next(one for one in tables(run) if "by judge a" in one.title)
    assert table.title.endswith(", judged in part (4 of 9)")
    ((label, cells),) = [(row.label, row.cells) for row in table.rows]
    assert label == "Egypt, answers" and list(cells) == [None, None, "3.00 [1.89, 4.11]", None, "4 of 9"]
    assert table.notes[0].startswith("No scores to compare")


def test_means_of_a_judge_are_bounded_where_two_percent_of_its_verdicts_are_unscored_or_flagged():
    run = run_of(["jeem_vqa:eg", "jeem_vqa:jo"], lambda task, metric: 0.5)
    counts = {"n_items": 100.0, "n_parsed": 97.0, "n_unscored": 2.0, "n_doubtful": 1.0, "n_malformed": 1.0}
    counts |= {"n_flagged": 2.0, "fluency": 3.0, "fluency_unflagged": 2.5}
    counts |= {"fluency_missing_as_1": 2.9, "fluency_missing_as_5": 3.1, "n_parsed_unflagged": 95.0}
    for place, task in enumerate(("jeem_vqa:eg|0", "jeem_vqa:jo|0")):
        values = counts | {"fluency": 3.0 + place, "n_flagged": 2.0 + place}
        run.scores[task].update({f"judge_a_vqa_{name}": value for name, value in values.items()})
    (told,) = [sentence for sentence in warnings_of(run) if "verdicts are unscored" in sentence]
    assert told == (
        "jeem_vqa, judge_a_vqa: 4 of 200 verdicts are unscored (2 malformed, 2 doubtful) and 5 of flagged texts. Means "
        "[all unscored the lowest, the highest], without flagged texts: fluency 3.50 [2.90, 3.10], 2.50."
    )
    run.scores["jeem_vqa:jo|0"]["judge_a_vqa_n_flagged"] = 2.0
    assert not [sentence for sentence in warnings_of(run) if "verdicts are unscored" in sentence], "2 % and no more"


@pytest.mark.parametrize("count", ["n_not_asked", "n_malformed"])
def test_what_a_judge_left_out_bounds_its_cell_whatever_the_reason(count):
    """21 of 40 verdicts unreadable, the mean of the others stood as 4.47 in the table of whole means."""
    run, mono = run_of(["jeem_vqa:eg"], lambda task, metric: 0.5), run_of(["alqasida_mono:habibi_egy"])
    counts = {"n_items": 40.0, "n_parsed": 19.0, "n_unscored": 21.0, count: 21.0, "fluency": 4.47}
    counts |= {"fluency_missing_as_1": 2.65, "fluency_missing_as_5": 4.75}
    run.scores["jeem_vqa:eg|0"].update({f"judge_a_vqa_{name}": value for name, value in counts.items()})
    mono.scores["alqasida_mono:habibi_egy|0"] |= {f"judge_a_fluency_{name}": value for name, value in counts.items()}
    for found in (tables(run), alqasida_tables(mono)):
        (table,) = [one for one in found if "judge a" in one.title]
        assert "4.47 [2.65, 4.75]" in table.rows[0].cells and table.notes[0].startswith("No scores to compare")


def test_a_judge_that_stopped_in_a_later_task_has_bounds_there_too():
    """A judge of AL-QASIDA was not asked about the second set: the mean of both is between the means of the bounds."""
    tasks = ["alqasida_mono:habibi_egy", "alqasida_mono:habibi_mar"]
    run = run_of(tasks, lambda task, metric: 0.5)
    for task, counts in zip(tasks, ((4.0, 0.0), (0.0, 4.0)), strict=True):
        parsed, missing = counts
        values = {"n_items": 4.0, "n_parsed": parsed, "n_not_asked": missing, "fluency": 4.0 if parsed else None}
        values |= {"fluency_missing_as_1": 4.0 if parsed else 1.0, "fluency_missing_as_5": 4.0 if parsed else 5.0}
        run.scores[f"{task}|0"].update({f"judge_a_fluency_{name}": value for name, value in values.items()})
        run.scores[f"{task}|0"]["judge_a_fluency_fluency"] = values["fluency"]
    (table,) = [one for one in alqasida_tables(run) if "judge a" in one.title]
    assert ", judged in part (4 of 8)" in table.title and "4.00 [2.50, 4.50]" in table.rows[0].cells


def test_many_groups_are_counted_and_notes_are_told_once():
    run = run_of(["qimma"], truncated=1, notes=("Prompts are ours.",))
    (sentence,) = warnings_of(run)
    assert "qimma_arabicmmlu 40, qimma_medarabench 26, qimma_arabculture 13 and 11 more groups." in sentence
    assert run_notes(run) == ["qimma_aradice:Egypt|0 and 108 more tasks: Prompts are ours."]


def test_a_group_whose_rows_do_not_add_up_to_the_published_sum():
    palmx = [TASK, "qimma_palmx:culture"]
    right = run_of(palmx, rows=1488, expected_rows=None, expected_group_rows=2976, form="curated")
    wrong = run_of(palmx, rows=1487, expected_rows=None, expected_group_rows=2976, form="curated")
    assert warnings_of(right) == []
    assert warnings_of(run_of([TASK], rows=1488, expected_rows=None, expected_group_rows=2976, form="curated")) == [], (
        "a part of it"
    )
    assert "qimma_palmx has 2,974 of 2,976" in warnings_of(wrong)[0]


def test_metrics_of_a_judge_that_could_not_be_asked_are_named_as_left_out():
    """In the warnings, below the table, among all scores, and in what the file holds."""
    run = run_of(["jeem_caption:eg", "jeem_caption:msa"])
    metrics = [f"judge_far_reference_{name}" for name in ("fluency", "dialect_authenticity")]
    for name, task in run.record.tasks.items():
        run.record.tasks[name] = task.model_copy(update={"left_out": tuple(metrics[: 1 + name.endswith("eg|0")])})
    run = replace(run, record=run.record.model_copy(update={"unjudged": {"far": "The judge far cannot be asked."}}))
    (warning,) = [line for line in warnings_of(run) if "far" in line]
    assert warning.startswith("The scores of the judge far are left out: jeem_caption. The judge far cannot be asked.")
    shown = shown_run(run, 120, full=True).splitlines()
    assert "  Judge far: n/a, its 2 metrics are left out." in shown
    assert [line.split()[1:] for line in shown if "judge_far_reference_fluency" in line] == [["left", "out"]] * 2
    written = RunRecord.model_validate_json(run.record.model_dump_json(by_alias=True))
    assert written.unjudged == run.record.unjudged and written.tasks["jeem_caption:eg|0"].left_out == tuple(metrics)
