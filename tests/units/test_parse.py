"""What the unit parser reads, what it refuses, and what it says then."""

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mc.units import Dimension, UnitError, parse, spellings

READS = [
    ("800 Gb/s", Dimension.BANDWIDTH, 1e11),
    ("800 Gbps", Dimension.BANDWIDTH, 1e11),
    ("800 Gbit/s", Dimension.BANDWIDTH, 1e11),
    ("100 GB/s", Dimension.BANDWIDTH, 1e11),
    ("900GB/s", Dimension.BANDWIDTH, 9e11),
    ("1.8 TB/s", Dimension.BANDWIDTH, 1.8e12),
    ("64 GiB/s", Dimension.BANDWIDTH, 64 * 1024**3),
    ("1 B/s", Dimension.BANDWIDTH, 1),
    ("64 MiB", Dimension.SIZE, 64 * 1024**2),
    ("64 MB", Dimension.SIZE, 64e6),
    ("512 Mbit", Dimension.SIZE, 64e6),
    ("8 b", Dimension.SIZE, 1),
    ("8 Kib", Dimension.SIZE, 1024),
    ("1 kB", Dimension.SIZE, 1000),
    ("1.2 us", Dimension.TIME, 1.2e-6),
    ("1.2 \u00b5s", Dimension.TIME, 1.2e-6),
    ("1.2 \u03bcs", Dimension.TIME, 1.2e-6),
    (".5 ms", Dimension.TIME, 5e-4),
    ("3. ns", Dimension.TIME, 3e-9),
    ("1e3 us", Dimension.TIME, 1e-3),
    ("2 min", Dimension.TIME, 120),
    ("2 h", Dimension.TIME, 7200),
    ("  7\u00a0s ", Dimension.TIME, 7),
    ("5 pJ/bit", Dimension.ENERGY_PER_BIT, 5e-12),
    ("40 pJ/byte", Dimension.ENERGY_PER_BIT, 5e-12),
    ("1 kWh", Dimension.ENERGY, 3.6e6),
    ("3 mJ", Dimension.ENERGY, 3e-3),
    ("3 MJ", Dimension.ENERGY, 3e6),
    ("700 W", Dimension.POWER, 700),
    ("1.2 kW", Dimension.POWER, 1200),
    ("60 TFLOP", Dimension.COMPUTE, 6e13),
    ("989 TFLOP/s", Dimension.COMPUTE_RATE, 9.89e14),
    ("5 mm", Dimension.LENGTH, 5e-3),
    ("5 m", Dimension.LENGTH, 5),
    ("1.8 GHz", Dimension.FREQUENCY, 1.8e9),
    ("1 1/h", Dimension.FREQUENCY, 1 / 3600),
    ("45 %", Dimension.RATIO, 0.45),
    ("45%", Dimension.RATIO, 0.45),
    ("0.45", Dimension.RATIO, 0.45),
    (0.45, Dimension.RATIO, 0.45),
    (2, Dimension.RATIO, 2),
    ("-3 us", Dimension.TIME, -3e-6),
]


@pytest.mark.parametrize(("text", "dimension", "value"), READS)
def test_reads_the_definition_of_the_unit(text, dimension, value):
    assert parse(text, dimension) == value


TRAPS = [
    # Bits or bytes is decided by case, and by nothing else.
    ("1 gb/s", Dimension.BANDWIDTH, "did you mean `1 GB/s` (bytes) or `1 Gb/s` (bits)?"),
    ("900 GB/S", Dimension.BANDWIDTH, "did you mean `900 GB/s` (bytes) or `900 Gb/s` (bits)?"),
    ("gb/s", Dimension.BANDWIDTH, "the number is missing; did you mean `1 GB/s` (bytes)"),
    ("200 G", Dimension.BANDWIDTH, "did you mean `200 Gb/s` (bits) or `200 GB/s` (bytes)?"),
    ("3 GBps", Dimension.BANDWIDTH, "did you mean `3 GB/s` (bytes)?"),
    ("3 GB/sec", Dimension.BANDWIDTH, "did you mean `3 GB/s` (bytes)"),
    ("8 GT/s", Dimension.BANDWIDTH, "transfers are not bytes"),
    ("64 GB", Dimension.BANDWIDTH, "`GB` measures size, not bandwidth"),
    ("128M", Dimension.SIZE, "did you mean `128 MiB` or `128 MB`?"),
    ("128 K", Dimension.SIZE, "did you mean `128 KiB` or `128 kB`?"),
    ("1 KB", Dimension.SIZE, "did you mean `1 kB` (1000 bytes) or `1 KiB` (1024 bytes)?"),
    ("3 mib", Dimension.SIZE, "did you mean `3 MiB` (bytes) or `3 Mib` (bits)?"),
    # Numbers.
    ("1,5 us", Dimension.TIME, "a comma is no decimal point; write `1.5 us`"),
    ("1,000 us", Dimension.TIME, "write `1000 us` or `1.000 us`"),
    ("1,234.5 us", Dimension.TIME, "write `1234.5 us`"),
    ("1_000 us", Dimension.TIME, "digits are written without separators"),
    ("1 000 us", Dimension.TIME, "digits are written without separators"),
    ("nan", Dimension.TIME, "a quantity has to be finite"),
    ("-inf s", Dimension.TIME, "a quantity has to be finite"),
    (float("nan"), Dimension.RATIO, "a quantity has to be finite"),
    ("1e400 s", Dimension.TIME, "out of range for a number"),
    ("1e4000000000 s", Dimension.TIME, "out of range for a number"),
    ("1e300 EB", Dimension.SIZE, "out of range for a number"),
    ("1e-320 fs", Dimension.TIME, "out of range for a number"),
    (10**400, Dimension.RATIO, "out of range for a number"),
    ("9" * 1000 + " s", Dimension.TIME, "out of range for a number"),
    ("", Dimension.TIME, "there is nothing there"),
    ("fast", Dimension.TIME, "a quantity starts with a number"),
    ("1.2.3 us", Dimension.TIME, "is no unit of time"),
    # Bare numbers.
    (900, Dimension.BANDWIDTH, "a bare number has no unit; write one out, such as `900 GB/s` or `900 Gb/s`"),
    ("900", Dimension.BANDWIDTH, "a bare number has no unit"),
    (0, Dimension.TIME, "a bare number has no unit; write one out, such as `0 us` or `0 ms`"),
    # Other units.
    ("5 pJ/b", Dimension.ENERGY_PER_BIT, "did you mean `5 pJ/bit` or `5 pJ/byte`?"),
    ("3 TFLOPS", Dimension.COMPUTE, "FLOPS may be a count or a rate; write `3 TFLOP`"),
    ("3 TFLOPs", Dimension.COMPUTE_RATE, "FLOPS may be a count or a rate; write `3 TFLOP/s`"),
    ("3 tflop/s", Dimension.COMPUTE_RATE, "did you mean `3 TFLOP/s`?"),
    ("3 seconds", Dimension.TIME, "did you mean `3 s`?"),
    ("3 usec", Dimension.TIME, "did you mean `3 us`?"),
    ("3 MS", Dimension.TIME, "did you mean `3 ms`?"),
    ("5 KHz", Dimension.FREQUENCY, "did you mean `5 kHz`?"),
    ("10 percent", Dimension.RATIO, "did you mean `10 %`?"),
    ("3 bananas", Dimension.TIME, "`bananas` is no unit of time"),
    # Not quantities at all.
    (True, Dimension.RATIO, "a quantity is a number and a unit"),
    (None, Dimension.TIME, "a quantity is a number and a unit"),
    ([1], Dimension.TIME, "a quantity is a number and a unit"),
]


@pytest.mark.parametrize(("text", "dimension", "message"), TRAPS)
def test_refuses_with_what_would_do(text, dimension, message):
    with pytest.raises(UnitError) as error:
        parse(text, dimension)
    assert message in str(error.value)
    assert "expected a" in str(error.value)
    assert dimension.examples[0] in str(error.value)


@pytest.mark.parametrize("dimension", list(Dimension))
def test_reads_its_own_examples(dimension):
    assert all(parse(example, dimension) > 0 for example in dimension.examples)


@pytest.mark.parametrize("dimension", list(Dimension))
def test_case_of_a_unit_never_selects_silently(dimension):
    """With its case swapped, a spelling is another one of the table or it is refused."""
    for unit in spellings(dimension):
        swapped = unit.swapcase()
        if swapped not in spellings(dimension):
            with pytest.raises(UnitError):
                parse(f"3 {swapped}", dimension)


@given(st.floats(min_value=1e-200, max_value=1e200), st.sampled_from(list(Dimension)), st.data())
def test_is_the_exact_product_rounded_once(number, dimension, data):
    unit = data.draw(st.sampled_from(sorted(spellings(dimension))))
    assert parse(f"{number!r} {unit}", dimension) == float(
        Fraction(repr(number)) * spellings(dimension)[unit]
    )


@given(st.text(max_size=30), st.sampled_from(list(Dimension)))
def test_any_text_is_read_or_refused(text, dimension):
    with contextlib.suppress(UnitError):
        assert isinstance(parse(text, dimension), float)
