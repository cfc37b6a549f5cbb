"""A whole experiment against closed forms: what goes in by file comes out as the theory says."""

import numpy as np
import pytest
from scipy import stats

from mc.config import load_experiment
from mc.errors import InputError
from mc.experiment import build_step, run
from tests.stats import assert_fraction, assert_law, assert_same_law

PLAIN = """
name: plain
cluster:
  name: two tiers
  chip: H100
  tiers:
    - name: node
      link: {bandwidth: 100 GB/s, duplex: each, latency: 1 us}
      fan_out: 8
    - name: pod
      link: {bandwidth: 10 GB/s, duplex: each, latency: 5 us}
      fan_out: 16
model:
  name: half
  compute: {time: 100 us}
  exchange: {collective: all-reduce, size: 128 kB}
plan: {ranks: all, algorithm: ring}
run: {samples: 5000, seed: 3}
"""


@pytest.fixture
def load(tmp_path):
    def load_text(text=PLAIN, *overrides):
        path = tmp_path / "experiment.yaml"
        path.write_text(text)
        return load_experiment(path, overrides)

    return load_text


@pytest.mark.smoke
def test_without_noise_a_step_is_the_closed_form(load):
    result = run(load())
    # Ring over both tiers: 2(n−1) rounds at the outer latency, 2(n−1)/n of the message at the smaller
    # bandwidth.
    latency, transfer = 254 * 5e-6, 254 / 128 * 128e3 / 10e9
    parts = {part.name: part.time.value for part in result.waterfall.parts}
    assert parts["compute"] == pytest.approx(100e-6, rel=1e-5)
    assert parts["latency_floor"] == pytest.approx(latency, rel=1e-5)
    assert parts["bandwidth"] == pytest.approx(transfer, rel=1e-5)
    assert parts["straggler_wait"] == pytest.approx(0, abs=1e-9)
    assert result.estimates.p99.value == pytest.approx(100e-6 + latency + transfer, rel=1e-5)
    assert result.waterfall.total == pytest.approx(result.estimates.mean.value, rel=1e-9)


def test_jitter_spreads_by_the_law_of_the_slowest(load):
    noisy = PLAIN.replace("model:\n", "  noise: {jitter: {family: exponential, mean: 10 us}}\nmodel:\n")
    result = run(load(noisy))
    floor = 254 * 5e-6 + 254 / 128 * 128e3 / 10e9 + 100e-6
    assert result.samples.shape == (1, 5000)
    assert_law(result.samples - floor, lambda t: stats.expon.cdf(t, scale=10e-6) ** 128)


def test_slow_chips_are_the_same_in_all_steps_of_a_realisation(load):
    noisy = PLAIN.replace("model:\n", "  noise: {slow_chips: {fraction: 1 %, slowdown: 2}}\nmodel:\n")
    result = run(load(noisy, "run.realisations=1000"))
    assert result.samples.shape == (1000, 5)
    assert np.ptp(result.samples, axis=1).max() < 1e-9
    slow = result.parts["straggler_wait"][:, 0] > 50e-6
    assert_fraction(int(slow.sum()), slow.size, 1 - 0.99**128)


def test_congestion_comes_from_the_file(load):
    states = "congestion: {shared_by: node, states: [{name: idle, probability: 90 %}, {name: busy, probability: 10 %, slowdown: 3}]}"
    result = run(load(PLAIN.replace("fan_out: 16\n", f"fan_out: 16\n      {states}\n")))
    transfer = 254 / 128 * 128e3 / 10e9
    busy = result.parts["congestion"] > transfer
    np.testing.assert_allclose(result.parts["congestion"][busy], 2 * transfer, rtol=1e-5)
    assert_fraction(int(busy.sum()), busy.size, 1 - 0.9**16)


def test_same_seed_same_numbers(load):
    noisy = PLAIN.replace(
        "model:\n", "  noise: {spread: {family: lognormal, median: 1, sigma: 0.1}}\nmodel:\n"
    )
    first, again, other = (run(load(noisy, f"run.seed={seed}")) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.samples, again.samples)
    assert (first.samples != other.samples).mean() > 0.99


def test_more_samples_keep_the_first_ones(load):
    noisy = PLAIN.replace("model:\n", "  noise: {jitter: {family: exponential, mean: 10 us}}\nmodel:\n")
    few, many = (run(load(noisy, f"run.samples={count}")).samples[0] for count in (100, 3000))
    np.testing.assert_array_equal(few, many[:100])


def test_progress_counts_every_sample(load):
    counted = []
    run(load(), advance=counted.append)
    assert sum(counted) == 5000


def test_spread_jitter_and_pauses_add_up(load):
    noise = (
        "  noise:\n"
        "    spread: {family: lognormal, median: 1, sigma: 0.05}\n"
        "    jitter: {family: exponential, mean: 4 us}\n"
        "    pauses: {probability: 2 %, delay: {family: constant, value: 1 ms}}\n"
    )
    result = run(load(PLAIN.replace("model:\n", noise + "model:\n"), "run.samples=20000"))
    rng = np.random.default_rng(8)
    shape = (20_000, 128)
    ranks = (
        100e-6 * rng.lognormal(0, 0.05, shape)
        + rng.exponential(4e-6, shape)
        + 1e-3 * (rng.random(shape) < 0.02)
    )
    slowest = result.parts["compute"] + result.parts["straggler_wait"]
    assert_same_law(ranks.max(axis=1), slowest)


def test_impossible_algorithm_is_an_input_error(load):
    with pytest.raises(InputError, match="bruck"):
        build_step(load(PLAIN.replace("algorithm: ring", "algorithm: bruck")))
