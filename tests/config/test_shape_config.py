"""Shapes and exceptions in a file: what they mean, what they resolve to, and what is wrong with them."""

import pytest

from mc.config import load_cluster, load_experiment, resolved_yaml
from mc.config.layout import counts, first_ranks, size, size_text
from mc.document import ConfigError
from mc.errors import InputError
from mc.fabric import FullyConnected, Level, Switched, Torus, Tree, build_cluster

NODE, RACK, HALL = "fan_out: 8\n", "fan_out: 32\n", "fan_out: 4\n"


def shaped(write, shape: str, fan_out: int = 8):
    write("cluster.yaml", f"fan_out: {fan_out}\n    shape: {shape}\n", replace=NODE)
    return load_cluster("cluster.yaml")


@pytest.mark.parametrize(
    ("text", "fan_out", "shape"),
    [
        ("switched", 8, Switched()),
        ("{kind: switched}", 8, Switched()),
        ("fully-connected", 8, FullyConnected()),
        ("{kind: torus, dims: [4, 2]}", 8, Torus((4, 2), (True, False))),
        ("{kind: torus, dims: 4x4x8}", 128, Torus((4, 4, 8))),
        (
            "{kind: torus, dims: '4x4x8', wrap: [true, true, false]}",
            128,
            Torus((4, 4, 8), (True, True, False)),
        ),
        ("{kind: torus, dims: 2x2x1, wrap: false}", 4, Torus((2, 2, 1), (False, False, False), 6)),
        ("{kind: torus, dims: 2x4, wrap: true}", 8, Torus((2, 4), (True, True))),
        ("{kind: torus, dims: 8, links: 4}", 8, Torus((8,), (True,), 4)),
        (
            "{kind: tree, levels: [{fan_out: 4, oversubscription: 3}, {fan_out: 2}]}",
            8,
            Tree((Level(4, 3.0), Level(2))),
        ),
    ],
)
def test_shapes(write, text, fan_out, shape, tmp_path):
    config = shaped(write, text, fan_out)
    assert build_cluster(config).tiers[0].shape == shape
    assert build_cluster(config).tiers[1].shape == Switched()
    (tmp_path / "again.yaml").write_text(resolved_yaml(config))
    assert load_cluster("again.yaml") == config


def test_a_shape_by_override():
    config = load_cluster("tpu-v5e-16x16", ["tiers.0.fan_out=128", "tiers.0.shape.dims=8x16"])
    assert build_cluster(config).tiers[0].shape == Torus((8, 16))


# What is written for the shape of the first tier, its fan-out, and the line that is printed.
MISSHAPEN = [
    (
        "{kind: torus, dims: 4x4}",
        8,
        "cluster.yaml:8:32: cluster.tiers.0.shape.dims: expected dims that multiply to the fan_out, 8; got 16",
    ),
    (
        "{kind: torus, dims: [4, 0]}",
        8,
        "cluster.yaml:8:36: cluster.tiers.0.shape.dims.1: expected at least 1; got 0",
    ),
    (
        "{kind: torus, dims: 4 by 2}",
        8,
        "cluster.yaml:8:32: cluster.tiers.0.shape.dims: expected a list; got '4 by 2'",
    ),
    ("{kind: torus}", 8, "cluster.yaml:8:5: cluster.tiers.0.shape.dims: missing key; `dims` has to be given"),
    (
        "{kind: torus, dims: [4, 2], wrap: [true]}",
        8,
        "cluster.yaml:8:46: cluster.tiers.0.shape.wrap: expected true, false, or one of them for each of 2 "
        "dimensions; got 1",
    ),
    (
        "{kind: torus, dims: [4, 2], links: 2}",
        8,
        "cluster.yaml:8:47: cluster.tiers.0.shape.links: expected at least 3, the links that a unit of this grid "
        "uses; got 2",
    ),
    (
        "toros",
        8,
        "cluster.yaml:8:12: cluster.tiers.0.shape: unknown name `toros`; did you mean `torus`?",
    ),
    (
        "{kind: mesh}",
        8,
        "cluster.yaml:8:19: cluster.tiers.0.shape.kind: unknown name `mesh`; expected one of switched, "
        "fully-connected, torus, tree",
    ),
    (
        "{kind: tree, levels: [{fan_out: 4, oversubscription: 3}, {fan_out: 4}]}",
        8,
        "cluster.yaml:8:33: cluster.tiers.0.shape.levels: expected levels that multiply to the fan_out, 8; got 16",
    ),
    (
        "{kind: tree, levels: [{fan_out: 4}, {fan_out: 2, oversubscription: 2}]}",
        8,
        "expected no oversubscription of the top level, which leads nowhere; got 2",
    ),
    (
        "fully-connected\n    reduction_radix: 8",
        8,
        "cluster.yaml:9:22: cluster.tiers.0.reduction_radix: expected none, since a fully-connected tier has no "
        "switches; got 8",
    ),
    (
        "{kind: torus, dims: 8}\n    exceptions: [{units: 3, fan_out: 7}]",
        8,
        "cluster.yaml:9:38: cluster.tiers.0.exceptions.0.fan_out: expected none, since a torus has all of its "
        "units; got 7",
    ),
]


@pytest.mark.parametrize(("text", "fan_out", "line"), MISSHAPEN)
def test_shapes_that_cannot_be(write, text, fan_out, line):
    write("cluster.yaml", f"fan_out: {fan_out}\n    shape: {text}\n", replace=NODE)
    with pytest.raises(ConfigError) as caught:
        load_experiment("experiment.yaml")
    assert line in str(caught.value)
    assert len(caught.value.problems) == 1


def uneven(write, tier: str, *exceptions: str):
    lines = "".join(f"      - {each}\n" for each in exceptions)
    write("cluster.yaml", f"{tier}    exceptions:\n{lines}", replace=tier)


def test_sizes_are_counted_through_the_whole_cluster(write):
    uneven(write, NODE, "{units: [5, 100-101], fan_out: 7}", "{units: 127, fan_out: 1}")
    config = load_cluster("cluster.yaml")
    assert config.size == 1024 - 3 - 7
    assert config.size_text == "1-8 x 32 x 4 = 1014"
    whole = build_cluster(config)
    assert (whole.size, whole.size_text) == (config.size, config.size_text)
    sizes = whole.tiers[0].sizes
    assert sizes is not None
    assert [sizes[unit] for unit in (4, 5, 6, 100, 101, 102, 126, 127)] == [8, 7, 8, 7, 7, 8, 8, 1]


def test_a_missing_node_leaves_fewer_nodes_to_count(write):
    uneven(write, RACK, "{units: 2, fan_out: 31}")
    config = load_cluster("cluster.yaml")
    assert config.size == 127 * 8
    assert config.fan_outs == (8, (32, 32, 31, 32), 4)


def test_all_alike_after_all(write):
    uneven(write, RACK, "{units: 0-3, fan_out: 16}")
    config = load_cluster("cluster.yaml")
    assert config.fan_outs == (8, 16, 4)
    assert config.size_text == "8 x 16 x 4 = 512"


def test_links_that_differ(write):
    uneven(
        write,
        HALL,
        "{units: 3, of: rack, bandwidth_factor: 50 %, latency_factor: 2}",
        "{units: 0-3, of: rank, link: {bandwidth: 200 Gb/s, duplex: sum, latency: 10 us}}",
    )
    config = load_cluster("cluster.yaml")
    first, second = build_cluster(config).tiers[2].variations
    assert (first.units, first.of) == ((3,), 1)
    assert (float(first.latency_factor), float(first.bandwidth_factor)) == (2.0, 0.5)
    assert (second.units, second.of) == ((0, 1, 2, 3), -1)
    # 10 us for 5, and 100 Gb/s each way for 400.
    assert (float(second.latency_factor), float(second.bandwidth_factor)) == pytest.approx((2.0, 0.25))
    text = resolved_yaml(config)
    assert "0-3" in text


def test_overrides_reach_the_figures_of_an_exception():
    text = "tiers.0.exceptions.1.link.latency=1.2 us"
    config = load_cluster("mixed-generations", [text, "tiers.0.exceptions.1.chip.peak.bf16=300 TFLOP/s"])
    exceptions = config.tiers[0].exceptions
    assert exceptions is not None
    assert exceptions[1].link is not None
    assert exceptions[1].link.latency == pytest.approx(1.2e-6)
    assert (7 * 8 * 1, pytest.approx(300 / 989)) in config.classes("bf16")


def test_units_survive_the_round_trip(write, tmp_path):
    uneven(write, NODE, "{units: [7, 3-5, 2], fan_out: 4}")
    config = load_cluster("cluster.yaml")
    (tmp_path / "again.yaml").write_text(resolved_yaml(config))
    again = load_cluster("again.yaml")
    assert again == config
    assert again.tiers[0].exceptions is not None
    assert again.tiers[0].exceptions[0].units == (2, 3, 4, 5, 7)


@pytest.mark.parametrize(
    ("tier", "exceptions", "line"),
    [
        (
            NODE,
            ["{units: 128, fan_out: 7}"],
            "exceptions.0.units: unknown unit 128; `node` has units 0 to 127",
        ),
        (HALL, ["{units: 1, slowdown: 2}"], "exceptions.0.units: unknown unit 1; `hall` has one unit, 0"),
        (
            NODE,
            ["{units: 5}"],
            "exceptions.0: expected what differs: one of `fan_out`, `link`, `latency_factor`",
        ),
        (NODE, ["{fan_out: 5}"], "exceptions.0.units: missing key; `units` has to be given"),
        (NODE, ["{units: 5, fan_out: 0}"], "exceptions.0.fan_out: expected at least 1; got 0"),
        (
            NODE,
            ["{units: -1, fan_out: 7}"],
            "expected a number, a range such as 4-7, or a list of them; got -1",
        ),
        (
            NODE,
            ["{units: 7-4, fan_out: 7}"],
            "expected a number, a range such as 4-7, or a list of them; got '7-4'",
        ),
        (
            NODE,
            ["{units: [], fan_out: 7}"],
            "expected a number, a range such as 4-7, or a list of them; got none",
        ),
        (NODE, ["{units: [3, 2-4], fan_out: 7}"], "exceptions.0.units: expected each unit once; got 3 twice"),
        (
            NODE,
            ["{units: 2-4, fan_out: 7}", "{units: 4, slowdown: 2}"],
            "exceptions.1.units: expected each unit of `node` once; 4 was given already",
        ),
        (
            HALL,
            ["{units: 0, of: rack, fan_out: 7}"],
            "exceptions.0.fan_out: expected none, since these are units of `rack`; say it at that tier",
        ),
        (
            RACK,
            ["{units: 0, of: hall, slowdown: 2}"],
            "exceptions.0.of: expected this or an inner tier, or `rank`; `hall` lies outside of `rack`",
        ),
        (
            HALL,
            ["{units: 0, of: rak, slowdown: 2}"],
            "exceptions.0.of: unknown tier `rak`; did you mean `rank`?",
        ),
        (
            NODE,
            ["{units: 0, bandwidth_factor: 0}"],
            "exceptions.0.bandwidth_factor: expected more than 0; got 0",
        ),
        (
            NODE,
            ["{units: 0, latency_factor: -2}"],
            "exceptions.0.latency_factor: expected more than 0; got -2",
        ),
        (NODE, ["{units: 0, slowdown: 0}"], "exceptions.0.slowdown: expected more than 0; got 0"),
        (NODE, ["{units: 0, chip: H10}"], "exceptions.0.chip: unknown chip `H10`"),
    ],
)
def test_exceptions_that_cannot_be(write, tier, exceptions, line):
    uneven(write, tier, *exceptions)
    with pytest.raises(ConfigError) as caught:
        load_experiment("experiment.yaml")
    assert line in str(caught.value)
    assert len(caught.value.problems) == 1


def test_a_group_that_no_longer_fits(write):
    uneven(write, NODE, "{units: 0, fan_out: 7}")
    with pytest.raises(ConfigError, match="1024 ranks asked for, the cluster has 7-8 x 32 x 4 = 1023"):
        load_experiment("experiment.yaml", ["plan.ranks=1024"])


def test_chips_of_several_generations(write):
    uneven(
        write,
        NODE,
        "{units: 0-3, chip: A100}",
        "{units: 4, slowdown: 1.25}",
        "{units: 5, chip: {peak: {bf16: 2 PFLOP/s}}, slowdown: 1.25, fan_out: 4}",
    )
    config = load_cluster("cluster.yaml")
    assert config.classes("bf16") == [(32, pytest.approx(0.312)), (8, 0.8), (4, 1.6), (976, 1.0)]
    # Of a smaller group, those that are in it.
    assert config.classes("bf16", 36) == [(32, pytest.approx(0.312)), (4, 0.8)]
    assert config.classes("bf16", 8) == [(8, pytest.approx(0.312))]
    assert [count for count, _, _ in config.chips(50)] == [32, 8, 4, 6]
    with pytest.raises(InputError, match="A100 does not offer fp8; expected one of fp64"):
        config.classes("fp8")
    with pytest.raises(InputError, match="expected compute as `flop`, `format` and `efficiency`"):
        config.classes()


def test_equal_chips_are_one_class(write):
    config = load_cluster("cluster.yaml")
    assert config.classes("bf16") == config.classes() == [(1024, 1.0)]
    uneven(write, NODE, "{units: 1, slowdown: 2}", "{units: 3, slowdown: 2}")
    assert load_cluster("cluster.yaml").classes() == [(1008, 1.0), (16, 0.5)]


def test_exceptions_of_several_tiers_meet(write):
    uneven(write, NODE, "{units: 0, chip: A100}")
    text = (load_cluster("cluster.yaml").tiers[0].fan_out, NODE)
    assert text == (8, NODE)
    nested = load_cluster(
        "cluster.yaml", ["tiers.1.exceptions=[{units: 0, chip: {peak: {bf16: 500 TFLOP/s}}, slowdown: 2}]"]
    )
    # The innermost names the chip, slowdowns multiply.
    assert nested.classes("bf16") == [(8, pytest.approx(0.156)), (248, 0.25), (768, 1.0)]


def test_an_experiment_checks_every_chip_for_the_format(write):
    uneven(write, NODE, "{units: 0, chip: A100}")
    overrides = ["cluster.chip=H100", "model.compute.format=fp8"]
    with pytest.raises(ConfigError, match="A100 does not offer fp8"):
        load_experiment("experiment.yaml", overrides)
    with pytest.raises(ConfigError, match="expected `flop`, `format` and `efficiency`"):
        load_experiment("experiment.yaml", ["model.compute={time: 5 ms}"])
    # Nodes that take no part are no matter.
    uneven(write, NODE, "{units: 127, chip: A100}")
    load_experiment("experiment.yaml", [*overrides, "plan.ranks=8"])


def test_layout_by_hand():
    fan_outs = ((3, 2, 1), (2, 1), 2)
    assert counts(fan_outs) == (6, 3, 2, 1)
    assert size(fan_outs) == 6
    assert size_text(fan_outs) == "1-3 x 1-2 x 2 = 6"
    assert [list(first_ranks(fan_outs, tier)) for tier in (-1, 0, 1, 2)] == [
        [0, 1, 2, 3, 4, 5, 6],
        [0, 3, 5, 6],
        [0, 5, 6],
        [0, 6],
    ]
    assert list(first_ranks((8, 4), 0)) == [0, 8, 16, 24, 32]
