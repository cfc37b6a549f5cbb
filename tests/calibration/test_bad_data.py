"""What cannot be fitted is refused with a word that says why, through the importers as a user meets it."""

import numpy as np
import pytest

from mc.calibration import CalibrationError, curves_of, split_curves
from mc.config import ClusterConfig
from mc.config.hold_out import parse_hold_out
from mc.errors import InputError
from mc.logs import Hints, read_logs
from tests.stats import assert_fraction

HEAD = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
HEAD += "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"


def log(rows, ranks=16):
    lines = "".join(
        f"{size} {size // 4} float sum -1 {time} {size / time / 1e3:.6g} {2 * (ranks - 1) / ranks * size / time / 1e3:.6g} 0 "
        f"{time} {size / time / 1e3:.6g} {2 * (ranks - 1) / ranks * size / time / 1e3:.6g} 0\n"
        for size, time in rows
    )
    return f"## op: all_reduce\n## ranks: {ranks}\n## nodes: {ranks // 4}\n{HEAD}{lines}"


@pytest.fixture(scope="module")
def config():
    tiers = [
        {
            "name": "node",
            "fan_out": 4,
            "link": {"bandwidth": "200 GB/s", "duplex": "each", "latency": "1 us"},
        },
        {"name": "net", "fan_out": 4, "link": {"bandwidth": "20 GB/s", "duplex": "each", "latency": "5 us"}},
    ]
    return ClusterConfig.model_validate({"name": "small", "chip": {"peak": {}}, "tiers": tiers})


def read(tmp_path, text, config, **hints):
    path = tmp_path / "nccl.log"
    path.write_text(text) if isinstance(text, str) else path.write_bytes(text)
    return curves_of(read_logs([path], Hints(**hints)).table, config)


GROWING = [(2**k, 20 + 2**k / 20e3) for k in range(3, 25, 2)]


def test_a_sound_log_is_a_curve(tmp_path, config):
    (curve,) = read(tmp_path, log(GROWING), config)
    assert (curve.collective, curve.ranks, curve.protocol) == ("all-reduce", 16, "auto")
    assert curve.algorithms == ("ring", "tree")
    assert curve.sizes.tolist() == [size for size, _ in GROWING]
    np.testing.assert_allclose(curve.times, [time * 1e-6 for _, time in GROWING], rtol=1e-4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param(b"\x00\x01\x02" * 400, "binary", id="binary"),
        pytest.param("hello world\n" * 50, "expected", id="no table"),
        pytest.param(log(GROWING[:1]), "expected a curve of 3 sizes or more; got 1", id="one row"),
        pytest.param(log([(size, 20.0) for size, _ in GROWING]), "expected times that grow", id="all equal"),
        pytest.param(
            log([(size, time * (1000 if size.bit_length() % 4 == 0 else 1)) for size, time in GROWING]),
            "s for more: are all in one unit?",
            id="units",
        ),
        pytest.param(log(GROWING, ranks=32), "expected at most the 16 ranks of small", id="too many ranks"),
        pytest.param(
            log(GROWING + [(size, 40 * time) for size, time in GROWING]),
            "that agree; got",
            id="contradictory",
        ),
        pytest.param("step,step_time_s\n1,0.5\n2,0.6\n3,0.55\n4,0.5\n", "got rows of kind step", id="steps"),
    ],
)
def test_what_is_refused(tmp_path, config, text, message):
    with pytest.raises(InputError) as caught:
        read(tmp_path, text, config)
    assert message in str(caught.value)


@pytest.fixture
def two_logs(tmp_path, config):
    """Runs on 8 and 16 ranks, each in a file of its own."""
    paths = []
    for ranks in (8, 16):
        paths.append(tmp_path / f"{ranks}.log")
        paths[-1].write_text(log(GROWING, ranks))
    return read_logs(paths).table


@pytest.mark.parametrize(
    ("rule", "fitted", "left"),
    [
        ("every 4", {8: 9, 16: 9}, {8: 2, 16: 2}),
        ("ranks > 8", {8: 11}, {16: 11}),
        ("nodes = 2", {16: 11}, {8: 11}),
        ("size > 1 MiB", {8: 9, 16: 9}, {8: 2, 16: 2}),
        ("file = 8.log", {16: 11}, {8: 11}),
    ],
)
def test_a_rule_parts_curves(two_logs, config, rule, fitted, left):
    parts = split_curves(two_logs, config, parse_hold_out(rule))
    assert [{each.ranks: len(each.sizes) for each in part} for part in parts] == [fitted, left]
    assert all(each.label.endswith(", held out") for each in parts[1])


def test_a_share_is_drawn_with_its_chance_and_by_its_seed():
    # 2,000 draws: the share, and other ones under another seed.
    def held(text):
        rule = parse_hold_out(text)
        return np.array([rule.holds(8, 1, place, curve="a") for place in range(2000)])

    assert_fraction(held("20 %").sum(), 2000, 0.2)
    with pytest.raises(AssertionError):
        assert_fraction(held("30 %").sum(), 2000, 0.2)
    assert (held("20 %") == held("20 % seed 0")).all()
    assert_fraction((held("20 %") & held("20 % seed 1")).sum(), 2000, 0.04)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("ranks > 64", "none do (all-reduce, 8 ranks on 2 nodes; all-reduce, 16 ranks on 4 nodes; 8 to "),
        ("ranks > 2", "all of them do"),
        ("file = c.log", "none do"),
        ("size > 16 B", "expected a rule that leaves a curve of 3 sizes or more to be fitted; got 1"),
    ],
)
def test_a_rule_that_leaves_nothing_is_refused(two_logs, config, rule, message):
    with pytest.raises(CalibrationError) as caught:
        split_curves(two_logs, config, parse_hold_out(rule))
    assert message in str(caught.value)


def test_more_ranks_in_a_node_than_there_are(tmp_path, config):
    with pytest.raises(
        CalibrationError, match="expected at most 4 ranks in a node of small; the data have 8"
    ):
        read(tmp_path, log(GROWING), config, nodes=2)


def test_nodes_that_are_not_full_become_axes(tmp_path, config):
    (curve,) = read(tmp_path, log(GROWING, ranks=8), config, nodes=4)
    assert curve.ranks == ((2, 1), (4, 4))
