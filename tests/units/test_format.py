"""Quantities as text: readable, and the same float when read again."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mc.units import Dimension, UnitError, format_quantity, parse

WRITES = [
    (1e11, Dimension.BANDWIDTH, "100 GB/s"),
    (1.8e12, Dimension.BANDWIDTH, "1.8 TB/s"),
    (67108864, Dimension.SIZE, "64 MiB"),
    (80e9, Dimension.SIZE, "80 GB"),
    (1000, Dimension.SIZE, "1 kB"),
    (1024, Dimension.SIZE, "1 KiB"),
    (12, Dimension.SIZE, "12 B"),
    (1.2e-6, Dimension.TIME, "1.2 us"),
    (0.04, Dimension.TIME, "40 ms"),
    (90, Dimension.TIME, "90 s"),
    (-3e-6, Dimension.TIME, "-3 us"),
    (0, Dimension.TIME, "0 s"),
    (0, Dimension.RATIO, "0"),
    (0.45, Dimension.RATIO, "0.45"),
    (5e-12, Dimension.ENERGY_PER_BIT, "5 pJ/bit"),
    (9.89e14, Dimension.COMPUTE_RATE, "989 TFLOP/s"),
    (1e-300, Dimension.TIME, "1E-288 ps"),
]


@pytest.mark.parametrize(("value", "dimension", "text"), WRITES)
def test_writes_what_a_person_would(value, dimension, text):
    assert format_quantity(value, dimension) == text


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(list(Dimension)))
def test_reads_back_as_the_same_float(value, dimension):
    assert parse(format_quantity(value, dimension), dimension) == value


@given(st.integers(min_value=0, max_value=2**60))
def test_sizes_read_back_whichever_prefix_is_chosen(size):
    assert parse(format_quantity(size, Dimension.SIZE), Dimension.SIZE) == float(size)


def test_rounds_for_people():
    assert format_quantity(1 / 3, Dimension.TIME, digits=3) == "333 ms"
    assert format_quantity(0.9999, Dimension.TIME, digits=2) == "1 s"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_refuses_what_is_no_number(value):
    with pytest.raises(UnitError, match="expected a finite time"):
        format_quantity(value, Dimension.TIME)
