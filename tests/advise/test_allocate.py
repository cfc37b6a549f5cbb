"""Spending against closed forms: sums of inverse powers, maxima, bounds, and the price of the budget."""

import numpy as np
import pytest

from mc.advise.allocate import BudgetError, Priced, allocate, project


def two(times, budget=20.0, exponents=(1.0, 1.0), **options):
    figures = [Priced("x", 2.0, exponents[0]), Priced("y", 7.0, exponents[1])]
    return allocate(lambda rows: times(rows[:, 0], rows[:, 1]), figures, budget, **options)


def test_a_trade_off_of_two_figures():
    # The least a/x + b/y with p·x + q·y = B has x = B·√(a/p)/(√(a·p) + √(b·q)), and costs (√(a·p) + √(b·q))²/B.
    found = two(lambda x, y: 3 / x + 5 / y + 1)
    root = np.sqrt(3 * 2) + np.sqrt(5 * 7)
    assert found.factor == pytest.approx([20 / root * np.sqrt(3 / 2), 20 / root * np.sqrt(5 / 7)], rel=1e-4)
    assert found.time == pytest.approx(1 + root**2 / 20, rel=1e-8)
    # The derivative of that in B.
    assert found.shadow_price == pytest.approx(root**2 / 20**2, rel=1e-3)
    assert found.spent.sum() == pytest.approx(20)
    assert found.before == pytest.approx(9)
    assert found.gap < 1e-6
    assert np.all(np.diff(found.path) <= 0)


def test_the_longer_of_two():
    # Both as long: x = a/T, y = b/T, so T = (p·a + q·b)/B.
    found = two(lambda x, y: np.maximum(3 / x, 5 / y))
    assert found.time == pytest.approx((2 * 3 + 7 * 5) / 20, rel=1e-3)
    assert found.factor[0] / found.factor[1] == pytest.approx(3 / 5, rel=3e-3)
    # A unit more of one alone saves nothing, a unit less costs.
    assert all(more < less for more, less in found.saved)


def test_costs_that_grow_otherwise():
    # Spending s and u on x = (s/p)^(1/2) and a delay y = q/u: the least a·√(p/s) + b·q/u.
    found = two(lambda x, y: 3 / x + 5 * y, exponents=(2.0, -1.0))
    s = np.linspace(0.01, 19.99, 200_001)
    times = 3 * np.sqrt(2 / s) + 5 * 7 / (20 - s)
    assert found.time == pytest.approx(times.min(), rel=1e-7)
    assert found.spent[0] == pytest.approx(s[times.argmin()], rel=1e-2)


def test_what_does_nothing_gives_to_what_does():
    found = two(lambda x, y: 3 / x + 0 * y, limit=4.0)
    assert found.bound[0] == "most"
    assert found.time == pytest.approx(3 / 4)


def test_more_than_can_be_spent():
    found = two(lambda x, y: 3 / x + 5 / y, budget=1e6, limit=2.0)
    assert found.factor == pytest.approx([2, 2])
    assert found.bound == ("most", "most")
    assert found.shadow_price == 0


def test_too_little():
    with pytest.raises(
        BudgetError, match=r"budget: expected at least 4\.5, which figures 2 times smaller cost; got 4"
    ):
        two(lambda x, y: 3 / x, budget=4.0, limit=2.0)


def test_the_nearest_point_of_the_budget():
    rng = np.random.default_rng(0)
    low, high = np.full(4, 0.5), np.full(4, 6.0)
    for _ in range(20):
        logs = rng.normal(size=4)
        found = np.exp(project(logs, 10.0, low, high))
        assert found.sum() == pytest.approx(10)
        free = (found > 0.5 * 1.0001) & (found < 6 * 0.9999)
        # All that is free by one factor; what is cut would be beyond its bound by it.
        factors = found / np.exp(logs)
        one = factors[free].mean()
        assert factors[free] == pytest.approx(one)
        assert np.all(np.exp(logs)[found <= 0.5 * 1.0001] * one <= 0.5 * 1.001)
        assert np.all(np.exp(logs)[found >= 6 * 0.9999] * one >= 6 * 0.999)
