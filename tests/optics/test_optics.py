"""Copper and optics: the channel by hand, reach against what is published, hand-overs, NVL72, links that fail."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.constants import c, mu_0

from mc.catalog.media import media
from mc.config import load_experiment
from mc.document import ConfigError
from mc.goodput import Failures, build_failures, goodput
from mc.goodput.failures import GoodputError
from mc.optics import (
    Channel,
    OpticsError,
    Spine,
    compare,
    crossover,
    interruptions_per_day,
    nvl72,
    passive_reach,
)

PLAIN = Channel(0.405e-3, 100.0, 1.0, 2.1, 2e-4, 0.25, 0.6e-12, 0.15e-12)


def test_the_skin_effect_of_two_round_wires():
    # R' of a wire is that of a tube as thick as the skin; a low-loss line of impedance Z loses R'/(2Z) nepers per metre.
    frequency = 10e9
    skin = math.sqrt(1.68e-8 / (math.pi * frequency * mu_0))
    resistance = 2 * 1.68e-8 / (math.pi * 0.405e-3 * skin)
    assert PLAIN.conductor_loss(frequency) == pytest.approx(
        20 * math.log10(math.e) * resistance / 200, rel=1e-6
    )


def test_the_dielectric_loses_pi_tan_delta_per_wavelength():
    frequency = 10e9
    wavelength = c / math.sqrt(2.1) / frequency
    nepers = math.pi * 2e-4 / wavelength
    assert PLAIN.dielectric_loss(frequency) == pytest.approx(20 * math.log10(math.e) * nepers, rel=1e-9)


def test_loss_has_a_root_and_a_linear_term():
    assert PLAIN.conductor_loss(4e9) == pytest.approx(2 * PLAIN.conductor_loss(1e9))
    assert PLAIN.dielectric_loss(4e9) == pytest.approx(4 * PLAIN.dielectric_loss(1e9))


def test_a_cable_of_its_reach_loses_the_budget():
    frequency, budget = 26.56e9, np.array([5.0, 10.0, 20.0])
    reach = PLAIN.reach(frequency, budget)
    np.testing.assert_allclose(PLAIN.assembly_loss(frequency, reach), budget)
    assert PLAIN.reach(frequency, 1.0) == 0


@pytest.mark.parametrize(
    "lane", [lane for lane in media().lanes if lane.published], ids=lambda lane: f"{lane.rate:g}"
)
def test_published_reach(lane):
    # From what thin wire manages to what thick wire does, against what is sold: each end within a factor of 1.4.
    thin, thick = passive_reach(lane.rate, thin=True), passive_reach(lane.rate)
    assert thin.value / 1.4 < lane.published.least < thin.value * 1.4
    assert thick.value / 1.4 < lane.published.most < thick.value * 1.4
    assert thin.low < lane.published.most
    assert thick.high > lane.published.least


def test_copper_gets_shorter_with_every_rate():
    reach = [passive_reach(lane.rate).value for lane in media().lanes]
    assert sorted(reach, reverse=True) == reach
    assert all(
        each.low < each.value < each.high for each in (passive_reach(lane.rate) for lane in media().lanes)
    )


def test_at_the_crossover_both_take_the_same_or_copper_ends():
    for lane in media().lanes:
        for medium in compare(lane.rate, 0.2):
            if medium.crossover is None:
                continue
            at = medium.crossover.value
            assert at <= passive_reach(lane.rate).value * (1 + 1e-12)
            copper, other = (
                compare(lane.rate, at * 0.999)[k]
                for k in (0, [m.id for m in compare(lane.rate)].index(medium.id))
            )
            assert copper.energy.value <= other.energy.value


def test_energy_of_copper_grows_with_length_and_of_optics_does_not():
    short, long = compare(100e9, 0.5), compare(100e9, 2.5)
    # 2 metres more of 26 AWG wire, twice the slope.
    more = long[0].energy.value - short[0].energy.value
    assert more == pytest.approx(2 * 0.15e-12 * 2 * 6.0, rel=0.05)
    assert [each.energy for each in short[1:]] == [each.energy for each in long[1:]]
    assert compare(100e9, 4.0)[0].energy is None
    assert compare(100e9, 8.0)[1].energy is None


def test_a_module_of_the_data_sheet():
    # 17 W for 800 Gb/s, at both ends, and two transceivers that see 12 dB.
    (pluggable,) = [each for each in compare(100e9) if each.id == "retimed-pluggable"]
    assert pluggable.energy.value == pytest.approx(2 * 17 / 800e9 + 2 * (0.6e-12 + 12 * 0.15e-12))
    assert not pluggable.is_estimate


def test_nvl72_from_first_figures():
    spine = nvl72()
    assert spine.cables == 72 * 18 * 4 == 5184
    assert spine.lane_rate == 200e9
    # 648 modules of 1.6 Tb/s and 30 W, as SemiAnalysis counts them.
    assert 2 * spine.rate / 1.6e12 == 648
    assert spine.power(30 / 1.6e12) == pytest.approx(648 * 30)
    assert spine.energy_of_end(20e3) == pytest.approx(19.29e-12, rel=1e-3)


def test_links_interrupt_beside_chips():
    alone = Failures(1e8, 600.0, 10.0)
    both = Failures(1e8, 600.0, 10.0, mtbf_per_link=3e8, links_per_chip=3.0)
    assert both.mean_between(100) == pytest.approx(0.5e6)
    # Twice the rate is half the chip's mean time.
    assert goodput(100, both) == goodput(100, Failures(0.5e8, 600.0, 10.0))
    assert goodput(100, both).effective_ratio < goodput(100, alone).effective_ratio
    assert interruptions_per_day(300, 3e8) == pytest.approx(86400 / 1e6)
    with pytest.raises(GoodputError, match="mtbf_per_link: expected a time > 0"):
        Failures(1e8, 600.0, 10.0, mtbf_per_link=0.0)


def test_links_in_a_file():
    config = load_experiment(
        "configs/llama3-405b-16k.yaml", ["failures.mtbf_per_link=1.28e6 h", "failures.links_per_chip=3"]
    )
    found = build_failures(config.failures)
    assert found.mean_between(1) == pytest.approx(3600 / (1 / 50700 + 3 / 1.28e6))
    with pytest.raises(ConfigError, match="mtbf_per_link"):
        load_experiment("configs/llama3-405b-16k.yaml", ["failures.mtbf_per_link=5"])


PAGE = Path("docs/optics.md").read_text(encoding="utf-8")
# A number with its interval, as `5.3 m (4.1 to 6.1)`.
SHOWN = r"([\d.]+)(?: m)? \(([\d.]+) to ([\d.]+)\)"


def is_shown(value, text):
    """Whether a number is what a page says, to the digits that it has."""
    digits = len(text.partition(".")[2])
    return abs(value - float(text)) <= 0.5001 * 10**-digits


@pytest.mark.parametrize("lane", media().lanes, ids=lambda lane: f"{lane.rate:g}")
def test_the_page_has_the_reach_that_is_computed(lane):
    (row,) = re.findall(rf"^\| {lane.rate / 1e9:g} Gb/s .*$", PAGE, re.MULTILINE)
    both = re.findall(SHOWN, row)
    assert len(both) == 2
    for shown, thin in zip(both, (False, True), strict=True):
        computed = passive_reach(lane.rate, thin=thin)
        assert all(map(is_shown, computed, shown)), (computed, shown)


def test_the_page_has_the_energies_that_are_computed():
    text = PAGE.partition("At 200 Gb/s a lane and 1 m: ")[2].partition(". Up to")[0]
    computed = {each.id: each.energy for each in compare(200e9)}
    shown = dict(
        zip(
            ("passive-copper", "AEC", "co-packaged", "linear-pluggable", "retimed-pluggable"),
            re.findall(r"(\d+)(?: pJ/bit)? \((\d+) to (\d+)\)", text),
            strict=True,
        )
    )
    for name, numbers in shown.items():
        assert all(map(is_shown, (1e12 * each for each in computed[name]), numbers)), name
    for rate, ends in ((200e9, ("0.4", "1.7")), (448e9, ("0.1", "0.8"))):
        assert " to ".join(ends) in PAGE
        assert all(map(is_shown, crossover(rate, "co-packaged")[1:], ends))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compare(60e9), "expected a lane rate of 25, 50, 100, 200, 448 Gb/s; got 60"),
        (lambda: compare(100e9, 0.0), "length: expected metres > 0; got 0"),
        (lambda: crossover(100e9, "string"), "expected one of AEC, .*; got `string`"),
        (lambda: Spine(0, 1, 1, 1.0), "chips: expected a number > 0; got 0"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(OpticsError, match=message):
        call()
