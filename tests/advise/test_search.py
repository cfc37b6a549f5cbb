"""The search against every plan, one by one; and the rules of the space against those that a plan file has to meet."""

import itertools
import math
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mc.advise.bound import FreePrices, VolumePrices, makespan_bound, skeleton, work_of
from mc.advise.search import plans_in, search
from mc.advise.space import ZERO, Candidate, Refused, SpaceError, space_of
from mc.config import load_cluster, load_experiment
from mc.fabric import build_cluster
from mc.parallel import Group, PlanError, make_plan, memory
from mc.training import build_chip, build_prices, evaluate
from mc.training.times import pieces_of

DENSE = "{layers: 4, hidden: 2048, heads: 16, kv_heads: 4, ffn: 8192, vocab: 32000}"
MOE = (
    "{layers: 4, hidden: 1024, heads: 16, kv_heads: 4, ffn: 4096, vocab: 32000,"
    " experts: {count: 4, top_k: 2, ffn: 2048}}"
)
TEXT = """
name: little
cluster:
  name: small
  chip: {{name: any, peak: {{bf16: 300 TFLOP/s}}, memory_bandwidth: 1 TB/s, memory_size: {memory}}}
  tiers:
    - {{name: node, link: {{bandwidth: 200 GB/s, duplex: each, latency: 2 us}}, fan_out: 4}}
    - {{name: pod, link: {{bandwidth: {pod}, duplex: each, latency: 10 us}}, fan_out: 2}}
model: {{name: little, transformer: {shape}}}
plan: {{tp: 2, pp: 2, global_batch: {batch}, sequence_length: {length}, overlap: {{pipeline: {hidden}}}}}
"""
# Fast and slow networks, little memory and much.
CASES = {
    "slow network": {
        "shape": DENSE,
        "memory": "80 GB",
        "pod": "5 GB/s",
        "batch": 2,
        "length": 512,
        "hidden": "false",
    },
    "little memory": {
        "shape": DENSE,
        "memory": "3 GB",
        "pod": "50 GB/s",
        "batch": 4,
        "length": 2048,
        "hidden": "true",
    },
    "experts": {
        "shape": MOE,
        "memory": "10 GB",
        "pod": "25 GB/s",
        "batch": 2,
        "length": 512,
        "hidden": "false",
    },
}


@pytest.fixture(scope="module", params=CASES)
def config(request, tmp_path_factory):
    """An experiment on 8 chips, and all of its plans."""
    file = tmp_path_factory.mktemp("advise") / "little.yaml"
    file.write_text(TEXT.format(**CASES[request.param]))
    return load_experiment(str(file))


@pytest.fixture(scope="module")
def plans(config):
    """Those that fit, with the steps that they take, and how many do not."""
    return every(config)


def every(config):
    """All plans that the space has, with the steps that they take; and how many do not fit."""
    space = space_of(config)
    chip = build_chip(config.cluster.chip)
    prices = build_prices(build_cluster(config.cluster))
    available = (1 - config.plan.memory_reserve) * config.cluster.chip.memory_size
    found, too_large = [], 0
    for mapping, layouts in space.mappings(Refused()):
        for choice in itertools.product(layouts, space.recomputes, ZERO, space.orders(mapping)):
            plan = make_plan(space.config(Candidate(mapping, *choice)), space.shape, space.ranks, space.node)
            if memory(space.shape, plan).total > available:
                too_large += 1
                continue
            found.append((float(evaluate(plan, space.shape, chip, prices).step), plan))
    return found, too_large


def test_search_never_loses_the_best(config, plans):
    found, _ = plans
    result = search(config, 4)
    by_plan: dict = {}
    for step, plan in found:
        key = plan.config.model_copy(update={"order": ()}).model_dump_json()
        by_plan[key] = min(step, by_plan.get(key, math.inf))
    best = sorted(by_plan.values())[:4]
    assert [each.step for each in result.best] == pytest.approx(best, rel=1e-12)
    assert result.evaluated < len(found)


def test_a_search_by_noise_never_loses_the_best(config, plans):
    """Noise that no bound knows of, up to 40 % of a step: against all plans, one by one."""
    found, _ = plans

    def noisy(plan, step):
        return step * (1 + 0.4 * zlib.crc32(plan.config.model_dump_json().encode()) / 2**32)

    drawn = []

    def draw(one):
        drawn.append(one)
        return noisy(one.plan, one.step)

    by_plan: dict = {}
    for step, plan in found:
        key = plan.config.model_copy(update={"order": ()}).model_dump_json()
        by_plan[key] = min(noisy(plan, step), by_plan.get(key, math.inf))
    result = search(config, 3, draw=draw)
    least = sorted(by_plan.values())[:3]
    assert [noisy(each.plan, each.step) for each in result.best] == pytest.approx(least, rel=1e-9)
    assert len(drawn) == result.drawn <= result.evaluated
    assert result.shortened == 0
    # By the step without noise another one is best.
    step, plan = min(found, key=lambda pair: pair[0])
    assert noisy(plan, step) > least[0]


def test_noise_that_shortens_steps_is_told(config):
    assert search(config, 1, draw=lambda one: 0.9 * one.step).shortened >= 1


def test_every_plan_is_accounted_for(config, plans):
    found, too_large = plans
    told = []
    result = search(config, 4, advance=told.append)
    refused = sum(result.refused.values())
    assert result.total == refused + sum(result.pruned.values()) + result.evaluated
    assert result.total == sum(told) == plans_in(config)
    # What does not fit is refused or pruned.
    by_rules = refused - result.refused.get("does not fit into memory", 0)
    assert result.total - by_rules == len(found) + too_large


def test_bounds_are_below_every_step(config, plans):
    space = space_of(config)
    cluster = build_cluster(config.cluster)
    chip, prices, volume = build_chip(config.cluster.chip), build_prices(cluster), VolumePrices(cluster)
    found, _ = plans
    rng = np.random.default_rng(0)
    for place in rng.choice(len(found), size=min(100, len(found)), replace=False):
        step, plan = found[place]
        bounds = [
            float(
                makespan_bound(
                    skeleton(space.shape, plan),
                    work_of(pieces_of(plan, space.shape, chip, each)),
                    plan.passes,
                )
            )
            for each in (FreePrices(), volume, prices)
        ]
        assert bounds == sorted(bounds)
        assert bounds[-1] <= step * (1 + 1e-9)


def test_what_is_refused_cannot_be_planned(config):
    # All numbers of ranks, whether they suit each other or not.
    space = space_of(config)
    possible = {(mapping, layout) for mapping, layouts in space.mappings(Refused()) for layout in layouts}
    base = space.base.model_copy(update={"layers_per_stage": "spread", "dp": None})
    seen = set()
    for tp, cp, pp in itertools.product((1, 2, 4, 8), repeat=3):
        if tp * cp * pp > space.ranks:
            continue
        for ep, size, schedule in itertools.product(space.experts, (1, 2, 4), ("gpipe", "1f1b", "dualpipe")):
            update = {"tp": tp, "cp": cp, "pp": pp, "ep": ep, "micro_batch": size, "schedule": schedule}
            update |= {"sequence_parallel": tp > 1, "order": ("tp", "cp", "dp", "pp")}
            try:
                make_plan(base.model_copy(update=update), space.shape, space.ranks, space.node)
            except PlanError:
                continue
            if pp > 1 or schedule == "1f1b":
                seen.add((tp, cp, pp, ep, size, schedule))
    named = {
        (mapping.tp, mapping.cp, mapping.pp, mapping.ep, mapping.micro_batch, layout.schedule)
        for mapping, layout in possible
        if layout.schedule in ("gpipe", "1f1b", "dualpipe") and layout.chunks == 1 and space.orders(mapping)
    }
    assert named == seen


SPREAD = (((16, 1),), ((16, 8),), ((2, 4), (4, 32)), ((2, 8),))


@pytest.mark.parametrize(
    ("name", "places"), [("llama3-24k", SPREAD), ("tpu-v5p-8x8x16", (((8, 1),), ((64, 1),), ((16, 64),)))]
)
def test_volume_is_below_every_price(name, places):
    cluster = build_cluster(load_cluster(name))
    prices, volume = build_prices(cluster).source, VolumePrices(cluster)
    sizes = np.array([2.0**10, 2.0**24, 2.0**33])
    for axes in places:
        group = Group("group", axes)
        for collective in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send-recv"):
            if name.startswith("tpu") and collective == "send-recv":
                continue
            with jax.disable_jit():
                times = np.asarray(prices.times(collective, group, jnp.asarray(sizes)))
            assert np.all(np.asarray(volume.price(collective, group, sizes).seconds) <= times * (1 + 1e-5))


def test_groups_that_lie_alike_share_a_table():
    cluster = build_cluster(load_cluster("llama3-24k"))
    prices = build_prices(cluster)
    for axes in (((2, 8),), ((2, 64),), ((2, 1024),), ((16, 8),), ((16, 128),)):
        group = Group("group", axes)
        exact = float(prices.source.price("all-gather", group, 2.0**26).seconds)
        assert float(prices.price("all-gather", group, 2.0**26).seconds) == pytest.approx(exact, rel=2e-3)
    assert len(prices.tables) < 5


def test_a_model_without_plans_is_refused(config):
    model = config.model.model_copy(update={"transformer": None})
    with pytest.raises(SpaceError, match="expected a model with a `transformer`"):
        space_of(config.model_copy(update={"model": model}))
