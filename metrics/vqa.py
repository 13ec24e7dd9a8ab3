"""Visual question answering by comparison of strings: CVLUE's official scorers, and VQA v2's soft accuracy."""

import re
import string
from typing import Literal

Mode = Literal["loose", "strict", "exact"]

YES = frozenset({"是", "是的", "有", "有的", "一样", "一致", "相同"})
NO = frozenset({"否", "不是", "没有", "不一样", "不一致", "不相同"})
# What makes a longer reply that holds a word of YES count as a denial.
DENIALS = (*NO, "不")


def cvlue_correct(prediction: str | None, gold: str, mode: Mode = "loose") -> bool:
    """Whether CVLUE's official scorer takes an answer as right; each question has one gold answer.

    Modes (verified against the released scorer, evaluation/eval_vqa.py, of December 2024):
    - "exact": the two strings are equal, as the scorer of the 2024 contest has it.
    - "strict": equal after `normalize_answer`, or the gold answer is one of the prediction's runs of digits (gold "2":
      "2个" is right, "12" and "两个" are not). A prediction that ends in a Chinese question mark or 吗 is wrong.
    - "loose", the released scorer's default: or both are words of yes (any two of 是, 有, 一样, ...), both are words of
      no, or the prediction holds a gold word of yes and no denial, or holds a gold word of no.

    Args:
        prediction: The answer; None, where there is none, is wrong (the official scorer stops there).
        gold: The gold answer.
        mode: Which of the three.

    Raises:
        ValueError: An unknown mode.
    """
    if mode not in ("loose", "strict", "exact"):
        raise ValueError(f"the mode {mode!r} is none of 'loose', 'strict', 'exact'")
    if prediction is None:
        return False
    if mode == "exact":
        return prediction == gold
    answer = normalize_answer(prediction)
    if answer.endswith(("？", "吗")):
        return False
    if answer == normalize_answer(gold) or gold in re.findall(r"\d+", prediction):
        return True
    return mode == "loose" and _same_polarity(answer, gold)


def normalize_answer(text: str) -> str:
    """Lower case, without white space, then ASCII punctuation, then Chinese full stops at both ends."""
    return text.lower().strip().strip(string.punctuation).strip("。")


def _same_polarity(answer: str, gold: str) -> bool:
    if gold in YES:
        return answer in YES or (gold in answer and not any(word in answer for word in DENIALS))
    return gold in NO and (answer in NO or gold in answer)
