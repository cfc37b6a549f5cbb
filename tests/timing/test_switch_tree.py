"""The law of a tree of switches against brute force, closed forms, and the executor on its schedule."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mc.delays import Exponential, Lognormal, ParameterError
from mc.schedules import build
from mc.timing import Links, SwitchTier, completion, gather_law, program_of, round_trip_law
from tests.stats import assert_fraction, assert_law

KEY = jax.random.key(20261202)
THETA = 1e-6


def up(jitter, fan_ins, trials, rng, leaves):
    """All inputs of all switches of a tree, level by level."""
    state = np.zeros((leaves, trials), np.float32)
    for radix in fan_ins:
        state = state + jitter(rng, state.shape).astype(np.float32)
        state = np.stack([state[i : i + radix].max(0) for i in range(0, state.shape[0], radix)])
    assert state.shape[0] == 1
    return state[0]


def exponential(rng, shape):
    return rng.exponential(THETA, shape)


def test_quantiles_of_4096_leaves_agree_with_brute_force():
    law = round_trip_law([SwitchTier(4096, 16, Exponential(THETA))], 4096)
    rng = np.random.default_rng(3)
    trials = [
        up(exponential, (16, 16, 16), 500, rng, 4096) + up(exponential, (16, 16, 16), 500, rng, 4096)
        for _ in range(8)
    ]
    times = np.concatenate(trials)
    for level in (0.01, 0.1, 0.5, 0.9, 0.99):
        time = float(law.quantile(jnp.log1p(-level)))
        assert_fraction(np.count_nonzero(times > time), times.size, 1 - level)


@pytest.mark.parametrize(
    ("leaves", "fan_ins"), [(9, (9,)), (100, (8, 8, 8)), (77, (8, 8, 8)), (65, (8, 8, 8))]
)
def test_incomplete_trees_too(leaves, fan_ins):
    law = gather_law([SwitchTier(leaves, fan_ins[0], Exponential(THETA))], leaves)
    levels = fan_ins[: int(np.ceil(np.log(leaves) / np.log(fan_ins[0]) - 1e-9))]
    times = up(exponential, levels, 20_000, np.random.default_rng(leaves), leaves)
    assert_law(times, lambda t: -np.expm1(np.asarray(law.log_survival(jnp.asarray(t)), np.float64)))


def test_one_switch_is_the_slowest_of_its_inputs():
    law = gather_law([SwitchTier(40, 64, Exponential(THETA))], 40)
    level = np.array([0.001, 0.5, 0.999])
    wanted = stats.expon(scale=THETA).ppf(level ** (1 / 40))
    np.testing.assert_allclose(law.quantile(jnp.log1p(-level)), wanted, rtol=2e-3)


def test_the_executor_runs_the_same_tree():
    """Two tiers with radices of their own, the last unit incomplete."""
    tiers = [SwitchTier(8, 4, Exponential(THETA)), SwitchTier(5, 3, Lognormal(2e-6, 0.7))]
    n = 36
    schedule = build("all-reduce", "in-network", n, units=(8, 5), radix=(4, 3))
    tier_of_switch = np.concatenate([np.zeros(n, int), schedule.switch_tiers])

    def crossing(source, target):
        # An edge belongs to the tier of its upper end.
        return np.maximum(tier_of_switch[source], tier_of_switch[target])

    program = program_of(schedule, crossing=crossing)
    links = Links([0.0, 0.0], [1e9, 1e9], tuple(tier.jitter for tier in tiers))
    times = completion(program, links, 0.0, KEY, 20_000)
    law = round_trip_law(tiers, n)
    assert_law(times, lambda t: -np.expm1(np.asarray(law.log_survival(jnp.asarray(t)), np.float64)))


def test_arrivals_are_part_of_the_way_up_only():
    tier = SwitchTier(16, 16, None)
    law = round_trip_law([tier], 16, start=Exponential(1e-4))
    level = np.array([0.01, 0.5, 0.99])
    wanted = stats.expon(scale=1e-4).ppf(level ** (1 / 16))
    np.testing.assert_allclose(law.quantile(jnp.log1p(-level)), wanted, rtol=2e-3)


def test_a_million_leaves_grow_as_the_depth():
    law = Exponential(THETA)
    medians = [
        float(round_trip_law([SwitchTier(64**depth, 64, law)], 64**depth).quantile(jnp.log(0.5)))
        for depth in (1, 2, 3)
    ]
    # Each further level adds its slowest input, up and down, or less: the slowest subtree need not have it.
    slowest = 2 * THETA * np.sum(1 / np.arange(1, 65))
    assert (np.diff(medians) > 2 * THETA).all()
    assert (np.diff(medians) < 1.7 * slowest).all()


def test_nothing_random_is_no_law():
    assert round_trip_law([SwitchTier(8, 8), SwitchTier(4, 2)], 32) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SwitchTier(0, 8), "units: expected a whole number of at least 1; got 0"),
        (lambda: SwitchTier(8, 1), "radix: expected a whole number of at least 2; got 1"),
        (
            lambda: gather_law([SwitchTier(8, 8)], 9),
            "ranks: expected 1 to 8, as many as the tiers join; got 9",
        ),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ParameterError) as error:
        call()
    assert message in str(error.value)
