"""The refinement of code prompts: nothing counts but a change of the docstring's Arabic."""

import csv
import dataclasses
import gzip
import io
import json
import random
import re
from pathlib import Path

import pytest

from cultureval.audit.code_refinement import TEMPLATE, read_proposal, read_reviewed, refined_prompt
from cultureval.metrics.judges.asking import ModelReply
from cultureval.runtime.errors import CulturevalError

REAL = Path(__file__).parents[2].parent / "shared/data/evalplus_arabic"
PAPER = Path(__file__).parents[2].parent / "shared/papers/004_5660a41d0ad6e8cb.txt"
FUNCTION = '''from typing import List


def zakat(amounts: List[int], nisab: int = 5) -> int:
    """ اذا بلغ المجموع `nisab` أعد ربع العشر ل 40 جملا، (من `amounts`).
    وإلا فأعد ٠ أو 0.
    النسبة ٣٫٥ من [1، 2].

    >>> zakat(["شاة"], 5)
    'شاة'
    """

'''


def reply_of(prompt, check="No", style="csv"):
    cell = io.StringIO()
    csv.writer(cell).writerow([prompt.strip(), check])
    styles = {
        "csv": lambda: f"Fixed,Human Check\n{cell.getvalue()}",
        "bare": lambda: f"{prompt.strip()}\n,{check}",
        "quotes not doubled": lambda: f'Fixed,Human Check\n"{prompt.strip()}","{check}"',
        "fenced": lambda: f"```csv\nFixed,Human Check\n{cell.getvalue()}\n```",
        "labelled": lambda: f"Fixed:\n{prompt.strip()}\n\nHuman Check: {check}",
    }
    return styles[style]()


def outcome(original, text):
    return refined_prompt("HumanEval/1", original, ModelReply("HumanEval/1", read_proposal(text)))


@pytest.mark.parametrize("style", ["csv", "bare", "quotes not doubled", "fenced", "labelled"])
def test_changed_arabic_counts_in_every_way_of_writing_the_columns(style):
    edited = FUNCTION.replace("اذا بلغ المجموع", "إذا بلغَ مجموعُ المبالغ").replace("وإلا فأعد", "وإلا، أعد")
    assert outcome(FUNCTION, reply_of(FUNCTION, style=style)).outcome == "unchanged"
    found = outcome(FUNCTION, reply_of(edited, style=style))
    assert (found.outcome, found.prompt, found.reason) == ("modified", edited, "")
    asked = outcome(FUNCTION, reply_of(edited, "yes", style))
    assert (asked.outcome, asked.prompt, asked.proposed, asked.reason) == ("review", FUNCTION, edited, "human_check")


@pytest.mark.parametrize(
    "change",
    [
        ("nisab: int = 5", "nisab: int = 6"),
        ("def zakat(", "def sadaqa("),
        ("-> int:", "->int:"),
        ("`nisab`", "`nisap`"),
        ("`nisab`", "النصاب"),
        ("40 جملا", "41 جملا"),
        ("zakat([", "zakat( ["),
        ("    'شاة'", "    'ناقة'"),
        ('    """\n', '    """\n    import os\n'),
        ('    """\n', '    """  # شرح\n'),
        ("0.\n", '0."""\n    """و\n'),
    ],
)
def test_a_change_of_code_numbers_or_examples_goes_to_review_with_the_sources_prompt(change):
    edited = FUNCTION.replace(*change)
    assert edited != FUNCTION
    found = outcome(FUNCTION, reply_of(edited))
    assert (found.outcome, found.prompt, found.reason) == ("review", FUNCTION, "not_only_arabic") and found.detail


@pytest.mark.parametrize("text", ["", "Yes", "I cannot do this.", "Fixed,Human Check\n"])
def test_replies_without_the_columns_are_refused(text):
    with pytest.raises(Exception, match="the reply"):
        read_proposal(text)


def test_people_decide_and_are_held_to_the_same_rule(tmp_path):
    loose = FUNCTION.replace("ل 40 جملا، (من `amounts`).", "(من `amounts`) لـ40 جملًا.")
    waiting = outcome(FUNCTION, reply_of(loose, "yes"))
    other = dataclasses.replace(waiting, task_id="HumanEval/9")

    def saved(name, *prompts):
        lines = [json.dumps(dataclasses.asdict(prompt)) for prompt in prompts]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")

    saved("humaneval", waiting, other)
    saved("mbpp", dataclasses.replace(waiting, task_id="Mbpp/2"))
    row = {"task_id": "HumanEval/1", "proposed": loose.replace("\n", "\r\n"), "verdict": "Accept"}

    def reviewed(*rows):
        with (tmp_path / "review.csv").open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, row)
            writer.writeheader()
            writer.writerows(rows)
        files = {name: tmp_path / f"{name}.jsonl" for name in ("humaneval", "mbpp")}
        found = read_reviewed(tmp_path / "review.csv", files)
        assert found.keys() == {"humaneval"}  # the reviewed data set only
        return found["humaneval"]

    assert reviewed(row)[0].prompt == loose
    assert reviewed(row | {"verdict": "keep"})[0].outcome == "unchanged"
    decided = reviewed(row)
    saved("humaneval", *decided)  # and the same table, filled in further, is applied again
    more = row | {"task_id": "HumanEval/9", "verdict": "keep"}
    assert reviewed(row | {"verdict": ""}, more)[0] == decided[0] and reviewed(row, more)[1].outcome == "unchanged"
    assert reviewed(more | {"task_id": "HumanEval/1"})[0].outcome == "unchanged"  # the last verdict counts
    for rows, message in (
        ([row | {"proposed": loose.replace("zakat", "z")}], "accepted prompt of HumanEval/1 cannot be used"),
        ([row | {"verdict": "yes"}], "write accept or keep"),
        ([row | {"task_id": "HumanEval/2"}], "no prompt to review"),
        ([row | {"verdict": ""}], "there are no verdicts"),
        ([row, row], "twice"),
    ):
        with pytest.raises(CulturevalError, match=message):
            reviewed(*rows)


@pytest.mark.skipif(not REAL.is_dir(), reason="3LM's prompts are not on this machine")
@pytest.mark.parametrize(("file", "count"), [("HumanEvalPlus", 164), ("MBPPPlus", 378)])
def test_on_all_real_prompts_arabic_may_change_and_nothing_else(file, count):
    """For each prompt: itself, one word of Arabic changed, and one other character of it changed."""
    with gzip.open(REAL / f"{file}.jsonl.gz", "rt", encoding="utf-8") as lines:
        prompts = [json.loads(line)["prompt"] for line in lines]
    assert len(prompts) == count
    chance, changed = random.Random(0), 0
    for prompt in prompts:
        for style in ("csv", "bare", "quotes not doubled"):
            assert outcome(prompt, reply_of(prompt, style=style)).outcome == "unchanged"
        before, quotes = re.split(r">>>|assert ", prompt)[0], '"""' if '"""' in prompt else "'''"
        before = re.sub(r"#.*", lambda comment: "-" * len(comment[0]), before)  # a comment is code
        words = [word for word in re.finditer(r"[\u0621-\u064a]{3,}", before) if quotes in before[: word.start()]]
        if words:
            word = chance.choice(words)
            edited = f"{prompt[: word.start()]}كلمة{prompt[word.end() :]}"
            assert outcome(prompt, reply_of(edited)).outcome == "modified", edited
            changed += 1
        place = chance.choice([place for place, letter in enumerate(prompt) if letter in "abcdefghijklmnop0123456789"])
        spoilt = f"{prompt[:place]}q{prompt[place + 1 :]}"
        assert outcome(prompt, reply_of(spoilt)).outcome == "review", spoilt
    assert changed > 0.97 * count, changed


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper's text is not on this machine")
def test_the_prompt_is_the_papers_word_for_word():
    text = PAPER.read_text(encoding="utf-8").partition("3LM Code Evaluation Prompt")[2].partition("<|")[0]
    text = text.replace("IINO n", '"No"').replace("{full_function_code}", "$full_function_code")

    def words(some):
        return re.findall(r"\S+", re.sub(r"(?m)^[e¢*•] ", "", some))

    assert words(text) == words(TEMPLATE.file_text)
