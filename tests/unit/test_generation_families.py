"""Families of models that are made otherwise than Llama generate, by the queue or around it, as they do one by one."""

from dataclasses import replace
from random import Random

import pytest
import torch
from test_model_families import FAMILIES, GPT2, SIZES, tiny, tokens
from tiny_models import folder_of, tokens_fed
from transformers import AutoModelForCausalLM, AutoTokenizer

from cultureval.models.generation import cache, check
from cultureval.models.generation.cache import Reader
from cultureval.models.generation.check import why_not_queued
from cultureval.models.generation.choosing import TokenChooser
from cultureval.models.generation.generation import read_answer
from cultureval.models.generation.queue import GenerationQueue
from cultureval.models.generation.rows import AnswerRow
from cultureval.models.loading import LoadedModel
from cultureval.models.memory import BatchSize

STATES = {"jamba", "mamba", "falcon_h1", "lfm2"}


def prompts():
    beginning = tokens(60, 1)
    shared = [beginning + tokens(count, 10 + count) for count in (1, 3, 9, 4, 2, 17)]
    return [*shared, *(tokens(count, 40 + count) for count in (1, 2, 30, 8, 70, 5)), shared[0][:40]]


def rows_of(some, **more):
    return [
        AnswerRow(None, prompt, 3 + place % 7, Random(place), number=place, **more) for place, prompt in enumerate(some)
    ]


def loaded_as(model):
    tokenizer = AutoTokenizer.from_pretrained(folder_of("llama"))
    return LoadedModel(model, tokenizer, None, {"name": "tiny"}, 512)


def queued(loaded, rows, settings=(), size=4, windows=2):
    """The tokens of each row's answer from the queue."""
    answers, half = {}, -(-len(rows) // windows)
    queue = GenerationQueue(loaded, TokenChooser(loaded, dict(settings)), BatchSize(size, loaded.model, "tiny"), ())
    parts = (rows[start : start + half] for start in range(0, len(rows), half))
    queue.answer(parts, lambda ended: answers.update((row.number, row.tokens) for row, _ in ended))
    return [answers[number] for number in range(len(rows))]


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
    reason = why_not_queued(loaded, prompts())
    if kind in STATES:
        assert "keeps states" in reason
        return
    assert reason == ""
    with tokens_fed(loaded.model) as fed:
        found = queued(loaded, rows)
    assert found == [one_by_one(loaded, row, do_sample=False) for row in rows]
    assert sum(fed) < sum(map(len, rows)) * 0.8  # the shared beginning was not read again and again


def test_a_model_whose_cache_the_queue_cannot_make_is_not_queued():
    assert "queue" in why_not_queued(loaded_as(tiny(AutoModelForCausalLM, "openai-gpt", **GPT2)), prompts())


def given_changed(change):
    """A `Reader._logits` that gets other masks or positions."""

    def make(logits):
        def wrong(reader, held, ids, given):
            return logits(reader, held, ids, change(dict(given), held.get_seq_length(), ids))

        return wrong

    return make


def seen_padding(given, cached, ids):
    """Rows see the zeros before them."""
    if "attention_mask" in given:
        given["attention_mask"] = torch.ones_like(given["attention_mask"])
    return given


def hidden_column(given, cached, ids):
    """No row sees the fifth column from the end of what was read before."""
    if cached > 5:
        mask = given.get("attention_mask", torch.ones(ids.shape[0], cached + ids.shape[1], dtype=torch.long)).clone()
        mask[:, cached - 5] = 0
        given["attention_mask"] = mask
    return given


def columns_as_positions(given, cached, ids):
    """Positions count the zeros before a row."""
    return given | {"position_ids": torch.arange(cached, cached + ids.shape[1])[None].expand(ids.shape[0], -1)}


def answers_one_further(given, cached, ids):
    """Tokens after those in the cache stand one position too far from them."""
    return given | {"position_ids": given["position_ids"] + (cached > 0)}


def of_another(together):
    """A row goes on with the keys and values of the row before it."""

    def wrong(states, parts, room):
        return together(states, [replace(part, rows=[max(0, row - 1) for row in part.rows]) for part in parts], room)

    return wrong


def one_column_off(together):
    """Copies of the shared beginning stand one column too early."""

    def wrong(states, parts, room):
        whole = together(states, parts, room)
        copies = any(part.before is not None for part in parts)
        return whole.roll(-1, dims=2) if copies else whole

    return wrong


ERRORS = {
    "rows see their padding": (Reader, "_logits", given_changed(seen_padding)),
    "positions by column": (Reader, "_logits", given_changed(columns_as_positions)),
    "answers one position too far": (Reader, "_logits", given_changed(answers_one_further)),
    "a row goes on with another's cache": (cache, "_together", of_another),
    "shared beginning one column off": (cache, "_together", one_column_off),
    "one column hidden": (Reader, "_logits", given_changed(hidden_column)),
}


@pytest.mark.parametrize("error", ["", *ERRORS])
@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_a_sound_queue_is_taken_and_one_with_wrong_masks_positions_or_keys_is_not(family, error, monkeypatch):
    loaded = loaded_as(AutoModelForCausalLM.from_pretrained(folder_of(family)).eval())
    if error:
        owner, name, make = ERRORS[error]
        monkeypatch.setattr(owner, name, make(getattr(owner, name)))
    assert ("the queue is off by" in why_not_queued(loaded, prompts())) == bool(error)


def test_logits_that_are_no_numbers_in_the_queue_alone_refuse_it(monkeypatch):
    sound = check._plain
    monkeypatch.setattr(check, "_plain", lambda *given: sound(*given) * torch.nan)
    assert "off by inf" in why_not_queued(loaded_as(tiny(AutoModelForCausalLM, "llama", **SIZES)), prompts())


def test_padding_that_a_model_says_itself_is_of_its_answer():
    loaded = loaded_as(tiny(AutoModelForCausalLM, "llama", **SIZES))
    pad, ends = loaded.tokenizer.pad_token_id, [loaded.tokenizer.eos_token_id]
    assert pad not in ends
    answer = read_answer([9, pad, 10, pad], (), "", loaded, ())
    assert (answer.tokens, answer.finish_reason) == ([9, pad, 10, pad], "length")


@pytest.mark.slow
def test_penalties_count_a_rows_own_tokens_and_samples_do_not_depend_on_the_batch():
    loaded = loaded_as(tiny(AutoModelForCausalLM, "llama", **SIZES))
    some = prompts()
    penalised = {"repetition_penalty": 1.5, "min_new_tokens": 3, "no_repeat_ngram_size": 2}
    found = queued(loaded, rows_of(some), penalised)
    assert found == [one_by_one(loaded, row, do_sample=False, **penalised) for row in rows_of(some)]
    assert found != queued(loaded, rows_of(some))
    sampled = {"temperature": 0.8, "top_p": 0.9, "top_k": 20}
    first, *others = (queued(loaded, rows_of(some), sampled, size) for size in (1, 3, 13))
    assert others == [first, first] and first != found


def test_what_generation_settings_ask_for_and_the_queue_cannot_do_is_left_to_generate():
    loaded = loaded_as(tiny(AutoModelForCausalLM, "llama", **SIZES))
    assert "beam search" in TokenChooser(loaded, {"num_beams": 2}).refused
    assert not TokenChooser(loaded, {"cache_implementation": "static"}).refused  # the same answers from another cache
