"""The transformers model file behind LightEval's interface: equal to LightEval's own model, and to transformers'."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from lighteval.models.custom.custom_model import CustomModelConfig
from lighteval.models.model_loader import load_custom_model
from lighteval.models.transformers.transformers_model import TransformersModel, TransformersModelConfig
from lighteval.tasks.requests import Doc
from tiny_models import (
    VISION,
    build_tiny_causal_lm,
    folder_of,
    picture,
    plain_scores,
    vision_model,
    vision_processor,
)
from transformers import AutoModelForCausalLM, AutoTokenizer
from vision_families import image_slot

import cultureval.models
from cultureval.runtime.errors import CulturevalError

MODEL_FILE = Path(cultureval.models.__path__[0]) / "hf.py"
QUESTIONS = ("ما عاصمة المغرب؟", "وش يقدمون للضيوف؟", "اقرأ الفقرة ثم أجب", "شنو كتاكلو نهار الجمعة؟", "春节吃什么？")
OPTIONS = ("الرباط", "التمر والحليب", "饺子", "أ", "شاي بالنعناع")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CULTUREVAL_JOURNAL", raising=False)


def load(folder, monkeypatch=None, **settings):
    if settings:
        monkeypatch.setenv("CULTUREVAL_MODEL_SETTINGS", json.dumps(settings))
    return load_custom_model(CustomModelConfig(model_name=str(folder), model_definition_file_path=str(MODEL_FILE)))


def multiple_choice(count=11):
    docs = []
    for number in range(count):
        choices = [f" {option}" for option in OPTIONS[: 2 + number % 4]] if number % 3 else ["أ", "ب", "ج"]
        query = f"{QUESTIONS[number % 5]} {'قهوة ' * (number * 2)}\nالإجابة:" + " " * (number % 2)
        docs.append(Doc(query=query, choices=choices, gold_index=0, id=str(number), task_name="t"))
    return docs


def open_questions(stops=()):
    return [
        Doc(
            query=question * repeats,
            choices=[],
            gold_index=0,
            id=question,
            task_name="t",
            generation_size=12,
            stop_sequences=list(stops),
        )
        for question, repeats in zip(QUESTIONS, (1, 4, 2, 3, 1), strict=True)
    ]


# Any two of family, template and length meet.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "chat_template", "max_length"),
    [
        *(("llama", False, None), ("llama", True, 40), ("qwen2", False, 40), ("qwen2", True, None)),
        *(("gemma3", False, None), ("gemma3", True, 40)),
    ],
)
def test_scores_are_those_of_lightevals_transformers_model(family, chat_template, max_length, tmp_path, monkeypatch):
    folder, docs = folder_of(family, chat_template), multiple_choice()
    ours = load(folder, monkeypatch, max_length=max_length).loglikelihood(docs)
    stock = TransformersModel(
        TransformersModelConfig(
            model_name=str(folder), batch_size=1, device="cpu", max_length=max_length, cache_dir=str(tmp_path / "stock")
        )
    )
    for own, other in zip(ours, stock.loglikelihood(docs), strict=True):
        assert own.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert own.argmax_logits_eq_gold == other.argmax_logits_eq_gold


def test_encoded_together_a_choice_that_merges_with_the_prompt_counts_the_merged_token(monkeypatch):
    model = load(folder_of("llama"), monkeypatch, pairwise_tokenization=False)
    docs = [Doc(query="شا", choices=["ي", "", "كر"], gold_index=0, id="0", task_name="t")]
    contexts, choices = model.tok_encode_pair("شا", ["ي", "", "كر"], pairwise=False)
    assert len({tuple(context) for context in contexts}) > 1, "the test needs a merge"
    (response,) = model.loglikelihood(docs)
    expected = [
        plain_scores(model.loaded.model, *pair)[0] for pair in zip(contexts, [[c] for c in choices], strict=True)
    ]
    assert response.logprobs == pytest.approx([total for total, _ in expected], abs=1e-4)


def test_the_log_probability_of_ending_stands_in_logits_where_the_doc_asks(monkeypatch):
    model = load(folder_of("llama"))
    plain, asked = multiple_choice(2)
    asked.specific = {"end_logprob": True}
    first, second = model.loglikelihood([plain, asked])
    assert first.logits is None
    ids = [*second.input_tokens, *second.output_tokens[1]]
    last = model.loaded.model(torch.tensor([ids])).logits[0, -1].log_softmax(-1)
    assert second.logits[1] == pytest.approx([last[model.tokenizer.eos_token_id].item()], abs=1e-4)
    assert len(second.logits) == len(asked.choices)


def test_a_log_probability_that_is_not_a_number_stops_the_run():
    model = load(folder_of("llama"))
    torch.nn.init.constant_(model.loaded.model.lm_head.weight, float("nan"))
    for answer, docs in ((model.loglikelihood, multiple_choice(2)), (model.greedy_until, open_questions())):
        with pytest.raises(CulturevalError, match="llama-plain gives logits that are not numbers.*dtype: bfloat16"):
            answer(docs)


def one_by_one(folder, prompt_ids, stop=None, count=12):
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    output = model.generate(torch.tensor([prompt_ids]), max_new_tokens=count, do_sample=False)[0, len(prompt_ids) :]
    text = tokenizer.decode(output, skip_special_tokens=True)
    return text.split(stop)[0] if stop else text


@pytest.mark.parametrize("chat_template", [False, True])
def test_batches_generate_what_transformers_generates_one_by_one(chat_template):
    folder = folder_of("qwen2", chat_template)
    model = load(folder)
    plain = model.greedy_until(open_questions())
    texts = [one_by_one(folder, response.input_tokens) for response in plain]
    assert [response.text for response in plain] == [[text] for text in texts]
    stop = texts[0][3:5]
    stopped = model.greedy_until(open_questions(stops=[stop]))
    assert [response.text[0] for response in stopped] == [text.split(stop)[0] for text in texts]
    lengths = [len(response.output_tokens[0]) for response in stopped]
    assert lengths[0] < 12, "generation goes on behind the stop string"


def test_answers_end_at_the_stop_strings_of_the_models_generation_config(tmp_path):
    folder = shutil.copytree(folder_of("llama"), tmp_path / "model")
    texts = [response.text[0] for response in load(folder).greedy_until(open_questions())]
    stop, file = texts[0][3:5], folder / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"stop_strings": [stop, "nowhere"]}))
    stopped = load(folder).greedy_until(open_questions())
    assert [response.text[0] for response in stopped] == [text.split(stop)[0] for text in texts]


def test_prompts_that_do_not_fit_are_counted_and_said(monkeypatch, caplog):
    short, long = multiple_choice(2)
    long.query = "قهوة " * 30
    long.generation_size = short.generation_size = 4
    model = load(folder_of("llama"), monkeypatch, max_length=40)
    whole = len(model.tok_encode(long.query.rstrip()))
    for answer in (model.loglikelihood, model.loglikelihood, model.greedy_until):  # the second time from the journal
        caplog.clear()
        first, second = answer([short, long])
        assert (first.truncated_tokens_count, second.truncated_tokens_count > whole - 40) == (0, True)
        assert "t: 1 prompts were cut on the left to 40 tokens" in caplog.text
    scored = model.loglikelihood([long])[0]
    assert scored.truncated_tokens_count == whole - 40 + max(len(choice) for choice in scored.output_tokens)


def test_a_prompt_that_nearly_fills_the_model_shortens_no_other_answer(monkeypatch):
    monkeypatch.setenv("CULTUREVAL_RESUME", "0")
    docs = open_questions()
    docs[1].query = "قهوة " * 18
    model = load(folder_of("llama"), monkeypatch, max_length=60)
    together, alone = model.greedy_until(docs), [model.greedy_until([doc])[0] for doc in docs]
    assert together == alone
    shortest = 60 - len(together[1].input_tokens)
    assert [len(response.output_tokens[0]) for response in together] == [12, shortest, 12, 12, 12]


def test_an_empty_prompt_of_a_tokenizer_without_bos_is_answered_after_its_start_token(monkeypatch):
    docs = open_questions()
    docs[1].query = ""
    model = load(folder_of("qwen2"), monkeypatch, add_special_tokens="off")
    together, [alone] = model.greedy_until(docs), model.greedy_until([docs[1]])
    assert together[1] == alone and alone.input_tokens == model.loaded.start_ids()
    assert alone.text == [one_by_one(folder_of("qwen2"), alone.input_tokens)]


def test_answers_come_from_the_journal_and_never_from_other_weights(tmp_path):
    folder = build_tiny_causal_lm(tmp_path / "model", seed=1)
    docs, questions = multiple_choice(), open_questions()
    model = load(folder)
    scored, generated = model.loglikelihood(docs), model.greedy_until(questions)
    again = load(folder)
    again.loaded.model.forward = None  # any call would fail
    assert again.loglikelihood(docs) == scored
    assert again.greedy_until(questions) == generated
    lines = [line for file in model.journal.folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    assert not any("prompt_tokens" in line or "input_tokens" in line for line in lines)
    build_tiny_causal_lm(folder, seed=2)
    changed = load(folder).loglikelihood(docs)
    assert all(new.logprobs != old.logprobs for new, old in zip(changed, scored, strict=True))


def test_samples_differ_and_come_again_with_the_same_seed(monkeypatch):
    monkeypatch.setenv("CULTUREVAL_RESUME", "0")
    sampling = {"temperature": 1.5, "seed": 3}
    questions = open_questions()
    for question in questions:
        question.num_samples = 4
    first = load(folder_of("llama"), monkeypatch, generation_parameters=sampling).greedy_until(questions)
    again = load(folder_of("llama"), monkeypatch, generation_parameters=sampling).greedy_until(questions)
    assert [response.text for response in first] == [response.text for response in again]
    assert all(len(set(response.text)) > 1 and len(response.text) == 4 for response in first)
    with pytest.raises(Exception, match="temperature"):
        load(folder_of("llama"), monkeypatch, generation_parameters={}).greedy_until(questions)


def test_a_template_that_knows_thinking_is_told_not_to_think_only_when_choices_are_scored(tmp_path):
    folder = build_tiny_causal_lm(tmp_path / "model", chat_template=True)
    template = folder / "chat_template.jinja"
    thought = "{% if enable_thinking is defined and enable_thinking is false %}<think></think>{% endif %}"
    template.write_text(template.read_text(encoding="utf-8") + thought, encoding="utf-8")
    model = load(folder)
    assert model.loglikelihood(multiple_choice(1))[0].input.endswith("<think></think>")
    assert "<think>" not in model.greedy_until(open_questions())[0].input


def test_a_thought_that_the_template_opens_is_no_answer_though_it_never_ends(tmp_path):
    folder = build_tiny_causal_lm(tmp_path / "model", chat_template=True)
    template = folder / "chat_template.jinja"
    template.write_text(template.read_text(encoding="utf-8") + "<think>\n", encoding="utf-8")
    thinking = load(folder).greedy_until(open_questions())
    assert all(response.text == [""] and response.reasonings[0] for response in thinking)
    stops = [response.reasonings[0][2] for response in thinking]
    stopped = load(folder).greedy_until(open_questions(stops=stops))
    assert [response.output_tokens for response in stopped] == [response.output_tokens for response in thinking]


def test_a_prompt_gets_one_bos_where_the_template_writes_it(tmp_path, monkeypatch):
    folder = build_tiny_causal_lm(tmp_path / "model", chat_template=True)
    template = folder / "chat_template.jinja"
    template.write_text("{{ bos_token }}" + template.read_text(encoding="utf-8"), encoding="utf-8")
    docs = multiple_choice(1)
    assert load(folder).loglikelihood(docs)[0].input_tokens.count(0) == 1
    assert load(folder, monkeypatch, add_special_tokens="on").loglikelihood(docs)[0].input_tokens.count(0) == 2


def image_docs():
    kinds = [((40, 30),), ((64, 64), (30, 50)), ((90, 40),)]
    return [
        Doc(
            query="قبل <image> بعد <image>" if len(sizes) == 2 else "وش فيه بالصورة؟",
            choices=["شاي", "قهوة وتمر", "ناس لابسين ثوب"],
            gold_index=0,
            id=str(number),
            task_name="t",
            generation_size=8,
            images=[picture(*size, seed=number) for size in sizes],
        )
        for number, sizes in enumerate(kinds)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("family", VISION)
def test_prompts_with_images_are_scored_and_answered_as_transformers_does(family):
    model = load(folder_of(family, True))
    docs, text_doc = image_docs(), multiple_choice(1)
    scored, answered = model.loglikelihood([*docs, *text_doc]), model.greedy_until(docs)
    stock, processor = vision_model(family), vision_processor(family)
    for doc, scores, answer in zip(docs, scored[:3], answered, strict=True):
        assert scores.input.count(image_slot(family)) == len(doc.images)
        inputs = dict(processor(text=[scores.input], images=[doc.images], return_tensors="pt"))
        output = stock.generate(**inputs, max_new_tokens=8, do_sample=False)[0, inputs["input_ids"].shape[1] :]
        assert answer.text == [model.tokenizer.decode(output, skip_special_tokens=True)]
        assert answer.input_tokens == inputs["input_ids"][0].tolist()
        del inputs["attention_mask"]
        trimmed = dict(processor(text=[scores.input.rstrip()], images=[doc.images], return_tensors="pt"))
        prompt = trimmed.pop("input_ids")[0].tolist()
        del trimmed["attention_mask"]
        expected = plain_scores(stock, prompt, scores.output_tokens, **trimmed)
        assert scores.logprobs == pytest.approx([total for total, _ in expected], abs=1e-4)
    assert (model.loglikelihood([*docs, *text_doc]), model.greedy_until(docs)) == (scored, answered)  # from the journal
    assert scored[0].input.startswith(f"<|user|>\n{image_slot(family)}وش")
    assert scored[1].input.index("قبل") < scored[1].input.index(image_slot(family)) < scored[1].input.index("بعد")
    text = plain_scores(stock, scored[3].input_tokens, scored[3].output_tokens)
    assert scored[3].logprobs == pytest.approx([total for total, _ in text], abs=1e-4)


def test_an_image_that_the_processor_refuses_is_refused_and_leaves_the_others():
    docs = image_docs()
    docs[1].images = [picture(300, 1)]
    model = load(folder_of("qwen2_vl", True))
    for answer in (model.loglikelihood, model.greedy_until):
        answers = answer(docs)
        assert answers[1].reason.startswith("the model's processor refuses it: abso")
        assert not any(hasattr(one, "reason") for one in (answers[0], answers[2]))


def test_images_for_a_text_model_are_an_error_that_says_so():
    with pytest.raises(Exception, match="takes text only"):
        load(folder_of("llama")).loglikelihood(image_docs())


@pytest.mark.parametrize("family", ["qwen2_vl", "gemma3_vision", "llava"])
def test_questions_about_images_are_answered_together_as_alone(family):
    model, processor, stock = load(folder_of(family, True)), vision_processor(family), vision_model(family)
    questions = ["وش فيه بالصورة؟", "كم واحد لابس ثوب في هذي الصورة؟", "وين هذا؟", "ليش؟"]
    image = picture(64, 64, seed=5)
    docs = [
        Doc(query=query, choices=[], gold_index=0, id=query, task_name="t", generation_size=5 + i // 2, images=[image])
        for i, query in enumerate(questions)
    ]
    other = image_docs()[0]
    other.specific = None
    answers, read = model.greedy_until([*docs, other]), []
    for doc, answer in zip([*docs, other], answers, strict=True):
        inputs = dict(processor(text=[answer.input], images=[doc.images], return_tensors="pt"))
        read.append(inputs["input_ids"].shape[1])
        output = stock.generate(**inputs, max_new_tokens=doc.generation_size, do_sample=False)[0, read[-1] :]
        assert answer.output_tokens == [[token for token in output.tolist() if token not in model.loaded.end_ids()]]
    assert model.log.tasks()["t"]["routes"] == {"batches": 4, "one_by_one": 1}
