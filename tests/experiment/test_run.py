"""A whole experiment against closed forms: what goes in by file comes out as the theory says."""

import numpy as np
import pytest
from scipy import stats

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
def load(load):
    return lambda text=PLAIN, *overrides: load(text, *overrides)


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


def _with_congestion(text, congestion):
    return text.replace("fan_out: 16\n", f"fan_out: 16\n      congestion: {congestion}\n")


EPISODES = "{shared_by: node, states: [{name: idle, probability: 90 %}, {name: busy, probability: 10 %, slowdown: 3, holding: 20}]}"


def test_links_that_remember_make_steps_alike(load):
    result = run(load(_with_congestion(PLAIN, EPISODES), "run.samples=20000", "run.realisations=400"))
    transfer = 254 / 128 * 128e3 / 10e9
    congestion = result.parts["congestion"]
    assert congestion.shape == (400, 50)
    busy = congestion > transfer
    np.testing.assert_allclose(congestion[busy], 2 * transfer, rtol=1e-5)
    # Each realisation starts from the stationary law; in the next step all 16 links are idle again if none begins.
    assert_fraction(int((~busy[:, 0]).sum()), 400, 0.9**16)
    quiet = ~busy[:, :-1]
    begins = 0.1 / 0.9 / 20
    assert_fraction(int((~busy[:, 1:])[quiet].sum()), int(quiet.sum()), (1 - begins) ** 16)
    # The interval knows: the same steps, taken as independent, would promise more than they hold.
    wide = result.estimates.mean
    assert wide.high - wide.low > 2 * 3.92 * result.samples.std() / np.sqrt(result.samples.size)
    assert result.waterfall.total == pytest.approx(wide.value, rel=1e-9)


def test_growing_load_bends_the_speed_up(load):
    growing = EPISODES.replace(", holding: 20", "").replace(
        "{shared_by", "{growth: {per_doubling: 0.5, at_ranks: 16}, shared_by"
    )
    for ranks, log_odds in ((16, 0.0), (128, 1.5)):
        result = run(load(_with_congestion(PLAIN, growing), f"plan.ranks={ranks}", "run.samples=20000"))
        odds = np.exp(log_odds) / 9
        idle = (1 / (1 + odds)) ** (ranks / 8)
        assert_fraction(int((result.parts["congestion"] == 0).sum()), 20_000, idle)


def test_many_paths_are_counted(load):
    spread = EPISODES.replace(", holding: 20", "").replace("{shared_by", "{spread: {paths: 9}, shared_by")
    result = run(load(_with_congestion(PLAIN, spread), "run.samples=20000"))
    assert result.samples.shape == (1, 20_000)
    rng = np.random.default_rng(3)
    busy = rng.binomial(9, 0.1, (20_000, 16)).max(axis=1)
    transfer = 254 / 128 * 128e3 / 10e9
    expected = (9 / (9 - busy * 2 / 3) - 1) * transfer
    assert_same_law(np.round(result.parts["congestion"] * 1e9), np.round(expected * 1e9))


def test_nodes_pause_together_and_racks_stay_slow(load):
    noise = (
        "  noise:\n"
        "    persistent: [{scope: pod, fraction: 30 %, slowdown: 2}, {scope: node, fraction: 10 %, slowdown: 1.5}]\n"
        "    transient: [{scope: node, pauses: {probability: 5 %, delay: {family: constant, value: 1 ms}}},"
        " {scope: all, pauses: {probability: 20 %, delay: {family: constant, value: 10 ms}}}]\n"
    )
    result = run(load(PLAIN.replace("model:\n", noise + "model:\n"), "run.realisations=2000"))
    compute = result.parts["compute"] + result.parts["straggler_wait"]
    rng = np.random.default_rng(5)
    shape = (20_000, 16)
    node = 1e-4 + 1e-3 * (rng.random(shape) < 0.05)
    node = node * np.where(rng.random(shape) < 0.1, 1.5, 1.0)
    whole = node.max(axis=1) * np.where(rng.random(20_000) < 0.3, 2.0, 1.0) + 1e-2 * (
        rng.random(20_000) < 0.2
    )
    assert_same_law(np.round(compute[:, 0] * 1e6), np.round(whole * 1e6))
    assert float(np.mean(result.parts["compute"])) == pytest.approx(
        1.3 * 1.05 * (1e-4 + 5e-5) + 2e-3, rel=1e-3
    )
    assert result.waterfall.total == pytest.approx(result.estimates.mean.value, rel=1e-9)


def test_incast_makes_a_direct_all_to_all_longer(load):
    text = PLAIN.replace("collective: all-reduce", "collective: all-to-all").replace("ring", "direct")
    port = "      incast: {buffer: 1 MB, window: 100 kB, penalty: 50 %}\n"
    plain, crowded = run(load(text)), run(load(text.replace("fan_out: 16\n", "fan_out: 16\n" + port)))
    parts = {part.name: part.time.value for part in crowded.waterfall.parts}
    assert parts["congestion"] == pytest.approx(0.5 * (1 - 10 / 127) * parts["bandwidth"], rel=1e-4)
    assert crowded.estimates.mean.value == pytest.approx(
        plain.estimates.mean.value + parts["congestion"], rel=1e-6
    )


def test_older_chips_are_waited_for(load):
    mixed = PLAIN.replace(
        "      fan_out: 8\n", "      fan_out: 8\n      exceptions: [{units: 3, slowdown: 1.5}]\n"
    )
    result = run(load(mixed))
    compute = result.parts["compute"] + result.parts["straggler_wait"]
    np.testing.assert_allclose(compute, 150e-6, rtol=1e-5)
    assert float(np.mean(result.parts["compute"])) == pytest.approx(100e-6 * (1 + 0.5 / 16), rel=1e-5)
    assert result.samples.shape == (1, 5000)
