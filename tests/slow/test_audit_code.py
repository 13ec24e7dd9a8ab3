"""`cultureval audit code` with a scripted server: counts, files, people's verdicts, canonical solutions."""

import csv
import io
import json
import os
import re

import yaml
from faulty_server import MODEL, FaultyServer
from forked_commands import run_forked

# What the model does with the n-th problem of each data set, and what becomes of it.
MANNERS = ["edit", "same", "edit", "unsure", "code", "prose"]
OUTCOMES = ["modified", "unchanged", "modified", "review", "review", "review"]


def function_of(prompt):
    return re.search(r"INPUT FUNCTION:\n\n(.*?)\n\nOUTPUT FORMAT", prompt, re.DOTALL)[1]


def reply(prompt, index):
    """CSV as the prompt asks for; problems are told apart by their order in the samples."""
    function = function_of(prompt)
    manner = MANNERS[ORDER.index(function) % len(MANNERS)]
    edited = re.sub(r"(?<=\s)[\u0621-\u064a]{3,}(?=\s)", "كلمة", function, count=1)
    assert edited != function
    cells = {
        "edit": (edited, "No"),
        "same": (function, "No"),
        "unsure": (edited, "Yes"),
        "code": (re.sub(r"\b(?=\w+\()", "my_", edited, count=1), "No"),
    }
    if manner == "prose":
        return "The Arabic is fine."
    file = io.StringIO()
    csv.writer(file).writerows([["Fixed", "Human Check"], cells[manner]])
    return file.getvalue()


ORDER = []


def test_edits_of_arabic_alone_count_and_people_decide_on_the_rest(tmp_path):
    from cultureval.tasks.qimma.code_data import load_problems

    sources = {name: load_problems(name, "samples") for name in ("humaneval", "mbpp")}
    ORDER[:] = [row["prompt"].strip() for one in sources.values() for row in one.rows.values()]
    variables = {**os.environ, "CULTUREVAL_CACHE": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "hf")}

    def run(*options):
        arguments = ["audit", "code", "--data", "samples", "--output-dir", "out", *options]
        return run_forked("cultureval.scripts.main", arguments, tmp_path, variables, network=True, loaded="ours")

    with FaultyServer(reply=reply) as server:
        settings = {"name": "editor", "model": MODEL, "base_url": server.url, "input_token_price": 0.001}
        (tmp_path / "editor.yaml").write_text(yaml.safe_dump(settings))
        priced = run("--model", "editor.yaml", "--dry-run")
        assert re.search(r"HumanEval\+: 6 calls \(0 more are in the journal\), .*cost about \d", priced.stdout), priced
        assert not server.asked
        done = run("--model", "editor.yaml")
        again = run("--model", "editor.yaml")
    assert done.returncode == again.returncode == 0, done.stderr[-2000:]
    assert again.stdout == done.stdout
    assert sorted(server.asked.values()) == [1] * 14  # what cannot be read is asked again, with a sentence more
    assert re.search(r"MBPP\+ +6 +2 +1 +3 +33% +308 / 70 \(81%\) +6 of 6", done.stdout), done.stdout
    assert "HumanEval+: 3 prompts to review: 1 the model asks for a person; 1 more than the Arabic" in done.stdout
    rows = [json.loads(line) for line in (tmp_path / "out" / "mbpp.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["outcome"] for row in rows] == OUTCOMES
    changed = [row["prompt"] for row in rows if row["prompt"] != row["original"]]
    assert len(changed) == 2 and all("كلمة" in prompt for prompt in changed)

    with (tmp_path / "out" / "mbpp_review.csv").open(encoding="utf-8-sig", newline="") as lines:
        waiting = list(csv.DictReader(lines))
    assert [row["reason"] for row in waiting] == ["human_check", "not_only_arabic", "no_reply"]
    verdicts = [row | {"verdict": verdict} for row, verdict in zip(waiting, ("accept", "keep", ""), strict=True)]
    with (tmp_path / "done.csv").open("w", encoding="utf-8-sig", newline="") as lines:
        writer = csv.DictWriter(lines, list(waiting[0]))
        writer.writeheader()
        writer.writerows(verdicts)
    others = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.name != "mbpp.jsonl"}
    reviewed = run("--reviewed", "done.csv")  # no server is left
    assert reviewed.returncode == 0, reviewed.stderr[-2000:]
    assert others == {name: (tmp_path / "out" / name).read_bytes() for name in others}
    assert "mbpp.jsonl holds people's verdicts" in run("--model", "editor.yaml").stderr
    assert re.search(r"MBPP\+ +6 +3 +2 +1 ", reviewed.stdout), reviewed.stdout
    used = load_problems("mbpp", "samples", prompts=tmp_path / "out" / "mbpp.jsonl")
    differ = [row["prompt"] != sources["mbpp"].rows[name]["prompt"] for name, row in used.rows.items()]
    assert differ == [True, False, True, True, False, False]
