"""Elasticities of a transformer's sampled step: the gradient of its draws against steps that are drawn again."""

import jax
import numpy as np
import pytest

from mc.config import load_experiment
from mc.config.figures import figure_at, with_figures
from mc.experiment.run_training import draw_training
from mc.sensitivity import sensitivity

TEXT = """
name: little
cluster:
  name: small
  chip:
    name: any
    peak: {bf16: 300 TFLOP/s}
    memory_bandwidth: 1 TB/s
    memory_size: 80 GB
    efficiency: {launch: 0 s, collective_launch: 0 s, pass_launch: 0 s}
  tiers:
    - {name: pod, link: {bandwidth: 20 GB/s, duplex: each, latency: 10 us}, fan_out: 4}
  noise:
    spread: {family: lognormal, median: 1, sigma: 0.05}
    transient: [{scope: all, pauses: {probability: 0.5, delay: {family: exponential, mean: 20 ms}}}]
model: {name: little, transformer: {layers: 2, hidden: 1024, heads: 8, ffn: 4096, vocab: 8000}}
plan: {pp: 2, dp: 2, global_batch: 4, sequence_length: 512}
run: {samples: 24, confidence: 0.999}
"""
PATHS = (
    "cluster.chip.peak.bf16",
    "cluster.chip.efficiency.step",
    "cluster.tiers.pod.link.bandwidth",
    "cluster.noise.spread.sigma",
    "cluster.noise.transient.0.pauses.delay.mean",
)


def steps(config):
    key = jax.random.key(config.run.seed, impl="threefry2x32")
    drawn = draw_training(config, key, lambda count: None)
    return sum(drawn.parts.values(), np.zeros(()))


def test_gradients_are_the_slopes_of_steps_that_are_drawn_again(tmp_path):
    path = tmp_path / "little.yaml"
    path.write_text(TEXT)
    config = load_experiment(path)
    found = sensitivity(config, 24, only=PATHS)
    each = {one.path: one for one in found.elasticities}
    assert set(each) == set(PATHS)
    drawn = steps(config)
    assert found.numbers["mean"].value == pytest.approx(drawn.mean(), rel=1e-6)
    for name in PATHS:
        value, step = figure_at(config, name), 1e-2
        less, more = (steps(with_figures(config, {name: value * (1 + s * step)})).mean() for s in (-1, 1))
        slope = (more - less) / (2 * step) / drawn.mean()
        assert each[name].mean.value == pytest.approx(slope, rel=0.02, abs=2e-4)
    # Once per step, certain: its share of the step, to rounding.
    assert each["cluster.chip.efficiency.step"].mean.value == pytest.approx(20e-3 / drawn.mean(), rel=1e-3)
    # So few steps bound no p99.
    assert each["cluster.noise.spread.sigma"].p99.high == np.inf
