"""Too little memory halves batches and changes no answer; what a long run keeps of an answer is its text and tokens."""

import ctypes
import gc
import logging
import multiprocessing
import resource
import tracemalloc

import pytest
import torch
from lighteval.tasks.requests import Doc
from tiny_models import folder_of
from waiting import PATIENCE

from cultureval.models.hf import HFModel
from cultureval.models.memory import BatchSize, available_bytes
from cultureval.models.settings import HFModelSettings
from cultureval.runtime.errors import CulturevalError

MIB = 2**20


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CULTUREVAL_RESUME", "0")


def model(**settings):
    name = str(folder_of("llama"))
    return HFModel(HFModelSettings(model_name=name, device="cpu", dtype="float32", chat_template="off", **settings))


def docs(count, words=60, choices=(), shared=False):
    return [
        Doc(
            query=("" if shared else f"{number} ") + "وش هذا؟ " * words + str(number),
            choices=list(choices),
            gold_index=0,
            task_name="t",
            id=str(number),
            generation_size=6,
        )
        for number in range(count)
    ]


def virtual_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def in_little_memory(room, method, settings, asked, found):
    """In a process of its own: answers with so many more bytes than it has, of which threads' stacks take none."""
    torch.set_num_threads(1)
    said = []
    logging.getLogger("cultureval").addHandler(handler := logging.Handler())
    handler.emit = lambda record: said.append(record.getMessage())
    lm = model(**settings)
    getattr(lm, method)(asked[:1])
    ctypes.CDLL(None).malloc_trim(0)  # nor is what loading has freed
    _, before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (virtual_bytes() + room, before))
    try:
        answers = [(one.text, one.logprobs) for one in getattr(lm, method)(asked)]
        sizes = lm.generator.size.most, lm.scorer.token_budget
    except CulturevalError as error:
        answers, sizes = str(error), (0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (before, before))  # the queue starts a thread
    found.put((answers, said, *sizes))


def answered_in(room, method, settings, asked):
    context = multiprocessing.get_context("forkserver")  # what the parent has freed would be room
    context.set_forkserver_preload(["tiny_models", "cultureval.models.hf"])
    found = context.Queue()
    process = context.Process(target=in_little_memory, args=(room, method, settings, asked, found))
    process.start()
    answers = found.get(timeout=PATIENCE)
    process.join(PATIENCE)
    return answers


def test_memory_that_does_not_suffice_halves_the_batch_of_answers_and_changes_none():
    asked = docs(64, 200, shared=True)
    # Too little for oneDNN's kernels too, which then fail for good in their thread.
    answers, said, size, _ = answered_in(6 * MIB, "greedy_until", {"batch_size": 64}, asked)
    expected = [(one.text, one.logprobs) for one in model(batch_size=8).greedy_until(asked)]
    assert answers == expected
    assert size < 64 and sum("is too small" in line for line in said) == 1, said


def test_memory_that_does_not_suffice_halves_the_scored_batches():
    asked = docs(12, 60, ["نعم والله", "لا أدري"])
    expected = [one.logprobs for one in model().loglikelihood(asked)]
    answers, said, _, budget = answered_in(10 * MIB, "loglikelihood", {"token_budget": 20_000}, asked)
    assert [logprobs for _, logprobs in answers] == [pytest.approx(one, abs=1e-4) for one in expected]
    assert budget < 20_000 and any("is too small" in line for line in said), said


def test_what_does_not_fit_alone_is_a_sentence():
    lm = model(token_budget=64)
    with pytest.raises(CulturevalError, match="too little memory on cpu to score one prompt .*max_length"):
        for _ in range(4):
            lm.scorer.halve("tiny", MemoryError())
    lm.generator.size.halve(32, MemoryError())
    assert lm.generator.size.most == 16
    with pytest.raises(CulturevalError, match="too little memory on cpu for one answer .*max_length"):
        lm.generator.size.halve(1, MemoryError("none left"))


def test_auto_takes_what_fits(monkeypatch):
    lm = model()
    size = BatchSize("auto", lm.loaded.model, "tiny")
    assert size.most == 32 and size.fits(32, 1000, 1000)
    monkeypatch.setattr("cultureval.models.memory.available_bytes", lambda _: 10 * MIB)
    assert size.fits(4, 1000, 1000) and not size.fits(8, 1000, 1000)
    assert BatchSize(8, lm.loaded.model, "tiny").fits(8, 10**9, 1000)  # as set
    assert 0 < available_bytes(torch.device("cpu")) <= 2**50


def test_of_an_answer_only_text_and_tokens_are_kept():
    lm, asked = model(batch_size=32), docs(64, 40)
    lm.greedy_until(asked[:8])
    gc.collect()
    tensors = sum(isinstance(one, torch.Tensor) for one in gc.get_objects())
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    answers = lm.greedy_until(asked)
    gc.collect()
    kept = (tracemalloc.get_traced_memory()[0] - before) / len(asked)
    tracemalloc.stop()
    assert sum(isinstance(one, torch.Tensor) for one in gc.get_objects()) <= tensors
    tokens = len(answers[0].input_tokens)
    # Eight bytes a token, two a letter of the prompt, and the objects themselves.
    assert tokens > 150 and kept < 10 * tokens + 2 * len(answers[0].input) + 3000, (kept, tokens)
