"""Noise of passes: by the law of the maximum and rank by rank alike; pipelines by the recursion, written out."""

import jax
import numpy as np
import pytest
from scipy import stats

from mc.experiment.build_serving import disturbances, server_of
from mc.experiment.run_serving import windows
from mc.inference import WARM_UP, draw_stages, rounds
from tests.inference.servers import experiment

NOISE = {
    "spread": {"family": "lognormal", "median": 1, "sigma": 0.1},
    "kernels": {"spread": {"family": "lognormal", "median": 1, "sigma": 0.3}},
}
LINKS = {
    "jitter": {"family": "exponential", "mean": "2 us"},
    "congestion": {
        "shared_by": "node",
        "states": [
            {"name": "idle", "probability": 0.7},
            {"name": "busy", "probability": 0.3, "slowdown": 3, "delay": "5 us"},
        ],
    },
}


def drawn(method, count, seed, *, noise=None, tier=None):
    config = experiment({"tp": 4, "batch": 8}, noise=noise, tier=tier)
    server, key = server_of(config), jax.random.key(seed, impl="threefry2x32")
    found = disturbances(config, server, server.layout, 8, key, 1)
    return server, draw_stages(server.decode(8).passes, found, key, count, method)


@pytest.mark.parametrize(("noise", "tier"), [(NOISE, None), (None, LINKS)], ids=["ranks", "links"])
def test_exact_and_direct_have_one_law(noise, tier):
    """Kolmogorov and Smirnov at 1e-9."""
    ways = [
        drawn(method, 3000, seed, noise=noise, tier=tier)[1].links[0, 0]
        for method, seed in (("exact", 1), ("direct", 2))
    ]
    # Kernels and ranks that both differ are bounded from above, by less than this part of a step.
    shift = 0.002 * ways[0].mean() if noise else 0.0
    assert min(float(stats.ks_2samp(ways[0] - each, ways[1])[1]) for each in (0.0, shift / 2, shift)) > 1e-9


def test_without_noise_steps_are_alike():
    server, found = drawn("exact", 10, 0)
    assert np.all(found.links == server.decode(8).passes[0].at().seconds)


def test_more_ranks_wait_longer():
    """A rank's noise of exponential law has its slowest of n at θ·H_n, by the harmonic number."""
    mean = 1e-3
    config = experiment({"tp": 8, "batch": 8}, noise={"jitter": {"family": "exponential", "mean": "1 ms"}})
    server, key = server_of(config), jax.random.key(7, impl="threefry2x32")
    found = disturbances(config, server, server.layout, 8, key, 1)
    times = draw_stages(server.decode(8).passes, found, key, 20_000, "exact").ranks[0, 0]
    added = times - server.decode(8).passes[0].at().seconds
    exact = mean * sum(1 / n for n in range(1, 9))
    assert abs(added.mean() - exact) < 6.1 * added.std() / np.sqrt(added.size)


def recursion(times, transfer):
    """The same, part by part in Python floats."""
    stages, realisations, count = times.shape
    found = np.empty((realisations, count // stages))
    for place in range(realisations):
        ends, free, before = np.zeros(stages), np.zeros(stages), 0.0
        for number in range(count // stages):
            for part in range(stages):
                ready = ends[part]
                for stage in range(stages):
                    free[stage] = max(ready, free[stage]) + times[stage, place, number * stages + part]
                    ready = free[stage] + transfer
                ends[part] = free[-1]
            found[place, number] = free[-1] - before
            before = free[-1]
    return found[:, WARM_UP:]


def test_rounds_are_those_of_the_recursion():
    times = np.random.default_rng(2).exponential(1.0, (3, 2, 3 * 40))
    np.testing.assert_allclose(rounds(times, 0.2), recursion(times, 0.2), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("times", "transfer"), [([1.0, 1.0, 3.0], 0.1), ([1.0, 1.0, 1.0], 0.5)])
def test_rounds_without_noise(times, transfer):
    every = np.broadcast_to(np.array(times)[:, None, None], (3, 1, 3 * 30))
    wanted = max(sum(times) + 2 * transfer, 3 * max(times))
    np.testing.assert_allclose(rounds(every, transfer), wanted, rtol=1e-6)


def test_windows_go_round_and_round():
    steps = np.random.default_rng(4).random((2, 7))
    counts = np.random.default_rng(5).integers(0, 30, (2, 7))
    tiled = np.tile(steps, 6)
    wanted = [
        [tiled[row, first : first + counts[row, first]].sum() for first in range(7)] for row in range(2)
    ]
    np.testing.assert_allclose(windows(steps, counts), wanted)
