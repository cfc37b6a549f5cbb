"""`tailstep scale`, as a user meets it: a table, JSON, a picture, and refusals."""

import json
from functools import partial

import pytest

EXPERIMENT = """
name: barrier
cluster:
  name: small
  chip: {name: any, peak: {bf16: 100 TFLOP/s}}
  tiers:
    - {name: node, link: {bandwidth: 1 TB/s, duplex: each, latency: 1 us}, fan_out: 8}
model:
  name: gradients
  compute: {flop: 5 GFLOP, format: bf16, efficiency: 50 %}
  exchange: {collective: all-reduce, size: 10 MB}
plan: {algorithm: ring}
"""
TRANSFORMER = """
name: little
cluster: {extends: cluster.yaml}
model:
  name: little
  transformer: {layers: 8, hidden: 1024, heads: 16, kv_heads: 4, ffn: 4096, vocab: 32000}
plan: {tp: 4, pp: 2, global_batch: 8, sequence_length: 512}
failures: {mtbf_per_chip: 100 h, restart: 10 min, checkpoint_write: 10 s, checkpoint_interval: 10 min}
"""
CLUSTER = """
name: small
chip: {name: any, peak: {bf16: 100 TFLOP/s}, memory_bandwidth: 1 TB/s, memory_size: 80 GB}
tiers:
  - {name: node, link: {bandwidth: 1 TB/s, duplex: each, latency: 1 us}, fan_out: 8}
  - {name: pod, link: {bandwidth: 50 GB/s, duplex: each, latency: 5 us}, fan_out: 2}
"""


@pytest.fixture
def tailstep(tmp_path, monkeypatch, invoke):
    """Runs `tailstep scale` beside the files; returns (exit code, stdout, stderr)."""
    for name, text in (("barrier", EXPERIMENT), ("little", TRANSFORMER), ("cluster", CLUSTER)):
        (tmp_path / f"{name}.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    return partial(invoke, "scale")


def test_json_has_every_size_and_what_was_left_out(tailstep):
    code, out, err = tailstep("little.yaml", "--chips", "4..32", "--samples", "0", "--json")
    # A slow machine reports progress on stderr.
    assert code == 0, err
    found = json.loads(out)
    assert (found["mode"], found["samples"], found["worth"]) == ("weak", 0, 1.9)
    assert [point["chips"] for point in found["points"]] == [8, 16, 32]
    assert [point["dp"] for point in found["points"]] == [1, 2, 4]
    assert [point["global_batch"] for point in found["points"]] == [4, 8, 16]
    assert [point["outermost_fan_out"] for point in found["points"]] == [None, None, 4]
    assert found["left_out"] == [{"chips": 4, "reason": "one replica takes tp 4 x pp 2 = 8 chips"}]
    rates = [point["tokens_per_s"] for point in found["points"]]
    doublings = [point["doubling"] for point in found["points"]]
    assert doublings[0] is None
    assert [each["value"] for each in doublings[1:]] == pytest.approx(
        [rates[1] / rates[0], rates[2] / rates[1]]
    )
    efficiency = [point["efficiency"] for point in found["points"]]
    assert efficiency == sorted(efficiency, reverse=True)
    goodput = [point["goodput"] for point in found["points"]]
    assert goodput == sorted(goodput, reverse=True)
    expected = [rates[i + 1] / rates[i] * goodput[i + 1] / goodput[i] for i in (0, 1)]
    assert found["doublings_with_failures"] == pytest.approx(expected)
    for point in found["points"]:
        assert point["step_time_s"]["p99"] is None
        assert point["memory_problem"] is None
        assert 0 < point["mfu"] < 1


def test_the_table_says_where_doubling_stops_paying(tailstep, tmp_path):
    arguments = ("barrier.yaml", "--chips", "1,2,4,32", "--strong", "--samples", "20")
    code, out, err = tailstep(*arguments, "--plot", "scale.svg")
    # A slow machine reports progress on stderr.
    assert code == 0, err
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[:2] == [
        "barrier",
        "gradients on small: strong scaling keeps what all ranks compute together, 20 steps of each size",
    ]
    head = next(line for line in lines if line.startswith("chips "))
    assert head == "chips step p50 p99 throughput MFU efficiency stragglers exposed a doubling brings"
    # One rank computes 8 x 5 GFLOP at half the peak; a ring of n has 2(n - 1) rounds and sends 2(n - 1)/n of it all.
    times = {1: 800e-6, **{n: 800e-6 / n + 2 * (n - 1) * (1e-6 + 1e-5 / n) for n in (2, 4, 32)}}
    for last, now in ((1, 2), (2, 4)):
        row = next(line for line in lines if line.startswith(f"{now} "))
        assert float(row.split()[-1].rstrip("x")) == pytest.approx(times[last] / times[now], abs=2e-3)
    brought = (times[4] / times[32]) ** (1 / 3)
    stops = f"Doubling stops paying at 4 chips: on the way to 32 one brings on average {brought:.3f}x, less than 1.5x."
    assert stops in " ".join(lines)
    enlarged = (
        "The cluster is too small for 32 chips: its outermost tier, `node`, was given 32 units instead of 8."
    )
    assert enlarged in " ".join(lines)
    assert (tmp_path / "scale.svg").stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--chips", "many"],
            "--chips: expected doublings such as 8..131072, or a list such as 8,64,512; got `many`",
        ),
        (["--chips", "64..8"], "got `64..8`"),
        (["--chips", "0,8"], "got `0,8`"),
        (["--chips", "1..99999999"], "--chips: expected at most 4,194,304 chips; got 67,108,864"),
        (
            ["--chips", "1,2,4"],
            "expected a size that can be; got none: one replica takes tp 4 x pp 2 = 8 chips",
        ),
        (["--worth", "3"], "--worth"),
        (["--samples", "-1"], "--samples"),
        (["--plot", "scale.gif"], "--plot: expected a file that ends in .svg, .png, .pdf; got scale.gif"),
        (["--set", "plan.tp=3"], "plan.tp"),
    ],
)
def test_refusals(tailstep, arguments, message):
    code, out, err = tailstep("little.yaml", *arguments)
    assert (code, out) == (2, "")
    assert message in err
