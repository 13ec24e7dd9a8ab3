"""Choices after reasoning: a tiny model thinks, its labels are scored after that text, and cut thoughts are counted."""

import json
from pathlib import Path

import pytest
from lighteval.models.custom.custom_model import CustomModelConfig
from lighteval.models.model_loader import load_custom_model
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc
from tiny_models import build_tiny_causal_lm, plain_scores

import cultureval.models
from cultureval.models.reasoned import contexts, label_response, reasoned
from cultureval.runs.signature import asked_in_run
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse
from cultureval.runtime.reasoning import THINK_TAGS

MODEL_FILE = Path(cultureval.models.__path__[0]) / "hf.py"


def doc(choices="أ ب ج", number=0):
    return Doc(task_name="t|0", query=f"سؤال {number}", choices=choices.split(), gold_index=0, id=str(number))


@pytest.fixture
def load(tmp_path, monkeypatch):
    """A tiny model whose template opens a thought where it may."""
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CULTUREVAL_JOURNAL", raising=False)
    folder = build_tiny_causal_lm(tmp_path / "model", chat_template=True)
    template = folder / "chat_template.jinja"
    silent = "{% if enable_thinking is defined and enable_thinking is false %}"
    opened = f"{silent}<think></think>{{% else %}}<think>\n{{% endif %}}"
    template.write_text(template.read_text(encoding="utf-8") + opened, encoding="utf-8")

    def build(**settings):
        monkeypatch.setenv("CULTUREVAL_MODEL_SETTINGS", json.dumps(settings))
        return load_custom_model(CustomModelConfig(model_name=str(folder), model_definition_file_path=str(MODEL_FILE)))

    return build


def test_choices_are_scored_after_the_models_own_thought(load):
    plain, docs = load().loglikelihood([doc()]), [doc(number=number) for number in range(3)]
    model = load(scoring="reasoned", max_new_tokens=9)
    responses = model.loglikelihood(docs)
    (thought,) = load(max_new_tokens=9).greedy_until([doc()])
    for one, response in zip(docs, responses, strict=True):
        assert response.input.count("<think>") == 1 and response.input.endswith("\n</think>\n\n")
        tokens = [[*ids] for ids in response.output_tokens]
        expected = plain_scores(model.loaded.model, response.input_tokens, tokens)
        assert response.logprobs == pytest.approx([total for total, _ in expected], abs=1e-4)
        assert one.specific["finish_reasons"] == ["length"], "it never ends, and is counted"
    assert thought.reasonings[0].strip() in responses[0].input and "<think></think>" in plain[0].input
    assert responses[0].logprobs != plain[0].logprobs
    assert asked_in_run(model, "t|0", {"parity": "paper", "prompt": "p+paper"}) == ("reasoned", "p+paper")
    assert model.run_record()["model"]["settings"]["scoring"] == "reasoned"


def test_thoughts_and_scores_are_journalled_and_a_doc_counts_once(load):
    settings = {"scoring": "reasoned", "max_new_tokens": 9}
    docs = [doc(number=number) for number in range(3)]
    responses = load(**settings).loglikelihood(docs)
    again = load(**settings)
    assert [one.logprobs for one in again.loglikelihood(docs)] == [one.logprobs for one in responses]
    found = again.run_record()["tasks"]["t|0"]
    assert found["reused"] == 3 and not found.get("routes")


class Thinker:
    """Answers every doc with one text and reasoning."""

    def __init__(self, text, reasoning, finish="stop"):
        self.answer, self.finish, self.scored_by = (text, reasoning), finish, {}

    def text(self, doc):
        assert doc.specific["thinking"] and doc.stop_sequences == []
        return "السؤال\n"

    def greedy_until(self, docs):
        for one in docs:
            one.specific["finish_reasons"] = [self.finish]
        return [ModelResponse(text=[self.answer[0]], reasonings=[self.answer[1]]) for _ in docs]


@pytest.mark.parametrize(
    ("text", "reasoning", "finish", "context", "is_cut"),
    [
        ("هي ب", "فكرة", "stop", "<think>\nفكرة\n</think>\n\n", False),
        ("هي ب", "فكرة", "length", "<think>\nفكرة\n</think>\n\n", False),
        ("", "فكرة", "length", "<think>\nفكرة\n</think>\n\n", True),
        ("أفكر.\nFinal answer: **B** لأن", None, "length", "أفكر.\nFinal answer: ", False),
        ("أفكر.\nالإجابة النهائية: ب", None, "stop", "أفكر.\nالإجابة النهائية: ", False),
        ("أفكر", None, "length", "<think>\nأفكر\n</think>\n\n", True),
        ("ب", None, "stop", "<think>\nب\n</think>\n\n", False),
    ],
)
def test_a_thought_ends_at_its_tag_or_the_announced_answer(text, reasoning, finish, context, is_cut):
    model, asked = Thinker(text, reasoning, finish), doc()
    found = contexts(model, THINK_TAGS, [asked], reasoned(model, [asked]))
    assert found == {id(asked): "السؤال\n" + context}
    assert asked.specific["finish_reasons"] == ["length" if is_cut else "stop"]


@pytest.mark.parametrize(
    ("reply", "place"),
    [("ب", 1), ("**(ج)**", 2), ("أ خطأ. الإجابة النهائية: ب", 1), ("أ أو ب", None), ("لا أدري", None), ("", None)],
)
def test_a_generated_label_is_the_only_one_that_the_reply_names(reply, place):
    found = label_response(doc(), ModelResponse(text=[reply], reasonings=["أ ثم ب"]))
    if place is None:
        assert isinstance(found, RefusedResponse) and found.kind == "undecided"
    else:
        assert found.argmax_logits_eq_gold == [other == place for other in range(3)]
        assert max(found.logprobs) == found.logprobs[place] == 0
