"""Sampled pipelines against flow shops by hand, and the exact method against one that draws every rank."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mc.delays import Constant, Exponential, Lognormal
from mc.pipeline import timetable_of
from mc.training import (
    KernelNoise,
    LinksNow,
    Noise,
    RankNoise,
    Realisation,
    Sampling,
    Sent,
    UnitNoise,
    Work,
    build_lateness,
    pipelines,
    tabulate_slowness,
)
from tests.stats import assert_fraction, assert_same_law

KEY = jax.random.key(20261202, impl="threefry2x32")
MICRO_BATCHES = 3
STAGES = timetable_of("gpipe", 2, MICRO_BATCHES)
FORWARD, BACKWARD = np.array([1.0, 2.0]), np.array([2.5, 3.0])


def by_kind(forward, backward, *, mixes=1):
    """Of two stages with one part each, [mixes, kinds, stages, chunks]."""
    one = np.zeros((5, 2, 1))
    one[0, :, 0], one[1, :, 0] = forward, backward
    return jnp.asarray(np.broadcast_to(one, (mixes, 5, 2, 1)), jnp.float32)


NONE = by_kind(0.0, 0.0)


def work(tiers: int = 0, **tables):
    found = dict.fromkeys(("plain", "routed", "attention", "waiting", "routing", "host"), NONE)
    zero = jnp.zeros((tiers, *NONE.shape))
    rest = {
        "crossing": jnp.stack([zero, zero], axis=1), "messages": zero.astype(jnp.int32),
        "group": jnp.zeros(NONE.shape, jnp.int32), "layers": jnp.zeros((2, 1), jnp.int32),
    }  # fmt: skip
    return Work(**{**found, **rest, **tables})


def quiet(**others):
    return Noise(RankNoise(), None, jnp.ones(1), jnp.ones(1, jnp.int32), **others)


def kept(replicas=1, ranks=1, load=(1.0, 1.0), links=None):
    shape = (2, replicas)
    return Realisation(
        jnp.zeros(shape, jnp.int32), jnp.ones((*shape, ranks)), jnp.asarray(load, jnp.float32)[:, None], links
    )


def of_stages(values, samples=4):
    """The same in all samples, [tiers, stages, replicas, samples]."""
    return jnp.broadcast_to(jnp.asarray(values)[None, :, None, None], (1, 2, 1, samples))


def makespans(*arguments, samples=4, method: Sampling = "exact"):
    timetable, doing, noise, sent, realisation = arguments

    @jax.jit
    def run(numbers):
        return pipelines(timetable, doing, noise, sent, realisation, KEY, numbers, method=method).makespan

    found = run(jnp.arange(samples, dtype=jnp.uint32))
    return np.asarray(found, np.float64).reshape(samples, -1)


def flow_shop(forward, backward):
    """Constant jobs through two machines, all forwards first: once through both, and the longer one between jobs."""
    return sum(sum(each) + (MICRO_BATCHES - 1) * max(each) for each in (forward, backward))


def test_experts_at_a_constant_load_are_a_flow_shop():
    doing = work(
        plain=by_kind(FORWARD, BACKWARD), routed=by_kind(1.0, 2.0), waiting=by_kind(0.25, 0.25),
        routing=by_kind(0.5, 0.5), host=by_kind(0.125, 0.125),
    )  # fmt: skip
    load = np.array([1.5, 2.0])
    found = makespans(STAGES, doing, quiet(load=(Constant(1.0),)), None, kept(load=load))
    expected = flow_shop(FORWARD + 0.375 + 1.5 * load, BACKWARD + 0.375 + 2.5 * load)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_nodes_have_their_noise_in_common():
    """Two replicas on a node each, of which one lies on a third as well; stages of one chip in a row."""
    one = timetable_of("gpipe", 1, MICRO_BATCHES)
    units = jnp.asarray([[[0, 0], [1, 2]]])
    alone = {
        "routed": NONE[:, :, :1],
        "attention": NONE[:, :, :1],
        "routing": NONE[:, :, :1],
        "host": NONE[:, :, :1],
    }
    doing = work(
        plain=by_kind(1.0, 2.0)[:, :, :1], waiting=by_kind(0.25, 0.5)[:, :, :1], group=jnp.zeros((1, 5, 1, 1), jnp.int32),
        layers=jnp.zeros((1, 1), jnp.int32), crossing=jnp.zeros((0, 2, 1, 5, 1, 1)), messages=jnp.zeros((0, 1, 5, 1, 1), jnp.int32),
        tiers=0,
        **alone,
    )  # fmt: skip
    noise = UnitNoise("node", units, 3, Constant(1.5), Constant(0.125), Constant(10.0), 0.3)
    realisation = Realisation(jnp.zeros((1, 2), jnp.int32), jnp.ones((1, 2, 1)), jnp.ones((1, 1)))
    count = 4000
    found = makespans(one, doing, quiet(units=(noise,)), None, realisation, samples=count)
    # The factor is on computing; seconds come once.
    base = MICRO_BATCHES * (1.5 * 3.0 + 0.75) + 0.125
    late = found - base
    assert np.all((np.abs(late) < 1e-4) | (np.abs(late - 10.0) < 1e-4))
    paused = late > 5.0
    assert_fraction(int(paused[:, 0].sum()), count, 0.3)
    assert_fraction(int(paused[:, 1].sum()), count, 1 - 0.7**2)
    assert_fraction(int((paused[:, 0] & paused[:, 1]).sum()), count, 0.3 * (1 - 0.7**2))


def test_links_are_as_slow_as_the_slower_end():
    """Stage 0 waits on a link that is idle, stage 1 on one three times as slow, the message between by the slower."""
    doing = work(
        tiers=1, plain=by_kind(FORWARD, BACKWARD), waiting=by_kind(0.5, 0.5), messages=jnp.full((1, 1, 5, 2, 1), 2),
        crossing=jnp.stack([by_kind(0.25, 0.25), NONE])[None],
    )  # fmt: skip
    links = LinksNow(
        of_stages([1.0, 3.0]),
        of_stages([0.0, 0.125]),
        jnp.zeros((1, 2, 1, 4), jnp.int32),
    )
    sent = Sent(jnp.asarray([1.0, 2.0]), jnp.asarray([[0.5, 1.0]]), (1,), blocking=False)
    # Each message between stages is late by what four ranks' constant jitter is.
    late = build_lateness(Constant(0.0625), (None,), 4, [1, 2])
    found = makespans(STAGES, doing, quiet(late=(late,)), sent, kept(links=links))
    own = np.array([0.5, 0.5 + 2 * 0.25 + 2 * 0.125]) + 2 * 0.0625
    transfers = (1.0 + 2 * 0.5) + (2.0 + 2 * 1.0) + 2 * (0.125 + 0.0625)
    np.testing.assert_allclose(found, flow_shop(FORWARD + own, BACKWARD + own) + transfers, rtol=1e-6)


ALL = RankNoise(
    Lognormal(1.0, 0.1),
    Exponential(0.1),
    Constant(4.0),
    0.02,
    KernelNoise(Lognormal(1.0, 0.2), Exponential(0.02)),
)


@pytest.fixture(scope="module")
def both():
    """All noise of ranks, chips of two kinds, and messages that are late, by either method."""
    ranks, count, tier = 3, 4000, 1
    mix = jnp.asarray([[0, 1], [1, 1]], jnp.int32)
    seconds, stretches = np.array([1.0, 1.5]), [2, 2]
    group = np.broadcast_to(np.arange(2)[:, None, None, None], (2, 5, 2, 1))
    plain = np.concatenate([by_kind(1.0, 1.0), by_kind(1.5, 1.5)])
    ratios = np.array([[1.0, 1.0], [1 / 1.5, 1.0]])
    chip = np.zeros((2, 2, ranks), np.int32)
    chip[np.asarray(mix) == 1, 0] = 1
    factor = np.ones((2, 2, ranks))
    factor[0, 1, 2] = 1.3
    profiles = [[(1.0, 3, 0)], [(1.0, 1, 1), (1.0, 1, 0), (1.3, 1, 0)], [(1.0, 1, 1), (1.0, 2, 0)]]
    profile = jnp.asarray([[0, 1], [2, 2]], jnp.int32)
    tables = {name: jnp.zeros((2, 5, 2, 1)) for name in ("routed", "attention", "routing", "host")}
    doing = work(
        tiers=tier, plain=jnp.asarray(plain), waiting=by_kind(0.1, 0.1, mixes=2), group=jnp.asarray(group, jnp.int32),
        messages=jnp.full((1, 2, 5, 2, 1), 2), crossing=jnp.zeros((1, 2, 2, 5, 2, 1)), mix=mix, **tables,
    )  # fmt: skip
    late = build_lateness(Exponential(0.05), (None, Exponential(0.2)), ranks, [1, 2])
    noise = Noise(
        ALL.prepared(), tabulate_slowness(ALL, seconds.tolist(), profiles, stretches=stretches, ratios=ratios),
        jnp.asarray(seconds), jnp.asarray(stretches), ratio=jnp.asarray(ratios), chip=jnp.asarray(chip), late=(late,),
    )  # fmt: skip
    state = jnp.broadcast_to(jnp.asarray([[0, 1], [1, 0]], jnp.int32)[None, :, :, None], (1, 2, 2, count))
    links = LinksNow(jnp.ones(state.shape), jnp.zeros(state.shape), state)
    realisation = Realisation(profile, jnp.asarray(factor), jnp.ones((2, 1)), links)
    sent = Sent(jnp.asarray([0.1, 0.1]), jnp.zeros((1, 2)), (1,), blocking=True)
    return [
        makespans(STAGES, doing, noise, sent, realisation, samples=count, method=method)
        for method in ("exact", "direct")
    ]


def test_exact_and_direct_have_one_law(both):
    exact, direct = both
    for replica in range(2):
        assert_same_law(exact[:, replica], direct[:, replica])
    # Means agree within Monte Carlo error: 6.2 standard errors, together 2 %.
    error = np.sqrt((exact.var(axis=0) + direct.var(axis=0)) / len(exact))
    assert np.all(np.abs(exact.mean(axis=0) - direct.mean(axis=0)) < 6.2 * error)
    assert np.all(6.2 * error < 0.022 * direct.mean(axis=0))
    # Replicas are drawn one by one.
    assert abs(np.corrcoef(exact.T)[0, 1]) < 6.2 / np.sqrt(len(exact))
