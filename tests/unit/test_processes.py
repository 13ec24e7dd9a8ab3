"""How the processes of one run share its questions."""

import os
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lighteval.tasks.requests import Doc

from cultureval.runtime import processes
from cultureval.runtime.errors import CulturevalError


@given(st.permutations(range(40)), st.lists(st.integers(1, 30), min_size=40, max_size=40), st.integers(1, 7))
def test_every_question_has_one_process_and_neighbours_stay_together(order, sizes, count):
    with patch.dict(os.environ, WORLD_SIZE=str(count)):
        runs = processes.split_contiguous(order, sizes)
    assert len(runs) == count
    assert [index for run in runs for index in run] == list(order)
    fair = sum(sizes) / count
    assert all(abs(sum(sizes[index] for index in run) - fair) <= max(sizes) for run in runs)


def test_the_end_of_another_process_is_a_sentence():
    def lost(*_):
        raise RuntimeError("[gloo/transport/tcp/pair.cc:538] Connection closed by peer [127.0.0.1]:20811\nmore")

    with patch.dict(os.environ, WORLD_SIZE="2"), patch("torch.distributed.all_gather_object", lost):
        with pytest.raises(CulturevalError, match="Another process .*closed by peer.* same command.*goes on") as error:
            processes.gather(1)
    assert "more" not in str(error.value)


def test_processes_with_other_rows_ask_nothing():
    def others(gathered, mine):
        gathered[:] = [mine, b"of others"]

    doc = Doc(task_name="t", query="q", choices=[], gold_index=0, id="1")
    with patch.dict(os.environ, WORLD_SIZE="2"), patch("torch.distributed.all_gather_object", others):
        with pytest.raises(CulturevalError, match="have different rows"):
            processes.answer_and_gather([doc], [[0], []], lambda share: pytest.fail("it was asked"))
