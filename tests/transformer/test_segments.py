"""Operations: all of them together are the FLOP of the step, whatever the model and however it is cut."""

from dataclasses import replace

import numpy as np
import pytest

from mc.transformer import (
    MOE,
    Split,
    embedding_segment,
    flops,
    head_segment,
    recomputed,
    segments,
)
from tests.transformer.shapes import SMALL, gpt, shape, shipped

SPLITS = {
    "whole": {},
    "tensor": {"tp": 4},
    "context": {"cp": 2},
    "experts": {"ep": 4},
    "all": {"tp": 2, "cp": 2, "ep": 2, "etp": 2},
}


def model_segments(model, split):
    """All segments of a model, as one rank of a pipeline of one stage would have them."""
    blocks = model.layer_kinds + model.mtp_kinds
    layers = [segment for kind in blocks for segment in segments(model, kind, split)]
    return [embedding_segment(model, split), *layers, head_segment(model, split)]


def passes(found):
    return [(each.forward, each.backward_input, each.backward_weight) for each in found]


def total(found) -> float:
    return sum(operation.flops for each in passes(found) for part in each for operation in part)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("cut", SPLITS)
@pytest.mark.parametrize("name", SMALL)
def test_operations_add_up_to_the_step(name, cut, fused):
    """Per rank, times the ranks that share a micro-batch. Fused attention skips what the mask removes.

    Unfused, windows are masks: the whole square is computed.
    """
    model = shape(**SMALL[name])
    model = model if fused else replace(model, window=None, full_every=None, chunked=False)
    fields = SPLITS[cut]
    split = Split(3, 64, sequence_parallel=fields.get("tp", 1) > 1, fused_attention=fused, **fields)
    found = total(model_segments(model, split)) * split.tp * split.cp
    expected = flops(model, 64, 3, causal=fused, fused=fused).hardware
    if model.kv_heads >= split.tp:
        assert found == pytest.approx(expected, rel=1e-12)
    else:
        # Two heads of keys on four ranks: each is projected twice.
        copied = 6 * 3 * 64 * 64 * (2 * 2 * model.head_dim) * model.layers
        assert found == pytest.approx(expected + copied, rel=1e-12)


@pytest.mark.parametrize("name", sorted(shipped()))
def test_shipped_models_add_up(name):
    model = shipped()[name]
    for fused in (True, False):
        split = Split(2, 4096, tp=4, cp=2, ep=8, sequence_parallel=True, fused_attention=fused)
        plain = model if fused else replace(model, window=None, full_every=None)
        expected = flops(plain, 4096, 2, causal=fused, fused=fused).hardware
        assert total(model_segments(plain, split)) * 8 == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_each_pass_has_its_part(name):
    """Forward one third of the matrix products, gradients of inputs and of weights one third each."""
    model = shape(**SMALL[name])
    for segment in model_segments(model, Split(1, 64)):
        forward, inputs, weights = (
            sum(each.flops for each in part if each.kind == "matmul")
            for part in (segment.forward, segment.backward_input, segment.backward_weight)
        )
        assert forward == pytest.approx(inputs)
        assert forward == pytest.approx(weights)


def test_recomputation_repeats_what_it_says():
    for fused in (True, False):
        model, split = gpt(4, 64, 8, 320, 64), Split(2, 64, fused_attention=fused)
        for kind in ("none", "selective", "full"):
            again = sum(
                operation.flops
                for _ in range(model.layers)
                for segment in segments(model, "dense", split)
                for operation in recomputed(segment, kind)
            )
            found = flops(model, 64, 2, kind, causal=fused)
            assert again == pytest.approx(found.hardware - found.model)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("fused", [True, False])
def test_operations_are_what_their_numbers_say(name, fused):
    model = shape(**SMALL[name])
    for segment in model_segments(model, Split(2, 64, tp=2, ep=2, fused_attention=fused)):
        for part in (segment.forward, segment.backward_input, segment.backward_weight):
            for each in part:
                assert each.bytes > 0
                if each.kind == "matmul":
                    assert each.flops == pytest.approx(2 * each.m * each.n * each.k * each.count)
                    numbers = each.count * (each.m * each.k + each.k * each.n + each.m * each.n)
                    # Two bytes each, or eight for the result that is a gradient added to.
                    assert 2 * numbers <= each.bytes <= 8 * numbers
                else:
                    assert (each.flops == 0) == (each.kind == "memory")


def test_shapes_of_products():
    """Llama 3 8B on 4 tensor parallel ranks, by hand."""
    model = shipped()["llama3-8b"]
    attention, mlp = segments(model, "dense", Split(1, 8192, tp=4, sequence_parallel=True))
    found = {each.name: each for each in (*attention.forward, *mlp.forward)}
    assert found["qkv"][4:] == (8192, (32 + 8 + 8) * 128 / 4, 4096, 1)
    assert found["attention projection"][4:] == (8192, 4096, 4096 / 4, 1)
    assert found["mlp up"][4:] == (8192, 2 * 14336 / 4, 4096, 1)
    assert found["mlp down"][4:] == (8192, 4096, 14336 / 4, 1)
    assert found["attention"].flops == 4 * 8192 * 8192 / 2 * 4096 / 4
    # Read and write a bf16 number per token and width, of the rank's part of the sequence.
    assert found["attention norm"].bytes == 2 * 2 * 8192 / 4 * 4096
    assert found["mlp activation"].bytes == 2 * 8192 * 3 * 14336 / 4
    weights = {each.name: each for each in mlp.backward_weight}
    assert weights["mlp down"][4:] == (14336 / 4, 4096, 8192, 1)
    # Gradients of weights are read and written in fp32.
    assert weights["mlp down"].bytes == 2 * 8192 * (14336 / 4 + 4096) + 8 * 14336 / 4 * 4096


def test_experts_take_the_mean_load():
    """DeepSeek-V3 on 64 ranks: 4 experts each, 8 x 4,096 x 64 visits over 256 of them, by hand."""
    model = shipped()["deepseek-v3"]
    _, experts = segments(model, MOE, Split(1, 4096, ep=64))
    found = {each.name: each for each in experts.forward}
    assert found["expert up"][4:] == (8 * 4096 * 64 / 256, 2 * 2048, 7168, 4)
    assert found["expert down"][4:] == (8 * 4096 * 64 / 256, 7168, 2048, 4)
    assert found["shared up"][4:] == (4096, 2 * 2048, 7168, 1)
    assert found["router"].flops in (0, 2 * 4096 * 7168 * 256)
    # Weights of all its experts are read, however few tokens come.
    _, few = segments(model, MOE, Split(1, 1, ep=1))
    up = next(each for each in few.forward if each.name == "expert up")
    assert up.bytes > 256 * 2 * 2048 * 7168 * 2


def test_experts_divided_by_tensor_parallel_ranks():
    """Experts cut in two get twice the tokens and half the width; the work of a rank stays."""
    model = shipped()["mixtral-8x7b"]
    one = segments(model, MOE, Split(1, 4096, tp=2, ep=8, sequence_parallel=True))[1]
    two = segments(model, MOE, Split(1, 4096, tp=2, ep=4, etp=2, sequence_parallel=True))[1]
    first, second = (next(each for each in part.forward if each.name == "expert up") for part in (one, two))
    assert first.flops == second.flops
    assert (second.count, second.n) == (2 * first.count, first.n / 2)


def test_narrow_operands_are_converted():
    model = shipped()["llama3-8b"]
    wide, narrow = (
        segments(model, "dense", Split(1, 8192, operand_bytes=size))[1].forward for size in (2.0, 1.0)
    )
    assert [each.name for each in narrow if "convert" in each.name] == ["mlp up convert", "mlp down convert"]
    up = {each.name: each.bytes for each in narrow}
    assert up["mlp up convert"] == 8192 * 4096 * (2 + 2 * 1)
    assert up["mlp up"] == 8192 * 4096 + 4096 * 28672 + 2 * 8192 * 28672
    assert not any("convert" in each.name for each in wide)


def test_unfused_attention_moves_the_square():
    """GPT: b·a·s² scores, written by their product, read and written by softmax and dropout, read by the next."""
    model, split = gpt(2, 128, 4, 320, 64), Split(2, 64, fused_attention=False)
    attention = segments(model, "dense", split)[0]
    found = {each.name: each for each in attention.forward}
    square = 2 * 4 * 64 * 64
    assert found["softmax"].bytes == 2 * 2 * square
    assert found["attention dropout"].bytes == 5 * square
    assert found["scores"].bytes == 2 * (square + 2 * 2 * 4 * 64 * 32)
    assert found["scores"][4:] == (64, 64, 32, 8)
    assert found["context"][4:] == (64, 32, 64, 8)
    names = [each.name for each in attention.backward_input]
    assert names.index("context") < names.index("softmax") < names.index("scores")


def test_the_products_are_those_of_attention():
    """Forward and backward by NumPy: the products that are listed have the shapes that are multiplied."""
    s, d, e = 6, 4, 3
    mla = {"kv_rank": 2, "nope_dim": 3, "rope_dim": 1, "v_dim": e}
    model = shape(heads=1, hidden=8, mla=mla)
    attention = segments(model, "dense", Split(1, s, fused_attention=False))[0]
    query, key, value = np.ones((s, d)), np.ones((s, d)), np.ones((s, e))
    scores = query @ key.T
    output = scores @ value
    # Gradients: of scores and values from the output's, of queries and keys from the scores'.
    expected = {
        "scores": [(*scores.shape, d), (*(scores @ key).shape, s), (*(scores.T @ query).shape, s)],
        "context": [(*output.shape, s), (*(output @ value.T).shape, e), (*(scores.T @ output).shape, s)],
    }
    for name, shapes in expected.items():
        found = [
            (each.m, each.n, each.k)
            for each in (*attention.forward, *attention.backward_input)
            if each.name == name
        ]
        assert sorted(found) == sorted(shapes)


def test_ends():
    model = shipped()["llama3-8b"]
    split = Split(2, 4096, tp=4, sequence_parallel=True)
    head = {each.name: each for each in head_segment(model, split).forward}
    assert head["logits"][4:] == (8192, 128256 / 4, 4096, 1)
    assert embedding_segment(model, split).backward_input == ()
    further = head_segment(shipped()["deepseek-v3"], Split(1, 4096)).forward
    assert [each.name for each in further].count("logits") == 2
    assert [each[4:] for each in further if each.name == "mtp projection"] == [(4096, 7168, 14336, 1)]
