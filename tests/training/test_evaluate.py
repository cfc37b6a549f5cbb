"""A step without noise: parts that add up, textbooks' bubbles, links that cannot hurt, and what was published."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mc.config import ClusterConfig, load_experiment
from mc.fabric import build_cluster
from mc.parallel import build_plan
from mc.training import PARTS, Price, build_chip, build_prices, evaluate
from mc.transformer import Transformer, build_transformer, flops
from tests.parallel.plans import plan

ROOT = Path(__file__).resolve().parents[2]
SHAPE = Transformer(
    layers=8, hidden=1024, heads=8, kv_heads=8, head_dim=128, ffn=4096, vocab=32_000, gated=False
)
CLUSTER = {
    "name": "three tiers",
    "chip": "H100",
    "tiers": [
        {
            "name": "node",
            "link": {"bandwidth": "300 GB/s", "duplex": "each", "latency": "1 us"},
            "fan_out": 2,
        },
        {
            "name": "rack",
            "link": {"bandwidth": "100 GB/s", "duplex": "each", "latency": "3 us"},
            "fan_out": 2,
        },
        {"name": "hall", "link": {"bandwidth": "25 GB/s", "duplex": "each", "latency": "5 us"}, "fan_out": 2},
    ],
}
PLANS = [
    {"tp": 2, "pp": 2},
    {"tp": 2, "pp": 2, "zero": 1, "overlap": {"gradients": False, "parameters": False}},
    {"tp": 2, "pp": 2, "chunks": 2, "recompute": "full", "overlap": {"pipeline": True}},
    {"tp": 2, "pp": 2, "schedule": "zb-h1"},
    {"pp": 2, "schedule": "dualpipe"},
    {"cp": 2, "pp": 2, "schedule": "gpipe"},
    {"cp": 2, "tp": 2, "zero": 3},
    {"tp": 4, "zero": 2},
]


class Free:
    """Messages that take no time."""

    def price(self, collective, group, size):
        """Nothing."""
        return Price(0.0, 0.0)

    def tier(self, group):
        """Anywhere."""
        return -1


def config(*, faster=1.0):
    found = ClusterConfig.model_validate(CLUSTER)
    tiers = tuple(
        tier.model_copy(
            update={"link": tier.link.model_copy(update={"bandwidth": tier.link.bandwidth * faster})}
        )
        for tier in found.tiers
    )
    return found.model_copy(update={"tiers": tiers})


CHIP = build_chip(config().chip)
PRICES, FASTER = (build_prices(build_cluster(config(faster=by))) for by in (1.0, 2.0))


@pytest.mark.parametrize("keys", PLANS, ids=str)
def test_parts_add_up_and_faster_links_never_hurt(keys):
    spread = plan(SHAPE, 8, micro_batch=1, global_batch=16, **keys)
    found = evaluate(spread, SHAPE, CHIP, PRICES)
    assert tuple(found.parts) == PARTS
    assert sum(found.parts.values()) == pytest.approx(found.step, rel=1e-12)
    assert all(seconds >= -1e-12 for seconds in found.parts.values())
    assert all(seconds > 0 for seconds in found.exposed.values())
    assert evaluate(spread, SHAPE, CHIP, FASTER).step <= found.step * (1 + 1e-12)
    assert evaluate(spread, SHAPE, CHIP, Free()).step <= found.step * (1 + 1e-12)


def test_the_ideal_part_is_the_work_at_the_peak():
    # One stage and one replica: every FLOP of the step is on these ranks.
    spread = plan(SHAPE, 2, tp=2, micro_batch=1, global_batch=4)
    found = evaluate(spread, SHAPE, CHIP, PRICES)
    work = flops(SHAPE, 2048, 4, "none").hardware
    # By convention all pairs of tokens count, three times; fused attention skips those ahead, and does 3.5 times as much.
    pairs = 4 * 2048**2 * 1024 * 8 * 4
    work -= (3.0 - 3.5 / 2) * pairs
    assert found.parts["ideal_compute"] == pytest.approx(work / 2 / CHIP.peak["bf16"], rel=2e-3)


@pytest.mark.parametrize(
    ("schedule", "pp", "chunks", "m"),
    [
        ("gpipe", 4, 1, 6),
        ("1f1b", 4, 1, 8),
        ("1f1b", 2, 1, 4),
        ("interleaved", 2, 2, 4),
        ("interleaved", 4, 2, 8),
    ],
)
def test_free_messages_leave_the_textbook_bubble(schedule, pp, chunks, m):
    # A vocabulary of nothing makes the ends nearly as long as the middle; a host that costs nothing leaves the chips.
    even = replace(SHAPE, vocab=8)
    # So does a chip that small products fill as well as large ones.
    free = dict.fromkeys(("launch", "collective_launch", "pass_launch", "step", "wait", "kernel"), 0.0)
    reached = replace(CHIP.efficiency, half_area=0.0, half_depth=0.0, **free)
    # Nor does a product of eight columns leave its tiles empty.
    reached = replace(reached, half_area=0.0)
    keys = {"pp": pp, "schedule": schedule, "chunks": chunks, "micro_batch": 1, "global_batch": m}
    found = evaluate(plan(even, pp, **keys), even, replace(CHIP, efficiency=reached), Free())
    whole = found.step - found.parts["optimizer"]
    expected = (pp - 1) / (chunks * m + pp - 1)
    assert found.parts["bubble"] / whole == pytest.approx(expected, rel=0.025)
    assert found.parts["bandwidth"] == found.parts["latency_floor"] == 0.0


@pytest.mark.parametrize(
    ("name", "published", "within"), [("megatron-1t-3072", 163.0, 0.10), ("llama3-405b-16k", 400.0, 0.15)]
)
def test_published_steps(name, published, within):
    # Narayanan et al. (SC21), table 1, with recomputation; the Llama 3 paper, table 4.
    experiment = load_experiment(ROOT / "configs" / f"{name}.yaml")
    spread = build_plan(experiment)
    assert experiment.model.transformer is not None
    shape = build_transformer(experiment.model.transformer)
    chip = build_chip(experiment.cluster.chip)
    found = evaluate(spread, shape, chip, build_prices(build_cluster(experiment.cluster)))
    work = flops(shape, spread.sequence_length, spread.global_batch, spread.config.recompute).hardware
    assert work / found.step / spread.ranks / 1e12 == pytest.approx(published, rel=within)


def test_loads_and_documents_scale_what_they_should():
    spread = plan(SHAPE, 8, tp=2, pp=2, micro_batch=1, global_batch=16)
    base = evaluate(spread, SHAPE, CHIP, PRICES)
    half = evaluate(spread, SHAPE, CHIP, PRICES, attention=0.5)
    attention = sum(
        getattr(part, name).attention
        for part in base.times.parts[0]
        for name in ("forward", "backward_input", "backward_weight")
    )
    assert base.finish.busy[0] - half.finish.busy[0] == pytest.approx(
        0.5 * spread.passes * attention, rel=1e-9
    )
    assert np.isclose(sum(half.parts.values()), half.step)
