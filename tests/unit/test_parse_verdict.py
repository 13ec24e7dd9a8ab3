"""Verdicts of outputs: what each profile reads, what none may read, and that nothing takes long."""

from typing import get_args

import pytest
from growth import grows_slowly
from hypothesis import given
from hypothesis import strategies as st

from cultureval.metrics.m2cqa.names import Profile
from cultureval.metrics.m2cqa.statement_verdicts import Prompt, parse_verdict

AR = "الإجابة النهائية هي"
EN = "The final answer is"
EVIDENCE = "الدليل: المئذنة ظاهرة"

# (output, prompt, language, strict, lenient)
CASES = [
    ("The final answer is: True", "tf", "en", True, True),
    ("  the FINAL answer\n is : < False > . ", "tf", "en", False, False),
    ("‘The final answer is: **True**.’", "tf", "en", True, True),
    ("True", "tf", "en", None, True),
    ("**False**.", "reason_first", "en", None, False),
    ("<صحيح>", "answer_reason", "msa", None, True),
    ("صحیح", "tf", "msa", None, True),  # Persian ye
    ("True", "one_word", "msa", True, True),
    ("خطأ", "one_word", "msa", None, False),
    ("The answer is True", "one_word", "en", None, None),
    ("The final answer is: <True/False>", "tf", "en", None, None),
    ("The final answer is: True or False", "tf", "en", None, None),
    ("The final answer is: not True", "tf", "en", None, None),
    ("The final answer is: Untrue", "tf", "en", None, None),
    ("The final answer is: True. The final answer is: False.", "tf", "en", None, None),
    ("The final answer is: True. So the final answer is: True.", "tf", "en", None, True),
    ("True - not sure, could be False", "tf", "en", None, None),
    ("صحيح وخطأ", "tf", "msa", None, None),
    (r"So it is $\boxed{\text{False}}$.", "tf", "en", None, False),
    (r"\boxed{True/False}", "tf", "en", None, None),
    ("I see a dome.\n\n**Final Answer:** False", "reason_first", "en", None, False),
    ("The final answer is: صحيح", "tf", "msa", None, True),
    ("", "tf", "en", None, None),
    (f"{AR}: صحيح", "tf", "msa", True, True),
    ("الاجابه النهائيه هى: خطا", "tf", "msa", False, False),
    ("\u200f\u202bالإِجَابَةُ النِّهائيّة هي: صحـــيح\u202c", "tf", "msa", True, True),
    ("ﺍﻹﺟﺎﺑﺔ ﺍﻟﻨﻬﺎﺋﻴﺔ ﻫﻲ: ﺻﺤﻴﺢ", "tf", "msa", True, True),  # presentation forms
    (f"{AR}: صحيح أم خطأ", "tf", "msa", None, None),
    (f"{AR}: غلط", "tf", "msa", None, False),
    (f"{AR}: غلط", "tf", "arz", False, False),
    (f"{AR}: صح", "tf", "ajp", True, True),
    (f"{AR}: غير صحيحة.", "tf", "arz", None, False),
    (f"{AR}: ليس صحيح", "tf", "msa", None, None),
    ("The final answer is: True. Evidence: a ١٢ m minaret", "answer_reason", "en", True, True),
    ("The final answer is: True.\n\n**Evidence:**\nit isn't false.", "answer_reason", "en", True, True),
    ("The final answer is: False. The minaret is missing.", "answer_reason", "en", None, False),
    ("The final answer is: True. Evidence: x\nThe final answer is: False", "answer_reason", "en", True, True),
    (f"{AR}: خطأ، {EVIDENCE}", "answer_reason", "msa", False, False),
    ("Thinking Steps: I see a dome. The final answer is True", "reason_first", "en", True, True),
    ("Thinking Steps: x. The final answer is True. The final answer is False", "reason_first", "en", False, False),
    ("Reasoning: I see a dome. The final answer is: False.", "reason_first", "en", None, False),
    ("Thinking Steps: it is true that ... I stop here", "reason_first", "en", None, None),
    (f"خطوات التفكير: هذا غير صحيح تماما. {AR} خطأ.", "reason_first", "msa", False, False),
]


@pytest.mark.parametrize(("output", "prompt", "language", "strict", "lenient"), CASES)
def test_what_each_profile_reads(output, prompt, language, strict, lenient):
    assert [parse_verdict(output, prompt, language, profile) for profile in ("strict", "lenient")] == [strict, lenient]
    assert parse_verdict(output, prompt, language) is strict


# As the shared task's scorer reads them, from the description of it: the first label word, its two quirks, abstentions.
ORGANISERS = [
    ("True", True),
    ("false.", False),
    ("Yes, it is not false", True),
    ("There is no lamp, so True", False),
    ("The statement is untrue", None),
    ("صحيح", True),
    ("غير صحيح", False),
    ("غير صحيحة تماما", False),
    ("العبارة خاطئة", False),
    ("هذا هو الخطأ", True),
    ("وصحيح", None),
    ("صح أم خطأ؟ خطأ", True),
    ("The final answer is: <True/False>", True),
    ("I cannot determine that; true", None),
    ("True, though I cannot tell", True),
    ("لا يمكن الجزم بأن العبارة صحيحة", None),
    ('The claim "true" is false', False),
    ("```\ntrue\n```\nfalse", False),
    ("", None),
]


@pytest.mark.parametrize(("output", "verdict"), ORGANISERS)
def test_the_organisers_profile_has_their_quirks(output, verdict):
    for prompt in ("tf", "reason_first", "one_word"):
        assert parse_verdict(output, prompt, "msa", "organisers") is verdict


def test_evidence_with_a_dangling_label_is_none_in_the_strict_profile_only():
    assert parse_verdict("The final answer is: True. Evidence:   ", "answer_reason", "en") is None


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(("a", "en"), "prompt 'a'"), (("tf", "ar"), "language 'ar'"), (("tf", "en", "loose"), "profile 'loose'")],
)
def test_unknown_names_are_refused(arguments, named):
    with pytest.raises(ValueError, match=named):
        parse_verdict("True", *arguments)


PIECES = st.sampled_from(
    [EN, AR, "Evidence:", "الدليل:", "Thinking Steps:", "خطوات التفكير:", ":", ".", "<", ">", "/", " ", "\n", "True"]
    + ["False", "صحيح", "خطأ", "غير", "صحيحة", "صح", "غلط", "\u200f", "*", "not", "أم", "٣", "x"]
)
OUTPUTS = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=12).map(" ".join), st.lists(PIECES).map("".join))


@given(OUTPUTS, st.sampled_from(get_args(Prompt)), st.sampled_from(["en", "msa", "ajp", "arz"]))
def test_profiles_and_noise(output, prompt, language):
    strict, lenient = (parse_verdict(output, prompt, language, profile) for profile in ("strict", "lenient"))
    assert strict is None or lenient is strict  # what has the format asked for is read the same by both
    noisy = "\ufeff" + output.replace(" ", " \u200f ").replace("ح", "حـ") + "\u061c"
    assert parse_verdict(noisy, prompt, language) is strict


HOSTILE = [
    "The final answer is " * 10_000,
    "The final answer is: True. " * 8_000,
    "Thinking Steps: " + "The final answer is True " * 8_000 + "?",
    "<" * 200_000,
    " \u200f" * 100_000,
    "The final answer is: True. " + "Evidence" * 24_000,
    "Thinking Steps: " + ": . < > " * 24_000,
    "صحيح " * 40_000,
    "The final answer is:" + " " * 200_000 + "True",
]


@pytest.mark.slow
@pytest.mark.parametrize("output", HOSTILE, ids=range(len(HOSTILE)))
def test_a_long_output_is_read_in_linear_time(output):
    def read(size):
        for prompt in get_args(Prompt):
            for profile in get_args(Profile):
                parse_verdict(output[:size], prompt, "en", profile)

    assert grows_slowly(read, len(output) // 4)
