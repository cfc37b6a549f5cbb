"""Tallies: exact sums, buckets by bits, and the same whatever is added to what in which order."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mc.estimate import estimate
from mc.sweep.tally import TOP, Tally, bucket, lower_edge

SAMPLES = st.lists(st.floats(1e-9, 1e4), min_size=1, max_size=60)


def same(one: Tally, two: Tally) -> bool:
    return (
        one.first == two.first
        and np.array_equal(one.counts, two.counts)
        and (one.sums, one.squares) == (two.sums, two.squares)
        and np.array_equal(one.top, two.top)
    )


@settings(max_examples=60, deadline=None)
@given(SAMPLES, st.integers(0, 60), st.randoms())
def test_any_division_and_order_give_the_same(samples, cut, random):
    whole = Tally.of(samples)
    shuffled = list(samples)
    random.shuffle(shuffled)
    parts = [each for each in (shuffled[:cut], shuffled[cut:]) if each]
    tallies = [Tally.of(each) for each in parts]
    assert same(tallies[0] if len(tallies) == 1 else tallies[1] + tallies[0], whole)


@settings(max_examples=60, deadline=None)
@given(SAMPLES)
def test_sums_are_those_of_fractions(samples):
    found = Tally.of(samples)
    whole = [round(Fraction(each) * 2**46) for each in samples]
    assert found.sum == sum(whole)
    assert found.squares == sum(each * each for each in whole)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-9, 1e5))
def test_a_bucket_holds_its_samples_and_is_a_thousandth_wide(sample):
    index = bucket(np.array([sample]))[0]
    low, high = lower_edge([index, index + 1])
    assert low <= sample < high
    assert high / low - 1 <= 2**-10 * (1 + 1e-12)


def test_estimates_are_those_of_the_samples_to_a_bucket():
    samples = np.random.default_rng(1).lognormal(-5, 0.5, (8, 500)) * np.linspace(1, 1.2, 8)[:, None]
    wanted, found = estimate(samples), Tally.of(samples).estimates(0.95)
    for name, each in wanted.items():
        relative = 1e-9 if name == "mean" else 2**-10
        assert found[name].value == pytest.approx(each.value, rel=relative)
        assert found[name].low == pytest.approx(each.low, rel=1.1 * relative)
        if np.isfinite(each.high):
            assert found[name].high == pytest.approx(each.high, rel=1.1 * relative)


def test_the_largest_are_exact_and_realisations_stand_beside_each_other():
    samples = np.random.default_rng(2).exponential(1.0, (3, 400))
    one = Tally.of(samples)
    assert one.top.tolist() == sorted(samples.ravel(), reverse=True)[:TOP]
    both = Tally.of(samples[:2]).beside(Tally.of(np.vstack([samples[2], samples[2] * 9])))
    assert same(both, Tally.of(np.vstack([samples, samples[2] * 9])))


@pytest.mark.parametrize("wrong", [[-1.0], [float("nan")], [float("inf")], [2.0**17]])
def test_what_is_no_step_time_is_refused(wrong):
    with pytest.raises(ValueError, match="expected step times"):
        Tally.of([1.0, *wrong])
