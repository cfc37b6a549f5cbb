"""Budgets of power and money on an experiment: the catalog's watts by hand, optima against a grid, and what is refused."""

import jax
import numpy as np
import pytest
from scipy import stats

from mc.advise import noisy
from mc.advise.allocate import BudgetError
from mc.advise.budget import Amount, amount, cost, spend
from mc.advise.noisy import Aim, at, paths_of
from mc.config import load_experiment
from mc.experiment.run_training import draw_training

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
        ("1 kW", ["peak=3 W ^1.2.3"], "--cost: peak: expected a number as exponent; got 1.2.3"),
        ("1 kW", ["peak=3 W ^99"], "expected an exponent that is not 0, from -16 to 16; got 99"),
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


BARRIER = """
name: two figures
cluster:
  name: one tier
  chip: {name: any, peak: {bf16: 100 TFLOP/s}}
  tiers: [{name: node, link: {bandwidth: 100 GB/s, duplex: each, latency: 0 us}, fan_out: 64}]
  noise: {spread: {family: lognormal, median: 1, sigma: 0.3}}
model: {name: plain, compute: {flop: 1 TFLOP, format: bf16, efficiency: 0.5}, exchange: {collective: all-reduce, size: 500 MB}}
plan: {ranks: 64, algorithm: ring}
run: {samples: 20000, seed: 4}
"""


def test_the_p99_of_a_barrier_has_its_best_by_hand(tmp_path):
    """With a/x + b/y and p·x + q·y = B, x = B·√(a/p)/(√(a·p) + √(b·q)); a is the p99 of the slowest of 64 lognormals."""
    file = tmp_path / "barrier.yaml"
    file.write_text(BARRIER)
    told = [cost("peak=3 USD"), cost("bandwidth of node=1 USD")]
    found = spend(load_experiment(file), None, told, number=Aim("p99", 20_000), steps=60)
    # The slowest of 64 is below q with 0.99 where one is with 0.99^(1/64).
    slowest = np.exp(0.3 * stats.norm.ppf(0.99 ** (1 / 64)))
    a, b = 20e-3 * slowest, 2 * 63 / 64 * 500e6 / 100e9
    best = found.allocation
    assert best.before == pytest.approx(a + b, rel=0.02)
    expected = 4 * np.sqrt(a / 3) / (np.sqrt(3 * a) + np.sqrt(b))
    assert best.factor[0] == pytest.approx(expected, rel=0.02)
    assert best.time == pytest.approx((np.sqrt(3 * a) + np.sqrt(b)) ** 2 / 4, rel=0.02)
    # Without noise compute would get less.
    assert expected > 1.05 * 4 * np.sqrt(20e-3 / 3) / (np.sqrt(3 * 20e-3) + np.sqrt(b))


def test_a_quantile_of_a_transformer_is_best_on_a_grid(tmp_path, monkeypatch):
    """Of two figures that share a budget, against steps drawn on a grid of shares with the same random numbers."""
    monkeypatch.setattr(noisy, "ROUNDS", 2)
    file = tmp_path / "noisy.yaml"
    chips = "  noise: {spread: {family: lognormal, median: 1, sigma: 0.2}}\n"
    file.write_text(TEXT.replace("model:", chips + "model:"))
    config = load_experiment(file, ["run.samples=64"])
    prices = np.array([396.0, 33.0])
    told = [cost(f"peak={prices[0]} USD"), cost(f"bandwidth of pod={prices[1]} USD")]
    aim = Aim("p50", 64)
    best = spend(config, None, told, number=aim, steps=40).allocation
    assert best.time < 0.99 * best.before
    paths, drawn = paths_of(config, ["peak", "bandwidth of pod"]), []
    for share in (-0.1, 0.1):
        spent = best.spent + share * best.spent[1] * np.array([1, -1])
        there = at(config, paths, spent / prices)
        times = draw_training(there, jax.random.key(there.run.seed, impl="threefry2x32"), lambda count: None)
        drawn.append(float(aim.of(sum(times.parts.values(), np.zeros((1, 64))))))
    assert best.time < min(drawn) * 1.003
