"""250 items and a judge's server with every fault: each item is rightly scored or reported, and paid for once."""

import hashlib
import json
import os
import re
import time

import pyarrow.parquet
import yaml
from faulty_server import MODEL, FaultyServer
from forked_commands import StartedCommand, run_forked
from planted import plant, text_row
from waiting import wait_until

from cultureval.runs.files import date_of
from cultureval.runs.loading import load

CRITERIA = ("Consistency", "Relevance", "Fluency", "Dialect Authenticity")
ITEMS, CONCURRENCY, KILL_AFTER = 250, 16, 90
# Faults that pass, each for about one item in 25, and fates that do not, each for one in 50.
PASSING = ("500", "503", "drop", "cut_body", "rate_without_header", "409")
LASTING = {
    "refusal": "refused",
    "filter_prompt": "no_answer",
    "bad_request": "no_answer",
    "prose": "malformed",
    "off_the_scale": "malformed",
}
PREFIX = f"judge_{MODEL.split('/')[1]}_reference"


def number_of(prompt):
    return int(re.search(r"وصف رقم (\d+)", prompt).group(1))


def fate(number):
    """What happens to an item: a lasting fate, a passing fault, or nothing."""
    if number % 10 == 3:
        return [*LASTING][number // 10 % len(LASTING)]
    if number % 5 == 1:
        return PASSING[number // 5 % len(PASSING)]
    return {60: "rate", 180: "rate", 70: "hang", 170: "hang"}.get(number)


def scores(number):
    digest = hashlib.sha256(str(number).encode()).digest()
    return {name: float(1 + digest[place] % 5) for place, name in enumerate(CRITERIA)}


def reply(prompt, index):
    number = number_of(prompt)
    if fate(number) == "prose":
        return "This caption is lovely. I would say four out of five for everything."
    values = scores(number) | ({"Fluency": 7.0} if fate(number) == "off_the_scale" else {})
    return "\n".join(f"**{name}**: {value:g}/5" for name, value in values.items())


def plan(prompt, count):
    wanted = fate(number_of(prompt))
    if wanted in PASSING or wanted in {"rate", "hang"}:
        return wanted if count <= 1 + number_of(prompt) % 2 else None
    return wanted if wanted in LASTING else None


def test_250_items_across_every_fault_and_a_kill(tmp_path):
    planted = run_to_judge(tmp_path / "out")
    with FaultyServer(plan, delay=0.01, reply=reply) as server:
        settings = {"model": MODEL, "base_url": server.url, "concurrency": CONCURRENCY, "timeout_s": 4}
        settings |= {"max_retries": 4, "input_token_price": 0.001, "output_token_price": 0.001}
        (tmp_path / "judge.yaml").write_text(yaml.safe_dump(settings))
        variables = os.environ | {"CULTUREVAL_CACHE": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "hf")}
        variables.pop("CULTUREVAL_JOURNAL", None)
        command = ("cultureval.scripts.main", ["judge", "out", "--judge", "judge.yaml"], tmp_path, variables)
        process = StartedCommand(*command, network=True, loaded="ours")
        wait_until(lambda: server.answered.total() >= KILL_AFTER or not process.is_alive())
        assert process.is_alive()
        process.kill()
        process.end()
        time.sleep(0.1)
        before = server.answered.copy()
        assert list((tmp_path / "out" / "results").glob("**/*.json")) == [planted] and before.total() < ITEMS
        done = run_forked(*command, network=True, loaded="ours")
    assert done.returncode == 0, done.stderr[-2000:]
    rows, values = results(tmp_path / "out", planted)
    check_every_item(rows)
    check_payments(server, before)
    unscored = sum(fate(number) in LASTING for number in range(ITEMS))
    expected = [scores(number)["Fluency"] for number in range(ITEMS) if fate(number) not in LASTING]
    assert abs(values[f"{PREFIX}_fluency"] - sum(expected) / len(expected)) < 1e-12
    score = load(tmp_path / "out").runs[0].score("jeem_caption:ma|0", f"{PREFIX}_fluency")
    assert (score.n, score.asked) == (ITEMS - unscored, ITEMS)
    assert "unscored" in done.stdout and "I will not" in done.stdout


def run_to_judge(folder):
    """A run whose answers are saved; returns its results file."""
    rows = []
    for number in range(ITEMS):
        slots = {"country": "Morocco", "reference": "وصف مرجعي للصورة"}
        judged = {"templates": ["jeem_caption_reference"], "slots": slots}
        rows.append(text_row(number, {"rouge_l": 0.0}, f"وصف رقم {number} للصورة", judge=judged))
    return plant(folder, {"jeem_caption:ma|0": rows}, "org/m")


def results(folder, before):
    """The rows by id, and the scores, of the judgement."""
    (file,) = set(folder.glob("results/**/results_*.json")) - {before}
    (written,) = (path for path in folder.glob("details/**/*.parquet") if path.parent.name != date_of(before))
    rows = {int(row["doc"]["id"]): row["metric"] for row in pyarrow.parquet.read_table(written).to_pylist()}
    return rows, json.loads(file.read_text())["results"]["jeem_caption:ma|0"]


def check_every_item(rows):
    assert sorted(rows) == list(range(ITEMS))
    for number, metric in rows.items():
        verdict = metric[PREFIX]
        found = {name: metric[f"{PREFIX}_{'_'.join(name.lower().split())}"] for name in CRITERIA}
        if fate(number) in LASTING:
            assert verdict["outcome"] == LASTING[fate(number)] and verdict["reason"], (number, verdict)
            assert all(value is None or value != value for value in found.values())
        else:
            assert (verdict["outcome"], found) == ("scored", scores(number)), (number, fate(number), verdict)


def check_payments(server, before):
    """Each reply was paid for once, but for what was in flight at the kill."""
    twice = []
    for prompt, count in server.answered.items():
        assert 1 <= count <= 2
        twice += [prompt] * (count - 1)
    assert len(twice) <= CONCURRENCY and all(before[prompt] for prompt in twice)
    paid = {number_of(prompt) for prompt in server.answered}
    assert paid == {number for number in range(ITEMS) if fate(number) not in {"filter_prompt", "bad_request"}}
