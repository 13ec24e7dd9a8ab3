"""`lm-eval:NAME` and `lighteval:NAME` in lists of tasks, comparisons and leaderboards; equal prompts of two tasks."""

import json
from pathlib import Path

import pytest
from result_files import details_of, results_of

from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm

STEM = ("Biology (High School)", "Computer Science (University)")  # two subsets of lm-eval's group
SUBSETS = ("Driving Test", "All", *STEM)


def _row(number: int) -> dict:
    options = {f"Option {place}": f"زيت {number * place}" for place in range(1, 5)} | {"Option 5": None}
    about = {"Group": "STEM", "Level": "High", "Country": None, "Context": None, "ID": str(number)}
    return {**about, "Subject": "Biology", "Question": f"ما هو {number}؟", "Answer Key": "ABCD"[number % 4], **options}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A data root with the same made rows in several subsets of ArabicMMLU: four, three in the last one."""
    for subset in SUBSETS:
        file = tmp_path / "root" / "MBZUAI" / "ArabicMMLU" / subset / "test.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text("".join(json.dumps(_row(number)) + "\n" for number in range(4 - (subset == STEM[1]))), "utf-8")
    return tmp_path / "root"


def test_equal_prompts_of_two_tasks_are_asked_once(tmp_path: Path, cultureval, root: Path, tiny_lm: Path) -> None:
    names = ["lighteval:arabic_mmlu:Driving Test", "lighteval:arabic_mmlu:All"]
    run = cultureval(
        "eval", tiny_lm, *names, "--data", root, "--output-dir", "out", CULTUREVAL_JOURNAL=str(tmp_path / "journal")
    )
    assert run.returncode == 0, run.stderr[-3000:]
    answers = [
        {row["doc"]["query"]: row["model_response"]["logprobs"] for row in rows}
        for rows in details_of(tmp_path / "out").values()
    ]
    assert len(answers) == 2 and len(answers[0]) == 4 and answers[0] == answers[1]
    assert sum(file.read_bytes().count(b"\n") for file in (tmp_path / "journal").rglob("*.jsonl")) == 4


def test_a_list_with_a_group_is_run_compared_and_ranked(tmp_path: Path, cultureval, root: Path) -> None:
    pytest.importorskip("lm_eval")
    (tmp_path / "tasks.txt").write_text("# forms\nlm-eval:arabicmmlu_stem\n", encoding="utf-8")
    for seed, name in enumerate("ab"):
        build_tiny_causal_lm(tmp_path / name, seed=seed)
        run = cultureval("eval", f"./{name}", "tasks.txt", "--data", root, "--output-dir", f"out-{name}")
        assert run.returncode == 0 and "have no data" in run.stderr, run.stderr[-3000:]
    record = results_of(tmp_path / "out-a")["cultureval"]["tasks"]
    assert set(record) == {
        f"lm-eval:arabicmmlu_{name}|0" for name in ("biology_high_school", "computer_science_university")
    }
    told = cultureval("compare", "out-a", "out-b", "--json")
    assert told.returncode == 0, told.stderr[-3000:]
    rows = {row["name"]: row for row in json.loads(told.stdout)["differences"]}
    (group,) = (row for name, row in rows.items() if "arabicmmlu_stem" in name)
    sums = [rows[task]["first_score"] * rows[task]["first_n"] for task in record]
    assert group["first_n"] == 7 and group["first_score"] == pytest.approx(
        sum(sums) / 7
    )  # weighted by rows, as its YAML
    told = cultureval("leaderboard", "out-a", "out-b", "--output-dir", "board")
    assert told.returncode == 0 and "2 models, 2 runs" in told.stdout, told.stderr[-3000:]
    assert "arabicmmlu_stem" in (tmp_path / "board" / "leaderboard.json").read_text(encoding="utf-8")
