"""ADI2, the profiles and the batched classifiers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cultureval.metrics.alqasida import dialect_models
from cultureval.metrics.alqasida.dialect import (
    PROFILES,
    SCORES,
    adi2,
    has_too_few_words,
    macro_region,
    read_completion,
    remove_prompt_copies,
    score_completions,
)
from cultureval.metrics.alqasida.dialect_models import (
    DialectModels,
    configured_models,
    models_signature,
)
from cultureval.metrics.alqasida.names import COUNTRIES, COUNTRY_NAMES, REGIONS
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import variable_of
from cultureval.samples.tiny_models.classifiers import build_tiny_aldi, build_tiny_language_model, build_tiny_nadi

ARABIC = "عايز اروح السوق دلوقتي عشان اجيب شوية حاجات للبيت"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classifiers")
    return DialectModels(
        str(build_tiny_nadi(folder / "nadi")),
        str(build_tiny_aldi(folder / "aldi")),
        str(build_tiny_language_model(folder / "lid")),
        device="cpu",
    )


def test_regions_divide_the_countries():
    assert sorted(code for members in REGIONS.values() for code in members) == sorted(COUNTRIES)
    assert set(macro_region("egy")) == {"egy", "sdn"}
    assert macro_region("yem") == ("yem",)
    with pytest.raises(ValueError, match="xyz"):
        macro_region("xyz")


def test_adi2_by_hand():
    probabilities = np.zeros((3, 18))
    probabilities[0, [2, 13, 0]] = 0.5, 0.3, 0.2
    probabilities[1] = 1 / 18
    found = adi2(probabilities, np.array([0.5, 1.0, 0.0]), "egy")
    assert found["nadi"].tolist() == pytest.approx([0.5, 1 / 18, 0])
    assert found["nadi_macro"].tolist() == pytest.approx([0.8, 2 / 18, 0])
    assert found["adi2"].tolist() == pytest.approx([0.25, 1 / 18, 0])
    assert found["adi2_macro"].tolist() == pytest.approx([0.4, 2 / 18, 0])


@pytest.mark.parametrize(
    ("probabilities", "level", "country", "message"),
    [
        (np.full((2, 17), 1 / 17), [0, 0], "egy", "shape"),
        (np.full((2, 18), 1 / 18), [0], "egy", "shape"),
        (np.full((1, 18), 1 / 18), [1.2], "egy", "outside 0 to 1"),
        (np.full((1, 18), 1 / 18), [float("nan")], "egy", "outside 0 to 1"),
        (np.full((1, 18), -1.0), [0], "egy", "outside 0 to 1"),
        (np.full((1, 18), 0.5), [0], "egy", "sums to"),
        (np.full((1, 18), 1 / 18), [0], "Egypt", "country codes"),
    ],
)
def test_adi2_refuses_what_it_cannot_mean(probabilities, level, country, message):
    with pytest.raises(ValueError, match=message):
        adi2(probabilities, np.array(level), country)


@pytest.mark.parametrize(
    ("prompt", "completion", "left"),
    [
        ("سؤال؟", "سؤال؟ جواب", " جواب"),
        ("س\nؤال", "س ؤالجس\nؤال", "ج"),
        ("سؤال", "سؤا ل", "سؤا ل"),
        ("", "a\nb", "a b"),
        ("p", "x   y    z", "x  y  z"),  # one pass: three spaces become two, four become two
        ("سؤال", "سؤالسؤال<EOS_TOKEN>", "<EOS_TOKEN>"),
        ("s\t", "s\tx\r\n", "x\r "),
    ],
)
def test_prompt_copies(prompt, completion, left):
    assert remove_prompt_copies(prompt, completion) == left


@given(st.text(max_size=20), st.text(max_size=60))
def test_profiles_read_anything(prompt, completion):
    assert "\n" not in remove_prompt_copies(prompt, completion)
    assert read_completion("paper", prompt, completion) is not None
    assert "\n" not in (read_completion("released", prompt, completion) or "")


def test_copies_of_the_bare_request_after_few_shot_examples(models):
    """The paper removes whole blocks alone; the rate of copies knows the bare request too."""
    block, reply = f"Q: {ARABIC}\nA:", f"{ARABIC}\nنعم يا صاحبي"
    scored = score_completions([block] * 2, [reply, "نعم"], "egy", PROFILES, models, [ARABIC] * 2)
    assert scored["prompt_copy_rate"].tolist() == [1, 0]
    with pytest.raises(ValueError, match="1 requests"):
        score_completions([block] * 2, [reply] * 2, "egy", PROFILES, models, [ARABIC])


@pytest.mark.parametrize(
    ("text", "few"),
    [
        ("", True),
        ("واحد اثنان ثلاثة أربعة", True),
        ("واحد اثنان ثلاثة أربعة خمسة", False),
        ("واحد اثنان ، - .", True),
        ("واحد اثنان\nثلاثة أربعة\nخمسة ستة", True),
        ("لا\nQ: واحد اثنان ثلاثة أربعة خمسة", True),
        ("واحد—اثنان ثلاثة أربعة خمسة", False),
    ],
)
def test_lines_of_fewer_than_five_words(text, few):
    assert has_too_few_words(text) == few


@pytest.mark.slow
def test_scores_of_a_batch_are_those_of_its_members_alone(models):
    random = np.random.default_rng(0)
    words = ARABIC.split() + ["book", "\n", "!"]
    completions = ["", " ", "only English words", ARABIC, ARABIC + "\n" + ARABIC, "ا" * 2000, "x\ud800"]
    completions += [" ".join(random.choice(words, size)) for size in random.integers(1, 80, 40)]
    prompts = ["", "", "", ARABIC, "نعم", "", ""] + [ARABIC] * 40
    together = score_completions(prompts, completions, "egy", PROFILES, models)
    for number, pair in enumerate(zip(prompts, completions, strict=True)):
        alone = score_completions(*([text] for text in pair), "egy", PROFILES, models)
        for name, values in together.items():
            assert values[number] == pytest.approx(alone[name][0], abs=1e-5, nan_ok=True), name
    assert together["empty_rate"][:4].tolist() == [1, 1, 0, 0]
    assert together["arabic_rate"][:4].tolist() == [0, 0, 0, 0]  # the fourth is its prompt
    assert together["prompt_copy_rate"][3] == 1
    assert np.isnan(together["adi2_released"][:3]).all() and together["too_few_rate"][:3].all()
    assert together["arabic_rate"][4] == 1 and together["nadi_released"][3] > 0
    assert all(not together[name][2] for name in SCORES)


def test_only_chosen_profiles_are_read_and_the_papers_scores_do_not_depend_on_them(models):
    prompts, completions = [ARABIC] * 3, [ARABIC + "\n" + ARABIC, "نعم https://x.org", ""]
    every = score_completions(prompts, completions, "egy", PROFILES, models)
    for chosen, ends in (((), ()), (("released", "paper"), ("_released",))):
        some = score_completions(prompts, completions, "egy", chosen, models)
        shares = {"empty_rate", "prompt_copy_rate", "truncated_rate"} | (
            {"too_few_rate"} if "released" in chosen else set()
        )
        assert set(some) == {name + end for name in SCORES for end in ("", *ends)} | shares
        for name, values in some.items():
            assert values == pytest.approx(every[name], abs=1e-5, nan_ok=True), name


def test_text_longer_than_the_model_is_cut_and_counted(models):
    long, short = " ".join([ARABIC] * 200), ARABIC
    scored = score_completions(["", ""], [long, short], "egy", models=models)
    assert scored["truncated_rate"].tolist() == [1, 0]
    assert scored["nadi"][0] > 0


def test_probabilities_and_levels(models):
    probabilities = models.country_probabilities([ARABIC, "نعم"])
    assert probabilities.shape == (2, 18) and probabilities.sum(axis=1) == pytest.approx(1)
    levels = models.dialectness([ARABIC * count for count in range(1, 9)])
    assert ((levels >= 0) & (levels <= 1)).all()
    assert models.country_probabilities([]).shape == (0, 18) and models.dialectness([]).shape == (0,)
    assert models.is_arabic([ARABIC, "book", ""]).tolist() == [True, False, False]


def test_the_softmax_is_that_of_the_plain_model(models):
    """Against transformers' own classes, one text at a time, as the paper's program runs them."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = models.names["NADI"]
    network, tokenizer = (
        AutoModelForSequenceClassification.from_pretrained(folder),
        AutoTokenizer.from_pretrained(folder),
    )
    texts = [ARABIC, "نعم لا", ARABIC + " book"]
    with torch.inference_mode():
        plain = [network(**tokenizer(text, return_tensors="pt")).logits.softmax(dim=1)[0].numpy() for text in texts]
    assert abs(models.country_probabilities(texts) - np.array(plain)).max() < 1e-5


def test_texts_of_the_same_tokens_are_read_once_and_half_precision_is_in_the_signature(models, monkeypatch):
    """`released` differs from `paper` by two spaces only."""
    read = []
    classifier = models._classifier("NADI")
    forward = type(classifier.model).forward

    def counted(model, input_ids, **others):
        read.append(input_ids.shape)
        return forward(model, input_ids=input_ids, **others)

    monkeypatch.setattr(type(classifier.model), "forward", counted)
    replies = [f"{ARABIC}  {ARABIC}", ARABIC, f"{ARABIC} ", f"{ARABIC}\n{ARABIC}"]
    scores = score_completions([""] * 4, replies, "egy", PROFILES, models)
    assert sum(rows for rows, _ in read) == 2 * 2  # two distinct texts, by both classifiers
    assert scores["adi2"][0] == scores["adi2"][3]
    exact = models.country_probabilities(replies)
    assert dialect_models.classifier_dtype("cuda:1") == dialect_models.classifier_dtype("mps") == "float16"
    monkeypatch.setattr(dialect_models, "classifier_dtype", lambda device: "float16")
    dialect_models.load_classifier.cache_clear()
    try:
        assert models.country_probabilities(replies) == pytest.approx(exact, abs=5e-3)
        assert models_signature().endswith(",dtype=float16)")
    finally:
        dialect_models.load_classifier.cache_clear()


def test_another_order_of_labels_stops(tmp_path, models):
    swapped = list(COUNTRY_NAMES)
    swapped[0], swapped[1] = swapped[1], swapped[0]
    folder = build_tiny_nadi(tmp_path / "swapped", labels=swapped)
    wrong = DialectModels(str(folder), models.names["ALDi"], models.names["LID"], device="cpu")
    with pytest.raises(CulturevalError, match="label 0 of its config is 'Bahrain', and NADI's is 'Algeria'"):
        wrong.country_probabilities([ARABIC])
    unnamed = build_tiny_nadi(tmp_path / "unnamed", labels=[f"LABEL_{n}" for n in range(18)])
    assert DialectModels(str(unnamed), device="cpu").country_probabilities([ARABIC]).shape == (1, 18)


def test_models_that_do_not_load_say_which_and_what_to_do(tmp_path, monkeypatch, models):
    for kind, name in dialect_models.SETTINGS.items():
        monkeypatch.setenv(variable_of(name), str(tmp_path / "nowhere"))
        with pytest.raises(CulturevalError, match=f"The {kind} model .*{variable_of(name)}"):
            dialect_models.check_model(kind)
    (tmp_path / "model.bin").write_bytes(b"no model")
    monkeypatch.setenv("CULTUREVAL_LID_MODEL", str(tmp_path))
    with pytest.raises(CulturevalError, match="CULTUREVAL_LID_MODEL"):
        configured_models().is_arabic(["x"])
    monkeypatch.setenv("CULTUREVAL_ALDI_MODEL", models.names["NADI"])
    with pytest.raises(CulturevalError, match="18 outputs, not 1"):
        dialect_models.check_model("ALDi")


def test_the_signature_names_models_by_their_content(monkeypatch, models, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("CULTUREVAL_NADI_MODEL", models.names["NADI"])
    monkeypatch.delenv("CULTUREVAL_ALDI_MODEL", raising=False)
    monkeypatch.setenv("CULTUREVAL_LID_MODEL", models.names["LID"])
    assert models_signature().startswith("ADI2(NADI=nadi@")
    assert "ALDi=AMR-KELEG/Sentence-ALDi@?" in models_signature()  # the cache is empty
    commit = "0123456789abcdef0123456789abcdef01234567"
    folder = tmp_path / "models--AMR-KELEG--Sentence-ALDi"
    (folder / "snapshots" / commit).mkdir(parents=True)
    (folder / "snapshots" / commit / "config.json").write_text("{}", encoding="utf-8")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(commit, encoding="utf-8")
    assert "ALDi=AMR-KELEG/Sentence-ALDi@01234567" in models_signature()
