"""Visual question answering by string matching: CVLUE's official scorers, and VQA v2's soft accuracy."""

import re
import string
from collections.abc import Sequence
from typing import Literal

Mode = Literal["loose", "strict", "exact"]

YES = frozenset({"是", "是的", "有", "有的", "一样", "一致", "相同"})
NO = frozenset({"否", "不是", "没有", "不一样", "不一致", "不相同"})
# Words that make a longer reply with a word of YES count as a denial.
DENIALS = (*NO, "不")


def cvlue_correct(prediction: str | None, gold: str, mode: Mode = "loose") -> bool:
    """Whether CVLUE's official scorer counts an answer as correct; each question has one gold answer.

    Modes (verified against the released scorer, evaluation/eval_vqa.py, of December 2024):
    - "exact": the two strings are equal, as in the scorer of the 2024 contest.
    - "strict": equal after `normalize_answer`, or the gold answer is one of the prediction's runs of digits (gold "2":
      "2个" is correct, "12" and "两个" are not). A prediction that ends in a Chinese question mark or 吗 is wrong.
    - "loose", the released scorer's default: also correct if both are words of yes (any two of 是, 有, 一样, ...) or
      both are words of no. Also correct: a prediction that contains a gold word of no, or a gold word of yes without a
      denial.

    Args:
        prediction: The answer; None, without an answer, is wrong (the official scorer stops there).
        mode: "loose", "strict" or "exact".

    Raises:
        ValueError: An unknown mode.
    """
    if mode not in ("loose", "strict", "exact"):
        raise ValueError(f"the mode {mode!r} is not one of 'loose', 'strict', 'exact'")
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
    """Lower case; strips whitespace, then ASCII punctuation, then Chinese full stops at both ends."""
    return text.lower().strip().strip(string.punctuation).strip("。")


def _same_polarity(answer: str, gold: str) -> bool:
    if gold in YES:
        return answer in YES or (gold in answer and not any(word in answer for word in DENIALS))
    return gold in NO and (answer in NO or gold in answer)


def soft_accuracy(prediction: str, answers: Sequence[str]) -> float:
    """VQA v2's accuracy: the mean, over each answer left out, of min(1, matches among the others / 3).

    Goyal et al. (CVPR 2017) and the challenge's evaluation: line breaks and tabs become spaces; if the answers
    differ, both sides are normalised by `normalize_vqa_v2`; if all are the same, they are compared unchanged.

    Args:
        answers: The annotators' answers, ten in VQA v2.

    Returns:
        0 to 1.

    Raises:
        ValueError: No answers.
    """
    if not answers:
        raise ValueError("there is no answer to compare with")
    reply, golds = _one_line(prediction), [_one_line(answer) for answer in answers]
    if len(set(golds)) > 1:
        reply, golds = normalize_vqa_v2(reply), [normalize_vqa_v2(answer) for answer in golds]
    matches = [answer == reply for answer in golds]
    total = sum(matches)
    return sum(min(1.0, (total - match) / 3) for match in matches) / len(matches)


def normalize_vqa_v2(text: str) -> str:
    """VQA v2's normal form: no punctuation, lower case, digits for number words, no articles, apostrophes restored."""
    found_comma_number = re.search(r"\d,\d", text) is not None
    out = text
    for mark in _PUNCTUATION:
        next_to_space = f"{mark} " in text or f" {mark}" in text
        out = out.replace(mark, "" if next_to_space or found_comma_number else " ")
    out = re.sub(r"(?!<=\d)\.(?!\d)", "", out, count=_MOST_FULL_STOPS)
    words = [_NUMBERS.get(word, word) for word in out.lower().split()]
    return " ".join(CONTRACTIONS.get(word, word) for word in words if word not in ("a", "an", "the"))


def _one_line(text: str) -> str:
    return text.replace("\n", " ").replace("\t", " ").strip()


_MOST_FULL_STOPS = 32  # the official scorer passes re.UNICODE, which is 32, in the place of `count`
_PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
_NUMBERS = {
    word: str(number) for number, word in enumerate("zero one two three four five six seven eight nine ten".split())
}
_NUMBERS["none"] = "0"
# The official list, with its entries that never match (capitals: words are in lower case) or are the wrong way round.
_CONTRACTION_PAIRS = """
aint:ain't arent:aren't cant:can't couldve:could've couldnt:couldn't couldn'tve:couldn't've couldnt've:couldn't've
didnt:didn't doesnt:doesn't dont:don't hadnt:hadn't hadnt've:hadn't've hadn'tve:hadn't've hasnt:hasn't
havent:haven't hed:he'd hed've:he'd've he'dve:he'd've hes:he's howd:how'd howll:how'll hows:how's Id've:I'd've
I'dve:I'd've Im:I'm Ive:I've isnt:isn't itd:it'd itd've:it'd've it'dve:it'd've itll:it'll let's:let's maam:ma'am
mightnt:mightn't mightnt've:mightn't've mightn'tve:mightn't've mightve:might've mustnt:mustn't mustve:must've
neednt:needn't notve:not've oclock:o'clock oughtnt:oughtn't ow's'at:'ow's'at 'ows'at:'ow's'at 'ow'sat:'ow's'at
shant:shan't shed've:she'd've she'dve:she'd've she's:she's shouldve:should've shouldnt:shouldn't
shouldnt've:shouldn't've shouldn'tve:shouldn't've somebody'd:somebodyd somebodyd've:somebody'd've
somebody'dve:somebody'd've somebodyll:somebody'll somebodys:somebody's someoned:someone'd someoned've:someone'd've
someone'dve:someone'd've someonell:someone'll someones:someone's somethingd:something'd somethingd've:something'd've
something'dve:something'd've somethingll:something'll thats:that's thered:there'd thered've:there'd've
there'dve:there'd've therere:there're theres:there's theyd:they'd theyd've:they'd've they'dve:they'd've
theyll:they'll theyre:they're theyve:they've twas:'twas wasnt:wasn't wed've:we'd've we'dve:we'd've weve:we've
werent:weren't whatll:what'll whatre:what're whats:what's whatve:what've whens:when's whered:where'd wheres:where's
whereve:where've whod:who'd whod've:who'd've who'dve:who'd've wholl:who'll whos:who's whove:who've whyll:why'll
whyre:why're whys:why's wont:won't wouldve:would've wouldnt:wouldn't wouldnt've:wouldn't've wouldn'tve:wouldn't've
yall:y'all yall'll:y'all'll y'allll:y'all'll yall'd've:y'all'd've y'alld've:y'all'd've y'all'dve:y'all'd've
youd:you'd youd've:you'd've you'dve:you'd've youll:you'll youre:you're youve:you've"""
CONTRACTIONS = dict(pair.split(":") for pair in _CONTRACTION_PAIRS.split())
