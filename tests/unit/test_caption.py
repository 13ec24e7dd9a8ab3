import numpy as np
import pytest
from caption_scores import NAMES, corpus_scores, sample_scores
from hypothesis import given, settings
from hypothesis import strategies as st

from cultureval.metrics.jeem.caption import (
    longest_common_subsequence,
    tokenize,
)

CAPTIONS = [
    "رجل عجوز يجلس أمام دكان صغير في السوق",
    "طفلة تحمل سلة خبز وتمشي بين البيوت البيضاء",
    "قارب خشبي يعبر النهر وقت الغروب",
]


def test_identical_captions_reach_the_top_of_every_scale():
    """CIDEr's 10 raw is 1,000 on the paper's scale."""
    scores = corpus_scores(CAPTIONS, CAPTIONS)
    assert scores == pytest.approx({name: 1000 if name == "cider" else 100 for name in NAMES})
    for name, values in sample_scores(CAPTIONS, [[caption] for caption in CAPTIONS]).items():
        np.testing.assert_allclose(values, scores[name])


def test_normalisation_folds_spelling_and_drops_marks_and_raw_does_not():
    written, plain = "ذهبَتْ أُمّي، إلى المدرســة على مهل!", "ذهبت امي الي المدرسه علي مهل"
    assert tokenize(written) == plain.split()
    assert tokenize(written, normalize=False) == written.split()
    assert corpus_scores([written] * 2, [plain] * 2)["bleu_4"] == pytest.approx(100)
    assert corpus_scores([written] * 2, [plain] * 2, normalize=False)["bleu_1"] < 20
    # Presentation forms, digits, Latin and emoji stay words; Chinese is one word between spaces.
    assert tokenize("ﻻ ٣ MBC 😀 你好。") == ["لا", "٣", "MBC", "😀", "你好"]


MARKS = [*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF]


@pytest.mark.parametrize("normalize", [True, False])
def test_marks_that_nobody_sees_make_no_token_and_change_no_score(normalize):
    marked = [
        f"{mark} ".join(f"{mark}{caption}{mark}".split(" ")) + f" {mark}"
        for mark in map(chr, MARKS)
        for caption in CAPTIONS
    ]
    plain = CAPTIONS * len(MARKS)
    assert [tokenize(text, normalize) for text in marked] == [tokenize(text, normalize) for text in plain]
    for scores in (corpus_scores(marked, plain, normalize), corpus_scores(plain, marked, normalize)):
        assert scores == corpus_scores(plain, plain, normalize)


def test_an_empty_or_foreign_caption_scores_nothing():
    scores = sample_scores(["", "a dog runs", *CAPTIONS[2:]], CAPTIONS)
    for values in scores.values():
        np.testing.assert_allclose(values[:2], 0, atol=1e-3)
        assert values[2] > 99


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [([], [], "no caption"), (["أ"], [], "1 predictions but 0"), (["أ", "ب"], ["أ", []], "item 1 has no reference")],
)
def test_unusable_input_is_refused(predictions, references, message):
    with pytest.raises(ValueError, match=message):
        corpus_scores(predictions, references)


def quadratic_subsequence(first, second):
    row = [0] * (len(second) + 1)
    for token in first:
        new = [0]
        for place, other in enumerate(second):
            new.append(row[place] + 1 if token == other else max(row[place + 1], new[place]))
        row = new
    return row[-1]


words = st.lists(st.sampled_from("ابتثجح"), max_size=80)


@given(words, words)
def test_subsequence_equals_the_textbook_recurrence(first, second):
    assert longest_common_subsequence(first, second) == quadratic_subsequence(first, second)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=40), st.text(max_size=40)), min_size=1, max_size=4), st.booleans())
def test_any_text_scores_within_range(pairs, normalize):
    predictions, references = zip(*pairs, strict=True)
    for scores in (
        corpus_scores(predictions, references, normalize),
        sample_scores(predictions, references, normalize),
    ):
        for name, values in scores.items():
            limit = 1000 if name == "cider" else 100
            assert np.isfinite(values).all()
            assert (np.asarray(values) >= 0).all() and (np.asarray(values) <= limit + 1e-6).all()
