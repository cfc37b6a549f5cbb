"""Scaling against closed forms: a network that costs nothing, a pipeline's flow shop, the slowest of n exponentials."""

import itertools
import math

import jax
import pytest

from mc.delays import table
from mc.delays.checks import is_known
from mc.errors import InputError
from mc.experiment.scale import ScaleError, at_size, scale
from mc.fabric import build_cluster
from mc.parallel import build_plan
from mc.training import build_chip, build_prices, evaluate
from mc.training.evaluate import loaded
from mc.transformer import build_transformer

FREE = """
name: free
cluster:
  name: free
  chip:
    name: any
    peak: {bf16: 100 TFLOP/s}
    memory_bandwidth: 1 TB/s
    memory_size: 80 GB
    efficiency: {wait: 0 s, step: 1 ms}
  tiers:
    - {name: node, link: {bandwidth: 1e18 TB/s, duplex: each, latency: 0 s}, fan_out: 4}
    - {name: pod, link: {bandwidth: 1e18 TB/s, duplex: each, latency: 0 s}, fan_out: 4}
model:
  name: little
  transformer: {layers: 8, hidden: 1024, heads: 16, kv_heads: 4, ffn: 4096, vocab: 32000}
plan: {tp: 2, pp: 4, schedule: gpipe, ranks: 16, global_batch: 16, sequence_length: 512}
"""
BARRIER = """
name: barrier
cluster:
  name: barrier
  chip: {name: any, peak: {bf16: 100 TFLOP/s}}
  tiers:
    - {name: node, link: {bandwidth: 1 TB/s, duplex: each, latency: 0 s}, fan_out: 16}
  noise: {jitter: {family: exponential, mean: 10 us}}
model: {name: wait, compute: {time: 100 us}, exchange: {collective: barrier}}
plan: {ranks: all, algorithm: dissemination}
"""


def test_on_a_free_network_weak_scaling_loses_nothing(load):
    found = scale(load(FREE), [8, 16, 64], samples=0)
    first, second, third = found.points
    assert [point.replicas for point in found.points] == [1, 2, 8]
    assert [point.global_batch for point in found.points] == [8, 16, 64]
    assert [point.micro_batches for point in found.points] == [8, 8, 8]
    for point in found.points:
        assert point.efficiency == pytest.approx(1, abs=1e-9)
        assert point.times.exposed == pytest.approx(0, abs=1e-9)
        assert point.mfu == pytest.approx(first.mfu, rel=1e-9)
        assert point.tokens_per_s == pytest.approx(point.global_batch * 512 / point.times.mean.value)
    assert first.doubling is None
    for point in (second, third):
        # The third is two doublings from the second.
        assert point.doubling.value == pytest.approx(2, rel=1e-9)
    assert (first.enlarged, second.enlarged, third.enlarged) == (None, None, 16)
    assert found.stop is None


def test_strong_scaling_is_bent_by_the_bubble_alone(load):
    """m constant jobs through machines in a row take the sum of one job and (m - 1) of the slowest machine, each way."""
    config = load(FREE, "plan.global_batch=64")
    found = scale(config, [8, 32, 128, 512], mode="strong", samples=0)
    assert [point.micro_batches for point in found.points] == [64, 16, 4, 1]
    plan = build_plan(config)
    step = evaluate(
        plan,
        build_transformer(config.model.transformer),
        build_chip(config.cluster.chip),
        build_prices(build_cluster(config.cluster), plan.protocol),
    )
    forward = [loaded(stage[0].forward) for stage in step.times.parts]
    backward = [
        loaded(stage[0].backward_input) + loaded(stage[0].backward_weight) for stage in step.times.parts
    ]

    def pipeline(batches):
        return sum(sum(way) + (batches - 1) * max(way) for way in (forward, backward))

    rest = step.meeting.optimizer + step.meeting.fixed
    for point in found.points:
        assert point.times.mean.value == pytest.approx(pipeline(point.micro_batches) + rest, rel=1e-6)
    for before, after in itertools.pairwise(found.points):
        ratio = (pipeline(before.micro_batches) + rest) / (pipeline(after.micro_batches) + rest)
        # Each size is two doublings from the last.
        assert after.doubling.value == pytest.approx(math.sqrt(ratio), rel=1e-6)
        assert after.efficiency < before.efficiency
        assert before.tokens_per_s < after.tokens_per_s < 4 * before.tokens_per_s
    brought = [point.doubling.value for point in found.points[1:]]
    assert brought == sorted(brought, reverse=True)
    assert found.worth == 1.5
    assert (found.stop, brought[1] > 1.5 > brought[2]) == (3, True)


def test_stragglers_are_the_slowest_of_so_many(load):
    samples = 4000
    found = scale(load(BARRIER), [1, 4, 64], samples=samples)
    for point in found.points:
        harmonic = [sum(1 / each**power for each in range(1, point.chips + 1)) for power in (1, 2)]
        # Mean and variance of the slowest of n exponentials; 6.2 standard errors are passed once in a billion.
        tolerance = 6.2 * 10e-6 * math.sqrt(harmonic[1] / samples)
        mean = point.times.mean.value
        assert mean == pytest.approx(100e-6 + 10e-6 * harmonic[0], abs=tolerance)
        assert point.times.straggler.value * mean == pytest.approx(
            10e-6 * (harmonic[0] - 1), abs=tolerance + 1e-9
        )
        assert point.times.p50.value < point.times.p99.value
        assert point.work == point.chips / 16
    one, four, many = found.points
    assert 1 == one.efficiency > four.efficiency > many.efficiency
    assert many.enlarged == 64
    assert many.doubling.low < many.doubling.value < many.doubling.high
    ratio = 16 * four.times.mean.value / many.times.mean.value
    assert many.doubling.value == pytest.approx(ratio**0.25)


def test_the_tables_of_a_law_are_compiled_once_for_all_sizes(load, monkeypatch):
    traced, given = [], []
    bisect, tabled = table.bisect_bits, table._table
    monkeypatch.setattr(table, "bisect_bits", lambda *each: traced.append(1) or bisect(*each))
    monkeypatch.setattr(table, "_table", lambda law: given.extend(jax.tree.leaves(law)) or tabled(law))
    pod = "    - {name: pod, link: {bandwidth: 1 GB/s, duplex: each, latency: 0 s}, fan_out: 4}\n"
    pauses = "noise: {pauses: {probability: 1 %, delay: {family: exponential, mean: 1 ms}}, "
    experiment = load(BARRIER.replace("  noise: {", pod + "  " + pauses))
    scale(experiment, [8], samples=10)
    before = len(traced)
    # Within a node and beyond; with and without more units.
    scale(experiment, [4, 48, 100], samples=10)
    assert len(traced) == before
    # As a program of its own, not as a part of one that has the sizes in it.
    assert given
    assert all(map(is_known, given))


def test_strong_scaling_shares_what_is_computed(load):
    found = scale(load(BARRIER), [4, 8], mode="strong", samples=0)
    # The mean of one rank's jitter belongs to the noise.
    assert [point.times.mean.value for point in found.points] == pytest.approx([400e-6, 200e-6], rel=1e-5)
    assert found.points[1].doubling.value == pytest.approx(2, rel=1e-5)


def test_sizes_that_cannot_be_say_why(load):
    config = load(FREE, "plan.ranks=16", "plan.global_batch=16")

    def why(chips, mode="weak", config=config):
        with pytest.raises(InputError) as caught:
            at_size(config, chips, mode)
        return str(caught.value)

    assert why(4) == "one replica takes tp 2 x pp 4 = 8 chips"
    assert why(12) == "no whole number of replicas, each of tp 2 x pp 4 = 8 chips"
    assert "expected whole micro-batches; 16 / (dp 32 x micro_batch 1) = 0.5" in why(256, "strong")
    experts = "model.transformer.experts={count: 8, top_k: 2, ffn: 1024}"
    mixture = load(FREE, experts, "plan.tp=1", "plan.ep=4")
    assert "etp 1 x ep 4 = 4 to divide tp 1 x cp 1 x dp 2 = 2" in why(8, config=mixture)
    torus = load(BARRIER, "cluster.tiers.0.shape={kind: torus, dims: 4x4}")
    assert "the torus `node`, cannot be enlarged" in why(32, config=torus)
    with pytest.raises(ScaleError, match="got none: one replica takes tp 2 x pp 4 = 8 chips"):
        scale(config, [1, 2], samples=0)


def test_what_does_not_fit_is_timed_and_marked(load):
    found = scale(load(FREE, "cluster.chip.memory_size=1 GB"), [8], samples=0)
    (point,) = found.points
    assert "too much" in point.problem
    assert point.memory > 0.98e9
    assert point.times.mean.value > 0
