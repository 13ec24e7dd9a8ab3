"""Where answers came from: counts by route, and which of them an earlier run gave."""

import time
from collections import Counter

from cultureval.models.answer_log import AnswerLog
from cultureval.runtime.journal import Journal, answer_key


def test_only_answers_of_an_earlier_run_are_reused_and_the_oldest_is_dated(tmp_path):
    before = time.time()
    a, b, new, missing = (answer_key(name=name) for name in ("a", "b", "new", "missing"))
    Journal(tmp_path).append({a: {"text": "x"}, b: {"text": "y"}})
    journal, log = Journal(tmp_path), AnswerLog()
    journal.append({new: {"text": "z"}})
    log.look_up("t|0", journal, [a])
    log.look_up("t|0", journal, [b])
    log.look_up("t|0", journal, [new])  # the same prompt twice in one run
    log.look_up("t|0", journal, [a, new])
    log.look_up("t|0", journal, [missing])
    log.answered("t|0", "packed")
    found = log.tasks()["t|0"]
    assert (found["reused"], found["routes"]) == (2, {"packed": 1})
    assert found["reused_since"][:13] == time.strftime("%Y-%m-%dT%H", time.gmtime(before))


def test_the_counts_of_several_processes_are_added():
    total = AnswerLog()
    for number in range(2):
        one = AnswerLog(reused={"t|0": [3 - number]}, spent=Counter(tokens_paid_in=2, cost=0.5))
        one.answered("t|0", "packed")
        one.answered("u|0", "plain")
        total.add(one)
    assert total.tasks()["t|0"]["routes"] == {"packed": 2} and total.tasks()["u|0"]["routes"] == {"plain": 2}
    assert total.reused == {"t|0": [3, 2]} and total.spent == {"tokens_paid_in": 4, "cost": 1.0}
