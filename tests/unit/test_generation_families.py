"""Families of models that are made otherwise than Llama generate, by the queue or around it, as they do one by one."""

from contextlib import contextmanager
from random import Random

import pytest
import torch
from test_model_families import FAMILIES, GPT2, SIZES, tiny, tokens
from tiny_models import folder_of
from transformers import AutoModelForCausalLM, AutoTokenizer

from cultureval.models.generation import route
from cultureval.models.generation.batch_size import BatchSize
from cultureval.models.generation.choosing import TokenChooser
from cultureval.models.generation.generation import read_answer
from cultureval.models.generation.queue import GenerationQueue
from cultureval.models.generation.route import choose_generation_route
from cultureval.models.generation.rows import DecodingRow
from cultureval.models.loading import LoadedModel

STATES = {"jamba", "mamba", "falcon_h1", "lfm2"}


def prompts():
    beginning = tokens(60, 1)
    shared = [beginning + tokens(count, 10 + count) for count in (1, 3, 9, 4, 2, 17)]
    return [*shared, *(tokens(count, 40 + count) for count in (1, 2, 30, 8, 70, 5)), shared[0][:40]]


def rows_of(some, **more):
    return [
        DecodingRow(None, prompt, 3 + place % 7, Random(place), number=place, **more)
        for place, prompt in enumerate(some)
    ]


def loaded_as(model):
    tokenizer = AutoTokenizer.from_pretrained(folder_of("llama"))
    return LoadedModel(model, tokenizer, None, {"name": "tiny"}, 512)


def queued(loaded, rows, settings=(), size=4, windows=2):
    """The tokens of each row's answer from the queue."""
    answers, half = {}, -(-len(rows) // windows)
    queue = GenerationQueue(loaded, TokenChooser(loaded, dict(settings)), BatchSize(size, loaded.model, "tiny"), ())
    parts = (rows[start : start + half] for start in range(0, len(rows), half))
    queue.answer(parts, lambda _: True, lambda ended: answers.update((row.number, row.tokens) for row, _ in ended))
    return [answers[number] for number in range(len(rows))], queue


@torch.inference_mode()
def one_by_one(loaded, row, **settings):
    ids = torch.tensor([row.prompt])
    more = {"pad_token_id": loaded.tokenizer.pad_token_id, "eos_token_id": loaded.end_ids()}
    out = loaded.model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=row.limit, **more, **settings)
    return out[0, len(row.prompt) :].tolist()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "settings"), [(kind, settings) for kind, settings, _ in FAMILIES])
def test_the_queue_gives_every_prompt_the_answer_it_gets_alone(kind, settings):
    loaded = loaded_as(tiny(AutoModelForCausalLM, kind, **settings))
    rows = rows_of(prompts())
    check = choose_generation_route(loaded, rows, "")
    if kind in STATES:
        assert check.route == "batches" and "keeps states" in check.reason, check
        return
    assert (check.route, check.reason) == ("queue", ""), check
    found, queue = queued(loaded, rows)
    assert found == [one_by_one(loaded, row, do_sample=False) for row in rows]
    assert queue.reader.fed < sum(map(len, rows)) * 0.8  # the shared beginning was not read again and again


def test_a_model_without_a_cache_whose_layers_give_lists_generates_one_by_one():
    loaded = loaded_as(tiny(AutoModelForCausalLM, "openai-gpt", **GPT2))
    check = choose_generation_route(loaded, rows_of(prompts()), "")
    assert check.route != "queue" and "queue" in check.reason and check.rounding > 0, check


def test_a_wrong_route_is_not_taken_where_rounding_overflows(monkeypatch):
    @contextmanager
    def overflowing(model):
        hook = model.get_input_embeddings().register_forward_hook(lambda *of_layer: of_layer[-1] * torch.inf)
        yield
        hook.remove()

    sound = route._queued
    monkeypatch.setattr(route, "last_bits_changed", overflowing)
    monkeypatch.setattr(route, "_queued", lambda *given: [rows - 1 for rows in sound(*given)])
    check = choose_generation_route(loaded_as(tiny(AutoModelForCausalLM, "llama", **SIZES)), rows_of(prompts()), "")
    assert (check.route, check.rounding) == ("batches", torch.inf) and "queue is off by 1.0e+00 nats" in check.reason


def test_padding_that_a_model_says_itself_is_of_its_answer():
    loaded = loaded_as(tiny(AutoModelForCausalLM, "llama", **SIZES))
    pad, ends = loaded.tokenizer.pad_token_id, [loaded.tokenizer.eos_token_id]
    assert pad not in ends
    answer = read_answer([9, pad, 10, pad], (), "", loaded, ends, ())
    assert (answer.tokens, answer.finish_reason) == ([9, pad, 10, pad], "length")


@pytest.mark.slow
def test_penalties_count_a_rows_own_tokens_and_samples_do_not_depend_on_the_batch():
    loaded = loaded_as(tiny(AutoModelForCausalLM, "llama", **SIZES))
    some = prompts()
    penalised = {"repetition_penalty": 1.5, "min_new_tokens": 3, "no_repeat_ngram_size": 2}
    found, _ = queued(loaded, rows_of(some), penalised)
    assert found == [one_by_one(loaded, row, do_sample=False, **penalised) for row in rows_of(some)]
    assert found != queued(loaded, rows_of(some))[0]
    sampled = {"temperature": 0.8, "top_p": 0.9, "top_k": 20}
    first, *others = (queued(loaded, rows_of(some), sampled, size)[0] for size in (1, 3, 13))
    assert others == [first, first] and first != found


def test_what_generation_settings_ask_for_and_the_queue_cannot_do_is_left_to_generate():
    loaded = loaded_as(tiny(AutoModelForCausalLM, "llama", **SIZES))
    for settings, reason in (({"num_beams": 2}, "beam search"), ({"cache_implementation": "static"}, "'static'")):
        chooser = TokenChooser(loaded, settings)
        assert reason in chooser.refused
        check = choose_generation_route(loaded, rows_of(prompts()), chooser.refused)
        assert check.route == "batches" and reason in check.reason
