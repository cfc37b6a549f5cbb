"""Units and digits: what a person would choose, as a table."""

import math

import pytest

from mc.estimate import Estimate
from mc.report.times import duration, scale_for


def around(value, half_width):
    return Estimate(value, value - half_width, value + half_width)


@pytest.mark.parametrize(
    ("estimates", "unit", "numbers"),
    [
        ([around(152.31e-6, 0.11e-6)], "us", ["152.31"]),
        ([around(1.5231, 0.011)], "s", ["1.523"]),
        ([around(152.31e-6, 11e-6)], "us", ["152"]),
        # The tightest interval decides for all.
        ([around(1e-3, 1e-6), around(2e-3, 1e-4)], "ms", ["1.0000", "2.0000"]),
        ([around(5e-9, 1e-9)], "ns", ["5.0"]),
        ([around(2e-10, 1e-11)], "ns", ["0.200"]),
        # Exact values have no interval to show: four digits.
        ([around(1.5e-4, 0.0)], "us", ["150.0"]),
        ([around(0.0, 0.0)], "ns", ["0.000"]),
        # No more than nine digits, whatever the interval.
        ([around(152.0e-6, 1e-18)], "us", ["152.000000"]),
        ([around(7200.0, 1.0)], "s", ["7,200.0"]),
        ([Estimate(1.5e-6, 1.4e-6, math.inf)], "us", ["1.500"]),
        ([], "ns", []),
    ],
)
def test_scale(estimates, unit, numbers):
    scale = scale_for(estimates)
    assert scale.unit == unit
    assert [scale.number(found.value) for found in estimates] == numbers


def test_a_printed_interval_is_never_a_point():
    for exponent in range(-7, 3):
        for width in (1e-5, 1e-3, 1e-1):
            found = around(1.234 * 10.0**exponent, width * 10.0**exponent)
            scale = scale_for([found])
            assert scale.number(found.low) != scale.number(found.high)


def test_no_bound_is_said_in_words():
    scale = scale_for([around(1.0, 0.1)])
    assert (scale.number(math.inf), scale.number(-math.inf)) == ("unbounded", "unbounded")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (4.56e-5, "45.6 us"),
        (1.234, "1.23 s"),
        (123.4, "123 s"),
        (700.0, "11.7 min"),
        (4e4, "11.1 h"),
    ],
)
def test_duration(seconds, text):
    assert duration(seconds) == text
