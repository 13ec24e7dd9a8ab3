"""How the processes of one run share its questions."""

import os
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from cultureval.runtime import processes


@given(st.permutations(range(40)), st.lists(st.integers(1, 30), min_size=40, max_size=40), st.integers(1, 7))
def test_every_question_has_one_process_and_neighbours_stay_together(order, sizes, count):
    with patch.dict(os.environ, WORLD_SIZE=str(count)):
        runs, turns = processes.split_contiguous(order, sizes), processes.split_round_robin(order)
    assert len(runs) == len(turns) == count
    assert [index for run in runs for index in run] == list(order)
    assert sorted(index for turn in turns for index in turn) == list(range(40))
    fair = sum(sizes) / count
    assert all(abs(sum(sizes[index] for index in run) - fair) <= max(sizes) for run in runs)
