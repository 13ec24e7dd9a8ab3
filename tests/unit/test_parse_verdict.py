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

# (output, prompt, language, strict, tolerant, lenient)
CASES = [
    ("The final answer is: True", "tf", "en", True, True, True),
    ("  the FINAL answer\n is : < False > . ", "tf", "en", False, False, False),
    ("‘The final answer is: **True**.’", "tf", "en", True, True, True),
    ("True", "tf", "en", None, True, True),
    ("**False**.", "reason_first", "en", None, False, False),
    ("<صحيح>", "answer_reason", "msa", None, True, True),
    ("True", "tf", "msa", None, True, True),
    ("صحیح", "tf", "msa", None, True, True),  # Persian ye
    ("True", "one_word", "msa", True, True, True),
    ("False.", "one_word", "en", False, False, False),
    ("خطأ", "one_word", "msa", None, False, False),
    ("The answer is True", "one_word", "en", None, None, None),
    ("The final answer is: True/False", "tf", "en", None, None, None),
    ("The final answer is: <True/False>", "tf", "en", None, None, None),
    ("The final answer is: True or False", "tf", "en", None, None, None),
    ("The final answer is: not True", "tf", "en", None, None, None),
    ("The final answer is: Untrue", "tf", "en", None, None, None),
    ("The final answer is: True. The final answer is: False.", "tf", "en", None, None, None),
    ("The final answer is: True. So the final answer is: True.", "tf", "en", None, None, True),
    ("The final answer is: True False", "tf", "en", None, None, None),
    *(
        (text, "tf", "en", None, None, None)
        for text in ("True, False", "True - not sure, could be False", "True / False")
    ),
    *((text, "tf", "msa", None, None, None) for text in ("صحيح وخطأ", "صحيح جزئيا", "صحيح، خطأ", "صحيح أو خطأ")),
    *(
        (f"Well. {EN}: True{rest}", "tf", "en", None, None, None)
        for rest in (", False", " - not sure, could be False", ", partly", " and false", ". False", " or maybe not")
    ),
    *(
        (f"نعم. {AR}: صحيح{rest}", "tf", "arz", None, None, None)
        for rest in (" وخطأ", " جزئيًّا", "، لكن غير صحيح", ". غلط")
    ),
    # taken back without another verdict, or conditional; a ground that only looks so takes nothing back
    *(
        (f"{EN}: {text}", prompt, "en", None, None, None)
        for prompt in ("tf", "answer_reason")
        for text in (
            "True. Wait, that is wrong.",
            "True. I take that back.",
            "True. I was wrong.",
            "True. The statement is incorrect.",
            "True. That's not right.",
            "True. On reflection, it isn't true.",
            "True. Correction: it is not.",
            "True. No.",
            "False. Actually it is correct.",
            "False. Wait, that's wrong.",
            "True - just kidding",
            "True if the cat is black.",
            "False, but only if it rains.",
        )
    ),
    *(
        (f"{AR}: صحيح{rest}", "tf", "arz", None, None, None)
        for rest in (". لا، هذا ليس صحيحا.", ". أتراجع عن ذلك", ". العبارة ليست دقيقة", " إذا كانت القطة سوداء")
    ),
    *(
        (f"Well. {EN}: {text}", "tf", "en", None, None, text.startswith("True"))
        for text in (
            "True. The man is not wrong to sit there.",
            "True. It is wrong to say that no cat is there.",
            "False. The statement is incorrect.",
            "False. No.",
            "True. That is correct.",
            "True. I was wrong at first. So the final answer is: True.",
        )
    ),
    # corrected in words that say so
    *(
        (f"{EN}: True{rest}", "tf", "en", None, None, False)
        for rest in (
            ". Actually, False.",
            ".\n\nWait, no. It is False.",
            "! Sorry, I mean false",
            ". Correction: the correct answer is False.",
            ". On second thought, the statement is false.",
            ". Scratch that, false.",
            ", no wait, false",
            ". I was wrong. The final answer is: False.",
        )
    ),
    *(
        (f"{EN}: True{rest}", "tf", "en", None, None, None)
        for rest in (" ❌", ". But it is false.", ". The statement is false.", ". It is false that a dome is there.")
        + (". There is no lamp. The statement is false.", ". People wait for a bus. It is false.")
    ),
    *(
        (f"{AR}: صحيح{rest}", "tf", "msa", None, None, False)
        for rest in (". في الواقع، خطأ.", ". لا، الإجابة الصحيحة هي خطأ", "! عفوا، أقصد: غير صحيح")
    ),
    (f"{EN}: True. Actually, False.", "answer_reason", "en", None, None, False),
    (f"{EN}: True. Scratch that, false.", "answer_reason", "en", None, None, False),
    (f"{EN}: True. False. Sorry, true.", "tf", "en", None, None, None),
    (f"{EN}: True. Actually, False. No, true after all: True.", "tf", "en", None, None, True),
    (f"{AR}: صحيح. العبارة خطأ.", "tf", "msa", None, None, None),
    (f"Thinking Steps: a dome. {EN} True. Wait, no: False.", "reason_first", "en", None, None, False),
    (f"{EN}: True. Actually, the dome can be seen.", "tf", "en", None, None, True),
    (f"{EN}: True. It is not false.", "tf", "en", None, None, True),
    # set off in other ways
    (r"\boxed{True}", "tf", "en", None, None, True),
    (r"So it is $\boxed{\text{False}}$.", "tf", "en", None, None, False),
    (r"The final answer is: \boxed{True}", "tf", "en", None, None, True),
    (r"\boxed{صحيح}", "tf", "msa", None, None, True),
    (r"\boxed{True} or \boxed{False}", "tf", "en", None, None, None),
    (r"\boxed{True/False}", "tf", "en", None, None, None),
    ("[True]", "tf", "en", None, True, True),
    ("The final answer is: [True]", "tf", "en", None, None, True),
    ("The final answer is: {False}", "tf", "en", None, None, False),
    ("[True, False]", "tf", "en", None, None, None),
    ("Final answer: True", "tf", "en", None, None, True),
    ("I see a dome.\n\n**Final Answer:** False", "reason_first", "en", None, None, False),
    ("Final answer: not True", "tf", "en", None, None, None),
    ("Final answer: True or False", "tf", "en", None, None, None),
    ("الجواب النهائي: خطأ", "tf", "msa", None, None, False),
    ("True ✅", "tf", "en", None, None, True),
    ("صحيح ✔️", "tf", "msa", None, None, True),
    ("False ❌", "tf", "en", None, None, False),
    ("The final answer is: False. ❌", "tf", "en", None, None, False),
    ("True ❌", "tf", "en", None, None, None),
    ("False ✅", "tf", "en", None, None, False),
    (f"{EN}: False ✔️", "tf", "en", None, None, False),
    ("خطأ ✅", "tf", "msa", None, None, False),
    ("✅", "tf", "en", None, None, None),
    ("Well. The final answer is: True because a false one would be red", "tf", "en", None, None, True),
    ("I think so. The final answer is: True", "tf", "en", None, None, True),
    ("The final answer is True", "tf", "en", None, None, True),
    ("The final answer is: صحيح", "tf", "en", None, None, None),
    ("", "tf", "en", None, None, None),
    (f"{AR}: صحيح", "tf", "msa", True, True, True),
    (f"{AR}: خطأ.", "tf", "msa", False, False, False),
    ("الاجابه النهائيه هى: خطا", "tf", "msa", False, False, False),
    ("\u200f\u202bالإِجَابَةُ النِّهائيّة هي: صحـــيح\u202c", "tf", "msa", True, True, True),
    (f"«{AR}: `صحيح`»", "tf", "msa", True, True, True),
    ("ﺍﻹﺟﺎﺑﺔ ﺍﻟﻨﻬﺎﺋﻴﺔ ﻫﻲ: ﺻﺤﻴﺢ", "tf", "msa", True, True, True),  # presentation forms
    (f"{AR}: <صحيح/خطأ>", "tf", "msa", None, None, None),
    (f"{AR}: صحيح أم خطأ", "tf", "msa", None, None, None),
    (f"{AR}: غلط", "tf", "msa", None, False, False),
    (f"{AR}: صح", "tf", "msa", None, True, True),
    (f"{AR}: غلط", "tf", "arz", False, False, False),
    (f"{AR}: صح", "tf", "ajp", True, True, True),
    (f"{AR}: خاطئة", "tf", "ajp", None, False, False),
    (f"{AR}: صحيحة", "tf", "ajp", None, True, True),
    (f"{AR}: غير صحيح", "tf", "msa", None, False, False),
    (f"{AR}: غير صحيحة.", "tf", "arz", None, False, False),
    (f"{AR}: ليس صحيح", "tf", "msa", None, None, None),
    (f"{AR}: False", "tf", "msa", None, False, False),
    ("١. صحيح", "tf", "msa", None, None, None),
    (f"{AR}: ١", "tf", "msa", None, None, None),
    ("غلط", "tf", "arz", None, False, False),
    ("The final answer is: True. Evidence: a ١٢ m minaret", "answer_reason", "en", True, True, True),
    ("The final answer is: False, Evidence: none", "answer_reason", "en", False, False, False),
    ("The final answer is: True Evidence: x", "answer_reason", "en", True, True, True),
    (
        "The final answer is: True.\n\n**Evidence:**\nit is tall. It isn't false.",
        "answer_reason",
        "en",
        True,
        True,
        True,
    ),
    ("The final answer is: True. Evidence:", "answer_reason", "en", None, True, True),
    ("The final answer is: True.", "answer_reason", "en", None, True, True),
    ("The final answer is: False. The minaret is missing.", "answer_reason", "en", None, False, False),
    ("The final answer is: True. The final answer is: False.", "answer_reason", "en", None, None, None),
    ("The final answer is: True. Evidence: x\nThe final answer is: False", "answer_reason", "en", True, True, True),
    ("The final answer is: True. False. Evidence: x", "answer_reason", "en", None, None, None),
    ("Evidence: x. The final answer is: True", "answer_reason", "en", None, None, True),
    ("The final answer is: <True/False>. Evidence: <your evidence>", "answer_reason", "en", None, None, None),
    (f"{AR}: خطأ، {EVIDENCE}", "answer_reason", "msa", False, False, False),
    (f"{AR}: غلط. {EVIDENCE}", "answer_reason", "msa", None, False, False),
    (f"{AR}: غلط. {EVIDENCE}", "answer_reason", "ajp", False, False, False),
    ("Thinking Steps: I see a dome. The final answer is True", "reason_first", "en", True, True, True),
    ("Thinking Steps: is it true? No. The final answer is: False.", "reason_first", "en", False, False, False),
    (
        "Thinking Steps: x. The final answer is True. Wait. The final answer is False",
        "reason_first",
        "en",
        *[False] * 3,
    ),
    ("Reasoning: I see a dome. The final answer is: False.", "reason_first", "en", None, False, False),
    ("The final answer is True", "reason_first", "en", None, True, True),
    ("Thinking Steps: The final answer is True", "reason_first", "en", None, True, True),
    ("Thinking Steps: x. The final answer is True because of y", "reason_first", "en", None, None, True),
    ("Thinking Steps: <thinking_steps>’. The final answer is <True/False>’", "reason_first", "en", None, None, None),
    ("Thinking Steps: it is true that ... I stop here", "reason_first", "en", None, None, None),
    (f"خطوات التفكير: أرى قبة. {AR} صحيح", "reason_first", "msa", True, True, True),
    (f"خطوات التفكير: هذا غير صحيح تماما. {AR} خطأ.", "reason_first", "msa", False, False, False),
    (f"التفكير: أرى قبة. {AR}: غلط", "reason_first", "arz", None, False, False),
]


@pytest.mark.parametrize(("output", "prompt", "language", "strict", "tolerant", "lenient"), CASES)
def test_what_each_profile_reads(output, prompt, language, strict, tolerant, lenient):
    read = [parse_verdict(output, prompt, language, profile) for profile in ("strict", "tolerant", "lenient")]
    assert read == [strict, tolerant, lenient]
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
    strict, tolerant, lenient = (parse_verdict(output, prompt, language, p) for p in ("strict", "tolerant", "lenient"))
    assert strict is None or tolerant is strict  # what has the format asked for is read the same by all
    assert tolerant is None or lenient is tolerant
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
