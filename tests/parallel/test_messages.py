"""Messages against what papers count."""

import pytest

from mc.collectives import bus_factor
from mc.parallel import Message, messages
from mc.transformer import Transformer, parameters
from tests.parallel.plans import GPT, plan, shipped

B, S, H, L = 3, 2048, GPT.hidden, GPT.layers
WHOLE = 2.0 * B * S * H
MODERN = Transformer(
    layers=4, hidden=1024, heads=16, kv_heads=4, head_dim=64, ffn=4096, vocab=32000,
)  # fmt: skip


def only(found: tuple[Message, ...], **keys) -> list[Message]:
    return [each for each in found if all(getattr(each, name) == value for name, value in keys.items())]


def sent(found: list[Message]) -> float:
    """Bytes that a rank sends in a step, by the definition of bus bandwidth."""
    return sum(each.total * bus_factor(each.collective, each.group.size) for each in found)


def layers_of(found: tuple[Message, ...]) -> list[Message]:
    return [
        each for each in found if each.dimension == "tp" and each.segment in ("attention", "mlp", "experts")
    ]


# Tensor parallelism.


@pytest.mark.parametrize(("recompute", "each"), [("none", 4), ("selective", 4), ("full", 6)])
def test_megatron_has_four_all_reduces_per_layer(recompute, each):
    """Shoeybi et al. 2019, figure 4: two forward and two backward, of the whole activations; full recomputation adds two."""
    found = messages(
        GPT,
        plan(GPT, 8, tp=8, micro_batch=B, global_batch=4 * B, sequence_parallel=False, recompute=recompute),
    )
    inside = layers_of(found)
    assert {(one.collective, one.bytes, one.group.axes) for one in inside} == {
        ("all-reduce", WHOLE, ((8, 1),))
    }
    assert sum(one.count for one in inside) == each * L * 4
    assert sum(one.each for one in inside) == each


def test_sequence_parallelism_sends_as_much_but_for_kept_inputs():
    """Korthikanti et al. 2022, section 4.2.2: a reduce-scatter and an all-gather are an all-reduce."""
    keys = {"tp": 4, "micro_batch": B, "global_batch": B}
    with_it = layers_of(messages(GPT, plan(GPT, 4, **keys)))
    without = layers_of(messages(GPT, plan(GPT, 4, sequence_parallel=False, **keys)))
    again = [each for each in with_it if each.what == "kept inputs"]
    assert sum(each.count for each in again) == 2 * L
    assert sent(with_it) - sent(again) == pytest.approx(sent(without))
    assert {each.collective for each in with_it} == {"all-gather", "reduce-scatter"}
    assert sum(each.each for each in with_it if each.where == "forward") == 4


def test_the_vocabulary_is_divided():
    found = messages(GPT, plan(GPT, 8, tp=8, micro_batch=B, global_batch=2 * B))
    head = only(found, segment="head", what="terms of the loss")
    assert [(each.bytes, each.each, each.count) for each in head] == [(4 * B * S, 3, 6)]
    ends = [each for each in found if each.segment in ("embedding", "head") and each.bytes == WHOLE]
    assert sum(each.count for each in ends) == 5 * 2
    plain = messages(GPT, plan(GPT, 8, tp=8, micro_batch=B, global_batch=2 * B, sequence_parallel=False))
    ends = [each for each in plain if each.segment in ("embedding", "head") and each.bytes == WHOLE]
    assert {(each.collective, each.segment, each.where) for each in ends} == {
        ("all-reduce", "embedding", "forward"),
        ("all-reduce", "head", "backward"),
    }


def test_latent_attention_gathers_latents():
    shape = shipped("deepseek-v3")
    keys = {"tp": 8, "pp": 1, "ep": 8, "global_batch": 1, "sequence_length": 4096}
    (gathered,) = only(
        messages(shape, plan(shape, 8, **keys)), segment="attention", what="inputs", where="forward"
    )
    assert gathered.bytes == 2 * 4096 * (1536 + 512 + 64)


# Context parallelism.


def test_ring_attention_passes_keys_and_values_round():
    shape = shipped("llama3-405b")
    found = messages(
        shape,
        plan(shape, 2048, tp=8, cp=16, pp=16, balance_ends=True, global_batch=16, sequence_length=131072),
    )
    ring = only(found, dimension="cp")
    # 8 heads of keys and values, of 128 numbers each, over 8 ranks, for 1/16 of the tokens.
    assert {(each.collective, each.bytes, each.each) for each in ring} == {
        ("send-recv", 8192 * 2 * 128 * 2.0, 15)
    }
    assert [each.where for each in ring] == ["forward", "backward", "backward"]
    assert {each.count for each in ring} == {15 * 8 * 16}
    assert all(each.behind == "attention" for each in ring)


def test_gathered_keys_and_values():
    """Llama 3, section 3.3.2: all of the sequence's, which grouped heads keep small."""
    found = only(
        messages(MODERN, plan(MODERN, 4, cp=4, global_batch=1, sequence_length=8192, context="all-gather")),
        dimension="cp",
    )
    assert [each.collective for each in found] == ["all-gather", "all-gather", "reduce-scatter"]
    assert {each.bytes for each in found} == {8192 * 2 * 4 * 64 * 2.0}
    ring = only(messages(MODERN, plan(MODERN, 4, cp=4, global_batch=1, sequence_length=8192)), dimension="cp")
    assert sent(found) == pytest.approx(sent(ring))


def test_few_heads_are_on_several_ranks():
    for tp, heads in ((1, 4), (2, 2), (4, 1), (8, 1), (16, 1)):
        keys = {"tp": tp, "cp": 2, "global_batch": 1, "sequence_length": 4096}
        (found,) = only(messages(MODERN, plan(MODERN, 2 * tp, **keys)), what="keys and values")
        assert found.bytes == 2048 * 2 * heads * 64 * 2.0


def test_a_ring_of_latents():
    shape = shipped("deepseek-v3")
    found = only(messages(shape, plan(shape, 2, cp=2, global_batch=1)), dimension="cp", where="forward")
    assert [each.bytes for each in found] == [1024 * (512 + 64) * 2.0]


# Pipelines.


@pytest.mark.parametrize(
    ("keys", "each"),
    [
        ({}, 1),
        ({"schedule": "gpipe"}, 1),
        ({"schedule": "zb-h1"}, 1),
        ({"chunks": 3}, 3),
        ({"schedule": "dualpipe"}, 1),
    ],
)
def test_stages_pass_on_every_micro_batch(keys, each):
    """Interleaving sends v times as often (Narayanan et al., SC21, section 2.2)."""
    found = messages(GPT, plan(GPT, 4, pp=4, micro_batch=B, global_batch=8 * B, **keys))
    pipeline = only(found, dimension="pp", per="chunk")
    assert [(one.collective, one.bytes, one.where) for one in pipeline] == [
        ("send-recv", WHOLE, "forward"),
        ("send-recv", WHOLE, "backward"),
    ]
    assert {one.count for one in pipeline} == {each * 8}


def test_two_stages_send_one_way_each():
    found = messages(GPT, plan(GPT, 2, pp=2, global_batch=6))
    assert [each.count for each in only(found, dimension="pp", per="chunk")] == [6, 6]
    both = messages(GPT, plan(GPT, 2, pp=2, global_batch=6, schedule="dualpipe"))
    # Half of the micro-batches enter at either end.
    assert [each.count for each in only(both, dimension="pp", per="chunk")] == [3, 3]


@pytest.mark.parametrize("sequence_parallel", [True, False])
def test_tensor_parallel_ranks_share_what_goes_to_the_next_stage(sequence_parallel):
    keys = {"tp": 4, "pp": 2, "micro_batch": B, "global_batch": B, "sequence_parallel": sequence_parallel}
    found = messages(GPT, plan(GPT, 8, **keys))
    assert {each.bytes for each in only(found, dimension="pp", per="chunk")} == {WHOLE / 4}
    gathered = only(found, dimension="tp", per="chunk")
    assert [each.bytes for each in gathered] == ([] if sequence_parallel else [WHOLE, WHOLE])


def test_a_tied_embedding_is_reduced_between_the_ends():
    found = messages(GPT, plan(GPT, 8, tp=2, pp=4, global_batch=4))
    (tied,) = only(found, what="gradients of the embedding")
    assert (tied.bytes, tied.group.axes, tied.stages) == (
        GPT.vocab * GPT.hidden / 2 * 4,
        ((2, 3 * 2),),
        "ends",
    )
    assert not only(messages(MODERN, plan(MODERN, 8, tp=2, pp=4, global_batch=4)), what=tied.what)


# Replicas. The volumes are those of Rajbhandari et al. 2019, section 7: 2, 2, 2 and 3 numbers per parameter.


@pytest.mark.parametrize(("zero", "volume"), [(0, 2), (1, 2), (2, 2), (3, 3)])
@pytest.mark.parametrize(
    "formats", [{"main_gradients": "bf16"}, {"main_gradients": "fp32", "parameters": "fp32"}]
)
def test_volumes_of_zero(zero, volume, formats):
    replicas = 64
    found = [
        each
        for each in messages(
            MODERN, plan(MODERN, replicas, global_batch=replicas, zero=zero, formats=formats, bucket="1 MB")
        )
        if each.dimension == "dp" and each.bytes > 4
    ]
    numbers = parameters(MODERN).total
    width = 2 if formats["main_gradients"] == "bf16" else 4
    # The embedding's look-up is not needed again on the way back.
    unread = parameters(MODERN).embedding if zero == 3 else 0
    share = (replicas - 1) / replicas
    assert sent(found) / width == pytest.approx(share * (volume * numbers - unread), rel=1e-12)


def test_sharded_gradients_are_reduced_for_each_micro_batch():
    keys = {"global_batch": 8 * 5, "bucket": "1 GB"}
    times = {
        zero: only(messages(MODERN, plan(MODERN, 8, zero=zero, **keys)), what="gradients")[0].count
        for zero in (0, 1, 2)
    }
    assert times == {0: 1, 1: 1, 2: 5}
    layers = only(messages(MODERN, plan(MODERN, 8, zero=3, **keys)), segment="mlp")
    assert [(each.what, each.count) for each in layers] == [
        ("parameters", 4 * 5),
        ("parameters again", 4 * 5),
        ("gradients", 4 * 5),
    ]


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_hybrid_sharding_reduces_what_is_left_across(zero):
    keys = {"global_batch": 64, "zero": zero, "formats": {"main_gradients": "bf16"}, "bucket": "1 GB"}
    found = [
        each
        for each in messages(MODERN, plan(MODERN, 64, zero_group=8, **keys))
        if each.dimension == "dp" and each.bytes > 4
    ]
    assert {each.group.axes for each in found} == {((8, 1),), ((8, 8),)}
    across = [each for each in found if each.group.axes == ((8, 8),)]
    assert {each.collective for each in across} == {"all-reduce"}
    numbers = parameters(MODERN).total
    assert sent(across) == pytest.approx(2 * 7 / 8 * 2 * numbers / 8)
    inside = sum(each.total for each in found if each.collective == "reduce-scatter")
    assert inside == pytest.approx(2 * numbers)


def test_buckets():
    (found,) = only(messages(MODERN, plan(MODERN, 8, global_batch=8, bucket="10 MB")), what="gradients")
    size = 4.0 * parameters(MODERN).total
    assert found.total == pytest.approx(size)
    assert found.bytes <= 10e6 < found.bytes * (found.count / (found.count - 1))
    assert plan(MODERN, 8, global_batch=8).bucket == 4 * 40e6
    # A million parameters for each replica (Megatron Core), from 40 on.
    assert plan(MODERN, 64, global_batch=64).bucket == 4 * 64e6
    assert (found.where, found.behind, found.blocking) == ("backward", "layers", False)


def test_gradients_are_not_shared_with_nobody():
    assert not [each for each in messages(MODERN, plan(MODERN, 1, global_batch=1)) if each.bytes > 4]
    alone = messages(MODERN, plan(MODERN, 4, tp=4, global_batch=1))
    assert {each.what for each in alone if each.per == "step"} == {"gradients of norms", "norm of gradients"}


def test_context_parallel_ranks_share_gradients():
    (found,) = only(messages(MODERN, plan(MODERN, 8, cp=4, global_batch=2)), what="gradients")
    assert found.group.axes == ((8, 1),)


# Experts.


def test_tokens_go_to_their_experts_and_back():
    shape = shipped("mixtral-8x7b")
    keys = {"ep": 8, "micro_batch": 2, "global_batch": 16, "formats": {"dispatch": "fp8"}}
    found = only(messages(shape, plan(shape, 8, **keys)), dimension="ep")
    numbers = 2 * 2048 * 2 * shape.hidden
    assert [(each.collective, each.bytes, each.where) for each in found] == [
        ("all-to-all", numbers, "forward"),
        ("all-to-all", 2 * numbers, "forward"),
        ("all-to-all", numbers, "backward"),
        ("all-to-all", 2 * numbers, "backward"),
    ]
    assert {each.count for each in found} == {shape.layers}


def test_tensor_parallel_ranks_bring_a_part_of_the_tokens_each():
    shape = shipped("mixtral-8x7b")
    found = messages(shape, plan(shape, 8, tp=4, ep=2, etp=4, global_batch=2))
    one = 2048 / 4 * 2 * shape.hidden * 2
    assert {each.bytes for each in only(found, dimension="ep")} == {one}
    pooled = only(found, dimension="etp")
    assert {each.bytes for each in pooled} == {4 * one}
    assert [each.collective for each in pooled] == ["all-gather", "reduce-scatter"] * 2
    assert not only(found, dimension="tp", segment="experts")
    plain = messages(shape, plan(shape, 8, tp=4, ep=2, global_batch=2, sequence_parallel=False))
    (forward,) = only(plain, dimension="tp", segment="experts", where="forward")
    assert (forward.collective, forward.bytes) == ("all-gather", 2048 * shape.hidden * 2)


def test_experts_have_replicas_of_their_own():
    shape = shipped("mixtral-8x7b")
    found = messages(shape, plan(shape, 64, ep=8, global_batch=64, zero=1))
    experts = only(found, dimension="edp", what="gradients")
    assert sum(each.total for each in experts) == pytest.approx(4 * shape.layers * 3 * shape.hidden * 14336)
    assert {each.group.axes for each in experts} == {((8, 8),)}
    dense = only(found, dimension="dp", what="gradients")
    count = parameters(shape)
    assert sum(each.total for each in dense) == pytest.approx(
        4 * (count.total - shape.layers * 8 * count.expert)
    )


def test_two_copies_of_a_model_add_up_their_gradients():
    shape = shipped("deepseek-v3")
    keys = {"pp": 4, "ep": 4, "global_batch": 32, "layers_per_stage": "spread", "schedule": "dualpipe"}
    (found,) = only(messages(shape, plan(shape, 16, **keys)), what="gradients of the other copy")
    assert found.group.axes == ((2, 3 * 4),)
    count = parameters(shape)
    # Every parameter is on two of the four stages.
    dense = count.total + count.mtp - (58 + 1) * 256 * count.expert
    mean = 2 * 4 * (dense + (58 + 1) * 256 / 4 * count.expert) / 4
    assert mean <= found.bytes < 1.3 * mean
    whole, sharded = (
        only(messages(shape, plan(shape, 16, zero=zero, **keys | {"ep": 1})), what=found.what)[0]
        for zero in (0, 1)
    )
    assert sharded.bytes == pytest.approx(whole.bytes / 4)


def test_what_is_sent_behind_computing_can_be_chosen():
    overlap = dict.fromkeys(("gradients", "parameters", "pipeline", "tensor", "context", "experts"), True)
    shape = shipped("mixtral-8x7b")
    keys = {"tp": 2, "cp": 2, "pp": 2, "ep": 2, "zero": 1, "global_batch": 4}
    hidden = messages(shape, plan(shape, 16, overlap=overlap, **keys))
    late = {each.what for each in hidden if each.blocking and each.segment not in ("embedding", "head")}
    assert late == {"gradients of norms", "norm of gradients"}
    none = messages(shape, plan(shape, 16, overlap=dict.fromkeys(overlap, False), **keys))
    # What Megatron-LM hides behind the products of the same layer stays there.
    assert {each.behind for each in none} == {None, "input gradients", "weight gradients"}
    assert [each.bytes for each in hidden] == [each.bytes for each in none]


@pytest.mark.parametrize("name", ["gpt3-175b", "llama3-8b", "mixtral-8x7b", "deepseek-v3"])
@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_counts_follow_from_layers(name, zero):
    """`count` is `each` times the passes of the busiest rank, whatever the message."""
    shape = shipped(name)
    found = plan(shape, 64, tp=2, cp=2, pp=4, zero=zero, global_batch=16, layers_per_stage="spread")
    kinds = shape.layer_kinds
    busiest = {
        segment: max(
            sum(kind is None or kinds[layer] == kind for part in stage for layer in part.layers)
            + (shape.mtp_kinds.count(kind or kinds[-1]) if stage[-1].is_last else 0)
            for stage in found.parts
        )
        for segment, kind in (("attention", None), ("mlp", "dense"), ("experts", "moe"))
    }
    for each in messages(shape, found):
        assert each.bytes > 0
        assert each.group.size > 1
        if each.per == "layer":
            layers = busiest.get(str(each.segment), 1)
            assert each.count == each.each * layers * found.micro_batches
