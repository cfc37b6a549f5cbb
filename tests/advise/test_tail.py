"""What figures are worth with noise, against theorems on homogeneous functions."""

import re

import pytest

from mc.advise.tail import Prices, parse_prices, tail_worth
from mc.config import load_experiment
from mc.errors import InputError
from tests.sensitivity.test_training import TEXT

POWERS = "    power: 700 W\n    idle_power: 100 W\n    host_power: 300 W\n"
STEP, BANDWIDTH = "cluster.chip.efficiency.step", "cluster.tiers.pod.link.bandwidth"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = tmp_path_factory.mktemp("tail") / "little.yaml"
    text = TEXT.replace("    efficiency: {", POWERS + "    efficiency: {")
    link = "latency: 10 us, energy: 20 pJ/bit, port_power: 10 W}"
    path.write_text(text.replace("latency: 10 us}", link))
    prices = Prices(chip_hour=2.0, kwh=0.1)
    return tail_worth(load_experiment(path), 24, prices, only=(STEP, BANDWIDTH))


def test_twice_the_power_is_half_the_tokens_per_joule(found):
    powers = [each for each in found.worths if each.step is None]
    assert {each.path.rsplit(".", 1)[-1] for each in powers} == {
        *("power", "idle_power", "host_power", "energy", "port_power")
    }
    # Joules are linear in powers and energies (Euler).
    assert sum(each.per_joule.value for each in powers) == pytest.approx(-1, abs=1e-4)
    # Dollars of chips and of energy: the latter's part of the cost.
    energy = 0.1 / 3.6e6 / found.tokens_per_joule
    assert sum(each.per_dollar.value for each in powers) == pytest.approx(
        -energy * found.tokens_per_dollar, abs=1e-4
    )


def test_time_that_nobody_computes_costs_what_waits(found):
    (each,) = [each for each in found.worths if each.path == STEP]
    assert each.per_joule is not None
    # A second more of a step takes idle chips, hosts and links: less than a second of computing.
    assert -each.step.mean.value < each.per_joule.value < 0
    assert each.per_joule.low <= each.per_joule.value <= each.per_joule.high


def test_prices():
    assert parse_prices([]) is None
    assert parse_prices(["chip-hour=2.5", "kWh=0.08"]) == Prices(2.5, 0.08)
    for text in ("chip=2", "kWh=0", "kWh=free", "chip-hour"):
        with pytest.raises(InputError, match=re.escape("expected `chip-hour=DOLLARS` or `kWh=DOLLARS`")):
            parse_prices([text])
