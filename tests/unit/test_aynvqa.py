"""AynVQA: its data and splits, the joint form, the organisers' metrics, submissions read and written."""

import json
import shutil

import pytest
from lighteval.metrics import apply_metric
from lighteval.models.model_output import ModelResponse
from planted import plant
from typer.testing import CliRunner

from cultureval.metrics.m2cqa.counterfactual import WORDS
from cultureval.metrics.m2cqa.lighteval import joint_metrics, statement_metrics
from cultureval.metrics.m2cqa.names import LABELLED, ORGANISERS, ORGANISERS_PARTS
from cultureval.metrics.m2cqa.statement_verdicts import chosen_statement, organisers_verdict
from cultureval.prompts.m2cqa.rows import joint_prompt, one_word_prompt
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import CulturevalError, MissingColumn, SourceUnavailable
from cultureval.scripts.main import app
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.reading import forget_files, prepare_subset

pytestmark = pytest.mark.usefixtures("own_cache")

FOLDER = samples_root() / "QCRI/ImageEval-ArabicNLP26"
GOLD = FOLDER / "task1b/test_en.jsonl"
PROMPT = """You are checking a statement against an image for visual hallucination. Look only at what the image actually shows.

Statement: "{s}"

If the image clearly supports the statement, answer True. If the statement describes something that is not in the image or is contradicted by it (a hallucination), answer False. Answer with only one word: True or False."""  # noqa: E501


def gold_rows(path=GOLD):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def prepared(task, root=None):
    forget_files()
    subset = prepare_subset(all_tasks()[task], DataOptions(root=root or samples_root()))
    lines = (subset.folder / "test.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines], subset.report


def test_the_organisers_prompt_and_the_order_of_the_statements():
    rows, report = prepared("m2cqa_aynvqa:en")
    gold = {row["id"]: row for row in gold_rows()}
    assert len(rows) == 12 and (report["expected_rows"], report["other_data"]) == (3000, "")
    for row in rows:
        doc = one_word_prompt(row, "m2cqa_aynvqa:en|0")
        place, item = doc.specific["statement_index"], gold[doc.specific["item_id"]]
        assert doc.query == PROMPT.format(s=item["statements"][place])
        assert doc.get_golds() == ["True" if item["labels"][place] else "False"]
    (msa,) = {one_word_prompt(row).query.partition('"')[0] for row in prepared("m2cqa_aynvqa:msa")[0]}
    assert msa == PROMPT.partition('"')[0]  # one English prompt for both languages


def test_the_joint_form_shows_three_statements_in_the_sources_order():
    gold = {row["id"]: row for row in gold_rows(FOLDER / "task1b/test_msa.jsonl")}
    for row in prepared("m2cqa_aynvqa_joint:msa")[0]:
        doc, item = joint_prompt(row), gold[row["item_id"]]
        places = [doc.query.index(f"\n{number}. {text}\n") for number, text in enumerate(item["statements"], 1)]
        assert places == sorted(places) and doc.gold_index == item["labels"].index(True)


@pytest.mark.parametrize(
    ("output", "place"),
    [("2", 1), ("Statement 3.", 2), ("الجواب: ١", 0), ("**2**", 1), ("3. The lamp is of brass.", 2), ("２", 1)]
    + [("1 or 2", None), ("4", None), ("12", None), ("", None), ("the second", None), ("2.5", None), ("2 and 2", 1)],
)
def test_a_choice_is_one_number_of_three(output, place):
    assert chosen_statement(output) == place


def test_splits_of_the_data_and_rows_without_labels(tmp_path, monkeypatch):
    dev = {row["id"] for row in gold_rows(FOLDER / "task1b/dev_en.jsonl")}
    monkeypatch.setenv("CULTUREVAL_AYNVQA_SPLIT", "dev")
    rows, report = prepared("m2cqa_aynvqa_tf:en")
    assert {row["item_id"] for row in rows} == dev and "split dev" in report["other_data"]
    monkeypatch.setenv("CULTUREVAL_AYNVQA_SPLIT", "train")
    with pytest.raises(SourceUnavailable):
        prepared("m2cqa_aynvqa:en")
    monkeypatch.setenv("CULTUREVAL_AYNVQA_SPLIT", "devtest")
    with pytest.raises(CulturevalError, match="CULTUREVAL_AYNVQA_SPLIT.*test, dev, train"):
        prepared("m2cqa_aynvqa:en")
    monkeypatch.delenv("CULTUREVAL_AYNVQA_SPLIT")
    folder = tmp_path / "QCRI/ImageEval-ArabicNLP26"
    shutil.copytree(FOLDER, folder)
    blind = "\n".join(json.dumps({name: row[name] for name in ("id", "image", "statements")}) for row in gold_rows())
    (folder / "task1b/test_en.jsonl").write_text(blind, encoding="utf-8")
    with pytest.raises(MissingColumn, match="labels"):
        prepared("m2cqa_aynvqa:en", tmp_path)
    for labels in ([True, True, False], [True, False], [1, 0, 0], ["x"] * 3, None):
        rows = [row | {"labels": labels} for row in gold_rows()]
        (folder / "task1b/test_en.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        with pytest.raises(CulturevalError, match="'labels' does not mark one of three"):
            prepared("m2cqa_aynvqa:en", tmp_path)


def test_the_headline_of_the_organisers_prompt_is_their_reading():
    metrics = statement_metrics("one_word", ORGANISERS_PARTS, ORGANISERS)
    better = {metric.metric_name: metric.higher_is_better for metric in metrics}
    assert list(better)[:1] == ["contrastive_instability"] == list(ORGANISERS)[:1] and "cfhr_organisers" in LABELLED
    assert not better["contrastive_instability_lenient"] and better["q_plus_acc"]
    rows, _ = prepared("m2cqa_aynvqa:en")
    replies = {True: "Yes, there is one", False: "No"}  # read by the organisers alone
    docs = [one_word_prompt(row, "m2cqa_aynvqa:en|0") for row in rows]
    details = apply_metric([ModelResponse(text=[replies[doc.gold_index == 0]]) for doc in docs], docs, metrics)
    values = {}
    for metric in metrics:
        for key, aggregate in metric.get_corpus_aggregations().items():
            values |= aggregate([row[key] for row in details])
    assert (values["contrastive_instability"], values["combined_acc"], values["invalid_rate"]) == (0, 1, 0)
    assert values["invalid_rate_strict"] == values["invalid_rate_lenient"] == 1


def test_the_joint_forms_scores_and_their_errors():
    rows, _ = prepared("m2cqa_aynvqa_joint:en")
    docs = [joint_prompt(row, "m2cqa_aynvqa_joint:en|0") for row in rows]
    replies = {"right": [str(doc.gold_index + 1) for doc in docs], "unread": ["all of them"] * 4}
    for kind, expected in {"right": (1, 0), "unread": (0, 1)}.items():
        metrics, values = joint_metrics(), {}
        details = apply_metric([ModelResponse(text=[reply]) for reply in replies[kind]], docs, metrics)
        for metric in metrics:
            name = metric.metric_name
            values |= metric.get_corpus_aggregations()[name]([row[name] for row in details])
        assert (values["joint_acc"], values["joint_invalid_rate"]) == expected
        assert values["joint_acc_stderr"] == pytest.approx(0.4899 / 3.92, abs=1e-4)  # Wilson's of 0 or all of 4


def save_run(root, reply_to):
    """Details as LightEval writes them, with the replies of `reply_to` to each statement's place and Doc."""
    rows = []
    for place, row in enumerate(prepared("m2cqa_aynvqa:en")[0]):
        doc = one_word_prompt(row, "m2cqa_aynvqa:en|0")
        reply = reply_to(place, doc)
        verdict = {"verdict": "invalid", "verdict_organisers": WORDS[organisers_verdict(reply)]}
        kept = {name: getattr(doc, name) for name in ("query", "choices", "gold_index", "specific")}
        rows.append({"doc": kept, "metric": verdict, "model_response": {"text": [reply]}})
    plant(root, {"m2cqa_aynvqa:en|0": rows})


def test_show_lists_the_items_that_fooled_a_model(tmp_path):
    """Every Q+ is accepted but one; in one item a false statement is too, in another one has no readable verdict."""
    gold = gold_rows()
    accepted, unread = (gold[place]["statements"][gold[place]["labels"].index(False)] for place in (1, 2))
    refused = gold[3]["statements"][gold[3]["labels"].index(True)]

    def reply_to(place, doc):
        text = doc.specific["statement"]
        if text in (accepted, unread):
            return "Yes <b>it\x1b is</b>" if text == accepted else "I see a picture"
        return "True" if doc.gold_index == 0 and text != refused else "False"

    save_run(tmp_path, reply_to)
    show = ["show", str(tmp_path), "m2cqa_aynvqa:en", "--fooled"]
    done = CliRunner().invoke(app, show, catch_exceptions=False)
    assert "2 items right on Q+ and fooled on Q-" in done.output and "\x1b" not in done.output
    assert f"not true  {accepted}  [accepted: Yes" in done.output
    assert f"not true  {unread}  [no readable verdict: I see a picture]" in done.output
    told = json.loads(CliRunner().invoke(app, [*show, "--json"]).stdout)["fooled"]
    assert {item["item"] for item in told} == {gold[1]["id"], gold[2]["id"]}
    assert {item["country"] for item in told} == {gold[1]["country"], gold[2]["country"]}
    for wrong, message in (
        (show[:2], "--fooled is of one task"),
        ([*show[:2], "qimma_gat"], "no details of qimma_gat"),
    ):
        with pytest.raises(CulturevalError, match=message):
            CliRunner().invoke(app, [*wrong, "--fooled"], catch_exceptions=False)
