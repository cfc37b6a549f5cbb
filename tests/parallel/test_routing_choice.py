"""How tokens choose: thresholds by moving one score, frequencies by counting out the laws of small cases."""

import itertools

import numpy as np
import pytest

from mc.parallel.routing_choice import Choice, destinations
from tests.stats import assert_fraction, assert_mean

CHOICES = [
    Choice(8, 2),
    Choice(5, 1),
    Choice(4, 4),
    Choice(70, 3),
    Choice(12, 3, 4, 2, 2),
    Choice(12, 3, 4, 2, 1),
    Choice(12, 2, 3, 1, 2),
    Choice(8, 3, 4, 2, 2),
    Choice(8, 4, 4, 2, 2),
    Choice(4, 2, 4, 2, 2),
]


def chosen(choice: Choice, scores: np.ndarray) -> set[int]:
    """By sorting, one token at a time."""
    members = choice.experts // choice.groups
    groups = scores.reshape(choice.groups, members)
    totals = [sum(sorted(group)[-choice.group_best :]) for group in groups.tolist()]
    best = sorted(range(choice.groups), key=totals.__getitem__)[-choice.group_limit :]
    eligible = [group * members + each for group in best for each in range(members)]
    return set(sorted(eligible, key=scores.__getitem__)[-choice.top_k :])


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_experts_are_chosen_from_their_threshold_on(choice):
    rng = np.random.default_rng(3)
    for _ in range(25):
        scores = rng.standard_normal(choice.experts).astype(np.float32)
        needed = choice.needed(scores[None])[0]
        assert set(np.flatnonzero(scores >= needed)) == chosen(choice, scores)
        for expert in range(choice.experts):
            moved = scores.copy()
            moved[expert] = needed[expert] + 1e-4
            assert expert in chosen(choice, np.maximum(moved, -50))
            moved[expert] = needed[expert] - 1e-4
            assert (expert in chosen(choice, moved)) == (needed[expert] == -np.inf)


def inclusion(weights: list[float], top_k: int) -> np.ndarray:
    """Chance of each to be among the first `top_k`, drawn one after the other without replacement."""
    found = np.zeros(len(weights))
    for order in itertools.permutations(range(len(weights)), top_k):
        left, chance = sum(weights), 1.0
        for each in order:
            chance *= weights[each] / left
            left -= weights[each]
        found[list(order)] += chance
    return found


@pytest.mark.parametrize("top_k", [1, 2, 3])
def test_frequencies_and_chances(top_k):
    weights = [0.3, 1.0, 2.0, 0.05, 4.0]
    choice, popularity = Choice(5, top_k), np.log(np.float32(weights))
    scores = choice.scores(np.random.default_rng(4), popularity, 40_000)
    needed = choice.needed(scores)
    exact = inclusion(weights, top_k)
    for expert, chance in enumerate(exact):
        assert_fraction(int((scores >= needed)[:, expert].sum()), 40_000, chance)
        assert_mean(-np.expm1(-np.exp(popularity[expert] - needed[:, expert])), chance)
    assert choice.chances(needed, popularity) == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("choice", [Choice(32, 4), Choice(32, 4, 8, 3)], ids=str)
def test_chances_are_far_better_than_counts(choice):
    popularity = np.float32(0.3) * np.random.default_rng(1).standard_normal(32, np.float32)
    rng = np.random.default_rng(2)
    many = choice.needed(choice.balanced_scores(rng, popularity, 20_000))
    scores = choice.balanced_scores(rng, np.tile(popularity, (50, 1)), 128)
    needed = choice.needed(scores)
    exact = choice.chances(many, popularity)
    by_chance = choice.chances(needed, popularity) - exact
    by_count = (scores >= needed).mean(axis=-2) - exact
    assert np.square(by_count).mean() > 8 * np.square(by_chance).mean()


def test_balanced_scores_are_scores():
    # Alike experts: each draw and its rotations together choose every group equally often.
    choice = Choice(12, 2, 4, 2)
    scores = choice.balanced_scores(np.random.default_rng(0), np.zeros((1, 12), np.float32), 4_000)
    assert scores.shape == (1, 4_000, 12)
    taken = (scores >= choice.needed(scores))[0].sum(axis=0)
    assert taken.sum() == 8_000
    assert (taken.reshape(4, 3).sum(axis=1) == 2_000).all()
    assert_fraction(int(taken[0]), 4_000, 2 / 12)


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_tokens_take_what_sorting_says(choice):
    scores = np.random.default_rng(4).standard_normal((200, choice.experts)).astype(np.float32)
    found = choice.chosen(scores)
    assert [set(np.flatnonzero(each)) for each in found] == [chosen(choice, each) for each in scores]


@pytest.mark.parametrize("skew", [0.0, 1.5])
def test_destinations(skew):
    """Counted on tokens, each with a popularity of its own: the skew of which makes no difference."""
    choice, parts = Choice(32, 4), 8
    rng = np.random.default_rng(8)
    scores = choice.scores(rng, np.float32(skew) * rng.standard_normal((10_000, 32), np.float32), 1)
    visited = choice.chosen(scores).reshape(-1, parts, 4).any(axis=-1).sum(axis=-1)
    assert_mean(visited, destinations(choice, parts))
    assert destinations(choice, 1) == 1
    assert destinations(choice, 32) == pytest.approx(4)


def test_destinations_with_groups():
    # DeepSeek-V3 on 8 nodes, a group on each. The 4 nodes allowed are those with the best experts, so nearly all are
    # used: more than the 3.6 of experts that are drawn from any 4.
    choice = Choice(256, 8, 8, 4)
    assert destinations(Choice(128, 8), 4) + 0.2 < destinations(choice, 8) <= 4
    assert destinations(choice, 8) < destinations(Choice(256, 8), 8)
