"""The mistakes people make: each is reported at its place, in words that say what would do."""

import pytest

from mc.config import load_experiment
from mc.document import ConfigError

BANDWIDTH = "expected a bandwidth such as 900 GB/s, 800 Gb/s or 64 GiB/s"
# (file, what stands there, what is written instead, the line that is printed)
MISTAKES = [
    # Keys.
    (
        "cluster.yaml",
        "fan_out: 8",
        "fan_out: 8\n    oversubscripton: 2",
        "cluster.yaml:8:5: cluster.tiers.0.oversubscripton: unknown key; did you mean `oversubscription`?",
    ),
    (
        "cluster.yaml",
        "duplex: sum, latency: 1 us",
        "latency: 1 us",
        "cluster.yaml:6:5: cluster.tiers.0.link.duplex: missing key; `duplex` has to be given",
    ),
    (
        "plan.yaml",
        "ranks: all\n",
        "ranks: all\nranks: 8\n",
        "plan.yaml:3:1: ranks: duplicate key; it was given in line 2 already",
    ),
    (
        "experiment.yaml",
        "name: little experiment",
        "schema_version: 2\nname: x",
        "experiment.yaml:1:17: schema_version: expected 1; got 2",
    ),
    # Units.
    (
        "cluster.yaml",
        "900 GB/s",
        "900 GB",
        "cluster.yaml:6:23: cluster.tiers.0.link.bandwidth: " + BANDWIDTH + "; "
        "got '900 GB': `GB` measures size, not bandwidth",
    ),
    (
        "cluster.yaml",
        "900 GB/s",
        "900 gb/s",
        "cluster.yaml:6:23: cluster.tiers.0.link.bandwidth: " + BANDWIDTH + "; "
        "got '900 gb/s': did you mean `900 GB/s` (bytes) or `900 Gb/s` (bits)?",
    ),
    (
        "cluster.yaml",
        "900 GB/s",
        "900",
        "cluster.yaml:6:23: cluster.tiers.0.link.bandwidth: " + BANDWIDTH + "; "
        "got 900: a bare number has no unit; write one out, such as `900 GB/s` or `900 Gb/s`",
    ),
    (
        "model.yaml",
        "64 MiB",
        "64M",
        "model.yaml:3:42: model.exchange.size: expected a size such as 64 MiB, 128 MB or 512 Mbit; "
        "got '64M': did you mean `64 MiB` or `64 MB`?",
    ),
    (
        "model.yaml",
        "60 TFLOP",
        "60 TFLOPS",
        "model.yaml:2:17: model.compute.flop: expected an amount of compute such as 60 TFLOP or 2.5 PFLOP; "
        "got '60 TFLOPS': FLOPS may be a count or a rate; write `60 TFLOP`",
    ),
    # Numbers.
    (
        "cluster.yaml",
        "900 GB/s",
        "-900 GB/s",
        "cluster.yaml:6:23: cluster.tiers.0.link.bandwidth: expected more than 0; got '-900 GB/s'",
    ),
    (
        "cluster.yaml",
        "900 GB/s",
        "0 GB/s",
        "cluster.yaml:6:23: cluster.tiers.0.link.bandwidth: expected more than 0; got '0 GB/s'",
    ),
    (
        "cluster.yaml",
        "900 GB/s",
        ".nan",
        "cluster.yaml:6:23: tiers.0.link.bandwidth: expected a finite number; got .nan",
    ),
    (
        "cluster.yaml",
        "latency: 1 us",
        "latency: -1 us",
        "cluster.yaml:6:55: cluster.tiers.0.link.latency: expected at least 0; got '-1 us'",
    ),
    (
        "cluster.yaml",
        "fan_out: 32",
        "fan_out: 0",
        "cluster.yaml:10:14: cluster.tiers.1.fan_out: expected at least 1; got 0",
    ),
    (
        "cluster.yaml",
        "fan_out: 32",
        "fan_out: 1",
        "cluster.yaml:10:14: cluster.tiers.1.fan_out: expected 2 or more, "
        "since a tier of one unit joins nothing; got 1",
    ),
    (
        "cluster.yaml",
        "fan_out: 32",
        "fan_out: 32.5",
        "cluster.yaml:10:14: cluster.tiers.1.fan_out: expected an integer; got 32.5",
    ),
    (
        "cluster.yaml",
        "fan_out: 32",
        "fan_out: 32\n    reduction_radix: 1",
        "cluster.yaml:11:22: cluster.tiers.1.reduction_radix: expected at least 2; got 1",
    ),
    (
        "cluster.yaml",
        "fan_out: 32",
        "fan_out: 32\n    oversubscription: 0.5",
        "cluster.yaml:11:23: cluster.tiers.1.oversubscription: expected at least 1; got 0.5",
    ),
    (
        "model.yaml",
        "40 %",
        "140 %",
        "model.yaml:2:53: model.compute.efficiency: expected at most 1; got '140 %'",
    ),
    ("model.yaml", "40 %", "0", "model.yaml:2:53: model.compute.efficiency: expected more than 0; got 0"),
    (
        "experiment.yaml",
        "samples: 1000",
        "samples: 0",
        "experiment.yaml:5:16: run.samples: expected at least 1; got 0",
    ),
    ("experiment.yaml", "seed: 7", "seed: -7", "experiment.yaml:5:28: run.seed: expected at least 0; got -7"),
    # Names.
    (
        "cluster.yaml",
        "link: {bandwidth: 900 GB/s, duplex: sum, latency: 1 us}",
        "link: NVLnk-4",
        "cluster.yaml:6:11: cluster.tiers.0.link: unknown link `NVLnk-4`; did you mean `NVLink-4`?",
    ),
    (
        "model.yaml",
        "all-reduce",
        "allreduce",
        "model.yaml:3:24: model.exchange.collective: unknown name `allreduce`; did you mean `all-reduce`? "
        "(one of all-reduce, reduce, broadcast, all-gather, reduce-scatter, gather, scatter, all-to-all, send-recv, "
        "barrier)",
    ),
    (
        "model.yaml",
        "format: bf16",
        "format: fp4",
        "model.yaml:2:35: model.compute.format: the chip does not offer fp4; expected one of bf16",
    ),
    (
        "cluster.yaml",
        "duplex: sum",
        "duplex: both",
        "cluster.yaml:6:41: cluster.tiers.0.link.duplex: unknown name `both`; expected one of each, sum",
    ),
    (
        "cluster.yaml",
        "name: rack",
        "name: node",
        "cluster.yaml:8:11: cluster.tiers.1.name: expected another name; `node` is taken already",
    ),
    (
        "cluster.yaml",
        "name: rack",
        "name: all",
        "cluster.yaml:8:11: cluster.tiers.1.name: expected another name; `all` has a meaning in `shared_by`",
    ),
    # Files.
    (
        "experiment.yaml",
        "plan: plan.yaml",
        "plan: plans.yaml",
        "experiment.yaml:4:7: plan: no such file: `plans.yaml` (looked for plans.yaml)",
    ),
    (
        "experiment.yaml",
        "plan: plan.yaml",
        "plan: [1]",
        "experiment.yaml:4:7: plan: expected a mapping; got a list of 1",
    ),
    (
        "plan.yaml",
        "name: everyone",
        "extends: plan.yaml",
        "plan.yaml:1:10: extends: the files extend each other in a circle: plan.yaml -> plan.yaml",
    ),
    # Sizes.
    (
        "plan.yaml",
        "ranks: all",
        "ranks: 2048",
        "plan.yaml:2:8: plan.ranks: 2048 ranks asked for, the cluster has 8 x 32 x 4 = 1024; "
        "expected `all` or at most 1024",
    ),
    (
        "plan.yaml",
        "ranks: all",
        "ranks: 0",
        "plan.yaml:2:8: plan.ranks: expected `all` or a whole number of at least 1; got 0",
    ),
    (
        "plan.yaml",
        "ranks: all",
        "ranks: everyone",
        "plan.yaml:2:8: plan.ranks: expected `all` or a whole number of at least 1; got 'everyone'",
    ),
    # Either, or.
    (
        "model.yaml",
        "{flop: 60 TFLOP, format: bf16, efficiency: 40 %}",
        "{flop: 60 TFLOP, time: 3 ms}",
        "model.yaml:2:10: model.compute: expected either `time` or `flop`, `format` and `efficiency`; "
        "got `time` and `flop`",
    ),
    (
        "model.yaml",
        "{collective: all-reduce, size: 64 MiB}",
        "{collective: all-reduce}",
        "model.yaml:3:11: model.exchange: expected a size such as 64 MiB; `all-reduce` moves data",
    ),
    (
        "model.yaml",
        "all-reduce",
        "barrier",
        "model.yaml:3:39: model.exchange.size: a barrier carries no data; leave `size` out",
    ),
]


@pytest.mark.parametrize(
    ("file", "right", "wrong", "line"), MISTAKES, ids=[each[3].split(": ")[0] for each in MISTAKES]
)
def test_mistake_is_reported_at_its_place(file, right, wrong, line, write):
    write(file, wrong, replace=right)
    with pytest.raises(ConfigError) as error:
        load_experiment("experiment.yaml")
    assert str(error.value) == line


def test_unknown_chip_and_shipped_names_get_suggestions(write):
    write("cluster.yaml", "chip: H10O", replace="chip:\n  peak: {bf16: 1 PFLOP/s}")
    with pytest.raises(
        ConfigError, match=r"^cluster\.yaml:2:7: cluster\.chip: unknown chip `H10O`; did you mean `H100`\?$"
    ):
        load_experiment("experiment.yaml")
    with pytest.raises(
        ConfigError,
        match=r"no cluster `dgx-h10-superpod` comes with tailstep; did you mean `dgx-h100-superpod`\?",
    ):
        load_experiment("experiment.yaml", ["cluster=dgx-h10-superpod"])


def test_unknown_algorithm(write):
    write("plan.yaml", "algorithm: rings", replace="algorithm: auto")
    with pytest.raises(
        ConfigError, match=r"^plan\.yaml:3:12: plan\.algorithm: unknown name `rings`; did you mean `ring`\?"
    ):
        load_experiment("experiment.yaml")


def test_mistakes_of_all_files_come_at_once(write):
    write("cluster.yaml", "fan_out: 0", replace="fan_out: 32")
    write("model.yaml", "size: 64", replace="size: 64 MiB")
    write("plan.yaml", "rnks: all", replace="ranks: all")
    write("experiment.yaml", "samples: few", replace="samples: 1000")
    with pytest.raises(ConfigError) as error:
        load_experiment("experiment.yaml", ["run.method=exat", "run"])
    assert [(each.position.file, each.position.line, each.key) for each in error.value.problems] == [
        ("--set run", 0, ""),
        ("--set run.method=exat", 0, "run.method"),
        ("cluster.yaml", 10, "cluster.tiers.1.fan_out"),
        ("experiment.yaml", 5, "run.samples"),
        ("model.yaml", 3, "model.exchange.size"),
        ("plan.yaml", 2, "plan.rnks"),
    ]


def test_a_broken_reference_does_not_hide_the_other_mistakes(write):
    write("experiment.yaml", "plan: nope.yaml\nnme: x", replace="plan: plan.yaml")
    write("cluster.yaml", "a: b: c")
    with pytest.raises(ConfigError) as error:
        load_experiment("experiment.yaml")
    assert str(error.value).splitlines() == [
        "cluster.yaml:1:5: not YAML: mapping values are not allowed here",
        "experiment.yaml:4:7: plan: no such file: `nope.yaml` (looked for nope.yaml)",
        "experiment.yaml:5:1: nme: unknown key; did you mean `name`?",
    ]


def test_mistakes_that_are_inherited_are_reported_where_they_were_made(write):
    write("base.yaml", "name: base\nranks: all\nalgorithm: rnig\n")
    write("plan.yaml", "extends: base.yaml\n")
    with pytest.raises(ConfigError, match=r"^base\.yaml:3:12: plan\.algorithm: unknown name `rnig`"):
        load_experiment("experiment.yaml")


def test_circles_between_files_are_shown(write):
    write("a.yaml", "extends: b.yaml\n")
    write("b.yaml", "extends: a.yaml\n")
    with pytest.raises(ConfigError, match=r"b\.yaml:1:10: .*in a circle: a\.yaml -> b\.yaml -> a\.yaml"):
        load_experiment("experiment.yaml", ["plan=a.yaml"])


FLAGS = [
    (
        "plan.ranks=2048",
        "plan.ranks: 2048 ranks asked for, the cluster has 8 x 32 x 4 = 1024; expected `all` or at most 1024",
    ),
    ("run.seeed=3", "run.seeed: unknown key; did you mean `seed`?"),
    ("clustr.name=x", "clustr: unknown key; did you mean `cluster`?"),
    ("cluster=nope.yaml", "cluster: no such file: `nope.yaml` (looked for nope.yaml)"),
    (
        "cluster.tiers.rack.fan_out=3",
        "cluster.tiers.rack: `cluster.tiers` is a list; expected an index (0 to 2); got `rack`; "
        "the item of that name has index 1",
    ),
    (
        "cluster.tiers.0.link.bandwidth=900",
        "cluster.tiers.0.link.bandwidth: " + BANDWIDTH + "; got 900: a bare number has no unit; "
        "write one out, such as `900 GB/s` or `900 Gb/s`",
    ),
]


@pytest.mark.parametrize(("flag", "message"), FLAGS)
def test_mistakes_in_flags_name_the_flag(flag, message, write):
    with pytest.raises(ConfigError) as error:
        load_experiment("experiment.yaml", [flag])
    assert str(error.value) == f"--set {flag}: {message}"
