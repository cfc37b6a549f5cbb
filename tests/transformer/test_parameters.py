"""Parameters: against what publishers state, against matrices that are really allocated, and divided among ranks."""

from itertools import chain

import numpy as np
import pytest

from mc.transformer import MOE, Transformer, held, parameters
from tests.transformer.shapes import SMALL, gpt, shape, shipped

# Billions, as published: total, and active where stated.
PUBLISHED = {
    # Narayanan et al., SC21 (arXiv 2104.04473), tables 1 and 2.
    "gpt3-175b": (174.6, None),
    "mt-nlg-530b": (529.6, None),
    "megatron-1t": (1008.0, None),
    # Korthikanti et al. 2022 (arXiv 2205.05198) call it 22B; NeMo calls its own 5B.
    "megatron-22b": (22.0, None),
    "gpt3-5b": (5.05, None),
    # Sizes of the weight files on Hugging Face, which state them to the last parameter.
    "llama2-7b": (6.738, None),
    "llama2-13b": (13.016, None),
    "llama2-70b": (68.977, None),
    "llama3-8b": (8.030, None),
    "llama3-70b": (70.554, None),
    "llama3-405b": (405.853, None),
    # arXiv 2401.04088 rounds to 47 and 13; Mistral AI's documentation says 46.7 and 12.9.
    "mixtral-8x7b": (46.70, 12.88),
    # arXiv 2412.19437, abstract: 671B, and 37B active: see the parts.
    "deepseek-v3": (671.0, None),
    # arXiv 2505.09388 and the model cards.
    "qwen3-235b-a22b": (235.09, 22.19),
    "qwen3-30b-a3b": (30.53, 3.35),
    # arXiv 2402.16819, table 1 (3.2 + 12.5, each rounded), and arXiv 2406.11704, table 1 (9.4 + 331.6).
    "nemotron-15b": (15.63, None),
    "nemotron-340b": (341.0, None),
    # The released matrices with an output matrix of its own are 316.5; tied, as it was trained, 0.8 less.
    "grok-1": (315.7, None),
    # arXiv 2508.10925, table 1: 116.83.
    "gpt-oss-120b": (116.83, None),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_totals(name):
    total, active = PUBLISHED[name]
    found = parameters(shipped()[name])
    assert found.total / 1e9 == pytest.approx(total, rel=5e-3)
    if active is not None:
        assert found.active / 1e9 == pytest.approx(active, rel=5e-3)


def test_published_parts():
    found = {name: parameters(each) for name, each in shipped().items()}
    # DeepSeek-V3's repository: 0.9 B embedding, 0.9 B head; 11.5 B in the module for further tokens that are its own.
    deepseek = found["deepseek-v3"]
    assert deepseek.embedding / 1e9 == pytest.approx(0.927, abs=1e-3)
    assert deepseek.mtp / 1e9 == pytest.approx(11.5, rel=0.01)
    # "37B activated": multiplied with, so the head counts and the embedding does not.
    assert (deepseek.active - deepseek.embedding) / 1e9 == pytest.approx(37, rel=0.012)
    # gpt-oss model card, table 1, in billions: networks 114.71, attention 0.96, ends 1.16; 5.13 active.
    gpt_oss = found["gpt-oss-120b"]
    assert 36 * (128 * gpt_oss.expert + gpt_oss.router) / 1e9 == pytest.approx(114.71, abs=0.01)
    assert 36 * gpt_oss.attention / 1e9 == pytest.approx(0.96, abs=0.01)
    assert (gpt_oss.embedding + gpt_oss.head) / 1e9 == pytest.approx(1.16, abs=0.01)
    assert (gpt_oss.active - gpt_oss.embedding) / 1e9 == pytest.approx(5.13, abs=0.01)
    # The two Nemotron-4 reports, table 1 each: embedding parameters and the others.
    for name, ends, rest in (("nemotron-15b", 3.2, 12.5), ("nemotron-340b", 9.4, 331.6)):
        each = found[name]
        assert (each.embedding + each.head) / 1e9 == pytest.approx(ends, abs=0.06)
        assert (each.total - each.embedding - each.head) / 1e9 == pytest.approx(rest, abs=0.06)
    assert set(PUBLISHED) | {"nemotron-22b"} == set(found)


@pytest.mark.parametrize(
    ("layers", "hidden", "billions"),
    [
        *((24, 2304, 1.7), (30, 3072, 3.6), (36, 4096, 7.5), (40, 6144, 18.4), (48, 8192, 39.1)),
        *(
            (60, 10240, 76.1),
            (80, 12288, 145.6),
            (96, 16384, 310.1),
            (105, 20480, 529.6),
            (128, 25600, 1008.0),
        ),
    ],
)
def test_the_formula_of_megatron(layers, hidden, billions):
    """Equation 2 of SC21, exactly but for the final norm, which it leaves out; and its table 1, as printed."""
    vocab, positions = 51200, 2048
    found = parameters(gpt(layers, hidden, hidden // 128, vocab, positions))
    formula = 12 * layers * hidden**2 + 13 * layers * hidden + (vocab + positions) * hidden
    assert found.total == formula + 2 * hidden
    assert found.total / 1e9 == pytest.approx(billions, abs=0.06)


def allocated(model: Transformer) -> int:
    """The parameters of a model counted by building its arrays, as an implementation would."""
    h, V, a, g = model.hidden, model.vocab, model.heads, model.kv_heads

    def linear(inputs, outputs, bias):
        return [np.empty((inputs, outputs)), *([np.empty(outputs)] if bias else [])]

    def norm():
        return [np.empty(h)] * (2 if model.norm == "layer" else 1)

    def network(width):
        ups = [linear(h, width, model.biases is True) for _ in range(2 if model.gated else 1)]
        return [*chain(*ups), *linear(width, h, model.biases is True)]

    def attention():
        if model.mla is not None:
            r, c = model.mla.q_rank, model.mla.kv_rank
            n, p, v = model.mla.nope_dim, model.mla.rope_dim, model.mla.v_dim
            query = (
                linear(h, a * (n + p), False)
                if r is None
                else [*linear(h, r, False), np.empty(r), *linear(r, a * (n + p), False)]
            )
            keys = [*linear(h, c + p, False), np.empty(c), *linear(c, a * (n + v), False)]
            return [*query, *keys, *linear(a * v, h, False)]
        d = model.head_dim
        inputs = [linear(h, width, model.biases is not False) for width in (a * d, g * d, g * d)]
        norms = [np.empty(d), np.empty(d)] if model.qk_norm else []
        return [*chain(*inputs), *linear(a * d, h, model.biases in (True, "attention")), *norms]

    arrays = [np.empty((V, h)), np.empty((model.max_positions, h)), *norm()]
    arrays += [] if model.tied_embeddings else [np.empty((h, V))]
    for kind in model.layer_kinds:
        arrays += attention() + norm() * (4 if model.post_norms else 2)
        if kind == MOE:
            assert model.experts is not None
            arrays.append(np.empty((h, model.experts.count)))
            for _ in range(model.experts.count):
                arrays += network(model.experts.ffn)
            arrays += network(model.experts.shared_ffn) if model.experts.shared else []
        else:
            arrays += network(model.ffn)
    return sum(each.size for each in arrays)


@pytest.mark.parametrize("name", SMALL)
def test_totals_are_those_of_arrays(name):
    model = shape(**SMALL[name])
    assert parameters(model).total == allocated(model)


def test_active_parameters_leave_out_the_experts_that_are_not_visited():
    all_of_them = shape(experts={"count": 8, "top_k": 8, "ffn": 32})
    some = shape(experts={"count": 8, "top_k": 2, "ffn": 32})
    assert parameters(all_of_them).active == parameters(all_of_them).total
    assert parameters(some).active == parameters(some).total - 4 * 6 * 3 * 64 * 32


@pytest.mark.parametrize("name", SMALL)
def test_one_rank_holds_everything(name):
    model = shape(**SMALL[name])
    count = parameters(model)
    found = held(model, range(model.layers), first=True, last=True)
    experts = (model.layer_kinds + model.mtp_kinds).count(MOE) * count.experts_of_a_layer * count.expert
    assert found.experts == experts
    assert found.dense + found.experts == count.total + count.mtp


@pytest.mark.parametrize("name", SMALL)
def test_stages_hold_everything_together(name):
    model = shape(**SMALL[name])
    count = parameters(model)
    stages = [
        held(model, [0], first=True, last=False),
        held(model, [1, 2], first=False, last=False),
        held(model, [3], first=False, last=True),
    ]
    copy = count.embedding if model.tied_embeddings else 0
    assert sum(each.dense + each.experts for each in stages) == count.total + count.mtp + copy


@pytest.mark.parametrize("name", SMALL)
def test_ranks_hold_their_shares(name):
    """Everything is divided or copied: per rank, no less than a share and no more than all of it."""
    model = shape(**SMALL[name])
    whole = held(model, range(4), first=True, last=True)
    part = held(model, range(4), first=True, last=True, tp=2, ep=4, etp=2)
    assert whole.dense / 2 <= part.dense < whole.dense * 0.6
    # Experts lie on 4 x 2 ranks; only the biases of their outputs are on both of the latter.
    assert whole.experts / 8 <= part.experts <= whole.experts / 8 * 1.02


def test_few_heads_of_keys_are_copied():
    """Two heads of keys on four ranks: each rank has one whole head, not half of one."""
    model = shape(kv_heads=2)
    two, four = (held(model, [0], first=False, last=False, tp=tp).dense for tp in (2, 4))
    matrices = (2 * 64 * 64 + 3 * 64 * 96, 2 * 64 * 16)
    assert two == matrices[0] / 2 + matrices[1] / 2 + 2 * 64
    assert four == matrices[0] / 4 + matrices[1] / 2 + 2 * 64


def test_a_stage_of_megatron():
    """GPT of 1T on 8 x 64: a middle stage's two layers take 24h²/8 and what is not divided, 18h + 14h/8."""
    model, h = shipped()["megatron-1t"], 25600
    found = held(model, [10, 11], first=False, last=False, tp=8)
    # Per layer: norms 4h and two biases of outputs are whole; biases of 3h and 4h are divided.
    assert found == (2 * (12 * h * h / 8 + 6 * h + 7 * h / 8), 0)
