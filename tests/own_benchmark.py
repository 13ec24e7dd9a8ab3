"""A benchmark in one file, as docs/own_benchmark.md prints it, with rows."""

import json
from pathlib import Path

PROVERBS = """
from cultureval import Benchmark, multiple_choice

BENCHMARKS = [
    Benchmark(
        "proverbs",
        repo="my-lab/proverbs",
        split="test",
        language="fa",
        kind=multiple_choice(labels="1 2 3 4", prompt="پرسش: $question\\n$options\\nپاسخ:"),
        row=lambda r: {"question": r["question"], "options": r["options"], "gold": r["answer"]},
    )
]
"""
ANSWERED = """
from cultureval import Benchmark, generate, judged


def exact(answer, references):
    return float(answer.strip() in references)


def length(answer, references):
    return len(answer)


BENCHMARKS = [
    Benchmark(
        "sums", repo="my-lab/proverbs", language="fa", group="sums",
        kind=generate(
            {"exact": exact, "length": length}, "$question\\nپاسخ:", new_tokens=8, stop=["\\n"],
            ranges={"length": (0, 10_000)}, lower=["length"],
        ),
        row=lambda r: {"question": r["question"], "answers": r["options"][int(r["answer"]) - 1]},
    ),
    Benchmark(
        "essays", repo="my-lab/proverbs", language="fa",
        kind=judged(template="answered_sums:judge", prompt="$question\\nپاسخ:", new_tokens=8),
        row=lambda r: {"question": r["question"]},
    ),
]
"""
JUDGE = """---
form: likert
judged: answer
criteria: [Clarity]
---
Rate the answer to the question $question

$answer

Reply with this line:
Clarity: X/5
"""


def write_benchmark(folder: Path, rows: int = 12, name: str = "proverbs", text: str = PROVERBS) -> Path:
    """Writes the file, and its rows below `folder/data`: sums, whose right option goes through all labels."""
    place = folder / "data" / "my-lab" / "proverbs"
    place.mkdir(parents=True, exist_ok=True)
    lines = []
    for number in range(rows):
        gold, right = number % 4, 41 + 2 * number
        options = [str(right + position - gold) for position in range(4)]
        row = {"question": f"{20 + number} + {21 + number} = ?", "options": options, "answer": str(gold + 1)}
        lines.append(json.dumps(row))
    (place / "test.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    (folder / "judge.txt").write_text(JUDGE, encoding="utf-8")
    return folder / f"{name}.py"
