"""Tokens on their way to experts: copies counted on tokens that choose by sorting, on nodes and groups of any size."""

from dataclasses import replace

import numpy as np
import pytest

from mc.config import PlanConfig
from mc.parallel import make_plan, messages, nodes_of
from mc.parallel.plan import PlanError
from tests.parallel.plans import GPT, plan, shipped
from tests.parallel.test_messages import only
from tests.stats import assert_mean

DEEPSEEK = shipped("deepseek-v3")
assert DEEPSEEK.experts is not None
LIMITED = DEEPSEEK.experts
UNLIMITED = replace(LIMITED, groups=1, group_limit=1)
FREE = replace(DEEPSEEK, experts=UNLIMITED)
TOKENS = 4_000
SIZE = 4096 * 7168


def chosen_experts(shape) -> np.ndarray:
    """[tokens, k]: the best experts of the groups whose two best add up to most, by sorting."""
    experts = shape.experts
    scores = np.random.default_rng(11).gumbel(size=(TOKENS, experts.count))
    groups = scores.reshape(TOKENS, experts.groups, -1)
    totals = np.sort(groups, axis=-1)[..., -2:].sum(axis=-1)
    allowed = np.argsort(-totals, axis=-1)[:, : experts.group_limit]
    is_allowed = np.zeros((TOKENS, experts.groups), bool)
    np.put_along_axis(is_allowed, allowed, values=True, axis=1)
    eligible = np.where(is_allowed[..., None], groups, -np.inf).reshape(TOKENS, -1)
    return np.argsort(-eligible, axis=-1)[:, : experts.top_k]


CHOSEN = {"limited": chosen_experts(DEEPSEEK), "free": chosen_experts(FREE)}


def made(shape, ep: int, node: int | None, tp: int = 1, **keys):
    base = {"ep": ep, "global_batch": 512, "sequence_length": 4096, "dispatcher": "deduplicated", "tp": tp}
    return make_plan(PlanConfig.model_validate({**base, **keys}), shape, 512, node)


def visits(name: str, ep: int, ranks_per_part: int) -> np.ndarray:
    """To how many different parts each token goes, each of so many ranks of the group."""
    part = CHOSEN[name] // (256 // ep * ranks_per_part)
    return np.array([len(set(each)) for each in part.tolist()])


# Experts in several nodes, in nodes larger than the group, in nodes of four, in racks of 64.
@pytest.mark.parametrize("name", ["limited", "free"])
@pytest.mark.parametrize(
    ("ep", "node"), [(64, 8), (32, 8), (16, 8), (16, 4), (64, 4), (128, 64), (256, 64), (64, 16)]
)
def test_a_copy_for_each_node_and_then_for_each_rank(name, ep, node):
    shape = DEEPSEEK if name == "limited" else FREE
    found = messages(shape, made(shape, ep, node, formats={"dispatch": "fp8"}))
    (far,) = only(found, what="dispatch between nodes")
    (near,) = only(found, what="dispatch inside nodes")
    assert (far.group.size, near.group.size) == (ep // node, node)
    assert (far.group.axes, near.group.axes) == (((ep // node, node),), ((node, 1),))
    assert (far.to_nodes, far.beside, near.to_nodes, near.beside) == (True, False, False, True)
    for message, parts in ((far, node), (near, 1)):
        counted = visits(name, ep, parts)
        if np.ptp(counted):
            # The library's number comes from tokens of its own.
            assert_mean(counted, message.bytes / SIZE)
            assert message.bytes / SIZE == pytest.approx(counted.mean(), rel=0.02)
        else:
            assert message.bytes / SIZE == counted[0]
    # Back the same way, in 16 bits; gradients go both ways, too.
    sizes = {each.what: each.bytes for each in only(found, dimension="ep")}
    assert sizes["combine between nodes"] == 2 * far.bytes
    assert sizes["gradients back inside nodes"] == 2 * near.bytes
    assert len(sizes) == 8


@pytest.mark.parametrize(("ep", "node", "tp"), [(8, 8, 1), (32, 64, 1), (8, 72, 1), (16, 1, 1), (4, 8, 2)])
def test_in_one_node_or_each_in_another_a_copy_for_each_rank(ep, node, tp):
    found = messages(FREE, made(FREE, ep, node, tp))
    (one,) = only(found, what="dispatch")
    assert one.group.size == ep
    assert not one.to_nodes
    assert not one.beside
    counted = visits("free", ep, 1)
    assert_mean(counted, one.bytes / (2 * SIZE / tp))


def test_ranks_that_are_apart():
    """Experts cut in two: four of a group in each node of eight; with stages innermost, one."""
    cut = made(FREE, 32, 8, etp=2)
    nodes = nodes_of(UNLIMITED, cut)
    assert nodes is not None
    assert (nodes.inside.axes, nodes.between.axes) == (((4, 2),), ((8, 8),))
    apart = made(FREE, 8, 8, pp=8, layers_per_stage="spread", order=["pp", "tp", "cp", "dp"])
    assert apart.groups.ep.axes == ((8, 8),)
    assert nodes_of(UNLIMITED, apart) is None


def test_the_group_of_experts_is_a_node_where_nobody_said():
    """DeepSeek-V3, section 3.2.2: at most four nodes, then by NVLink to the experts there."""
    keys = {"pp": 16, "ep": 64, "global_batch": 2048, "sequence_length": 4096, "layers_per_stage": "spread"}
    made = plan(DEEPSEEK, 2048, **keys)
    assert made.deduplicated
    assert nodes_of(LIMITED, made) == nodes_of(LIMITED, replace(made, node=8))
    (far,) = only(messages(DEEPSEEK, made), what="dispatch between nodes")
    assert far.bytes / (2 * SIZE) == pytest.approx(3.97, abs=0.005)
    assert plan(FREE, 2048, **keys).deduplicated is False


def test_all_to_all_sends_every_choice():
    for shape, dispatcher in ((DEEPSEEK, "all-to-all"), (FREE, None)):
        found = messages(shape, made(shape, 64, 8, dispatcher=dispatcher))
        (one,) = only(found, what="dispatch")
        assert (one.group.axes, one.bytes) == (((64, 1),), 2 * SIZE * 8)
        assert not one.to_nodes


def test_only_experts_have_a_dispatcher():
    with pytest.raises(PlanError, match="dispatcher: expected none, since the model has no experts"):
        plan(GPT, 8, global_batch=8, dispatcher="deduplicated")
