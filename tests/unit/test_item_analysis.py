"""Item analysis: planted wrong keys are found, statistics are those of their definitions."""

import numpy as np
import pytest

from cultureval.audit.responses import rank_items

OPTIONS = 4


def simulated(seed, items=1000, models=12, wrong=0.05):
    """Answers by a two-parameter logistic model with guessing; a share of the keys is wrong.

    Returns:
        (chosen [models, items], stated keys, places of the wrong ones).
    """
    random = np.random.default_rng(seed)
    ability, difficulty = random.normal(size=models), random.normal(size=items)
    slope = np.exp(random.normal(0, 0.3, items))
    chance = 1 / OPTIONS + (1 - 1 / OPTIONS) / (1 + np.exp(-slope * (ability[:, None] - difficulty)))
    key = random.integers(0, OPTIONS, items)
    other = (key + random.integers(1, OPTIONS, (models, items))) % OPTIONS
    chosen = np.where(random.random((models, items)) < chance, key, other)
    planted = random.permutation(items)[: round(items * wrong)]
    stated = key.copy()
    stated[planted] = (key[planted] + random.integers(1, OPTIONS, len(planted))) % OPTIONS
    return chosen, stated, set(planted.tolist())


def ranked(chosen, stated, options=None):
    count = len(stated)
    return rank_items((chosen == stated).astype(float), chosen, options or [OPTIONS] * count, stated, ["g"] * count)


def test_of_the_first_50_items_four_in_five_have_a_planted_wrong_key():
    found = []
    for seed in range(8):
        chosen, stated, planted = simulated(seed)
        reports = ranked(chosen, stated)
        found.append(np.mean([one.place in planted for one in reports[:50]]))
        named = [one for one in reports if "wrong_key" in one.reasons and one.place in planted]
        truth = [np.bincount(chosen[:, one.place], minlength=OPTIONS).argmax() for one in named]
        assert np.mean([one.rival == key for one, key in zip(named, truth, strict=True)]) > 0.9
    assert min(found) >= 0.8 and np.mean(found) > 0.85, found


def test_without_wrong_keys_few_items_are_named_and_right_or_wrong_alone_finds_half():
    chosen, stated, _ = simulated(1, wrong=0)
    assert sum("wrong_key" in one.reasons for one in ranked(chosen, stated)) < 30
    chosen, stated, planted = simulated(1)
    unknown = rank_items(
        (chosen == stated).astype(float), np.full_like(chosen, -1), [0] * 1000, [-1] * 1000, ["g"] * 1000
    )
    assert np.mean([one.place in planted for one in unknown[:50]]) > 0.4  # by chance 0.05
    assert all(one.rival == -1 and "wrong_key" not in one.reasons for one in unknown)


def test_statistics_are_those_of_their_definitions():
    chosen, stated, _ = simulated(5, items=30)
    right = (chosen == stated).astype(float)
    for one in ranked(chosen, stated)[:10]:
        item, rest = right[:, one.place], np.delete(right, one.place, axis=1)
        assert one.share_right == pytest.approx(item.mean()) and one.models == 12
        if 0 < one.share_right < 1:
            assert one.correlation == pytest.approx(np.corrcoef(item, rest.sum(axis=1))[0, 1], abs=0.02)
        pairs = [(item, other) for other in rest.T]
        covered = sum(np.cov(a, b, ddof=0)[0, 1] for a, b in pairs)
        most = sum(min(a.mean(), b.mean()) - a.mean() * b.mean() for a, b in pairs)
        if most:
            assert one.scalability == pytest.approx(covered / most)
    guttman = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=float)
    perfect = rank_items(guttman, np.full((4, 3), -1), [0] * 3, [-1] * 3, ["g"] * 3)
    assert [one.scalability for one in perfect] == pytest.approx([1, 1, 1])


def test_missing_answers_groups_and_too_few_models():
    chosen, stated, _ = simulated(3, items=40)
    right = (chosen == stated).astype(float)
    right[:10, 20:30], chosen[:10, 20:30] = np.nan, -1  # two models are left on these
    groups = ["a"] * 20 + ["b"] * 20
    reports = rank_items(right, chosen, [OPTIONS] * 40, stated, groups)
    assert sorted(one.place for one in reports) == [*range(20), *range(30, 40)]
    with pytest.raises(ValueError, match="too few"):
        rank_items(right[:2], chosen[:2], [OPTIONS] * 40, stated, groups)
    with pytest.raises(ValueError, match="same models and items"):
        rank_items(right, chosen[:, :3], [OPTIONS] * 40, stated, groups)
    nothing = rank_items(np.zeros((3, 2)), np.zeros((3, 2), dtype=int), [2, 2], [1, 1], ["g"] * 2)
    assert all("nobody_right" in one.reasons and np.isnan(one.correlation) for one in nothing)
