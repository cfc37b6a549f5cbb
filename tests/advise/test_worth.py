"""Elasticities against what theory says of them."""

import pytest

from mc.advise.worth import WorthError, worth
from mc.config import load_experiment

TEXT = """
name: little
cluster:
  name: small
  chip: {name: any, peak: {bf16: 300 TFLOP/s}, memory_bandwidth: 1 TB/s, memory_size: 80 GB}
  tiers:
    - {name: node, link: {bandwidth: 200 GB/s, duplex: each, latency: 2 us}, fan_out: 4}
    - {name: pod, link: {bandwidth: 20 GB/s, duplex: each, latency: 10 us}, fan_out: 2}
model: {name: little, transformer: {layers: 4, hidden: 2048, heads: 16, kv_heads: 4, ffn: 8192, vocab: 32000}}
plan: {tp: 4, pp: 2, global_batch: 8, sequence_length: 1024}
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    file = tmp_path_factory.mktemp("worth") / "little.yaml"
    file.write_text(TEXT)
    return worth(load_experiment(str(file)))


def test_rates_and_times_add_up(found):
    # T is homogeneous: with all rates twice as high and all delays half as long it is half as long (Euler).
    each = {one.name: one.elasticity for one in found.worths}
    rates = ("peak", "memory bandwidth", "bandwidth of")
    times = ("latency of", *(f"chip.efficiency.{name}" for name in ("kernel", "launch", "wait", "step")))
    times += ("chip.efficiency.collective_launch", "chip.efficiency.pass_launch")
    less = sum(value for name, value in each.items() if name.startswith(rates))
    more = sum(value for name, value in each.items() if name.startswith(times))
    assert more - less == pytest.approx(1.0, abs=2e-2)


def test_the_peak_counts_as_what_is_reached_of_it(found):
    each = {one.name: one for one in found.worths}
    # Products with weights go by the product of both; attention by the peak alone.
    assert each["peak, bf16"].elasticity <= each["chip.efficiency.matmul, bf16"].elasticity < 0


def test_more_is_better_and_the_most_comes_first(found):
    for one in found.worths:
        is_rate = one.name.startswith(("peak", "memory", "bandwidth"))
        assert (one.elasticity < 0) is is_rate or "efficiency" in one.name
        assert one.low <= one.elasticity <= one.high
    sizes = [abs(one.elasticity) for one in found.worths]
    assert sizes == sorted(sizes, reverse=True)


def test_a_model_without_a_plan_is_refused():
    with pytest.raises(WorthError, match="expected a model with a `transformer`"):
        worth(load_experiment("quickstart"))
