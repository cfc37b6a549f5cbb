"""Kinds of layers, keys that queries meet, and shapes as keys of caches."""

from dataclasses import replace

import pytest

from mc.transformer import DENSE, MOE
from tests.transformer.shapes import SMALL, shape, shipped


def test_kinds_of_layers():
    experts = {"count": 4, "top_k": 1, "ffn": 8}
    assert shape(layers=3).layer_kinds == (DENSE,) * 3
    assert shape(layers=3, experts=experts).layer_kinds == (MOE,) * 3
    assert shape(layers=4, experts=experts | {"dense_layers": 1}).layer_kinds == (DENSE, MOE, MOE, MOE)
    assert shape(layers=6, experts=experts | {"every": 2}).layer_kinds == (DENSE, MOE) * 3
    assert shape(layers=6, experts=experts | {"every": 3, "dense_layers": 4}).layer_kinds == (
        *(DENSE,) * 5,
        MOE,
    )
    assert shape(mtp_layers=2, experts=experts).mtp_kinds == (MOE, MOE)
    deepseek = shipped()["deepseek-v3"]
    assert deepseek.layer_kinds == (DENSE,) * 3 + (MOE,) * 58
    assert deepseek.kind_counts == {DENSE: 3, MOE: 59}


def brute(length: int, *, causal: bool, window: int | None = None, chunked: bool = False) -> float:
    """Pairs of a query and a key that it meets, per query; the diagonal counts half if causal."""
    pairs = 0.0
    for query in range(length):
        first = 0 if window is None else query // window * window if chunked else max(0, query - window + 1)
        pairs += query - first + 0.5
    return pairs / length if causal else float("nan")


@pytest.mark.parametrize("length", [8, 24, 96, 100])
@pytest.mark.parametrize(("window", "chunked"), [(None, False), (24, False), (24, True)])
def test_causal_keys_are_those_that_a_mask_leaves(length, window, chunked):
    """Counted one by one: exact without a window and in chunks; a sliding window's edge differs by half a key."""
    fields = {} if window is None else {"window": window, "chunked": chunked}
    expected = brute(length, causal=True, window=window, chunked=chunked)
    slack = 0.5 if window is not None and not chunked else 1e-9
    assert shape(**fields).keys(length, causal=True) == pytest.approx(expected, abs=slack)


def test_keys_without_a_mask():
    assert shape().keys(100, causal=False) == 100
    assert shape(window=24).keys(100, causal=False) == 24
    assert shape(window=24).keys(8, causal=False) == 8
    # Half of the layers see everything.
    assert shape(window=24, full_every=2).keys(100, causal=False) == (24 + 100) / 2
    # Chunks of 24 leave a rest of 4.
    assert shape(window=24, chunked=True).keys(100, causal=False) == pytest.approx((96 * 24 + 4 * 4) / 100)


def test_the_share_of_layers_without_a_window_is_counted():
    # Gemma 3 27B: 62 layers, each sixth attends to everything.
    assert shape(layers=62, window=24, full_every=6).full_share == 10 / 62


def test_equal_shapes_are_one_key():
    for fields in SMALL.values():
        one, other = shape(**fields), shape(**fields)
        assert one == other
        assert hash(one) == hash(other)
        assert replace(one, layers=5) != one
        assert hash(replace(one, layers=5)) != hash(one)
