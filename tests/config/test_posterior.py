"""The block `posterior` of a cluster and of an experiment: what it says, what is refused, and what `--set` takes out of it."""

import math
import re

import pytest

from mc.config import ExperimentConfig, load_cluster, load_experiment
from mc.config.posterior import PosteriorConfig, known_anew
from mc.document import ConfigError

CLUSTER = """\
name: small
chip: {peak: {}}
tiers:
  - {name: node, fan_out: 4, link: {bandwidth: 200 GB/s, duplex: each, latency: 1 us}}
  - {name: net, fan_out: 4, link: {bandwidth: 20 GB/s, duplex: each, latency: 5 us}}
"""
BLOCK = f"""\
posterior:
  source: a log
  parameters:
    - {{paths: [tiers.node.link.bandwidth], space: positive, mean: {math.log(200e9)}, factor: [0.1]}}
    - {{paths: [tiers.net.link.latency], space: positive, mean: {math.log(5e-6)}, factor: [0.1, 0.2]}}
"""
EXPERIMENT = """\
name: barrier
cluster: small.yaml
model: {name: m, compute: {time: 1 ms}, exchange: {collective: all-reduce, size: 1 MB}}
plan: {ranks: all, algorithm: ring}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "small.yaml").write_text(CLUSTER + BLOCK)
    (tmp_path / "run.yaml").write_text(EXPERIMENT)
    return tmp_path


def test_a_draw_moves_figures_together(folder):
    posterior = load_cluster(folder / "small.yaml").posterior
    assert posterior is not None
    assert posterior.causes == 2
    found = posterior.draw([2.0, -1.0])
    assert found["tiers.node.link.bandwidth"] == pytest.approx(200e9 * math.exp(0.2))
    assert found["tiers.net.link.latency"] == pytest.approx(5e-6 * math.exp(0.2 - 0.2))


def test_spaces():
    groups = {"share": None, "factor": None, "simplex": "states", "ordered": "levels"}
    rows = [
        {"paths": [space], "space": space, "mean": 0.0, "factor": [1.0], "group": group}
        for space, group in groups.items()
    ]
    rows.append({**rows[2], "paths": ["second"], "mean": 1.0, "rest": "rest"})
    rows.append({**rows[3], "paths": ["higher"], "mean": 1.0})
    found = PosteriorConfig.model_validate({"source": "x", "parameters": rows}).draw([0.5])
    up, more = math.exp(0.5), math.exp(1.5)
    assert found["share"] == pytest.approx(up / (1 + up))
    assert found["factor"] == pytest.approx(1 + up)
    assert found["simplex"] == pytest.approx(up / (1 + up + more))
    assert found["simplex"] + found["second"] + found["rest"] == pytest.approx(1)
    assert found["ordered"] == pytest.approx(1 + up)
    assert found["higher"] == pytest.approx(1 + up + more)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "tiers.node.link.bandwidth]",
            "tiers.nod.link.bandwidth]",
            "small.yaml:9:16: posterior.parameters.0.paths.0: ",
        ),
        ("tiers.net.link.latency]", "tiers.node.link.bandwidth]", "expected each figure once"),
        ("[tiers.net.link.latency]", "[tiers.net]", "expected the path of one number; got that of several"),
        (
            f"{math.log(200e9)}",
            "3.0",
            "expected the mean of the figure at `tiers.node.link.bandwidth`, 2e+11; got that",
        ),
        ("[0.1]", "[0]", "expected a row that is not all 0"),
        ("space: positive", "space: simplex", "expected a `group`; got none"),
        ("space: positive", "space: normal", "posterior.parameters.0.space: unknown name `normal`"),
        (f"{math.log(200e9)}", "1e9", "expected means of figures; got some beyond all numbers"),
        (
            "fan_out: 4, link: {bandwidth: 200 GB/s",
            "fan_out: 4, link: {bandwidth: 300 GB/s",
            "leave out a figure that was",
        ),
    ],
)
def test_mistakes(folder, before, after, message):
    text = CLUSTER + BLOCK
    assert before in text
    (folder / "small.yaml").write_text(text.replace(before, after, 1))
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_cluster(folder / "small.yaml")


@pytest.mark.parametrize(
    ("override", "left", "fixed"),
    [
        ("cluster.tiers.0.link.bandwidth=100 GB/s", [(0.1, 0.2)], ("tiers.node.link.bandwidth",)),
        (
            "cluster.tiers.0.link={bandwidth: 1 GB/s, duplex: each, latency: 0 s}",
            [(0.1, 0.2)],
            ("tiers.node.link.bandwidth",),
        ),
        ("cluster.tiers.1.link.latency=1 us", [(0.1,)], ("tiers.net.link.latency",)),
        ("cluster.tiers.1.link.bandwidth=1 GB/s", [(0.1,), (0.1, 0.2)], ()),
    ],
)
def test_what_is_set_is_known(folder, override, left, fixed):
    cluster = load_experiment(folder / "run.yaml", [override]).cluster
    assert cluster.posterior is not None
    assert [each.factor for each in cluster.posterior.parameters] == left
    assert cluster.posterior.fixed == fixed


OWN = f"""\
posterior:
  source: steps.csv
  parameters:
    - {{paths: [model.compute.time], space: positive, mean: {math.log(1e-3)}, factor: [0.1]}}
    - {{paths: [cluster.tiers.net.link.bandwidth], space: positive, mean: {math.log(20e9)}, factor: [0.1, 0.2]}}
"""


def test_a_figure_that_is_known_by_its_product(folder):
    noise = "  noise: {slow_chips: {fraction: 0.1, slowdown: 1.25}}\n"
    text = EXPERIMENT.replace("cluster: small.yaml\n", "cluster:\n  extends: small.yaml\n" + noise)
    slow = "cluster.noise.slow_chips.slowdown"
    rows = f"""\
posterior:
  source: steps.csv
  parameters:
    - {{paths: [model.compute.time], space: positive, mean: {math.log(1.25e-3)}, factor: [0.01], over: {slow}}}
    - {{paths: [{slow}], space: factor, mean: {math.log(0.25)}, factor: [0, 1.0]}}
"""
    (folder / "run.yaml").write_text(text + rows)
    found = load_experiment(folder / "run.yaml").uncertain
    assert found is not None
    figures = found.draw([0, 0, 1.0, 2.0])
    assert figures["model.compute.time"] * figures[slow] == pytest.approx(1.25e-3 * math.exp(0.01))
    assert figures[slow] == pytest.approx(1 + 0.25 * math.exp(2))
    # Without the slowdown nothing is known of the time.
    fixed = load_experiment(folder / "run.yaml", [f"{slow}=1.5"]).posterior
    assert fixed is not None
    assert (fixed.parameters, set(fixed.fixed)) == ((), {slow, "model.compute.time"})
    (folder / "run.yaml").write_text(text + rows.replace(f"over: {slow}", "over: model.compute.time"))
    with pytest.raises(ConfigError, match=r"parameters.0.over: expected none, or another of the parameters"):
        load_experiment(folder / "run.yaml")


def test_an_experiment_has_its_own_beside_its_clusters(folder):
    (folder / "run.yaml").write_text(EXPERIMENT + OWN)
    found = load_experiment(folder / "run.yaml").uncertain
    assert found is not None
    assert found.source == "a log; steps.csv"
    names = ["cluster.tiers.node.link.bandwidth", "cluster.tiers.net.link.latency", "model.compute.time"]
    assert [each.paths[0] for each in found.parameters] == [*names, "cluster.tiers.net.link.bandwidth"]
    # Of causes of its own.
    assert [each.factor for each in found.parameters] == [
        (0.1,),
        (0.1, 0.2),
        (0, 0, 0.1),
        (0, 0, 0.1, 0.2),
    ]
    figures = found.draw([1.0, 0.0, 2.0, 0.0])
    assert figures["model.compute.time"] == pytest.approx(1e-3 * math.exp(0.2))
    assert figures["cluster.tiers.node.link.bandwidth"] == pytest.approx(200e9 * math.exp(0.1))


@pytest.mark.parametrize(
    ("override", "left", "fixed"),
    [
        ("model.compute.time=2 ms", ["cluster.tiers.net.link.bandwidth"], ("model.compute.time",)),
        (
            "cluster.tiers.1.link.bandwidth=1 GB/s",
            ["model.compute.time"],
            ("cluster.tiers.net.link.bandwidth",),
        ),
        ("cluster=other.yaml", ["model.compute.time"], ("cluster.tiers.net.link.bandwidth",)),
        ("run.samples=10", ["model.compute.time", "cluster.tiers.net.link.bandwidth"], ()),
    ],
)
def test_what_is_set_of_an_experiment_is_known(folder, override, left, fixed):
    (folder / "run.yaml").write_text(EXPERIMENT + OWN)
    (folder / "other.yaml").write_text(CLUSTER.replace("20 GB/s", "30 GB/s"))
    override = override.replace("other.yaml", str(folder / "other.yaml"))
    found = load_experiment(folder / "run.yaml", [override]).posterior
    assert found is not None
    assert [each.paths[0] for each in found.parameters] == left
    assert found.fixed == fixed


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("[model.compute.time]", "[model.compute.tme]", "run.yaml:8:16: posterior.parameters.0.paths.0: "),
        ("[model.compute.time]", "[run.samples]", "expected the path of a figure; got that of a count"),
        (f"{math.log(1e-3)}", "3.0", "expected the mean of the figure at `model.compute.time`, 0.001"),
        (
            "net.link.bandwidth",
            "node.link.bandwidth",
            "expected a figure that the cluster's own `posterior` lacks",
        ),
    ],
)
def test_mistakes_of_an_experiments_own(folder, before, after, message):
    assert before in OWN
    (folder / "run.yaml").write_text(EXPERIMENT + OWN.replace(before, after, 1))
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_experiment(folder / "run.yaml")


def test_what_is_fitted_anew_loses_its_rows(folder):
    (folder / "run.yaml").write_text(EXPERIMENT + OWN)
    config = load_experiment(folder / "run.yaml")
    found = known_anew(config, ["model.compute.time", "cluster.tiers.node.link.bandwidth"])
    assert found.posterior is not None
    assert found.cluster.posterior is not None
    assert [each.paths[0] for each in found.posterior.parameters] == ["cluster.tiers.net.link.bandwidth"]
    assert [each.paths[0] for each in found.cluster.posterior.parameters] == ["tiers.net.link.latency"]


def test_the_resolved_file_says_the_same(folder):
    experiment = load_experiment(folder / "run.yaml", ["cluster.tiers.1.link.latency=1 us"])
    again = ExperimentConfig.model_validate(experiment.model_dump(mode="json", exclude_none=True))
    assert again == experiment
