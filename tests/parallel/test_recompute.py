"""What is sent again and kept less where parts of layers, or some layers, are computed again."""

import pytest

from mc.parallel import make_plan, messages, recomputed_share, stage_memory
from mc.parallel.plan import PlanError
from mc.transformer import activations
from tests.parallel.plans import GPT, plan, shipped


def repeated(found) -> set[tuple[str, str | None, str]]:
    return {(each.dimension, each.segment, each.what) for each in found if each.again}


def sent(shape, ranks, recompute, **keys):
    return messages(shape, plan(shape, ranks, recompute=recompute, **keys))


MIXTRAL = {"tp": 2, "ep": 4, "global_batch": 8}


@pytest.mark.parametrize(
    ("parts", "segments"),
    [
        (["attention", "norms", "activations"], set()),
        (["experts"], {"experts"}),
        ("full", {"attention", "experts"}),
    ],
)
def test_parts_with_messages_inside_send_them_again(parts, segments):
    shape = shipped("mixtral-8x7b")
    found = sent(shape, 8, parts, **MIXTRAL)
    assert {each[1] for each in repeated(found)} == segments
    plain = [each for each in sent(shape, 8, "none", **MIXTRAL) if each.where == "forward"]
    for each in found:
        if each.again:
            # Of the same size, as often, among the same ranks as the first time.
            twin = next(
                one
                for one in plain
                if one.segment == each.segment
                and one.what == each.what.replace(" again", "")
                and one.dimension == each.dimension
            )
            assert (twin.bytes, twin.each, twin.count, twin.group, twin.collective) == (
                *(each.bytes, each.each, each.count, each.group, each.collective),
            )


def test_a_dense_network_again():
    found = sent(GPT, 4, ["mlp"], tp=4, global_batch=2)
    assert repeated(found) == {("tp", "mlp", "inputs again"), ("tp", "mlp", "outputs again")}


def test_attention_again_needs_the_keys_of_others():
    found = sent(GPT, 4, "selective", cp=4, global_batch=2, sequence_length=4096)
    assert repeated(found) == {("cp", "attention", "keys and values again")}


def test_latents_are_gathered_again():
    shape = shipped("deepseek-v3")
    keys = {"tp": 8, "ep": 8, "global_batch": 1, "sequence_length": 4096}
    found = sent(shape, 8, ["mla_up"], **keys)
    (again,) = (each for each in found if each.again)
    assert (again.segment, again.what, again.bytes) == (
        "attention",
        "inputs again",
        2 * 4096 * (1536 + 512 + 64),
    )


@pytest.mark.parametrize(("count", "chunks"), [(1, 1), (2, 1), (6, 1), (9, 1), (1, 2), (2, 2)])
def test_some_layers(count, chunks):
    """24 layers on four stages: in the first ones of each part, as with Megatron's `recompute_num_layers` and `block`."""
    keys = {
        "pp": 4,
        "tp": 2,
        "chunks": chunks,
        "global_batch": 8,
        "recompute": "full",
        "attention": "unfused",
    }
    found = plan(GPT, 8, recompute_layers=count, **keys)
    inside = min(count, 6 // chunks)
    assert recomputed_share(GPT, found) == inside / (6 // chunks)
    tp = [each for each in messages(GPT, found) if each.again]
    assert {each.count for each in tp} == {8 * inside * chunks}
    # The first stage has the mask of its embedding, and one layer whole while it is computed again.
    none, full = (activations(GPT, "dense", found.split, each) for each in ("none", "full"))
    flying = stage_memory(GPT, found, 1).in_flight
    layers = flying * (inside * full + (6 // chunks - inside) * none)
    assert stage_memory(GPT, found, 1).activations == pytest.approx(layers + none - full)


def test_further_tokens_and_kinds_of_layers():
    """DeepSeek-V3 on two stages: three dense layers come first, the block for further tokens last."""
    shape = shipped("deepseek-v3")
    keys = {"pp": 2, "ep": 8, "global_batch": 16, "sequence_length": 4096, "layers_per_stage": [30, 31]}
    found = plan(shape, 16, recompute=["mlp"], recompute_layers=4, **keys)
    assert recomputed_share(shape, found) == 8 / 62

    def activations_of(stage: int, **others) -> float:
        other = plan(shape, 16, recompute=["mlp"], **others, **keys)
        return stage_memory(shape, other, stage).activations

    # Dense networks are in the first three layers, and nothing of the kind is on the second stage.
    assert activations_of(0, recompute_layers=4) < activations_of(0, recompute_layers=2)
    assert activations_of(0, recompute_layers=4) == activations_of(0)
    assert activations_of(1, recompute_layers=4) == activations_of(1)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (
            {"recompute": ["mla_up"]},
            "recompute: expected no `mla_up`, since the model has no latent attention",
        ),
        (
            {"recompute": ["norms", "experts"]},
            "recompute: expected no `experts`, since the model has no experts",
        ),
        ({"recompute_layers": 2}, "recompute_layers: expected `recompute` beside it"),
    ],
)
def test_what_cannot_be(keys, text):
    with pytest.raises(PlanError, match=text):
        plan(GPT, 8, global_batch=8, **keys)


def test_the_order_of_parts_does_not_matter():
    one, two = (plan(GPT, 8, global_batch=8, recompute=each) for each in (["norms", "mlp"], ["mlp", "norms"]))
    assert one == two
    assert plan(GPT, 8, global_batch=8, recompute=[]) == plan(GPT, 8, global_batch=8, recompute="none")
    assert make_plan(one.config, GPT, 8) == two
