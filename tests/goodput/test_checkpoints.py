"""The best interval between checkpoints, against its equation, Young's and Daly's estimates, and a search."""

import math

import numpy as np
import pytest
from scipy import optimize, special

from mc.goodput import best_interval
from mc.goodput.checkpoints import best_steps


@pytest.mark.parametrize("ratio", [1e-12, 1e-6, 4.9e-5, 5.1e-5, 1e-3, 0.1, 0.9, 1.1, 5.0, 30.0])
def test_it_solves_the_equation(ratio):
    # x = 1 + W(−e^{−1−d}) with Lambert's W; near its branch point in an arithmetic that keeps the digits.
    x = best_interval(ratio, 1.0)
    assert 0 < x < 1
    if ratio >= 1e-3:
        assert x == pytest.approx(1 + special.lambertw(-math.exp(-1 - ratio)).real, rel=1e-12)
    else:
        series = sum(x**n / n for n in range(2, 12))
        assert series == pytest.approx(ratio, rel=1e-9)


def test_the_first_terms_are_those_of_young_and_daly():
    write, mean = 30.0, 3.1e5
    young = math.sqrt(2 * write * mean)
    half = math.sqrt(write / (2 * mean))
    daly = young * (1 + half / 3 + half**2 / 9) - write
    assert best_interval(write, mean) == pytest.approx(young, rel=0.01)
    assert best_interval(write, mean) == pytest.approx(daly, rel=1e-7)


@pytest.mark.parametrize("write", [0.3, 40.0, 2_000.0])
def test_nothing_wastes_less(write):
    mean = 11_000.0

    def time_per_work(interval: float) -> float:
        return math.expm1((interval + write) / mean) / interval

    found = optimize.minimize_scalar(time_per_work, bounds=(1e-3, 2 * mean), method="bounded")
    best = best_interval(write, mean)
    assert time_per_work(best) <= found.fun * (1 + 1e-14)
    assert best == pytest.approx(found.x, rel=1e-3)


@pytest.mark.parametrize("step", [1.0, 7.0, 300.0, 5_000.0])
def test_whole_steps(step):
    write, mean = 12.0, 11_000.0
    steps = np.arange(1, 1 + int(30_000 / step))
    wasted = np.expm1((steps * step + write) / mean) / (steps * step)
    assert best_steps(write, mean, step) == steps[np.argmin(wasted)]


def test_free_checkpoints_are_written_always():
    assert best_interval(0.0, 100.0) == 0.0
    assert best_steps(0.0, 100.0, 3.0) == 1
