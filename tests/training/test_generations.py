"""Steps on several kinds of chips against closed forms: a flow shop, the slowest replica, the slowest rank of a group."""

from dataclasses import replace

import pytest

from mc.config import ClusterConfig
from mc.training import (
    Price,
    build_chip,
    evaluate,
    evaluate_mixes,
    generations,
    lockstep,
    times_of,
    times_of_mixes,
)
from mc.training.evaluate import loaded
from mc.training.generations import slowed, slowest_part
from mc.transformer import Transformer
from tests.parallel.plans import plan

SHAPE = Transformer(layers=8, hidden=1024, heads=8, kv_heads=8, head_dim=128, ffn=4096, vocab=8, gated=False)
NEW = {
    "name": "new",
    "peak": {"bf16": "900 TFLOP/s"},
    "memory_bandwidth": "3 TB/s",
    "efficiency": {"wait": "0 s"},
}
OLD = {
    "name": "old",
    "peak": {"bf16": "300 TFLOP/s"},
    "memory_bandwidth": "2 TB/s",
    "efficiency": {"wait": "0 s"},
}
LINK = {"bandwidth": "300 GB/s", "duplex": "each", "latency": "1 us"}


class Priced:
    """Messages that take as long as they have bytes, or no time."""

    def __init__(self, seconds=0.0):
        self.seconds = seconds

    def price(self, collective, group, size):
        """In proportion to bytes."""
        return Price(0.0, self.seconds * size)

    def tier(self, group):
        """Anywhere."""
        return -1


FREE = Priced()


def cluster(*exceptions):
    """Four nodes of two chips; exceptions are about nodes."""
    node = {"name": "node", "link": LINK, "fan_out": 2}
    if exceptions:
        node["exceptions"] = list(exceptions)
    return ClusterConfig.model_validate(
        {"name": "two kinds", "chip": NEW, "tiers": [node, {"name": "hall", "link": LINK, "fan_out": 4}]}
    )


def step_on(found, spread, prices=FREE):
    chips = generations(found, lockstep(spread))
    return evaluate_mixes(chips, times_of_mixes(chips, spread, SHAPE, prices), spread, SHAPE, prices)


FIRST = build_chip(cluster().chip)
SECOND = build_chip(cluster({"units": 0, "chip": OLD}).chip_runs(8)[0][1])


def test_where_chips_are_alike_nothing_changes():
    spread = plan(SHAPE, 8, tp=2, pp=2, micro_batch=1, global_batch=8)
    for found, chip in ((cluster(), FIRST), (cluster({"units": "0-3", "chip": OLD}), SECOND)):
        chips = generations(found, lockstep(spread))
        assert chips.chips == (chip,)
        assert chips.mixes == ((0,),)
        mixed, alike = step_on(found, spread), evaluate(spread, SHAPE, chip, FREE)
        assert mixed.parts == pytest.approx(alike.parts, rel=1e-12, abs=1e-15)


def test_stages_on_two_kinds_are_a_flow_shop():
    """m constant jobs through two machines take one job's time on both and (m − 1) of the slower one, each way."""
    m = 6
    spread = plan(SHAPE, 8, tp=4, pp=2, schedule="gpipe", micro_batch=1, global_batch=m)
    old = {"units": "2-3", "chip": OLD}
    found = step_on(cluster(old), spread)
    times = [
        times_of(spread, SHAPE, chip, FREE).parts[stage][0] for stage, chip in enumerate((FIRST, SECOND))
    ]
    expected = 0.0
    for passes in (("forward",), ("backward_input", "backward_weight")):
        one = [sum(loaded(getattr(part, name)) for name in passes) for part in times]
        expected += sum(one) + (m - 1) * max(one)
    assert found.finish.makespan == pytest.approx(expected, rel=1e-12)
    assert found.step == pytest.approx(expected + found.meeting.optimizer + found.meeting.fixed, rel=1e-12)
    # Old chips read and write memory more slowly.
    assert found.meeting.optimizer == step_on(cluster({**old, "units": "0-3"}), spread).meeting.optimizer
    assert sum(found.parts.values()) == pytest.approx(found.step, rel=1e-12)


@pytest.mark.parametrize(
    "keys", [{"tp": 2}, {"tp": 4}, {"cp": 2, "tp": 2}, {"pp": 2}, {"tp": 4, "recompute": "full"}]
)
def test_one_old_node_holds_up_all_that_wait_for_it(keys):
    # Whichever replica it is in: groups take what its slowest takes, and replicas meet.
    spread = plan(SHAPE, 8, micro_batch=1, global_batch=16, **keys)
    one, all_old = (cluster({"units": units, "chip": OLD}) for units in (2, "0-3"))
    first, last = step_on(one, spread), step_on(all_old, spread)
    if spread.pp == 1:
        assert first.step == pytest.approx(last.step, rel=1e-12)
    else:
        # The other stage is quick.
        assert step_on(cluster(), spread).step < first.step < last.step
    assert sum(first.parts.values()) == pytest.approx(first.step, rel=1e-12)
    assert all(seconds >= -1e-12 for seconds in first.parts.values())


def test_replicas_wait_for_the_slowest_stage_of_each():
    """One replica is old in front, the other behind: gradients are reduced when both have theirs."""
    spread = plan(
        SHAPE, 4, pp=2, schedule="gpipe", micro_batch=1, global_batch=8, order=("tp", "cp", "pp", "dp")
    )
    prices = Priced(1e-11)
    ranks = {"units": [0, 3], "of": "rank", "chip": OLD}
    found = step_on(cluster(ranks), spread, prices)
    assert generations(cluster(ranks), lockstep(spread)).columns.tolist() == [[0, 1], [1, 0]]
    alone = [step_on(cluster({**ranks, "units": units}), spread, prices) for units in ([0, 2], [1, 3])]
    assert found.finish.makespan == pytest.approx(max(each.finish.makespan for each in alone), rel=1e-12)
    rest = found.meeting.optimizer + found.meeting.fixed + sum(found.meeting.blocking.values())
    most = found.meeting.reduce + found.meeting.gather
    assert found.finish.makespan + rest <= found.step <= found.finish.makespan + rest + most


def test_slow_chips_compute_longer_and_wait_as_long():
    spread = plan(SHAPE, 2, tp=2, micro_batch=1, global_batch=2)
    reached = replace(FIRST.efficiency, launch=0.0, collective_launch=0.0, pass_launch=0.0)
    chip = replace(FIRST, efficiency=reached)
    base, slow = (times_of(spread, SHAPE, each, Priced(1e-12)) for each in (chip, slowed(chip, 1.7)))
    for one, other in zip(base.parts[0], slow.parts[0], strict=True):
        assert other.forward.compute == pytest.approx(1.7 * one.forward.compute, rel=1e-12)
        assert other.forward.ideal == one.forward.ideal
        assert other.forward.waiting == one.forward.waiting


def test_a_group_is_as_slow_as_its_slowest_kind():
    # The new chip waits for its host, the old one computes longer than that.
    spread = plan(SHAPE, 2, tp=2, micro_batch=1, global_batch=2)
    parts = [times_of(spread, SHAPE, chip, Priced(1e-12)).parts[0][0] for chip in (FIRST, SECOND)]
    assert parts[0].forward.host > 0.0 == parts[1].forward.host
    found = slowest_part(parts, apart=False)
    for names in (("forward",), ("backward_input", "backward_weight")):
        seconds = [sum(getattr(part, name).seconds for name in names) for part in (*parts, found)]
        assert seconds[2] == pytest.approx(max(seconds[:2]), rel=1e-12)
