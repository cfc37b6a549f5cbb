"""Parts of a layer that are computed again: what they save, and what runs again.

Korthikanti et al. 2022 (arXiv 2205.05198), table 1: an attention block of sbh(11 + 5as/h) bytes, a network of 19sbh, two
norms of 2sbh each.
"""

import itertools

import pytest

from mc.config.recompute import RECOMPUTE_PARTS, parts_of
from mc.transformer import DENSE, MOE, Split, activations, flops, recomputed, segments
from tests.transformer.shapes import SMALL, gpt, shape, shipped

s, b, h, a, V = 2048, 4, 6144, 64, 51200
sbh = s * b * h
MODEL = gpt(48, h, a, V, s)


def kept(recompute, **fields) -> float:
    return activations(MODEL, DENSE, Split(b, s, fused_attention=False, **fields), recompute)


# Of the 34 + 5as/h of a layer: the norms' outputs; what the second product reads; all of the network but its input and the mask.
SAVED = {"attention": 5 * a * s / h, "norms": 4, "activations": 8, "mlp": 16}


@pytest.mark.parametrize("part", SAVED)
def test_what_a_part_saves(part):
    assert kept("none") - kept((part,)) == pytest.approx(SAVED[part] * sbh)
    # Tensor parallel ranks share what lies inside of attention and network, not what norms write.
    ranks = 1 if part == "norms" else 8
    assert kept("none", tp=8) - kept((part,), tp=8) == pytest.approx(SAVED[part] * sbh / ranks)
    both = {"tp": 8, "sequence_parallel": True}
    assert kept("none", **both) - kept((part,), **both) == pytest.approx(SAVED[part] * sbh / 8)


def test_parts_add_up():
    """Parts that have nothing in common; `mlp` has `activations` in it."""
    together = kept("none") - kept(("attention", "norms", "activations"))
    assert together == pytest.approx((SAVED["attention"] + 12) * sbh)
    assert kept(("activations", "mlp")) == kept(("mlp",))
    # What is left without attention's square, norms and network: what norms read, queries, keys, values, output, masks.
    assert kept(("attention", "norms", "mlp")) == pytest.approx((4 + 6 + 2 + 2) * sbh)
    assert kept("selective") == kept(("attention",))


def test_a_layer_of_deepseek_v3():
    """By hand, per token: 28 KB that norms read, latents, the rotary key, attention's output, copies and what SwiGLU reads."""
    model, tokens = shipped()["deepseek-v3"], 4096
    split = Split(1, tokens, ep=64, operand_bytes=1.0, kept_bytes=1.0)
    found = activations(model, MOE, split, ("norms", "mla_up", "activations"))
    width, heads, latents, rotary, expert = 7168, 128, 1536 + 512, 64, 2048
    attention = 2 * (latents + rotary) + 2 * heads * 128 + 4 * heads
    experts = 4 * 256 + 8 * (width + 2 * expert) + 2 * expert
    assert found == tokens * (2 * 2 * width + attention + experts)
    # Keys and values from latents: 128 heads of 192 + 192 + 128 numbers instead.
    with_heads = activations(model, MOE, split, ("norms", "activations"))
    assert with_heads - found == tokens * 2 * (heads * (192 + 192 + 128) - rotary)
    # All of the experts: their input.
    whole = activations(model, MOE, split, ("experts",))
    assert whole == activations(model, MOE, split) - tokens * (experts + 8 * expert + expert)


def test_stored_formats():
    """Kept in fp8, what products and activation functions read takes half; norms and attention read 16 bits."""
    wide, narrow = kept("none"), kept("none", kept_bytes=1.0)
    # Inputs of the four products (2 + 2 + 2 + 8 sbh) and of the activation function (8 sbh).
    assert wide - narrow == pytest.approx(22 / 2 * sbh)
    fused = [activations(MODEL, DENSE, Split(b, s, kept_bytes=size)) for size in (None, 2.0, 1.0)]
    assert fused[0] == fused[1]
    # The output of fused attention stays in 16 bits for its own gradient.
    assert fused[1] - fused[2] == pytest.approx(20 / 2 * sbh)
    # A format that is wider than the numbers changes nothing.
    assert kept("none", kept_bytes=4.0) == wide


MODELS = {
    name: shape(**SMALL[name]) for name in ("biased", "latent", "latent, direct queries", "some experts")
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("fused", [True, False])
def test_operations_are_those_of_the_flop(name, fused):
    """What runs again, summed over the model, is what hardware FLOP add; for every set of parts."""
    model, split = MODELS[name], Split(2, 64, fused_attention=fused)
    everything = [segment for kind in model.layer_kinds for segment in segments(model, kind, split)]
    for count in range(1, 4):
        for parts in itertools.combinations(RECOMPUTE_PARTS, count):
            again = sum(each.flops for segment in everything for each in recomputed(segment, parts))
            found = flops(model, 64, 2, parts, causal=fused)
            assert again == pytest.approx(found.hardware - found.model)
            half = flops(model, 64, 2, parts, causal=fused, recomputed=0.5)
            assert half.hardware - half.model == pytest.approx(again / 2)


def test_what_runs_again():
    model, split = MODELS["some experts"], Split(2, 64, operand_bytes=1.0)
    dense, moe = (segments(model, kind, split) for kind in (DENSE, MOE))

    def names(segment, *parts) -> list[str]:
        return [each.name for each in recomputed(segment, parts)]

    assert names(dense[0], "norms") == ["attention norm", "qkv convert"]
    assert names(dense[1], "activations") == ["mlp activation", "mlp down convert"]
    assert names(dense[1], "mlp") == [
        *("mlp up convert", "mlp up", "mlp activation", "mlp down convert", "mlp down"),
    ]
    assert names(dense[1], "experts") == names(moe[1], "mlp") == []
    assert names(moe[1], "activations") == [
        *("expert activation", "expert down convert", "shared activation", "shared down convert"),
    ]
    around = {"experts norm", "experts residual"}
    assert names(moe[1], "experts") == [each.name for each in moe[1].forward if each.name not in around]
    latent = segments(MODELS["latent"], DENSE, Split(2, 64))[0]
    assert names(latent, "mla_up") == ["query up", "key and value up", "rotary"]
    assert names(latent, "norms") == ["attention norm", "query norm", "key and value norm"]


@pytest.mark.parametrize("name", SMALL)
def test_every_part_keeps_less_and_never_less_than_all(name):
    model = shape(**SMALL[name])
    for kind in model.kind_counts:
        split = Split(2, 64, fused_attention=False)
        none, full = (activations(model, kind, split, each) for each in ("none", "full"))
        for count in range(1, len(RECOMPUTE_PARTS) + 1):
            for parts in itertools.combinations(RECOMPUTE_PARTS, count):
                assert full < activations(model, kind, split, parts) <= none


def test_names():
    assert parts_of("none") == frozenset()
    assert parts_of("selective") == parts_of(("attention",))
