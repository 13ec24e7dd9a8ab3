"""Two scripted judges that disagree, fail and lie in known ways, across a kill: decisions as in a table by hand."""

import csv
import json
import re
import signal

import yaml
from faulty_server import MODEL, FaultyServer
from forked_commands import StartedCommand, own_variables, run_forked
from waiting import wait_until

from cultureval.audit.judging import decide
from cultureval.judge_prompts.templates import judge_template
from cultureval.tasks.manifest import read_manifest

CRITERIA = judge_template("audit_mcq").criteria
CASCADE = judge_template("audit_mcq").cascade["text_readability"]
EACH, CONCURRENCY, KILL_AFTER = 6, 8, 60

# What both judges do with an item; their totals (None: no verdict); the decision of the blog's rule and of the paper's.
TABLE = [
    ("ok10", "ok10", (10, 10), "keep", "keep"),
    ("ok7", "ok10", (7, 10), "keep", "review"),  # a gap of 3
    ("ok10", "ok6", (10, 6), "review", "review"),
    ("ok6", "ok6", (6, 6), "discard", "review"),
    ("unreadable", "ok5", (3, 5), "discard", "review"),
    ("prose_first", "ok10", (10, 10), "keep", "keep"),  # asked again
    ("passing_500", "ok8", (10, 8), "keep", "keep"),
    ("lie_issue", "ok3", (None, 3), "review", "review"),
    ("lie_cascade", "ok4", (None, 4), "review", "review"),
    ("truth_values", "in_prose", (None, None), "review", "review"),
    ("score_of_2", "ok10", (None, 10), "review", "review"),
    ("two_objects", "ok10", (None, 10), "review", "review"),
    ("refusal", "ok6", (None, 6), "review", "review"),
    ("bad_request", "bad_request", (None, None), "review", "review"),
]
BROKEN = {"lie_issue", "lie_cascade", "truth_values", "in_prose", "score_of_2", "two_objects"}


AGAIN = "\nReply in the requested form only, without any other words."


def number_of(prompt):
    return int(re.search(r"سؤال رقم (\d+)", prompt).group(1))


def manner(prompt, judge):
    return TABLE[number_of(prompt) % len(TABLE)][judge]


def reply_of(scores, issues=None):
    given = [name for name, value in scores.items() if not value] if issues is None else issues
    explained = [{"criterion": name, "explanation": "عيب واضح."} for name in given]
    return json.dumps({"scores": scores, "issues": explained}, ensure_ascii=False)


def judge_reply(how, first):
    scores = dict.fromkeys(CRITERIA, 1)
    if how.startswith("ok"):  # zeros from the end: none rules others
        return reply_of(scores | dict.fromkeys(CRITERIA[int(how[2:]) :], 0))
    replies = {
        "unreadable": lambda: reply_of(scores | {"text_readability": 0} | dict.fromkeys(CASCADE, 0)),
        "prose_first": lambda: "This sample looks fine to me." if first else reply_of(scores),
        "passing_500": lambda: reply_of(scores),
        "lie_issue": lambda: reply_of(scores, ["answer_alignment"]),
        "lie_cascade": lambda: reply_of(scores | {"text_readability": 0}),
        "truth_values": lambda: reply_of(dict.fromkeys(CRITERIA, True)),
        "in_prose": lambda: f"My scores follow. {reply_of(scores)} I hope this helps.",
        "score_of_2": lambda: reply_of(scores | {"question_clarity": 2}),
        "two_objects": lambda: f"{reply_of(scores)} or {reply_of(scores)}?",
    }
    return replies[how]()


def server_of(judge):
    def plan(prompt, count):
        how = manner(prompt, judge)
        faults = {"passing_500": "500" if count == 1 else None, "refusal": "refusal", "bad_request": "bad_request"}
        return faults.get(how)

    def reply(prompt, index):
        how = manner(prompt, judge)
        return "" if how in ("refusal", "bad_request") else judge_reply(how, AGAIN not in prompt)

    server = FaultyServer(plan, delay=0.01, reply=reply)
    return server


def test_decisions_are_those_of_the_table_across_a_kill(tmp_path):
    with (tmp_path / "items.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Question", "A", "B", "answer"])
        writer.writerows([f"سؤال رقم {number} عن المدن", "القاهرة", "دمشق", "A"] for number in range(EACH * len(TABLE)))
    with server_of(0) as first, server_of(1) as second:
        for name, server in (("one", first), ("two", second)):
            settings = {"name": name, "model": MODEL, "base_url": server.url, "concurrency": CONCURRENCY}
            settings |= {"input_token_price": 0.001, "output_token_price": 0.001}
            (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(settings))
        main, variables = "cultureval.scripts.main", own_variables(tmp_path)
        command = ["audit", "run", "items.csv", "--judges", "one.yaml,two.yaml", "--output-dir", "out"]
        command += ["--columns", "question=Question,options=A+B,gold=answer"]
        started = StartedCommand(main, command, tmp_path, variables, network=True, loaded="ours")
        wait_until(lambda: first.answered.total() + second.answered.total() >= KILL_AFTER or not started.is_alive())
        assert started.is_alive()
        started.kill()
        assert started.end().returncode == -signal.SIGKILL and not (tmp_path / "out").exists()
        done = run_forked(main, command, tmp_path, variables, network=True, timeout=120, loaded="ours")
    assert done.returncode == 0, done.stderr[-2000:]
    check_decisions(tmp_path / "out")
    check_payments(first, 0)
    check_payments(second, 1)
    assert "Rule: blog. Cost: one: cost" in done.stdout and "agreement:" in done.stdout
    with (tmp_path / "out" / "decisions.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    decided = [decision for *_, decision, _ in TABLE]
    expected = {"kept": "keep", "discarded": "discard", "to review": "review"}
    assert {name: int(row[name]) for name in expected} == {
        name: EACH * decided.count(decision) for name, decision in expected.items()
    }


def check_decisions(folder):
    records = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(records) == EACH * len(TABLE)
    decided = {row.row: row for row in read_manifest(folder / "manifest.jsonl").rows}
    for record in records:
        one, two, totals, blog, paper = TABLE[number_of(record["question"]) % len(TABLE)]
        found = {name: sum(verdict["scores"].values()) or None for name, verdict in record["verdicts"].items()}
        row = decided[record["row"]]
        assert found == {"one": totals[0], "two": totals[1]}, (one, two, record)
        assert (record["decision"], row.decision) == (blog, blog), (one, two, record)
        assert decide("paper", found)[0] == paper
        assert [f"judge:{name}:no_verdict" in row.reasons for name in ("one", "two")] == [
            total is None for total in totals
        ]
    assert not re.search(r"[\u0600-\u06ff]", (folder / "manifest.jsonl").read_text(encoding="utf-8"))


def check_payments(server, judge):
    """Each reply was paid for once, and once more where it was in flight at the kill."""
    for prompt, count in server.answered.items():
        how = manner(prompt, judge)
        assert 1 <= count <= 2, (how, count)
        assert how not in BROKEN or AGAIN in prompt or server.answered[prompt + AGAIN], how
