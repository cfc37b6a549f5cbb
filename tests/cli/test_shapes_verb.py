"""`tailstep collective` on slices, meshes and uneven halls, as a user types it."""

import json
from functools import partial

import pytest


@pytest.fixture
def collective(invoke):
    """Runs the command; returns (exit code, stdout, stderr)."""
    return partial(invoke, "collective")


SLICE = ("--cluster", "tpu-v5e-16x16", "--set", "tiers.0.fan_out=128")


@pytest.mark.parametrize(
    ("arguments", "best"),
    [
        (("--cluster", "tpu-v5e-16x16"), "multi-ring"),
        ((*SLICE, "--set", "tiers.0.shape={kind: torus, dims: 8x16, wrap: [false, true]}"), "multi-ring"),
        (("--cluster", "tpu-v5e-16x16", "--ranks", "1"), None),
        (("--cluster", "mi300x-node"), "direct"),
        (("--cluster", "mi300x-node", "--size", "1 kB"), "one-shot"),
    ],
)
def test_the_fastest(collective, arguments, best):
    code, out, err = collective("all-reduce", *arguments, "--json")
    assert (code, err) == (0, "")
    rows = json.loads(out)
    assert best is None or rows[0]["algorithm"] == best


def test_a_table_of_a_hall_of_several_generations(collective):
    code, out, err = collective("all-reduce", "--cluster", "mixed-generations", "--algorithm", "hierarchical")
    assert (code, err) == (0, "")
    assert "247 ranks of mixed generations span node (8) x rack (8) x hall (4), unevenly" in out
    assert "hierarchical" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--ranks", "24"), "expected whole lines and planes of the 16x16 torus, such as 16 or 32 units"),
        (("--algorithm", "tree"), "expected switches between all units; `slice` is a torus"),
        (("--set", "tiers.0.shape.dims=8x8"), "expected dims that multiply to the fan_out, 256; got 64"),
        (("--set", "tiers.0.shape.wrap=[true]"), "one of them for each of 2 dimensions; got 1"),
        (("--set", "tiers.0.exceptions=[{units: 0, fan_out: 255}]"), "since a torus has all of its units"),
    ],
)
def test_refusals(collective, arguments, message):
    code, out, err = collective("all-reduce", "--cluster", "tpu-v5e-16x16", *arguments)
    assert (code, out) == (2, "")
    assert message in err
