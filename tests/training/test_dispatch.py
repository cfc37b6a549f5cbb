"""Tokens sent once to each node: the busiest node slows the network, the busiest rank what comes behind it."""

from dataclasses import replace

import numpy as np
import pytest

from mc.config import ClusterConfig
from mc.parallel.routing_choice import Choice
from mc.training import Price, build_chip, evaluate
from mc.training.evaluate import Load, loaded
from mc.training.routing import Routing, load_law, node_load, routing_of
from mc.training.times import times_of
from tests.parallel.plans import plan, shipped
from tests.stats import assert_mean
from tests.training.test_evaluate import CLUSTER

CHIP = build_chip(ClusterConfig.model_validate(CLUSTER).chip)
# Whole messages show, and ranks do not wait for each other.
PLAIN = replace(CHIP, efficiency=replace(CHIP.efficiency, overlap=0.0, wait=0.0))
KEYS = {"pp": 4, "ep": 64, "global_batch": 512, "sequence_length": 4096, "layers_per_stage": "spread"}
SHAPE = shipped("deepseek-v3")


@pytest.mark.parametrize(
    ("choice", "nodes"), [(Choice(16, 4), 4), (Choice(16, 4, 4, 2), 4), (Choice(16, 4, 4, 2), 2)], ids=str
)
@pytest.mark.parametrize("skew", [0.4, 1.0])
def test_the_busiest_node_against_tokens_that_choose(choice, nodes, skew):
    """With 20,000 tokens in a layer, each counted once in each node."""
    rng, direct = np.random.default_rng(12), []
    for _ in range(100):
        popularity = np.float32(skew) * rng.standard_normal(choice.experts, np.float32)
        taken = choice.chosen(choice.scores(rng, popularity, 20_000))
        tokens = taken.reshape(20_000, nodes, -1).any(axis=-1).sum(axis=0)
        direct.append(tokens.max() / tokens.mean())
    assert_mean(direct, node_load(choice, nodes, skew, layers=2_000))
    assert node_load(choice, nodes, 0.0) == node_load(choice, 1, skew) == 1


def test_nodes_average_over_their_ranks():
    routing = Routing(Choice(32, 4, 4, 2), 16, 16 * 1024, 0.5, nodes=4)
    law = load_law(routing)
    assert 1.05 < law.nodes < 1.2 < 1.5 < law.mean
    assert load_law(replace(routing, nodes=1)).nodes == 1
    assert routing_of(SHAPE, plan(SHAPE, 512, **KEYS)).nodes == 8
    assert routing_of(SHAPE, plan(SHAPE, 512, dispatcher="all-to-all", **KEYS)).nodes == 1


class Links:
    """So many seconds per message between nodes, and inside of them; nothing for others."""

    def __init__(self, between: float, inside: float):
        self.seconds = {"ep between nodes": between, "ep inside nodes": inside, "ep": between}

    def price(self, collective, group, size):
        """By the group's name."""
        return Price(0.0, self.seconds.get(group.name, 0.0))

    def tier(self, group):
        """Nobody asks."""
        return 0


def forward(links: Links, **keys):
    made = plan(SHAPE, 512, **KEYS, **keys)
    return times_of(made, SHAPE, PLAIN, links).parts[1][0].forward, len(made.layers[1][0])


def test_the_longer_of_two_at_once():
    """Dispatch and combine in each layer."""
    for between, inside in ((3.0, 2.0), (2.0, 3.0)):
        found, layers = forward(Links(between, inside))
        assert found.waiting["ep"] == pytest.approx(2 * layers * max(between, inside))
        for ranks, nodes in ((1.0, 1.0), (1.2, 1.0), (2.0, 1.1), (3.0, 1.3)):
            seconds = 2 * layers * max(nodes * between, ranks * inside)
            assert found.tokens(ranks, nodes) == pytest.approx(seconds)
            busy = loaded(found, Load(ranks, nodes)) - loaded(found)
            assert busy == pytest.approx(
                seconds - 2 * layers * max(between, inside) + (ranks - 1) * found.routed
            )
            # The line in the load of ranks: exact at this load, and without one where nodes are waited for.
            grows = found.growing(ranks, nodes)
            steady = found.tokens(ranks, nodes) - ranks * grows
            if ranks > 1 and nodes * between > ranks * inside:
                assert steady + grows == pytest.approx(2 * layers * between)
                assert grows == pytest.approx(2 * layers * between * (nodes - 1) / (ranks - 1))


def test_each_rank_is_waited_for_where_each_gets_its_own():
    found, layers = forward(Links(3.0, 2.0), dispatcher="all-to-all")
    assert found.to_nodes == 0
    assert found.tokens(1.5, 1.1) == pytest.approx(2 * layers * 1.5 * 3.0)


def test_behind_another_micro_batch_both_hide():
    chip = replace(PLAIN, efficiency=replace(PLAIN.efficiency, overlap=0.75))
    made = plan(SHAPE, 512, **KEYS, overlap={"experts": True})
    found = times_of(made, SHAPE, chip, Links(3.0, 2.0)).parts[1][0].forward
    layers = len(made.layers[1][0])
    assert found.waiting["ep"] == pytest.approx(2 * layers * 3.0 / 4)
    assert found.tokens(2.0, 1.1) == pytest.approx(2 * layers * 4.0 / 4)


def test_the_step_waits_for_the_busiest_node():
    """In the breakdown as in the passes: what nodes get more is waited for in as many micro-batches."""
    made = plan(SHAPE, 512, **KEYS)
    plain, busy = (
        evaluate(made, SHAPE, PLAIN, Links(3.0, 1.0), routed=routed, nodes=nodes)
        for routed, nodes in ((1.0, 1.0), (2.0, 1.25))
    )
    assert busy.exposed["ep"] == pytest.approx(1.25 * plain.exposed["ep"])
    assert sum(busy.parts.values()) == pytest.approx(busy.step)
