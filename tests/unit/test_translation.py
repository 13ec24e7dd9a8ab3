"""Corpus scores of translations against sacrebleu's own, and the SentencePiece model without internet."""

import shutil
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import sacrebleu

from cultureval.metrics.alqasida import translation
from cultureval.metrics.alqasida.translation import (
    corpus_score,
    score_of_sums,
    sentence_scores,
    sentence_sums,
)
from cultureval.runtime.errors import CulturevalError
from cultureval.samples.tiny_models.classifiers import SENTENCES, build_tiny_sentencepiece

bleu, chrf, chrf_plus_plus, spbleu = (
    partial(corpus_score, name) for name in ("bleu", "chrf", "chrf_plus_plus", "spbleu")
)
REFERENCES = list(SENTENCES)
HYPOTHESES = [text.replace("ا", "أ", 1) + " نعم" for text in SENTENCES]


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    return build_tiny_sentencepiece(tmp_path_factory.mktemp("spm") / "flores.model")


def test_scores_are_sacrebleus():
    assert bleu(HYPOTHESES, REFERENCES) == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert chrf(HYPOTHESES, REFERENCES) == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert chrf_plus_plus(HYPOTHESES, REFERENCES) == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES], word_order=2).score
    assert bleu(REFERENCES, REFERENCES) == pytest.approx(100)
    padded = [f" {text}\n" for text in HYPOTHESES]
    assert chrf(padded, REFERENCES) == chrf(HYPOTHESES, REFERENCES)
    assert chrf([""], ["نعم"]) == bleu([""], ["نعم"]) == 0


def test_spbleu_is_sacrebleus_flores200_with_the_same_model(pieces, tmp_path, monkeypatch):
    """In a process of its own: sacrebleu reads its cache's place when it is imported."""
    cache = tmp_path / "models"
    cache.mkdir()
    shutil.copy(pieces, cache / "flores200sacrebleuspm")
    code = (
        "import sacrebleu, sys\n"
        "from cultureval.metrics.alqasida.translation import corpus_score\n"
        "half = len(sys.argv) // 2 + 1\n"
        "sides = sys.argv[1:half], sys.argv[half:]\n"
        "print(corpus_score('spbleu', *sides), sacrebleu.corpus_bleu(sides[0], [sides[1]], tokenize='flores200').score)"
    )
    environment = {"SACREBLEU": str(tmp_path), "PATH": "", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", code, *HYPOTHESES, *REFERENCES], env=environment, capture_output=True, text=True
    )
    cached, theirs = map(float, run.stdout.split())
    monkeypatch.setenv("CULTUREVAL_FLORES200_MODEL", str(pieces))
    assert 0 < spbleu(HYPOTHESES, REFERENCES) == cached == theirs < 100


def test_without_the_model_spbleu_says_what_to_fetch(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("CULTUREVAL_FLORES200_MODEL", str(tmp_path / "none"))
    with pytest.raises(CulturevalError, match="https://.*CULTUREVAL_FLORES200_MODEL"):
        spbleu(["a"], ["a"])
    (tmp_path / "none").write_bytes(b"not a model")
    with pytest.raises(CulturevalError, match="SentencePiece"):
        spbleu(["a"], ["a"])


@pytest.mark.parametrize("score", [bleu, chrf, chrf_plus_plus])
def test_unequal_or_empty_sides_are_refused(score):
    for sides in (([], []), (["a"], []), ("a", "a")):
        with pytest.raises(ValueError, match="hypotheses"):
            score(*sides)


def test_scores_of_sums_are_those_of_corpora_whatever_is_left_out():
    sums, sources = sentence_sums("chrf", HYPOTHESES, REFERENCES), list(reversed(REFERENCES))
    left_out = score_of_sums("chrf", sums.sum(axis=0) - sums)
    rest = [[one for place, one in enumerate(side) if place != 1] for side in (HYPOTHESES, REFERENCES)]
    assert left_out[1] == pytest.approx(chrf(*rest)) and left_out.shape == (len(REFERENCES),)
    pair = [sentence_sums("bleu", side, REFERENCES) for side in (HYPOTHESES, sources)]  # spBLEU's form
    gain = translation.spbleu_gain_of_sums(np.concatenate(pair, axis=1).sum(axis=0))
    assert gain == pytest.approx(bleu(HYPOTHESES, REFERENCES) - bleu(sources, REFERENCES))


def test_sentence_scores():
    pair = HYPOTHESES[0], REFERENCES[0]
    found = {
        name: sentence_scores(name, sentence_sums(name, *map(list, zip(pair)))) for name in ("chrf_plus_plus", "bleu")
    }
    assert found["chrf_plus_plus"] == sacrebleu.sentence_chrf(pair[0], [pair[1]], word_order=2).score
    assert found["bleu"] == sacrebleu.sentence_bleu(pair[0], [pair[1]]).score
