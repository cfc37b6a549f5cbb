"""The busiest rank: against exact laws of small cases, and against tokens that all choose for themselves."""

import math

import numpy as np
import pytest
from scipy import stats

from mc.delays import Constant, draw
from mc.parallel.routing_choice import Choice
from mc.training.routing import (
    Loads,
    Routing,
    RoutingError,
    _loads,
    _popularity,
    load_law,
    routing_of,
)
from mc.training.routing import _table as table
from mc.training.routing_counts import draw_counts
from tests.parallel.plans import GPT, plan, shipped
from tests.stats import assert_fraction, assert_mean, assert_same_law


def direct_load(rng: np.random.Generator, routing: Routing, layers: int, micro_batches: int) -> Loads:
    """Loads with every token choosing for itself: tokens x experts for each of them."""
    choice = routing.choice
    counts = np.empty((layers, micro_batches, choice.experts))
    log_popularity = np.concatenate(list(_popularity(rng, choice, routing.skew, layers)))
    for layer, micro_batch in np.ndindex(layers, micro_batches):
        scores = choice.scores(rng, log_popularity[layer], routing.tokens)
        counts[layer, micro_batch] = (scores >= choice.needed(scores)).sum(axis=0)
    return _loads(routing, counts)


def law_of_fullest(balls: int, boxes: int) -> np.ndarray:
    """P(no box has more than m), m = 0 … balls: Poisson boxes, given their sum."""
    poisson = stats.poisson.pmf(np.arange(balls + 1), balls / boxes)
    found = np.zeros(balls + 1)
    for most in range(balls + 1):
        together = np.array([1.0])
        for _ in range(boxes):
            together = np.convolve(together, poisson[: most + 1])[: balls + 1]
        found[most] = together[balls] if together.size > balls else 0.0
    return found / stats.poisson.pmf(balls, balls)


def test_balls_in_boxes():
    # Two experts per rank: a rank is a box. For 3 balls in 2 boxes: 3 of them in one with probability 1/4.
    assert law_of_fullest(3, 2) == pytest.approx([0, 0, 0.75, 1])
    tokens, ranks, trials = 12, 4, 4_000
    load = direct_load(np.random.default_rng(2), Routing(Choice(8, 1), ranks, tokens), 1, trials)
    fullest = np.round(load.factor * tokens / ranks)
    for most, chance in enumerate(law_of_fullest(tokens, ranks)[:8]):
        assert_fraction(int((fullest <= most).sum()), trials, min(max(chance, 0.0), 1.0))


@pytest.mark.parametrize(("tokens", "ranks"), [(64, 16), (100, 8), (400, 8)])
def test_counts_need_not_be_large(tokens, ranks):
    """From 4 tokens per rank on, the normal counts give the fullest box to 0.5 %, where it is 50 % above the mean."""
    law = law_of_fullest(tokens, ranks)
    values = np.arange(tokens + 1)
    exact = values @ np.diff(law, prepend=0.0)
    found = table(Routing(Choice(ranks, 1), ranks, tokens)).factor * tokens / ranks
    assert found.mean() == pytest.approx(exact, rel=0.005)
    ninety = np.searchsorted(law, 0.9)
    assert ninety - 1 < np.quantile(found, 0.9) < ninety + 1


@pytest.mark.parametrize("choice", [Choice(16, 4), Choice(16, 4, 2, 1)], ids=str)
def test_counts_have_the_moments_of_tokens(choice):
    popularity = np.float32(0.7) * np.random.default_rng(3).standard_normal(16, np.float32)
    scores = choice.scores(np.random.default_rng(1), popularity, 30_000)
    taken = (scores >= choice.needed(scores)).astype(float)
    groups, totals = choice.groups, None
    if choice.is_limited:
        totals = taken[:2_000].reshape(1, -1, groups, 16 // groups).sum(axis=-1)
    counts = draw_counts(np.random.default_rng(2), taken.mean(axis=0)[None], totals, groups, 10_000, 20_000)[
        0
    ]
    np.testing.assert_allclose(counts.mean(axis=0), 10_000 * taken.mean(axis=0), rtol=1e-3)
    np.testing.assert_allclose(counts.sum(axis=1), 10_000 * choice.top_k)
    exact, found = np.cov(taken.T), np.cov(counts.T) / 10_000
    np.testing.assert_allclose(np.diag(found), np.diag(exact), rtol=0.06)
    np.testing.assert_allclose(found, exact, atol=0.02)


def test_multinomial_counts_are_exact_in_their_covariance():
    chances = np.array([[0.55, 0.2, 0.15, 0.1]])
    counts = draw_counts(np.random.default_rng(2), chances, None, 1, 5_000, 40_000)[0]
    exact = np.diag(chances[0]) - np.outer(chances, chances)
    np.testing.assert_allclose(np.cov(counts.T) / 5_000, exact, atol=0.01)


AGAINST_TOKENS = [
    Routing(Choice(32, 4), 8, 1_024, skew=0.0),
    Routing(Choice(32, 4), 8, 1_024, skew=0.5),
    Routing(Choice(8, 2), 8, 1_024, skew=1.0),
    Routing(Choice(32, 4, 4, 2), 8, 1_024, skew=0.1),
    Routing(Choice(32, 4), 8, 1_024, skew=0.5, capacity_factor=1.2, drop=True),
]


@pytest.mark.parametrize("routing", AGAINST_TOKENS, ids=str)
def test_against_tokens_that_choose(key, routing):
    """Draws are persistent x transient. Power: a skew of 0.6 for 0.5 has p < 1e-12."""
    direct = direct_load(np.random.default_rng(5), routing, 500, 1)
    law = load_law(routing)
    drawn = draw(law.persistent, key, 4_000) * draw(law.transient, key, 4_000)[::-1]
    assert_same_law(np.round(np.asarray(drawn), 3), np.round(direct.factor, 3))
    assert_mean(direct.factor, law.mean)
    if routing.drop:
        assert_mean(direct.dropped, law.dropped)


def test_what_persists_and_what_does_not():
    routing = AGAINST_TOKENS[1]
    direct = direct_load(np.random.default_rng(6), routing, 80, 16).factor
    # Tokens vary within a layer as the table says, and layers between each other.
    found = table(routing).factor
    within, between = direct.var(axis=1, ddof=1), direct.mean(axis=1)
    assert_mean(within, found.var(axis=1, ddof=1).mean())
    assert_same_law(between, found.mean(axis=1))
    assert found.mean(axis=1).std() > 3 * math.sqrt(within.mean())


def test_layers_add_up():
    routing = AGAINST_TOKENS[1]
    one, four = load_law(routing), load_law(routing, 4)
    levels = np.log(np.array([0.9, 0.5, 0.1]))
    assert float(four.persistent.mean()) == pytest.approx(float(one.persistent.mean()), rel=0.01)
    assert float(four.transient.mean()) == pytest.approx(1, abs=1e-3)
    for part, tolerance in (("persistent", 0.1), ("transient", 0.15)):
        ends = [np.asarray(getattr(law, part).quantile(levels)) for law in (one, four)]
        assert np.ptp(ends[1]) == pytest.approx(np.ptp(ends[0]) / 2, rel=tolerance)


def test_alike_experts_leave_nothing_that_persists():
    law = load_law(AGAINST_TOKENS[0])
    assert isinstance(law.persistent, Constant)
    assert float(law.persistent.value) == pytest.approx(law.mean, rel=1e-6)
    assert law.mean > 1


def test_one_rank_has_all_the_load():
    law = load_law(Routing(Choice(8, 2), 1, 100, skew=2.0))
    assert isinstance(law.persistent, Constant)
    assert isinstance(law.transient, Constant)
    assert law.mean == 1


def test_more_skew_is_more_load():
    skews = (0, 0.05, 0.4, 2)
    means = [table(Routing(Choice(32, 4), 16, 4_096, skew=skew)).factor.mean() for skew in skews]
    assert (np.diff(means) > 0).all()
    # With a skew without end all tokens choose the same 4 experts, on 4 of the 16 ranks or on fewer.
    far = table(Routing(Choice(32, 4), 16, 4_096, skew=40.0)).factor
    assert far.min() > 3.8
    assert far.max() <= 8


def test_larger_ranks_are_more_alike():
    # Experts of one rank average out: with fewer ranks the busiest is less above the mean.
    means = [
        table(Routing(Choice(32, 4), ranks, 256 * ranks, skew=0.5)).factor.mean() for ranks in (2, 8, 32)
    ]
    assert means[0] < means[1]


def test_dropped_tokens():
    tokens, experts = 40, 8
    routing = Routing(Choice(experts, 1), experts, tokens, capacity_factor=1.1, drop=True)
    assert routing.capacity == 6  # 1.1 x 5, rounded up
    count = stats.binom(tokens, 1 / experts)
    beyond = sum((k - 6) * count.pmf(k) for k in range(7, tokens + 1))
    exact = beyond * experts / tokens
    direct = direct_load(np.random.default_rng(7), routing, 1, 4_000)
    assert_mean(direct.dropped, exact)
    assert direct.factor.max() == pytest.approx(6 / 5)
    assert load_law(routing).dropped == pytest.approx(exact, rel=0.06)


def test_no_rank_serves_more_than_its_capacity(key):
    routing = Routing(Choice(16, 2), 16, 4_096, skew=1.0, capacity_factor=1.25, drop=True)
    law = load_law(routing)
    assert law.mean <= 1.25
    assert np.asarray(draw(law.persistent, key, 1_000)).max() <= 1.2501
    assert 0.1 < law.dropped < 0.5


def test_waiting_serves_all():
    plain = Routing(Choice(16, 2), 16, 4_096, skew=1.0)
    waiting = Routing(Choice(16, 2), 16, 4_096, skew=1.0, capacity_factor=1.25)
    assert load_law(waiting).mean == load_law(plain).mean
    assert load_law(waiting).dropped == 0


def test_routing_of_a_plan():
    shape = shipped("deepseek-v3")
    found = routing_of(
        shape,
        plan(
            shape,
            512,
            pp=4,
            layers_per_stage="spread",
            ep=32,
            tp=2,
            micro_batch=2,
            sequence_length=4_096,
            global_batch=512,
            routing={"skew": 0.3},
        ),
    )
    assert found == Routing(Choice(256, 8, 8, 4), 32, 2 * 4_096 * 32 // 2, skew=0.3, nodes=8)
    with pytest.raises(RoutingError, match="expected a transformer with experts; got one without"):
        routing_of(GPT, plan(GPT, 8, global_batch=8, sequence_length=2_048))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Routing(Choice(8, 2), 3, 10), "ranks: expected a divisor of the 8 experts; got 3"),
        (lambda: Routing(Choice(8, 2, 3, 1), 2, 10), "groups: expected a divisor of the 8 experts; got 3"),
        (
            lambda: Routing(Choice(8, 5, 4, 2), 2, 10),
            "top_k: expected 1 to 4, as many as a token may choose of; got 5",
        ),
        (lambda: Routing(Choice(8, 2), 2, 0), "tokens: expected 1 or more; got 0"),
    ],
)
def test_what_cannot_be(make, message):
    with pytest.raises(RoutingError, match=message):
        make()
