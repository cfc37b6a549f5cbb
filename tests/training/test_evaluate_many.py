"""Arrays of chips and clusters give what each of their entries gives alone."""

import importlib
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mc.fabric import build_cluster
from mc.parallel import Group
from mc.training import ClusterPrices, ManyPrices, Price, build_prices, evaluate, evaluate_many
from tests.parallel.plans import plan
from tests.training.test_evaluate import CHIP, PLANS, PRICES, SHAPE, config

# The package's attribute of this name is the function.
MODULE = importlib.import_module("mc.training.evaluate_many")
SHAPES = (3, 7)


class Scaled:
    """Prices whose parts are multiplied by arrays."""

    def __init__(self, latency, bandwidth):
        self.latency, self.bandwidth = latency, bandwidth

    def price(self, collective, group, size):
        """As in the table, times the factors."""
        found = PRICES.price(collective, group, size)
        return Price(found.latency * self.latency, found.bandwidth * self.bandwidth) if group.axes else found

    def tier(self, group):
        """As it is."""
        return PRICES.tier(group)


def drawn(seed, shape=SHAPES):
    """Factors on what a chip has and reaches, and on prices."""
    rng = np.random.default_rng(seed)

    def factor():
        return rng.lognormal(0.0, 0.3, shape)

    reached = CHIP.efficiency
    chip = replace(
        CHIP,
        peak={name: peak * factor() for name, peak in CHIP.peak.items()},
        memory_bandwidth=CHIP.memory_bandwidth * factor(),
        efficiency=replace(
            reached,
            memory=reached.memory * factor(),
            kernel=reached.kernel * factor(),
            launch=reached.launch * 3,
        ),
    )
    return chip, Scaled(factor(), factor())


@pytest.mark.parametrize("keys", PLANS, ids=str)
def test_each_entry_is_what_one_evaluation_gives(keys, monkeypatch):
    # Pieces that do not divide the arrays.
    monkeypatch.setattr(MODULE, "_AT_ONCE", 8)
    spread = plan(SHAPE, 8, micro_batch=1, global_batch=16, **keys)
    chip, prices = drawn(1)
    attention = np.linspace(0.5, 1.0, 21).reshape(SHAPES)
    found = evaluate_many(spread, SHAPE, chip, prices, attention=attention)
    assert found.step.shape == SHAPES
    assert sum(found.parts.values()) == pytest.approx(found.step, rel=1e-12)
    for place in np.ndindex(*SHAPES):
        one = jax.tree.map(lambda number, place=place: float(np.broadcast_to(number, SHAPES)[place]), chip)
        alone = Scaled(prices.latency[place], prices.bandwidth[place])
        wanted = evaluate(spread, SHAPE, one, alone, attention=attention[place])
        assert found.step[place] == pytest.approx(wanted.step, rel=1e-12)
        assert found.bubble_fraction[place] == pytest.approx(wanted.bubble_fraction, rel=1e-9, abs=1e-12)
        for name, part in wanted.parts.items():
            assert found.parts[name][place] == pytest.approx(part, rel=1e-9, abs=1e-12 * wanted.step)
        for name in found.exposed:
            wants = wanted.exposed.get(name, 0.0)
            assert found.exposed[name][place] == pytest.approx(wants, rel=1e-9, abs=1e-12 * wanted.step)


def test_numbers_alone_and_none_at_all():
    spread = plan(SHAPE, 8, tp=2, pp=2, micro_batch=1, global_batch=16)
    one = evaluate_many(spread, SHAPE, CHIP, PRICES)
    assert one.step.shape == ()
    assert float(one.step) == evaluate(spread, SHAPE, CHIP, PRICES).step
    none = evaluate_many(spread, SHAPE, replace(CHIP, memory_bandwidth=np.zeros(0)), PRICES)
    assert none.step.shape == (0,)


def test_prices_of_many_clusters():
    cluster = build_cluster(config())
    factors = jnp.array([0.5, 1.0, 2.0])
    many = ManyPrices(
        jax.vmap(
            lambda by: ClusterPrices(
                eqx.tree_at(
                    lambda each: each.tiers[0].link.bandwidth, cluster, by * cluster.tiers[0].link.bandwidth
                )
            )
        )(factors)
    )
    group = Group("tp", ((2, 1),))
    found = many.price("all-gather", group, 1e8)
    # One other rank has half of it: half the bytes at 300 GB/s, times the factor.
    assert found.bandwidth == pytest.approx(0.5e8 / (300e9 * np.asarray(factors)), rel=1e-5)
    alone = build_prices(cluster).price("all-gather", group, 1e8)
    assert found.seconds[1] == pytest.approx(alone.seconds, rel=2e-3)
    assert many.price("all-gather", Group("tp", ()), 1e8) == Price(0.0, 0.0)
    assert many.tier(group) == 0
    spread = plan(SHAPE, 8, tp=2, micro_batch=1, global_batch=16)
    steps = evaluate_many(spread, SHAPE, CHIP, many).step
    assert steps[0] > steps[1] > steps[2]
