"""Batch files: requests out, answers in, whatever a service does to them."""

import json
import random

import pytest
import yaml
from lighteval.models.custom.custom_model import CustomModelConfig
from lighteval.tasks.requests import Doc
from openai.types.chat import ChatCompletion

from cultureval.models.openai_api import OpenAIModel
from cultureval.models.preflight import check_model
from cultureval.runtime.errors import BatchWritten, CulturevalError
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse
from cultureval.runtime.servers.answers import answer_of, check_response
from cultureval.runtime.servers.batch_files import BatchRequest, BatchWriter, custom_id, read_answers
from cultureval.runtime.servers.errors import IncompleteAnswer, ModelChanged

UNREACHABLE = "http://127.0.0.1:9/v1"


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Makes the model of a run with these settings; no server is there."""
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CULTUREVAL_JOURNAL", raising=False)

    def build(**settings):
        file = tmp_path / "model.yaml"
        own = {"model": "org/closed", "base_url": UNREACHABLE, "max_retries": 0, "backoff_s": 0.01}
        file.write_text(yaml.safe_dump(own | settings))
        return OpenAIModel(CustomModelConfig(model_name=str(file), model_definition_file_path="x"))

    return build


def docs(count=6):
    return [
        Doc(
            task_name="qimma_gen_palmx:culture|0",
            query=f"سؤال {number}؟",
            choices=["الإجابة النهائية: أ"],
            gold_index=0,
            id=str(number),
            generation_size=20,
            specific={"source_row": f"test.jsonl:{number}", "form": "original"},
        )
        for number in range(count)
    ]


def written(lm, asked):
    """The lines of the files that a run writes, by the question."""
    lm.greedy_until(asked)
    with pytest.raises(BatchWritten) as stopped:
        lm.cleanup()
    assert "batch_in, batch_out" in str(stopped.value), "`code generate` has no options for them"
    lines = [json.loads(line) for file in stopped.value.files for line in file.read_text("utf-8").splitlines()]
    return {line["body"]["messages"][-1]["content"]: line for line in lines}


def answer(request, text="الإجابة النهائية: ب", **more):
    message = {"role": "assistant", "content": text}
    body = {"model": "closed-2026", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]} | more
    body["usage"] = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
    return {"custom_id": request["custom_id"], "response": {"status_code": 200, "body": body}, "error": None}


def test_answers_in_any_order_are_scored_and_what_is_wrong_with_them_is_named(model, tmp_path, capsys):
    out, back = tmp_path / "out" / "requests.jsonl", tmp_path / "answers.jsonl"
    requests = written(model(batch_out=str(out)), docs(7))
    assert list(requests) == [f"سؤال {number}؟" for number in range(7)] and not list(out.parent.glob("*.part"))
    first = next(iter(requests.values()))
    assert (first["method"], first["url"]) == ("POST", "/v1/chat/completions")
    assert first["body"]["model"] == "org/closed" and first["body"]["max_tokens"] == 20

    asked = list(requests.values())
    failed = {
        "custom_id": asked[3]["custom_id"],
        "response": {"status_code": 429, "body": {}},
        "error": {"code": "late"},
    }
    late = {"custom_id": asked[4]["custom_id"], "response": None, "error": {"message": "expired"}}
    lines = [*map(answer, (asked[0], asked[0], asked[1], asked[2])), answer(asked[1], "أ"), failed, late]
    unread = {"custom_id": asked[5]["custom_id"], "response": {"status_code": 200, "body": {"choices": "none"}}}
    lines += [
        answer({"custom_id": "another-run\x1b[31m"}),
        unread,
        answer(asked[5], error={"message": "broken"}),
    ]  # paid as well
    # Of the third, with a status as text and an error of nothing: a failed try, one of no use, and its answer again.
    tried, again = (answer(asked[2]) | {"error": {"code": None, "message": None}} for _ in range(2))
    tried["response"]["body"]["choices"], again["response"]["status_code"] = [], "200"
    again["response"]["body"]["usage"]["prompt_tokens"] = 6
    again["response"]["body"]["error"] = {"code": None}
    lines += [{"custom_id": asked[2]["custom_id"], "error": {"message": "first try"}}, tried, again]
    random.Random(1).shuffle(lines)
    back.write_text("\n".join([*map(json.dumps, lines), "{half a line", "[1, 2]", "[" * 100_000, ""]), "utf-8")

    lm = model(batch_in=[str(back)])
    found = lm.greedy_until(docs(7))
    assert [one.text for one in (found[0], found[2])] == [["الإجابة النهائية: ب"]] * 2
    reasons = {place: one.reason for place, one in enumerate(found) if isinstance(one, RefusedResponse)}
    assert list(reasons) == [1, 3, 4, 5, 6] and "different answers" in reasons[1] and "429: 'late'" in reasons[3]
    assert reasons[4] == "the batch says: 'expired'" and "cannot be read" in reasons[5]
    assert reasons[6] == "the batch has no answer to it"
    assert [getattr(one, "kind", "") for one in found] == [
        "",
        "batch_different",
        "",
        "batch_failed",
        "batch_failed",
        "batch_failed",
        "batch_missing",
    ]
    lm.cleanup()
    told = capsys.readouterr().err
    for part in (
        "1 have no answer",
        "3 failed",
        "1 have different answers, of which none is used",
        "2 are there more than once",
        "1 are answers to other",
        "3 are lines that",
    ):
        assert part in told
    assert all(asked[place]["custom_id"] in told for place in (0, 1, 3, 4, 5, 6)) and "\x1b" not in told
    record = lm.run_record()  # paid are also what differs, and what cannot be read
    assert (record["model"]["served_models"], record["tokens"]["tokens_paid_out"]) == (["closed-2026"], 3 * 6)

    # What is missing goes into a second batch; the rest is in the journal and is not asked again.
    second = written(model(batch_in=[str(back)], batch_out=str(tmp_path / "more.jsonl")), docs(7))
    assert list(second) == [f"سؤال {number}؟" for number in (1, 3, 4, 5, 6)]
    rest = tmp_path / "rest.jsonl"
    rest.write_text("\n".join(json.dumps(answer(one)) for one in second.values()), "utf-8")
    done = model(batch_in=[str(rest)])
    assert all(one.text == ["الإجابة النهائية: ب"] for one in done.greedy_until(docs(7)))
    done.cleanup()


def test_a_file_of_other_answers_than_are_kept_is_not_passed_over(model, tmp_path, monkeypatch):
    """A second batch under the same ids, as of new weights, got the scores of the first without a word."""
    requests = written(model(batch_out=str(tmp_path / "out.jsonl")), docs(3))
    files = {text: tmp_path / f"{text}.jsonl" for text in "أب"}
    for text, file in files.items():
        file.write_text("\n".join(json.dumps(answer(one, text)) for one in requests.values()), "utf-8")
    for _ in range(2):
        assert [one.text for one in model(batch_in=[str(files["أ"])]).greedy_until(docs(3))] == [["أ"]] * 3
    with pytest.raises(CulturevalError, match="other answers .3, such as .*--no-resume"):
        model(batch_in=[str(files["ب"])]).greedy_until(docs(3))
    renamed = tmp_path / "renamed.jsonl"
    renamed.write_text(files["ب"].read_text("utf-8").replace("closed-2026", "closed-2027"), "utf-8")
    with pytest.raises(ModelChanged, match="3 of closed-2026, .*; 3 of closed-2027, .*earlier answers.$"):
        model(batch_in=[str(renamed)]).greedy_until(docs(3))
    monkeypatch.setenv("CULTUREVAL_RESUME", "0")
    assert [one.text for one in model(batch_in=[str(files["ب"])]).greedy_until(docs(3))] == [["ب"]] * 3


def test_a_batch_of_two_models_stops_the_run_or_is_marked(model, tmp_path, monkeypatch):
    requests = list(written(model(batch_out=str(tmp_path / "out.jsonl")), docs()).values())
    lines = [answer(one) for one in requests]
    lines[1]["response"]["body"]["model"] = "closed-2027"
    (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    refused = model(batch_in=[str(tmp_path / "answers.jsonl")])
    with pytest.raises(CulturevalError, match="5 of closed-2026, such as .*; 1 of closed-2027, such as .*, item 1"):
        refused.greedy_until(docs())
    assert not list(refused._journal.folder.glob("*.jsonl")), "no answer of it may be in the journal"
    monkeypatch.setenv("CULTUREVAL_ON_CHANGE", "continue")
    mixed = model(batch_in=[str(tmp_path / "answers.jsonl")])
    assert all(one.text for one in mixed.greedy_until(docs()))
    (record,) = mixed.run_record()["tasks"].values()
    assert record["of_other_models"] == 1 and "closed-2027" in mixed.signature_fields()["server"]
    again = model(batch_in=[str(tmp_path / "answers.jsonl")])
    assert (
        all(one.text for one in again.greedy_until(docs())) and again.run_record()["tokens"]["tokens_paid_in"] == 5 * 6
    )
    (record,) = again.run_record()["tasks"].values()
    assert record["of_other_models"] == 1 and record["reused"] == 6
    # A later batch of the first model alone: the other one's answer is filed under its own name, and gives way.
    (tmp_path / "more.jsonl").write_text("\n".join(json.dumps(answer(one)) for one in requests), "utf-8")
    for change in ("continue", "stop"):
        monkeypatch.setenv("CULTUREVAL_ON_CHANGE", change)
        own = model(batch_in=[str(tmp_path / "more.jsonl")])
        assert all(one.text for one in own.greedy_until(docs()))
        assert own.signature_fields()["server"] == "id=org/closed" and not own.run_record()["model"]["other_models"]


@pytest.mark.parametrize(
    ("place", "value", "text"),
    [
        (("model",), {"a": ["x"]}, "ب"),
        (("usage",), {"prompt_tokens": float("nan"), "completion_tokens": [], "total_tokens": -1}, "ب"),
        (("choices", 0, "finish_reason"), ["stop"], "ب"),
        (("choices", 0, "finish_reason"), "\ud83d", "ب"),
        (("choices", 0, "message", "refusal"), False, "ب"),
        (("choices", 0, "message", "content"), [1, {"type": "text", "text": "ج"}, [2]], "ج"),
        (("choices", 0, "message", "refusal"), {"why": "no"}, None),
        (("choices", 0, "message"), "ب", None),
        (("choices", 0), ["ب"], None),
        (("choices", 0, "index"), "0", None),
    ],
)
def test_fields_of_other_types_are_left_out_or_make_the_answer_unreadable(place, value, text):
    """Of a server too: nothing but an answer or an error that is asked again."""
    body = answer({"custom_id": "a"}, "ب")["response"]["body"]
    inner = body
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    response = ChatCompletion.construct(**body)
    if text is None:
        with pytest.raises(IncompleteAnswer):
            check_response(response, 1)
        return
    check_response(response, 1)
    found = answer_of(response)
    assert found["completions"][0]["text"] == text and found["model"] in ("closed-2026", None)
    assert found["completions"][0]["finish_reason"] in ("stop", "\ufffd", None)


def test_an_answer_to_another_prompt_setting_or_row_is_never_taken(model, tmp_path):
    requests = written(model(batch_out=str(tmp_path / "a.jsonl")), docs(1))
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps(answer(*requests.values())), "utf-8")
    for settings, change in (({"system_prompt": "x"}, {}), ({"revision": "2"}, {}), ({}, {"query": "سؤال آخر؟"})):
        (doc,) = docs(1)
        doc.query = change.get("query", doc.query)
        lm = model(batch_in=[str(file)], **settings)
        assert isinstance(lm.greedy_until([doc])[0], RefusedResponse)
    ask = {"batch_in": [str(file)], "batch_missing": "ask"}
    with pytest.raises(CulturevalError, match="did not answer"):
        model(**ask, provider="openai", api_key_env=None).greedy_until(docs(2))
    with pytest.raises(CulturevalError, match="is for a provider's model.*of a server of your own.*second one"):
        model(**ask)
    assert len(custom_id("q" * 99 + ":قانون", "r", "f" * 64)) <= 64


def test_files_keep_a_provider_s_limits(tmp_path):
    lines = [BatchRequest(f"id-{number}", "/v1/chat/completions", {"text": "س" * 40}) for number in range(7)]
    size = len(lines[0].line())
    writer = BatchWriter(tmp_path / "r.jsonl", most=3, size=2 * size + 1)
    for line in lines:
        writer.add(line)
    files = writer.close()
    assert [file.name for file in files] == ["r.jsonl", "r-002.jsonl", "r-003.jsonl", "r-004.jsonl"]
    assert [file.stat().st_size for file in files] == [2 * size] * 3 + [size]
    with pytest.raises(CulturevalError, match="exists already"):
        BatchWriter(tmp_path / "r.jsonl")
    with pytest.raises(CulturevalError, match="more than a batch file may have"):
        BatchWriter(tmp_path / "s.jsonl", size=size - 1).add(lines[0])
    with pytest.raises(CulturevalError, match="cannot be read"):
        read_answers([tmp_path / "none.jsonl"])


def test_tasks_of_log_probabilities_are_refused_before_the_run_and_no_server_is_asked(tmp_path):
    file = tmp_path / "model.yaml"
    file.write_text(yaml.safe_dump({"model": "m", "base_url": UNREACHABLE, "batch_out": "r.jsonl"}))
    checked = check_model(str(file), False, True)
    assert "qimma_gen" in checked.no_likelihoods
