"""Mitigations in whole experiments: what of a step they change, and what they leave alone."""

import jax
import numpy as np
import pytest

from mc.experiment import run
from mc.experiment.quiet_step import build_quiet
from mc.experiment.training_draws import draws_of_training
from mc.experiment.training_noise import persistent_factors
from mc.training import batch_of, pipelines
from tests.experiment.test_run_training import TEXT as TRAINING
from tests.experiment.test_run_training import noisy
from tests.stats import assert_same_law

BARRIER = """
name: barrier
cluster:
  name: one tier
  chip: {name: plain, peak: {bf16: 100 TFLOP/s}, memory_bandwidth: 1 TB/s}
  tiers: [{name: node, link: {bandwidth: 100 GB/s, duplex: each, latency: 1 us}, fan_out: 32}]
  noise:
    jitter: {family: exponential, mean: 1 ms}
    slow_chips: {fraction: 10 %, slowdown: 1.5}
model: {name: plain, compute: {time: 4 ms}, exchange: {collective: all-reduce, size: 100 MB}}
plan: {ranks: 24}
run: {samples: 8000, seed: 5, realisations: 400}
"""
NOISE = """  noise:
    spread: {family: lognormal, median: 1, sigma: 0.05}
    persistent: [{scope: rank, fraction: 20 %, slowdown: 1.5}]
"""
# Gradients are reduced once all are there, so that a step is the slowest pipeline and the same for all beside.
FEW = ("run.samples=8", "run.realisations=2")
REPLICAS = (
    "plan.pp=1",
    "plan.overlap.gradients=false",
    "run.samples=80",
    "run.realisations=4",
)


def _brute(key, *, started=24, removed=0, steps=1):
    """Computing of every rank, [realisations, steps, ranks], seconds, and the factors of the chips that are left."""
    random = np.random.default_rng(key)
    factor = np.sort(np.where(random.random((400, started + removed)) < 0.1, 1.5, 1.0), axis=1)[:, :started]
    jitter = random.exponential(1e-3, (400, 20, steps, started)).mean(axis=2)
    return factor[:, None] * (4e-3 + jitter)


@pytest.mark.parametrize(
    ("keys", "told", "place"),
    [
        (("drop_slowest=3",), {}, -4),
        (("backup_workers=2",), {"started": 26}, -3),
        (("remove_slowest=8",), {"removed": 8}, -1),
        (("local_steps=4", "drop_slowest=10 %"), {"steps": 4}, -3),
    ],
)
def test_steps_are_those_of_every_rank_and_parts_add_up(load, keys, told, place):
    found = run(load(BARRIER, *(f"mitigations.{key}" for key in keys)))
    expected = np.sort(_brute(1, **told), axis=2)[:, :, place]
    exchange = sum(float(found.parts[name]) for name in ("bandwidth", "latency_floor"))
    per_step = float(run(load(BARRIER, "run.samples=400")).parts["bandwidth"]) / float(
        found.parts["bandwidth"]
    )
    assert per_step == pytest.approx(told.get("steps", 1))
    # Realisations are what is independent.
    assert_same_law(found.samples.mean(axis=1) - exchange, expected.mean(axis=1))
    np.testing.assert_allclose(found.waterfall.total, found.samples.mean(), rtol=1e-6)


def test_late_exchanges_hide(load):
    keys = ("run.samples=400", "run.realisations=10")
    now, late = (run(load(BARRIER, *keys, *more)) for more in ((), ("mitigations.delayed_sync=1",)))
    names = ("bandwidth", "latency_floor")
    exposed = [sum(each.parts[name].mean() for name in names) for each in (now, late)]
    assert exposed[1] < 0.2 * exposed[0]
    assert late.samples.mean() < now.samples.mean()
    np.testing.assert_allclose(late.waterfall.total, late.samples.mean(), rtol=1e-6)


def test_of_replicas_the_slowest_are_dropped(load):
    results = [
        run(load(noisy(NOISE, TRAINING), *REPLICAS, *more)) for more in ((), ("mitigations.drop_slowest=2",))
    ]
    config = load(noisy(NOISE, TRAINING), *REPLICAS)
    draws = draws_of_training(config, jax.random.key(3, impl="threefry2x32"))
    step, less = draws.step, []
    for realisation in range(4):
        met = draws.conditions(realisation, 0)
        finish = pipelines(step.timetable, step.work, step.noise, step.sent, met.kept, met.key, met.sample)
        done = np.sort(np.asarray(batch_of(finish.makespan, 4), np.float64), axis=-1)
        less.append((done[:, -1] - done[:, -3])[:20])
    found = results[0].samples - results[1].samples
    np.testing.assert_allclose(found, less, rtol=0, atol=1e-6 * results[0].samples.max())
    first, second = (each.training for each in results)
    assert first is not None
    assert second is not None
    # Half of the samples count.
    speed = results[0].samples.mean() / results[1].samples.mean()
    assert second.tokens_per_s.value == pytest.approx(first.tokens_per_s.value * speed / 2, rel=1e-6)
    assert second.mfu.value == pytest.approx(first.mfu.value * speed / 2, rel=1e-6)


@pytest.mark.parametrize("hall", ["25 GB/s", "300 MB/s"])
def test_without_noise_replicas_that_seldom_meet_are_closed_forms(load, hall):
    """A replica on its own is a job with one replica, and half of the batch."""
    keys = (f"cluster.tiers.2.link.bandwidth={hall}", "plan.order=[tp, cp, pp, dp]", *FEW)
    alone = float(build_quiet(load(TRAINING, "plan.ranks=4", "plan.global_batch=2", *keys)).breakdown.step)
    quiet = build_quiet(load(TRAINING, *keys)).breakdown
    together, reduce = float(quiet.step), float(quiet.meeting.reduce)
    assert together > alone
    # Nothing but gradients crosses the hall.
    assert quiet.meeting.free == (1.0, 1.0)
    for key, expected in (
        ("local_steps=4", (3 * alone + together) / 4),
        ("delayed_sync=1", max(alone, reduce)),
        ("delayed_sync=3", max(alone, reduce)),
    ):
        found = run(load(TRAINING, *keys, f"mitigations.{key}"))
        np.testing.assert_allclose(found.samples, expected, rtol=1e-5)
        assert found.waterfall.total == pytest.approx(expected, rel=1e-5)
        assert float(
            build_quiet(load(TRAINING, *keys, f"mitigations.{key}")).breakdown.step
        ) == pytest.approx(expected)
    if hall == "300 MB/s":
        assert reduce > alone
        both = run(load(TRAINING, *keys, "mitigations.delayed_sync=1", "mitigations.local_steps=8"))
        np.testing.assert_allclose(both.samples, max(alone, reduce / 8), rtol=1e-5)


def test_replicas_that_seldom_meet_are_those_of_every_step(load):
    """By hand from the same pipelines: sums of steps that are waited for once, and the recursion of late exchanges."""
    keys = (*REPLICAS, "cluster.tiers.2.link.bandwidth=2 GB/s", "run.samples=12", "run.realisations=2")
    config = load(noisy(NOISE, TRAINING), *keys)
    draws = draws_of_training(config, jax.random.key(3, impl="threefry2x32"))
    step, meeting = draws.step, draws.step.quiet.breakdown.meeting
    rest = meeting.optimizer + meeting.fixed + sum(meeting.blocking.values())
    early, count = 32, 6

    def makespans(realisation, numbers):
        met = draws.conditions(realisation, 0)
        number = jax.numpy.asarray(numbers.astype(np.uint32))
        finish = pipelines(step.timetable, step.work, step.noise, step.sent, met.kept, met.key, number)
        return np.asarray(batch_of(finish.makespan, 4), np.float64)

    local = run(load(noisy(NOISE, TRAINING), *keys, "mitigations.local_steps=3"))
    late = run(load(noisy(NOISE, TRAINING), *keys, "mitigations.delayed_sync=2"))
    for realisation in range(2):
        rounds = makespans(realisation, np.arange(3 * count)).reshape(count, 3, 4).sum(axis=1).max(axis=1)
        expected = (rounds + 3 * rest + meeting.reduce) / 3
        np.testing.assert_allclose(local.samples[realisation], expected, rtol=1e-5)
        own = makespans(realisation, np.arange(-early - 16, count)) + rest
        done, ended = np.zeros(4), [0.0, 0.0, 0.0]
        for each in own:
            done = np.maximum(done, ended[-3]) + each
            ended.append(max(done.max(), ended[-1]) + float(meeting.reduce))
        np.testing.assert_allclose(late.samples[realisation], np.diff(ended)[-count:], rtol=1e-5)
    # Who is late by chance is not waited for at once.
    assert late.samples.mean() < run(config).samples.mean()


def test_backups_of_replicas_take_chips_and_keep_all_samples(load):
    keys = ("plan.ranks=all", "mitigations.backup_workers=1", "plan.global_batch=6", *REPLICAS)
    config = load(noisy(NOISE, TRAINING), *keys)
    assert (config.ranks, config.chips, config.dp) == (6, 8, 3)
    step = draws_of_training(config, jax.random.key(3, impl="threefry2x32")).step
    # Four replicas work as those three do, of whom as many as are needed are waited for.
    assert (step.quiet.plan.dp, step.quiet.plan.global_batch, step.dropped) == (3, 6, 1)
    assert step.factor.shape[1:] == (1, 4, 2)
    assert config.useful == 1


def test_without_the_slowest_chips_ranks_have_the_others(load):
    config = load(noisy(NOISE, TRAINING), "plan.ranks=4", "mitigations.remove_slowest=4", *REPLICAS[:2])
    key = jax.random.key(3, impl="threefry2x32")
    found = persistent_factors(config, build_quiet(config).lockstep, key, 200)
    slow = (found > 1).sum(axis=(1, 2, 3))
    # Of eight chips the four fastest: some slow one is left where more than four are slow.
    whole = persistent_factors(
        load(noisy(NOISE, TRAINING), *REPLICAS[:2]),
        build_quiet(load(TRAINING, *REPLICAS[:2])).lockstep,
        key,
        200,
    )
    expected = np.maximum((whole > 1).sum(axis=(1, 2, 3)) - 4, 0)
    np.testing.assert_array_equal(slow, expected)


def test_spares_wait_for_failures(load):
    failures = "failures: {mtbf_per_chip: 2 h, restart: 1 min, checkpoint_write: 1 s, replacement: 1 h}\n"
    keys = ("plan.ranks=4", "plan.pp=1", "run.samples=4")
    found = [
        run(load(TRAINING + failures, *keys, *more)).training for more in ((), ("mitigations.hot_spares=4",))
    ]
    waiting = [each.goodput.waiting for each in found if each is not None and each.goodput is not None]
    assert waiting[1] < waiting[0] / 10


def test_a_grid_of_every_rank_is_refused(load):
    with pytest.raises(Exception, match=r"run\.method: expected `exact` or `direct`"):
        run(load(BARRIER, "run.method=grid", "mitigations.drop_slowest=3"))
