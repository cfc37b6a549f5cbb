"""Budgets of power and money on an experiment: the catalog's watts by hand, optima against a grid, and what is refused."""

import numpy as np
import pytest

from mc.advise.allocate import BudgetError
from mc.advise.budget import Amount, amount, cost, spend
from mc.config import load_experiment

TEXT = """
name: little
cluster:
  name: small
  chip: {name: any, peak: {bf16: 100 TFLOP/s}, memory_bandwidth: 10 TB/s, power: 500 W, idle_power: 100 W, host_power: 200 W}
  tiers:
    - {name: node, link: {bandwidth: 100 GB/s, duplex: each, latency: 1 us, energy: 5 pJ/bit}, fan_out: 2}
    - name: pod
      link: {bandwidth: 10 GB/s, duplex: each, latency: 5 us, energy: 40 pJ/bit, adapter_power: 20 W, port_power: 10 W}
      fan_out: 2
model: {name: little, transformer: {layers: 2, hidden: 2048, heads: 16, ffn: 8192, vocab: 32000}}
plan: {tp: 2, dp: 2, global_batch: 4, sequence_length: 512}
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    file = tmp_path_factory.mktemp("budget") / "little.yaml"
    file.write_text(TEXT)
    return load_experiment(str(file))


@pytest.fixture(scope="module")
def spending(config):
    return spend(config, None, steps=60)


def test_watts_of_the_catalog(spending):
    watts = {each.name: each.cost for each in spending.allocation.figures}
    # 4 W of 5 pJ/bit at 100 GB/s are in the chip's 400 W beyond idling; 3.2 W of links, a port and a card.
    assert watts == pytest.approx({"peak": 396, "bandwidth of node": 4, "bandwidth of pod": 33.2})
    assert spending.fixed == pytest.approx(300)
    assert spending.now == pytest.approx(300 + 433.2)
    assert spending.constant == ("memory bandwidth", "latency of node", "latency of pod")
    assert spending.tokens == 4 * 512


def test_the_best_for_what_is_spent_now(config, spending):
    best = spending.allocation
    assert best.time < best.before
    assert best.spent.sum() == pytest.approx(433.2)
    assert best.gap < 1e-5
    # More money for all of them buys what the shadow price says.
    more = spend(config, Amount(4 * (spending.now + 4), "W"), steps=60).allocation
    assert best.time - more.time == pytest.approx(4 * best.shadow_price, rel=0.1)


def test_costs_that_are_told(config):
    told = [cost("peak=10000 USD"), cost("bandwidth of pod = 1500 USD ^0.5"), cost("rest=3000 USD")]
    found = spend(config, Amount(4 * 15000, "USD"), told, steps=40)
    assert (found.unit, found.fixed, found.now) == ("USD", 3000, 14500)
    assert found.allocation.budget == pytest.approx(12000)
    assert found.allocation.spent == pytest.approx(
        [10000 * found.allocation.factor[0], 1500 * np.sqrt(found.allocation.factor[1])]
    )


def test_amounts():
    assert amount("18 MW", "--budget") == Amount(18e6, "W")
    assert amount("900e6 USD", "--budget") == Amount(900e6, "USD")
    assert amount("1,500 EUR", "--budget") == Amount(1500, "EUR")
    assert cost("latency of pod=3 W").exponent == -1
    assert cost("peak=3 W ^1.5").exponent == 1.5


@pytest.mark.parametrize(
    ("budget", "told", "message"),
    [
        ("1 USD", [], "--cost: expected what figures cost in USD, for each chip as it is now"),
        ("1 USD", ["peak=3 W"], "--cost: peak: expected a cost in USD; got one in W"),
        ("3 kW", ["peek=3 W"], "--cost: unknown figure `peek`; did you mean `peak`?"),
        ("1 kW", [], "--budget: expected more than 1200 W, which does not depend on figures; got 1000"),
        ("3 kW", ["peak"], "--cost: expected NAME=AMOUNT"),
        ("3 kW", ["peak=3 W ^0"], "--cost: peak: expected an exponent that is not 0"),
        ("3 kW", ["peak=0 W"], "--cost: peak: expected a cost > 0; got 0"),
        (
            "many",
            [],
            "--budget: expected a power or an amount of money, such as 18 MW or 900e6 USD; got `many`",
        ),
    ],
)
def test_mistakes(config, budget, told, message):
    with pytest.raises(BudgetError) as error:
        spend(config, amount(budget, "--budget"), [cost(each) for each in told])
    assert message in str(error.value)
