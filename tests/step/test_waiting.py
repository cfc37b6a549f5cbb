"""Steps that do not wait for everybody at once, against closed forms and against NumPy, rank by rank."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mc.delays import Exponential, Lognormal, Shifted
from mc.step import Compute, Persistent, SharedNoise, Step, build_waiting, draw_classes, without_slowest
from mc.step.delayed import draw_delayed, warm_up
from mc.step.mitigated import MitigatedStep
from tests.stats import assert_same_law

COUNT, RANKS, SLOW = 8_000, 24, 1.5
NOISE = np.random.default_rng(11)


def _drawn(key, compute, classes=None, realisations=1, **told) -> np.ndarray:
    compute, waiting = build_waiting(compute, started=RANKS, **told)
    step = MitigatedStep(Step(compute, ()), waiting)
    draw = eqx.filter_jit(lambda step, key, cells, classes: step.draw(key, cells, cells, classes, size=size))
    size = COUNT // realisations
    return np.asarray(draw(step.prepared(), key, jnp.arange(realisations), classes).compute)


def _alike(**more) -> Compute:
    return Compute(Shifted(Exponential(1.0), 2.0), RANKS, **more)


def test_sums_of_exponentials_are_gamma_and_the_slowest_of_these_is_waited_for(key):
    times = 2 + NOISE.gamma(4, 1 / 4, (COUNT, RANKS))
    assert_same_law(_drawn(key, _alike(), local_steps=4, dropped=3), np.sort(times, axis=1)[:, -4])
    # Every rank and step drawn.
    assert_same_law(
        _drawn(key, _alike(), local_steps=4, dropped=3, method="direct"), np.sort(times, axis=1)[:, -4]
    )


def test_of_slow_and_healthy_ranks_the_slowest_are_dropped(key):
    persistent = (Persistent("slow", 1, 0.2, SLOW),)
    compute = Compute(Lognormal(1.0, 0.1), RANKS, persistent)
    classes = draw_classes(persistent, RANKS, key, 400)
    slow = NOISE.binomial(RANKS, 0.2, 400)
    factors = np.where(np.arange(RANKS) < slow[:, None], SLOW, 1.0)
    times = factors[:, None] * NOISE.lognormal(0, 0.1, (400, COUNT // 400, RANKS))
    expected = np.sort(times, axis=2)[:, :, -4].ravel()
    # Realisations are the units that are independent, so their means are compared.
    few = _drawn(key, compute, classes, 400, dropped=3)
    every = _drawn(key, compute, classes, 400, dropped=3, method="direct")
    for found in (few, every):
        assert_same_law(found.mean(axis=1), expected.reshape(400, -1).mean(axis=1))


def test_units_that_share_noise_are_dropped_rank_by_rank(key):
    shared = (SharedNoise(6, jitter=Exponential(1.0)),)
    compute = Compute(Lognormal(1.0, 0.1), RANKS, (), shared)
    nodes = NOISE.exponential(1.0, (COUNT, RANKS // 6)).repeat(6, axis=1)
    times = NOISE.lognormal(0, 0.1, (COUNT, RANKS)) + nodes
    assert_same_law(_drawn(key, compute, dropped=7), np.sort(times, axis=1)[:, -8])


def test_a_factor_that_ranks_share_in_each_of_several_steps(key):
    compute = Compute(Exponential(1.0), RANKS, (), (), (SharedNoise(RANKS, Lognormal(1.0, 0.5)),))
    times = NOISE.exponential(1.0, (COUNT, RANKS, 3)) * NOISE.lognormal(0, 0.5, (COUNT, 1, 3))
    assert_same_law(_drawn(key, compute, local_steps=3), times.mean(axis=2).max(axis=1))


def test_without_the_slowest_chips_the_others_stay(key):
    persistent = (Persistent("slow", 1, 0.2, SLOW), Persistent("spread", 1, spread=Lognormal(1.0, 0.1)))
    compute = Compute(Exponential(1.0), RANKS, persistent)
    before = draw_classes(persistent, RANKS + 4, key, 50)
    after, ratio = without_slowest(before, compute, 4)
    assert np.asarray(after.counts).sum(axis=1) == pytest.approx(RANKS)
    from mc.step import factors

    own = np.asarray(jax.vmap(lambda each: factors(persistent, each))(before))
    for row in range(50):
        ranks = np.sort(np.repeat(own[row], np.asarray(before.counts)[row].astype(int)))
        left = np.sort(np.repeat(own[row], np.asarray(after.counts)[row].astype(int)))
        np.testing.assert_array_equal(left, ranks[:RANKS])
    assert 0.8 < ratio < 1


def _delayed(times: np.ndarray, took: np.ndarray, staleness: int) -> np.ndarray:
    """Steps of a sequence, event by event."""
    done, over = np.zeros(times.shape[1]), [0.0] * (staleness + 1)
    for own, last in zip(times, took, strict=True):
        done = np.maximum(done, over[-1 - staleness]) + own
        over.append(max(done.max(), over[-1]) + last)
    return np.diff(over[staleness:])


@pytest.mark.parametrize("staleness", [1, 3])
def test_exchanges_that_may_be_late_are_a_recursion(key, staleness):
    steps, ranks = warm_up(staleness) + 200, 5
    keys = [jax.random.fold_in(key, index) for index in range(steps)]
    drawn = np.asarray([jax.random.exponential(each, (ranks,)) for each in keys], np.float64)
    took = NOISE.exponential(0.5, (2, steps))
    found = draw_delayed(
        lambda own: jax.random.exponential(own, (ranks,)),
        jnp.asarray(took, jnp.float32),
        staleness,
        ranks,
        key,
    )
    for row in range(2):
        np.testing.assert_allclose(
            found[row], _delayed(drawn, took[row], staleness)[-200:], rtol=0, atol=1e-4
        )


def test_a_late_exchange_hides_behind_steps_up_to_the_link(key):
    # Computing takes 1 and an exchange 0.6: all of it hides. One of 1.5 is what steps take.
    nobody_waits = draw_delayed(lambda _: jnp.ones(3), jnp.full((1, 100), 0.6), 1, 3, key)
    np.testing.assert_allclose(nobody_waits, 1.0, rtol=1e-5)
    the_link_decides = draw_delayed(lambda _: jnp.ones(3), jnp.full((1, 100), 1.5), 1, 3, key)
    np.testing.assert_allclose(the_link_decides, 1.5, rtol=1e-5)
