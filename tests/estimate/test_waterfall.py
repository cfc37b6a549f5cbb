"""The parts add up to the step, or are refused; and what the slowest rank costs."""

import math

import numpy as np
import pytest

from mc.estimate import mean_estimate, slowest_rank_cost, waterfall


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    return {
        "compute": np.full((5, 200), 1e-4, np.float32),
        "straggler_wait": rng.exponential(2e-5, (5, 200)).astype(np.float32),
        "bandwidth": np.float32(3e-5),
        "latency_floor": 2e-6,
        "congestion": rng.exponential(1e-6, (5, 200)).astype(np.float32),
    }


def add(parts):
    return sum(np.asarray(part, np.float32) for part in parts.values())


def test_means_add_up_to_the_last_digits(parts):
    samples = add(parts)
    found = waterfall(samples, parts)
    assert [part.name for part in found.parts] == list(parts)
    assert found.total == pytest.approx(mean_estimate(samples)[0].value, rel=1e-14)
    assert math.fsum(part.share for part in found.parts) == pytest.approx(1.0, rel=1e-14)


def test_each_part_is_its_own_mean(parts):
    found = {part.name: part.time for part in waterfall(add(parts), parts).parts}
    assert found["straggler_wait"] == mean_estimate(parts["straggler_wait"])[0]
    assert (found["latency_floor"].low, found["latency_floor"].value, found["latency_floor"].high) == (
        2e-6,
    ) * 3
    # The largest part carries the float32 rounding of the samples, which is below its own precision.
    assert found["compute"].value == pytest.approx(1e-4, rel=1e-6)


def test_parts_that_do_not_add_up_are_refused(parts):
    samples = add(parts)
    del parts["latency_floor"]
    with pytest.raises(
        ValueError, match=r"expected parts that add up to the mean step time .* got .*straggler_wait"
    ):
        waterfall(samples, parts)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (np.ones(3), "part 'compute': expected a scalar or the samples' shape (2, 4); got (3,)"),
        (math.nan, "part 'compute': expected a finite time; got nan"),
        (np.full((2, 4), np.inf), "expected finite samples; got 8 of 8"),
    ],
)
def test_refuses_a_part(part, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the text is compared below
        waterfall(np.ones((2, 4)), {"compute": part})
    assert message in str(error.value)


def test_refuses_no_parts():
    with pytest.raises(ValueError, match=r"got 0 s \(no parts\)"):
        waterfall(np.ones((2, 4)), {})


def test_slowest_rank_of_a_constant_wait():
    """25 µs of a 100 µs step, 1,024 ranks: a quarter of the job, 256 chip-hours an hour."""
    found = slowest_rank_cost(np.full((3, 10), 1e-4), np.full((3, 10), 2.5e-5), ranks=1024)
    for estimate, value in ((found.wait, 2.5e-5), (found.share, 0.25), (found.chip_hours_per_hour, 256.0)):
        assert (estimate.low, estimate.value, estimate.high) == pytest.approx((value,) * 3)
