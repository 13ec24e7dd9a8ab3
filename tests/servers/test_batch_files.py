"""Batch files: requests out, answers in, whatever a service does to them."""

import json
import random

import pytest
import yaml
from faulty_server import FaultyServer, docs_of
from lighteval.models.custom.custom_model import CustomModelConfig

from cultureval.models.openai_api import OpenAIModel
from cultureval.models.server.settings import check_server
from cultureval.runtime.errors import BatchWritten, CulturevalError
from cultureval.runtime.servers import batch_files

QUERIES = [f"سؤال {number}؟" for number in range(6)]


@pytest.fixture
def model(own_folders, tmp_path):
    """Makes the model of a run with these settings."""

    def build(**settings):
        file = tmp_path / "model.yaml"
        file.write_text(yaml.safe_dump({"model": "org/closed", "base_url": "http://127.0.0.1:9/v1"} | settings))
        return OpenAIModel(CustomModelConfig(model_name=str(file), model_definition_file_path="x"))

    return build


def written(lm, queries=QUERIES):
    """The lines of the files that a run writes, by the question."""
    with pytest.raises(BatchWritten) as stopped:
        lm.greedy_until(docs_of(queries))
    lines = [json.loads(line) for file in stopped.value.files for line in file.read_text("utf-8").splitlines()]
    assert len(lines) == stopped.value.requests
    return {line["body"]["messages"][-1]["content"]: line for line in lines}


def answer(request, text, **body):
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 5, "completion_tokens": 3}
    content = {"model": "closed-2026", "choices": [choice], "usage": usage} | body
    return {"custom_id": request["custom_id"], "response": {"status_code": 200, "body": content}, "error": None}


def test_answers_in_any_order_are_scored_and_the_rest_is_asked_or_written_again(model, tmp_path, caplog):
    requests = written(model(batch_out=str(tmp_path / "out.jsonl")))
    assert [*requests] == QUERIES and requests[QUERIES[0]]["url"] == "/v1/chat/completions"
    lines = [json.dumps(answer(requests[query], f"to {query}"), ensure_ascii=False) for query in QUERIES[:4]]
    lines += [json.dumps({"custom_id": requests[QUERIES[4]]["custom_id"], "error": {"message": "expired"}})]
    lines += [json.dumps(answer(requests[QUERIES[5]], "", choices=[])), '{"custom_id": "../x"}', "no JSON", "[]"]
    random.Random(1).shuffle(lines)
    (tmp_path / "in.jsonl").write_text("\n".join(lines), "utf-8")
    rest = written(model(batch_in=[str(tmp_path / "in.jsonl")], batch_out=str(tmp_path / "rest.jsonl")))
    assert [*rest] == QUERIES[4:] and [rest[query] == requests[query] for query in rest] == [True, True]
    told = [record.getMessage() for record in caplog.records if record.getMessage().startswith("batch: in.jsonl")]
    assert len(told) == 5 and any("expired" in one for one in told)
    more = [json.dumps(answer(requests[query], f"to {query}")) for query in QUERIES[4:]]
    (tmp_path / "more.jsonl").write_text("\n".join(more))
    lm = model(batch_in=[str(tmp_path / "more.jsonl")], output_token_price=1.0, batch_price=0.5, input_token_price=1.0)
    responses = lm.greedy_until(docs_of(QUERIES))
    assert [one.text for one in responses] == [[f"to {query}"] for query in QUERIES]
    assert lm.run_record()["tokens"]["cost"] == 6 * 8 * 0.5


def test_an_answer_to_another_prompt_or_setting_is_never_taken(model, tmp_path):
    requests = written(model(batch_out=str(tmp_path / "out.jsonl")), ["a"])
    (tmp_path / "in.jsonl").write_text(json.dumps(answer(requests["a"], "to a")))
    for settings in ({"seed": 3}, {"revision": "2"}, {"system_prompt": "s"}):
        name = f"{next(iter(settings))}.jsonl"
        again = written(model(batch_in=[str(tmp_path / "in.jsonl")], batch_out=str(tmp_path / name), **settings), ["a"])
        assert len(again) == 1
    with FaultyServer() as server:  # what the batch lacks is asked of the server
        lm = model(batch_in=[str(tmp_path / "in.jsonl")], base_url=server.url)
        server.served = "closed-2026"
        assert [one.text[0][:4] for one in lm.greedy_until(docs_of(["a", "b"]))] == ["to a", "answ"]


def test_files_keep_a_provider_s_limits_and_are_not_overwritten(model, tmp_path, monkeypatch):
    monkeypatch.setattr(batch_files, "MOST_REQUESTS", 4)
    written(model(batch_out=str(tmp_path / "out.jsonl")))
    assert sorted(file.name for file in tmp_path.glob("out*")) == ["out-002.jsonl", "out.jsonl"]
    with pytest.raises(CulturevalError, match="exists already"):
        model(batch_out=str(tmp_path / "out.jsonl")).greedy_until(docs_of(QUERIES))
    with pytest.raises(CulturevalError, match="cannot be read"):
        model(batch_in=[str(tmp_path / "none.jsonl")]).greedy_until(docs_of(QUERIES))


def test_scores_of_choices_are_refused_before_the_run_and_no_server_is_asked(own_folders, tmp_path):
    file = tmp_path / "m.yaml"
    file.write_text(f"model: m\nbase_url: http://127.0.0.1:9/v1\nbatch_out: {tmp_path}/out.jsonl\n")
    assert "qimma_gen" in check_server(str(file), likelihoods=True)
    assert check_server(str(file), likelihoods=False) is None
