"""Activations against the formulas of Korthikanti et al. 2022 (arXiv 2205.05198), table 2 and section 4."""

import pytest

from mc.transformer import (
    MOE,
    Split,
    activations,
    embedding_activations,
    head_activations,
    segments,
)
from tests.transformer.shapes import SMALL, gpt, shape, shipped

s, b, h, a, V = 2048, 4, 6144, 64, 51200
MODEL = gpt(48, h, a, V, s)


def split(t=1, *, sequence_parallel=False, fused=False, **fields) -> Split:
    return Split(b, s, tp=t, sequence_parallel=sequence_parallel, fused_attention=fused, **fields)


@pytest.mark.parametrize("t", [1, 2, 8])
def test_the_table_of_the_paper(t):
    sbh = s * b * h
    tensor, both = split(t), split(t, sequence_parallel=True)
    assert activations(MODEL, "dense", split()) == pytest.approx(sbh * (34 + 5 * a * s / h))
    assert activations(MODEL, "dense", tensor) == pytest.approx(sbh * (10 + 24 / t + 5 * a * s / (h * t)))
    assert activations(MODEL, "dense", both) == pytest.approx(sbh / t * (34 + 5 * a * s / h))
    assert activations(MODEL, "dense", tensor, "selective") == pytest.approx(sbh * (10 + 24 / t))
    assert activations(MODEL, "dense", both, "selective") == pytest.approx(sbh * 34 / t)
    assert activations(MODEL, "dense", tensor, "full") == 2 * sbh
    # The paper keeps whole inputs; Megatron-LM keeps a sequence parallel rank's part.
    assert activations(MODEL, "dense", both, "full") == 2 * sbh / t


@pytest.mark.parametrize("t", [1, 8])
def test_the_ends(t):
    """Section 4.3: sbh/t of the embedding's dropout; 4sbh/t·(1 + V/h) of the last norm, the product and the logits."""
    sbh, both = s * b * h, split(t, sequence_parallel=True)
    assert embedding_activations(MODEL, both) == sbh / t
    assert head_activations(MODEL, both) == pytest.approx(4 * sbh / t * (1 + V / h))


def test_published_savings():
    """Section 6.1: both techniques together leave about a fifth of what tensor parallelism alone keeps."""
    for name, sequences in (("megatron-22b", 4), ("gpt3-175b", 1), ("mt-nlg-530b", 1), ("megatron-1t", 1)):
        model = shipped()[name]
        plain = Split(sequences, 2048, tp=8, fused_attention=False)
        both = Split(sequences, 2048, tp=8, sequence_parallel=True, fused_attention=False)
        part = activations(model, "dense", both, "selective") / activations(model, "dense", plain)
        assert 0.16 < part < 0.24


def test_fused_attention_keeps_no_square():
    """Four bytes per query and head instead of 5as; twice the sequence is twice the memory."""
    sbh = s * b * h
    fused = split(2, sequence_parallel=True, fused=True)
    assert activations(MODEL, "dense", fused) == pytest.approx(sbh / 2 * (34 + 4 * a / h))
    assert activations(MODEL, "dense", fused, "selective") == pytest.approx(sbh / 2 * 34)
    longer = Split(b, 2 * s, tp=2, sequence_parallel=True)
    assert activations(MODEL, "dense", longer) == 2 * activations(MODEL, "dense", fused)


def test_context_parallelism_divides_tokens():
    for fused in (True, False):
        whole, part = (
            activations(MODEL, "dense", split(fused=fused)),
            activations(MODEL, "dense", split(fused=fused, cp=4)),
        )
        assert part == pytest.approx(whole / 4)


def test_a_layer_of_llama():
    """Llama 3 8B by hand, per token: norms 2·2h, inputs of products 2h and 2h, q, k and v, output, three of the network."""
    model, tokens = shipped()["llama3-8b"], 8192
    width, keys, ffn = 4096, 8 * 128, 14336
    numbers = 4 * width + (width + 2 * keys) + width + 3 * ffn
    found = activations(model, "dense", Split(1, tokens))
    assert found == tokens * (2 * numbers + 4 * 32)


def test_a_layer_of_experts():
    """Mixtral on 8 ranks: as a dense layer, but scores, a copy per visit and networks on twice the tokens."""
    model, tokens = shipped()["mixtral-8x7b"], 4096
    width, keys, ffn = 4096, 8 * 128, 14336
    attention = 2 * width + (width + 2 * keys) + width
    experts = 2 * width + 2 * (width + 3 * ffn)
    found = activations(model, MOE, Split(1, tokens, ep=8))
    assert found == tokens * (2 * (attention + experts) + 4 * 32 + 4 * 8)
    # Where experts lie does not change how much a rank gets under the mean load.
    assert activations(model, MOE, Split(1, tokens, ep=1)) == found


def test_narrow_operands_are_kept_narrow():
    """In fp8 what the four products read takes one byte, and fused attention keeps an output of its own."""
    model, tokens = shipped()["llama3-8b"], 8192
    wide, narrow = (activations(model, "dense", Split(1, tokens, operand_bytes=size)) for size in (2.0, 1.0))
    assert wide - narrow == tokens * (3 * 4096 + 14336) - 2 * tokens * 4096


@pytest.mark.parametrize("name", SMALL)
def test_order(name):
    """Less is kept the more is recomputed, and the more ranks there are."""
    model = shape(**SMALL[name])
    kind = model.layer_kinds[-1]
    for fused in (True, False):
        kept = [
            activations(model, kind, Split(2, 64, fused_attention=fused), recompute)
            for recompute in ("none", "selective", "full")
        ]
        assert kept[0] > kept[1] > kept[2] > 0
        for fields in ({"tp": 2}, {"tp": 2, "sequence_parallel": True}, {"cp": 2}):
            assert activations(model, kind, Split(2, 64, fused_attention=fused, **fields)) < kept[0]


@pytest.mark.parametrize("name", SMALL)
def test_what_products_read_is_kept(name):
    """A lower bound from the operations themselves: a gradient of a weight needs the input of its product."""
    model, cut = shape(**SMALL[name]), Split(2, 64)
    kind = model.layer_kinds[-1]
    found = segments(model, kind, cut)
    # Products of one norm's output share it: the first of each segment has it, down projections of latents, too.
    shared = {"router", "shared up", "key and value down"}
    needed = sum(
        2 * each.count * each.m * each.k
        for segment in found
        for each in segment.backward_weight
        if each.kind == "matmul" and each.name not in shared
    )
    assert activations(model, kind, cut) > needed
