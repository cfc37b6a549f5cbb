"""The whole summary of a run: names, order, counts, and agreement with its own pieces."""

import numpy as np
import pytest

from mc.estimate import QUANTILES, estimate, mean_estimate, quantile_estimate


def test_names_and_order():
    found = estimate(np.random.default_rng(0).exponential(size=(4, 500)).astype(np.float32))
    assert [name for name, _ in found.items()] == ["mean", "p50", "p95", "p99", "p99_9"]
    assert found.p50.value < found.p95.value < found.p99.value < found.p99_9.value
    assert set(found.effective_samples) == {"mean", *QUANTILES}


@pytest.mark.parametrize(
    ("shape", "realisations"), [((600,), 1), ((1, 600), 1), ((6, 100), 6), ((600, 1), 600)]
)
def test_counts(shape, realisations):
    found = estimate(np.random.default_rng(1).exponential(size=shape), 0.9)
    assert (found.samples, found.realisations, found.confidence) == (600, realisations, 0.9)


def test_each_number_is_that_of_its_estimator():
    samples = np.random.default_rng(2).exponential(size=(10, 100))
    found = estimate(samples, 0.9)
    assert found.mean == mean_estimate(samples, 0.9)[0]
    for name, probability in QUANTILES.items():
        assert getattr(found, name) == quantile_estimate(samples, probability, 0.9)[0]


def test_order_of_steps_and_of_realisations_does_not_matter():
    rng = np.random.default_rng(3)
    samples = rng.exponential(size=(10, 100)) * rng.exponential(size=(10, 1))
    shuffled = rng.permutation(rng.permuted(samples, axis=1), axis=0)
    for (_, first), (_, second) in zip(estimate(samples).items(), estimate(shuffled).items(), strict=True):
        assert (first.value, first.low, first.high) == pytest.approx(
            (second.value, second.low, second.high), rel=1e-12
        )


def test_float32_samples_are_summed_in_float64():
    """A float32 running sum of 2²⁵ ones stops at 2²⁴; here 10⁶ copies of 0.1 already show it."""
    found = estimate(np.full(10**6, 0.1, np.float32))
    assert found.mean.value == float(np.float32(0.1))
