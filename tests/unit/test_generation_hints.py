import pytest
from lighteval.tasks.requests import Doc
from tiny_models import folder_of

from cultureval.models.hf import HFModel
from cultureval.models.settings import HFModelSettings
from cultureval.prompts.qimma.rows import answer_prompt, poem_prompt
from cultureval.runtime.generation_hints import stop_strings, wanted_reasoning


def test_qimma_answers_stop_at_a_newline_in_plain_prompts_only():
    doc = answer_prompt({"prompt": "س", "choices": ["ج"]})
    doc.stop_sequences = ["\n"]
    assert stop_strings(doc, chat=False) == ["\n"]
    assert stop_strings(doc, chat=True) == []
    assert stop_strings(Doc("س", [], 0, stop_sequences=["\n", ""]), chat=True) == ["\n"]


def test_poems_are_explained_without_thinking():
    doc = poem_prompt({"prompt": "س", "gold_explanations": [{"verse": "ب", "explanation": "ش"}]})
    assert wanted_reasoning(doc) is False
    assert wanted_reasoning(answer_prompt({"prompt": "س", "choices": ["ج"]})) is None


@pytest.mark.parametrize("chat", [False, True])
def test_a_model_heeds_the_hint(chat, monkeypatch, tmp_path):
    """The tiny model writes nonsense; its own first letters serve as a stop string, which only plain prompts heed."""
    monkeypatch.setenv("CULTUREVAL_JOURNAL", str(tmp_path))
    model = HFModel(HFModelSettings(model_name=str(folder_of("llama", True)), chat_template="on" if chat else "off"))
    doc = Doc("ما عاصمة المغرب؟", ["الرباط"], 0, generation_size=12, task_name="t", specific={"stop_in_chat": False})
    doc.stop_sequences = []
    (free,) = model.greedy_until([doc])[0].text
    doc.stop_sequences = [free[2:5]]
    (stopped,) = model.greedy_until([doc])[0].text
    assert stopped == (free if chat else free.split(free[2:5])[0])
