"""AynVQA's joint form: which of three statements, shown together, the image supports.

The prompt and the reading are ours. Exactly one statement is true, so that a model that knows it cannot accept a false
one beside the true one: CFHR is 0 by construction, and these scores are not comparable with those of independent
verdicts (overview of ImageEval 2026, arXiv 2608.30475).
"""

import re
import unicodedata

_NUMBER = re.compile(r"(?<![\w.])([1-3])(?!\w|\.\d)")


def chosen_statement(text: str) -> int | None:
    """The place of the statement that an output chooses, from 0.

    Args:
        text: The output. Digits of any script count; prose around the number does too, as long as no second one of
            the three numbers is in it ("2", "Statement 2.", "الجواب: ٢").

    Returns:
        0, 1 or 2; None without a number from 1 to 3, or with different ones.
    """
    plain = "".join(_digit(letter) for letter in unicodedata.normalize("NFKC", text))
    found = {int(number) for number in _NUMBER.findall(plain)}
    return found.pop() - 1 if len(found) == 1 else None


def _digit(letter: str) -> str:
    value = unicodedata.digit(letter, None)
    return letter if value is None else str(value)
