"""What a good experiment becomes, and how files are put together."""

import pytest
from pydantic import ValidationError

from mc.config import config_hash, load_any, load_cluster, load_experiment, load_model, load_plan
from mc.document import ConfigError


def test_quantities_are_si_floats(write):
    config = load_experiment("experiment.yaml")
    node, rack, _ = config.cluster.tiers
    assert node.link.bandwidth == 9e11
    assert node.link.bandwidth_per_direction == 4.5e11
    assert rack.link.bandwidth_per_direction == 5e10
    assert rack.link.latency == 2e-6
    assert config.cluster.chip.peak.offered == {"bf16": 1e15}
    assert config.model.compute.flop == 6e13
    assert config.model.compute.efficiency == 0.4
    assert config.model.exchange.size == 64 * 1024**2
    assert (config.run.samples, config.run.seed, config.run.method, config.run.confidence) == (
        1000,
        7,
        "exact",
        0.95,
    )
    assert config.cluster.size == config.ranks == 8 * 32 * 4


def test_a_rank_gets_its_links_divided_by_the_oversubscription(write):
    config = load_cluster("cluster.yaml", ["tiers.1.links_per_rank=2", "tiers.1.oversubscription=4"])
    assert config.tiers[1].bandwidth_per_rank == 5e10 * 2 / 4


def test_hop_latency_defaults_to_the_latency_of_the_link(write):
    config = load_cluster("cluster.yaml", ["tiers.0.link.latency=7 us", "tiers.1.hop_latency=0.5 us"])
    assert [tier.hop_latency for tier in config.tiers] == [7e-6, 5e-7, 5e-6]


def test_configurations_are_frozen(write):
    with pytest.raises(ValidationError, match="frozen"):
        load_plan("plan.yaml").ranks = 3


def test_parts_may_be_inline_referred_to_or_inherited(write):
    """Four ways to write the same experiment down; the hash sees no difference."""
    inline = """\
run: {seed: 7, samples: 1000}
plan: {algorithm: auto, ranks: all, name: everyone}
model:
  exchange: {size: 67108864 B, collective: all-reduce}
  compute: {efficiency: 0.4, flop: 0.06 PFLOP, format: bf16}
  name: little model
cluster: {extends: cluster.yaml}
name: little experiment
"""
    write("inline.yaml", inline)
    write("heir.yaml", "extends: experiment.yaml\n")
    write("deep/er/heir.yaml", "extends: ../../experiment.yaml\nplan: ../../plan.yaml\n")
    configs = [
        load_experiment(name) for name in ("experiment.yaml", "inline.yaml", "heir.yaml", "deep/er/heir.yaml")
    ]
    assert all(config == configs[0] for config in configs)
    assert len({config_hash(config) for config in configs}) == 1


def test_an_inline_part_may_inherit_and_change(write):
    write(
        "heir.yaml",
        "extends: experiment.yaml\n"
        "cluster: {extends: cluster.yaml, name: other, noise: {slow_chips: {fraction: 1 %, slowdown: 2}}}\n",
    )
    config = load_experiment("heir.yaml")
    assert config.cluster.name == "other"
    assert config.cluster.size == 1024
    assert config.cluster.noise.slow_chips is not None
    assert config.cluster.noise.slow_chips.fraction == 0.01


def test_references_start_from_the_file_that_says_them(write, tmp_path, monkeypatch):
    write("far/experiment.yaml", "extends: ../experiment.yaml\nmodel: model.yaml\n")
    write("far/model.yaml", "name: far model\ncompute: {time: 3 ms}\nexchange: {collective: barrier}\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    config = load_experiment("../far/experiment.yaml")
    assert config.model.name == "far model"
    assert config.cluster.name == "little cluster"


def test_overrides_reach_into_references_and_may_replace_them(write):
    write("other.yaml", "name: other\ncompute: {time: 3 ms}\nexchange: {collective: barrier}\n")
    config = load_experiment(
        "experiment.yaml",
        ["model.compute.time=5 ms", "model=other.yaml", "cluster.tiers.0.fan_out=2", "run.method=grid"],
    )
    assert config.model.compute.time == 5e-3
    assert config.cluster.size == 2 * 32 * 4
    assert config.run.method == "grid"


def test_kinds_are_told_by_their_keys(write):
    write("thin.yaml", "extends: model.yaml\nname: heir\n")
    write("clusters/misspelt.yaml", "name: x\n")
    kinds = {name: load_any(f"{name}.yaml")[0] for name in ("cluster", "model", "plan", "experiment", "thin")}
    assert kinds == {
        "cluster": "cluster",
        "model": "model",
        "plan": "plan",
        "experiment": "experiment",
        "thin": "model",
    }
    with pytest.raises(ConfigError, match=r"clusters/misspelt.yaml:1:1: tiers: missing key"):
        load_any("clusters/misspelt.yaml")
    write("what.yaml", "name: x\n")
    with pytest.raises(ConfigError, match="cannot tell what kind of file this is; name it with `--kind`"):
        load_any("what.yaml")


def test_each_kind_has_its_loader(write):
    assert load_model("model.yaml").name == "little model"
    assert load_plan("plan.yaml").ranks == "all"
    assert load_cluster("cluster.yaml").tiers[0].name == "node"


def test_shipped_files_have_names(write):
    assert load_any("dgx-h100-superpod")[0] == "cluster"
    assert load_any("everyone")[0] == "plan"
    assert load_any("quickstart") == ("experiment", load_experiment())
    with pytest.raises(
        ConfigError,
        match="did you mean `quickstart`",
    ):
        load_experiment("quickstrt")
