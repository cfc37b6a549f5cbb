"""Requests against laws of queues: Little, Pollaczek and Khinchine, Lindley."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mc.config import SpeculationConfig
from mc.inference import (
    ServingError,
    batch_for_rate,
    place_wait,
    steps_of_answers,
    tokens_per_step,
    waits,
)
from tests.inference.servers import MIXTURE, server

TIMES = arrays(np.float64, (2, 12), elements=st.floats(0, 10, width=32))


@given(TIMES, TIMES)
def test_waits_are_those_of_the_recursion(service, gaps):
    found = waits(service, gaps)
    wanted = np.zeros_like(found)
    for place in range(1, service.shape[1]):
        wanted[:, place] = np.maximum(0, wanted[:, place - 1] + service[:, place - 1] - gaps[:, place])
    np.testing.assert_allclose(found, wanted, atol=1e-9)


@pytest.mark.parametrize("cv", [0.0, 1.0])
def test_mean_wait_of_a_queue(cv):
    """By Pollaczek and Khinchine, M/D/1 and M/M/1 at 60 % load: 4,000 runs after warm-up; six standard errors are 1e-9 both ways."""
    rng = np.random.default_rng(5)
    shape = (4000, 400)
    service = rng.exponential(1.0, shape) if cv else np.ones(shape)
    found = waits(service, rng.exponential(1 / 0.6, shape))[:, -1]
    exact = 0.6 * (1 + cv**2) / (2 * 0.4)
    assert abs(found.mean() - exact) < 6.1 * found.std() / np.sqrt(found.size)


@given(st.integers(1, 60), st.floats(0.01, 0.98))
def test_waiting_for_a_place_is_erlangs(places, load):
    """M/M/k: C(k, a) by its sum, and 1/(kμ − λ) for those that wait."""
    mu, a = 0.5, load * places
    chance, wait = place_wait(a * mu, mu * np.arange(1, places + 1))
    terms = [a**n / math.factorial(n) for n in range(places + 1)]
    last = terms[-1] / (1 - load)
    assert chance == pytest.approx(last / (sum(terms[:-1]) + last))
    assert wait == pytest.approx(1 / (mu * places - a * mu))


def test_places_that_share_what_they_answer():
    # However many are in use: M/M/1, all k taken with the chance ρ^k.
    chance, wait = place_wait(0.6, np.ones(5))
    assert chance == pytest.approx(0.6**5)
    assert wait == pytest.approx(1 / 0.4)


def test_waiting_for_a_place_against_requests_one_by_one():
    """Three places whose speed falls as more are in use: times in each state of 300,000 events; six errors of 3 %."""
    rng, rates, rate = np.random.default_rng(3), np.array([1.0, 1.7, 2.1]), 1.6
    state, clock, waiting = 0, 0.0, 0.0
    for pair in rng.exponential(1.0, (300_000, 2)).tolist():
        speed = rates[min(state, 3) - 1] if state else 0.0
        arrive, leave = pair[0] / rate, pair[1] / speed if speed else math.inf
        step = min(arrive, leave)
        clock += step
        waiting += step * max(state - 3, 0)
        state += 1 if arrive < leave else -1
    chance, wait = place_wait(rate, rates)
    # Little: those in line are the rate x the mean wait.
    assert waiting / clock == pytest.approx(rate * chance * wait, rel=0.18)


@given(st.floats(0.5, 200), st.integers(1, 8), st.floats(1e-3, 1.0), st.floats(0, 0.1))
def test_the_batch_for_a_rate_is_the_least_that_serves_it(rate, at_once, fixed, each):
    def throughput(batch):
        return batch / (fixed + each * batch)

    found = batch_for_rate(rate, throughput, at_once, 512)
    if found is None:
        assert throughput(512 // at_once * at_once) < rate
    else:
        assert found % at_once == 0
        assert throughput(found) >= rate
        assert found == at_once or throughput(found - at_once) < rate


def test_littles_law():
    """Requests in decoding = their rate x the time they stay, by both of the ways that a rate can be had."""
    for block, shape in (({"tp": 4}, None), ({"dp": 8, "prefill": {"tp": 4, "dp": 2}}, MIXTURE)):
        options = {} if shape is None else {"shape": shape}
        found = server({**block, "batch": 64}, **options)
        stays = found.step(64) * (found.serving.output - 1) / found.tokens_per_step
        assert found.requests_per_s(64) * stays == pytest.approx(64)
        asked = found.requests_per_s(32)
        again = server({**block, "batch": 64, "rate": f"{asked * (1 - 1e-9)!r} Hz"}, **options)
        assert again.batch == 32


def test_a_rate_that_is_too_high_is_refused():
    most = server({"batch": 8}).requests_per_s(8)
    with pytest.raises(
        ServingError, match=r"serving.rate: expected at most .* serves with 8 at once; got 1e\+06"
    ):
        assert server({"batch": 8, "rate": "1e6 Hz"}).batch
    assert server({"batch": 8, "rate": f"{most / 2!r} Hz"}).batch < 8


def test_answers_take_as_many_steps_as_guesses_leave():
    """By the elementary renewal theorem, and exactly where every guess is right or wrong."""
    rng = np.random.default_rng(3)
    every = SpeculationConfig(width=3, acceptance=1.0)
    none = SpeculationConfig(width=3, acceptance=0.0)
    assert set(steps_of_answers(rng, every, 400, 10)) == {100}
    assert set(steps_of_answers(rng, none, 400, 10)) == {400}
    assert set(steps_of_answers(rng, None, 400, 10)) == {400}
    some = SpeculationConfig(width=3, acceptance=0.7)
    steps = steps_of_answers(rng, some, 4000, 4000)
    # At most one step is begun that brings more than is missing.
    assert abs(steps.mean() - 4000 / tokens_per_step(some)) < 1 + 6.1 * steps.std() / np.sqrt(steps.size)
