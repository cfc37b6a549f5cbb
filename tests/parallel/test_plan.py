"""Groups and parts of plans, against lists of ranks and layers."""

import itertools
import math

import pytest

from mc.parallel import Plan, PlanError, contents, distinct_stages, held_parts, make_plan
from mc.transformer import parameters
from tests.parallel.plans import GPT, plan, shipped


def ranks_of(axes) -> frozenset[int]:
    found = [0]
    for size, stride in axes:
        found = [rank + stride * place for place in range(size) for rank in found]
    return frozenset(found)


def coordinates(found: Plan) -> list[dict[str, int]]:
    """Of each rank, by counting through the dimensions like an odometer."""
    sizes = {"tp": found.tp, "cp": found.cp, "dp": found.dp, "pp": found.pp}
    places = itertools.product(*(range(sizes[name]) for name in reversed(found.order)))
    return [dict(zip(reversed(found.order), each, strict=True)) for each in places]


def alike(found: Plan, *fixed: str) -> frozenset[int]:
    """The ranks that agree with rank 0 in the dimensions `fixed`."""
    return frozenset(
        rank for rank, place in enumerate(coordinates(found)) if all(place[name] == 0 for name in fixed)
    )


def expert_places(found: Plan) -> list[tuple[int, int, int, int]]:
    """(etp, ep, edp, pp) of each rank, by folding tp, cp and dp in the order of the plan."""
    sizes = {"tp": found.tp, "cp": found.cp, "dp": found.dp}
    places = []
    for place in coordinates(found):
        number, below = 0, 1
        for name in found.order:
            if name != "pp":
                number += below * place[name]
                below *= sizes[name]
        rest, etp = divmod(number, found.etp)
        edp, ep = divmod(rest, found.ep)
        places.append((etp, ep, edp, place["pp"]))
    return places


MOE = shipped("mixtral-8x7b")
ORDERS = list(itertools.permutations(("tp", "cp", "dp", "pp")))


@pytest.mark.parametrize("order", ORDERS)
def test_groups_are_the_ranks_that_agree_in_all_else(order):
    found = plan(GPT, 48, tp=2, cp=2, pp=3, dp=4, order=order, global_batch=16, zero=1, zero_group=4)
    groups = found.groups
    assert ranks_of(groups.tp.axes) == alike(found, "cp", "dp", "pp")
    assert ranks_of(groups.cp.axes) == alike(found, "tp", "dp", "pp")
    assert ranks_of(groups.dp.axes) == alike(found, "tp", "cp", "pp")
    assert ranks_of(groups.pp.axes) == alike(found, "tp", "cp", "dp")
    assert ranks_of(groups.gradient.axes) == alike(found, "tp", "pp")
    assert ranks_of(groups.model.axes) == alike(found, "cp", "dp")
    assert ranks_of(groups.world.axes) == frozenset(range(48))
    first, last = sorted(ranks_of(groups.pp.axes))[0], sorted(ranks_of(groups.pp.axes))[-1]
    assert ranks_of(groups.ends.axes) == {first, last}
    # Each rank shards with the nearest, and has a copy in each of the other groups.
    shard, replica = ranks_of(groups.shard.axes), ranks_of(groups.replica.axes)
    assert (len(shard), len(replica)) == (4, 2)
    assert {one + other for one in shard for other in replica} == ranks_of(groups.gradient.axes)
    assert groups.shard.size * groups.replica.size == groups.gradient.size == found.cp * found.dp


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("etp", "ep"), [(1, 2), (1, 4), (2, 2), (1, 8), (2, 8), (4, 4), (1, 1)])
def test_ranks_of_experts_are_folded_out_of_tp_cp_and_dp(order, etp, ep):
    found = plan(
        MOE, 64, tp=4, cp=2, pp=2, dp=4, ep=ep, etp=etp, order=order, global_batch=16, sequence_length=2048
    )
    places, groups = expert_places(found), found.groups
    for group, free in ((groups.etp, 0), (groups.ep, 1), (groups.edp, 2)):
        wanted = {
            rank
            for rank, place in enumerate(places)
            if all(place[each] == 0 for each in range(4) if each != free)
        }
        assert ranks_of(group.axes) == wanted
    assert found.edp == 32 // (etp * ep) == groups.edp.size


def test_experts_that_do_not_fall_on_borders_are_refused():
    # Ranks 0 to 11 of a stage, and as many 24 further on: the first 8 are regular, the next 8 are not.
    with pytest.raises(PlanError, match=r"etp 1 x ep 8 on the borders of 12 and 2 ranks.*pp last in `order`"):
        plan(MOE, 48, tp=2, pp=2, dp=12, ep=8, order=("cp", "dp", "pp", "tp"), global_batch=12)


def test_the_plan_of_llama_3():
    """16,384 ranks as in table 4 of arXiv 2407.21783: tp 8 in a node, then the stages' replicas."""
    shape = shipped("llama3-405b")
    found = plan(
        shape, 16384, tp=8, pp=16, balance_ends=True, global_batch=2048, sequence_length=8192,
        order=("tp", "cp", "pp", "dp"),
    )  # fmt: skip
    assert (found.dp, found.micro_batches, found.edp) == (128, 16, 1024)
    # One layer less in the first and in the last stage (section 3.3.2).
    assert [len(stage[0]) for stage in found.layers] == [7, *[8] * 14, 7]
    assert found.groups.pp.axes == ((16, 8),)
    assert found.groups.gradient.axes == ((128, 128),)


@pytest.mark.parametrize(
    ("keys", "layers"),
    [
        ({"pp": 4}, [[(0, 6)], [(6, 12)], [(12, 18)], [(18, 24)]]),
        ({"pp": 2, "chunks": 2}, [[(0, 6), (12, 18)], [(6, 12), (18, 24)]]),
        ({"pp": 2, "schedule": "dualpipe"}, [[(0, 12), (12, 24)], [(12, 24), (0, 12)]]),
        ({"pp": 2, "layers_per_stage": [20, 4]}, [[(0, 20)], [(20, 24)]]),
        ({"pp": 4, "chunks": 2, "layers_per_stage": "spread"}, None),
        ({"pp": 10, "layers_per_stage": "spread"}, [[(0, 2)], [(2, 4)], [(4, 6)], [(6, 9)]]),
    ],
)
def test_layers_of_stages(keys, layers):
    found = plan(GPT, 4 * keys["pp"], global_batch=96, **keys)
    for stage, wanted in zip(found.layers, layers or (), strict=False):
        assert stage == tuple(tuple(range(*each)) for each in wanted)
    sizes = [len(part) for stage in found.layers for part in stage]
    assert sum(sizes) == (48 if found.schedule == "dualpipe" else 24)
    if "spread" in keys.values():
        assert max(sizes) - min(sizes) <= 1
        assert min(sizes) == sizes[0] == sizes[-1]
    ends = [(part.is_first, part.is_last) for stage in found.parts for part in stage]
    copies = 2 if found.schedule == "dualpipe" else 1
    assert sum(first for first, _ in ends) == sum(last for _, last in ends) == copies


@pytest.mark.parametrize("name", ["llama3-8b", "deepseek-v3", "gpt3-175b"])
@pytest.mark.parametrize("keys", [{}, {"pp": 4}, {"pp": 4, "chunks": 2}])
def test_stages_hold_the_model_once(name, keys):
    shape = shipped(name)
    found = plan(shape, 8, global_batch=8, layers_per_stage="spread", **keys)
    held = held_parts(shape, found)
    total = sum(each.dense + each.experts for stage in held for each in stage)
    count = parameters(shape)
    # A tied head on another stage than the embedding is a copy.
    copy = count.embedding if shape.tied_embeddings and found.pp > 1 else 0
    assert total == pytest.approx(count.total + count.mtp + copy, rel=1e-12)
    everything = contents(shape, found)
    assert {everything[stage] for stage in distinct_stages(shape, found)} == set(everything)


def test_the_other_copy_of_dualpipe():
    shape = shipped("deepseek-v3")
    both = plan(shape, 16, pp=4, schedule="dualpipe", global_batch=64, layers_per_stage="spread")
    once = plan(shape, 16, pp=4, global_batch=64, layers_per_stage="spread")
    numbers = [sum(sum(part) for stage in held_parts(shape, each) for part in stage) for each in (both, once)]
    assert numbers[0] == pytest.approx(2 * numbers[1])
    assert both.passes == once.passes // 2


def test_shards_of_experts_follow_the_group():
    found = plan(MOE, 64, dp=64, ep=8, global_batch=64, zero=1, zero_group=16)
    assert found.expert_zero_group == 2
    assert found.groups.expert_shard.axes == ((2, 8),)
    assert found.groups.expert_replica.axes == ((4, 16),)
    alone = plan(MOE, 64, dp=64, ep=8, global_batch=64, zero=1, zero_group=4)
    assert alone.expert_zero_group == 1
    assert math.prod((alone.groups.expert_shard.size, alone.groups.expert_replica.size)) == 8


def test_plans_that_are_equal_have_one_hash():
    one, other = (plan(GPT, 8, tp=2, global_batch=8) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != plan(GPT, 8, tp=4, global_batch=8)


def test_all_that_is_wrong_comes_at_once():
    config = plan(GPT, 8, global_batch=8).config.model_copy(update={"tp": 3, "ep": 2})
    with pytest.raises(PlanError) as caught:
        make_plan(config, GPT, 8)
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == ["tp", "tp", "ep"]
